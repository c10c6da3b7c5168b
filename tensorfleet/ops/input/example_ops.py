"""The operations that take serialized `tf.train.Example` messages apart into tensors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from tensorfleet.base.dtypes import DType
from tensorfleet.base.errors import InvalidArgumentError
from tensorfleet.base.shapes import TensorShape
from tensorfleet.base.types import Array
from tensorfleet.graph.kernel_types import HostContext
from tensorfleet.graph.operation import Operation
from tensorfleet.graph.registry import not_differentiable, op
from tensorfleet.kernels import example_wire as wire
from tensorfleet.kernels.example_layouts import Sorted
from tensorfleet.kernels.packed_strings import Strings, together
from tensorfleet.ops.common import vector_of

KINDS = {"string": wire.BYTES, "float32": wire.FLOATS, "int64": wire.INTS}
NAMES = ("", "string", "float", "int64")
_COUNTED = ("", "bytes", "float", "int64")  # in messages about a wrong number of values
TYPES = "{float, int64, string}"
NONE: wire.Feature = (wire.MISSING, [])


#: Errors so far: the position of a record, and the message.
Errors: TypeAlias = list[tuple[int, str]]


def _raise_first(errors: Errors) -> None:
    """Raises the error of the first record that has one."""
    if errors:
        raise InvalidArgumentError(None, None, min(errors, key=lambda e: e[0])[1])


class ExampleBatch:
    """Serialized Examples and where their features are."""

    def __init__(self, records: Strings | list[bytes], names: list[bytes] | None) -> None:
        self.size = len(records)
        self.names = names  # None for a single Example, whose errors have no name
        try:
            grouped = Sorted(records)
        except wire.Malformed as e:
            at, record = e.args
            text = repr(record[:100])[1:].strip("'\"")
            text = f"Could not parse example input, value: '{text}' (record {at} of {len(records)})"
            raise InvalidArgumentError(None, None, text) from None
        self.groups, self.walked, self.alone = grouped.groups, grouped.walked, grouped.alone

    def about(self, at: int) -> str:
        """How errors name a record."""
        if self.names is None:
            return ""
        name = self.names[at].decode(errors="replace") if self.names else "<unknown>"
        return f"Name: {name}, "

    def where(self, key: bytes, at: int) -> str:
        """How errors name a feature of a record."""
        place = f"Key: {key.decode(errors='replace')}"
        return f"{place}.  " if self.names is None else f"{self.about(at)}{place}, Index: {at}.  "

    def dense(self, key: bytes, dtype: DType, shape: TensorShape, default: Array) -> Array:
        """A feature that has one shape in all records."""
        kind, dims = KINDS[dtype.name], tuple(shape.as_list())
        size = math.prod(dims)
        errors: Errors = []
        usable = default.size == size and size > 0
        out: Any = None
        for group in self.groups:
            got = group.layout.kind(key)
            part = default if got != kind else group.take(key)
            at = int(group.positions[0])
            if self._fits(errors, key, at, kind, got, part.shape[-1] if got == kind else 0, shape, usable):
                if len(group.positions) == self.size:
                    if got == kind:
                        return part.reshape(self.size, *dims)
                    out = np.empty((self.size, size), dtype.np_dtype)
                out = np.empty((self.size, size), dtype.np_dtype) if out is None else out
                out[group.positions] = part.reshape(-1, size)
        uneven, others = self._uneven(key, kind)
        out = np.empty((self.size, size), dtype.np_dtype) if out is None else out
        for there, values, counts in uneven:
            fits = counts == size
            if fits.all():
                out[there] = values.reshape(-1, size)
            else:
                at = int(np.argmin(fits))
                self._fits(errors, key, int(there[at]), kind, kind, int(counts[at]), shape, usable)
        for there, got in others:
            if self._fits(errors, key, int(there[0]), kind, got, 0, shape, usable):
                out[there] = default.ravel()
        _raise_first(errors)
        dense: Array = out.reshape(self.size, *dims)
        return dense

    def _fits(
        self,
        errors: Errors,
        key: bytes,
        at: int,
        kind: int,
        got: int,
        count: int,
        shape: TensorShape,
        usable: bool,
    ) -> bool:
        """Whether a record can give a dense feature; adds the error to `errors` when not."""
        if got == wire.MISSING:
            if not usable:
                errors.append((at, self._required(key, kind, at)))
            return usable
        if got != kind:
            text = f"Data types don't match. Data type: {NAMES[got]} but expected type: {NAMES[kind]}"
        elif count != shape.num_elements():
            text = self._mismatch(kind, count, shape)
        else:
            return True
        errors.append((at, self.where(key, at) + text))
        return False

    def _mismatch(self, kind: int, count: int, shape: TensorShape) -> str:
        if self.names is None:
            return f"Can't parse serialized Example: {count} {NAMES[kind]} values do not fill shape {brackets(shape)}."
        return f"Number of {_COUNTED[kind]} values != expected.  Values size: {count} but output shape: {brackets(shape)}"

    def _required(self, key: bytes, kind: int, at: int) -> str:
        feature = f"Feature: {key.decode(errors='replace')} (data type: {NAMES[kind]})"
        which = "" if self.names is None else f" (record {at} of {self.size})"
        return f"{self.about(at)}{feature} is required but could not be found.{which}"

    def flat(self, key: bytes, dtype: DType) -> tuple[Array, Array]:
        """All values of a feature, record after record, and how many each record has."""
        kind = KINDS[dtype.name]
        counts = np.zeros(self.size, np.int64)
        parts: list[tuple[Array, Array]] = []
        errors: Errors = []
        for group in self.groups:
            got = group.layout.kind(key)
            if got == kind:
                part = group.take(key)
                counts[group.positions] = part.shape[1]
                parts.append((group.positions, part))
            elif got != wire.MISSING:
                errors.append(
                    (int(group.positions[0]), self._other_type(key, int(group.positions[0]), kind, got))
                )
        uneven, others = self._uneven(key, kind)
        for there, got in others:
            if got != wire.MISSING:
                errors.append((int(there[0]), self._other_type(key, int(there[0]), kind, got)))
        _raise_first(errors)
        if not parts and len(uneven) == 1 and len(uneven[0][0]) == self.size:
            return uneven[0][1:]
        if not uneven and (even := self._even(parts, dtype)) is not None:
            return even, counts
        for there, _, lengths in uneven:
            counts[there] = lengths
        starts = np.cumsum(counts) - counts
        out = np.empty(int(counts.sum()), dtype.np_dtype)
        for positions, part in parts:
            out[starts[positions][:, None] + np.arange(part.shape[1])] = part
        for there, values, lengths in uneven:
            out[np.repeat(starts[there], lengths) + within(lengths)] = values
        return out, counts

    def _even(self, parts: list[tuple[Array, Array]], dtype: DType) -> Array | None:
        """The values, if all records are in groups and have the same number of values; else None."""
        widths = {part.shape[1] for _, part in parts}
        if len(widths) != 1 or sum(len(positions) for positions, _ in parts) != self.size:
            return None
        values = np.empty((self.size, *widths), dtype.np_dtype)
        for positions, part in parts:
            values[positions] = part
        return values.reshape(-1)

    def _uneven(self, key: bytes, kind: int) -> tuple[list[tuple[Any, Array, Array]], list[tuple[Any, int]]]:
        """A feature in the records outside all groups: where it is, its values, how many each has; and where it is not."""
        there: list[tuple[Any, Array, Array]] = []
        others: list[tuple[Any, int]] = []
        for some in self.walked:
            if some.kind(key) == kind:
                there.append((some.positions, *some.values(key)))
            else:
                others.append((some.positions, some.kind(key)))
        alone = [(at, record, features.get(key, NONE)) for at, record, features in self.alone]
        same = [each for each in alone if each[2][0] == kind]
        others += [([at], feature[0]) for at, _, feature in alone if feature[0] != kind]
        if same:
            there.append(([at for at, *_ in same], *wire.values([each[1:] for each in same], kind)))
        return there, others

    def _other_type(self, key: bytes, at: int, kind: int, got: int) -> str:
        text = f"Data types don't match. Expected type: {NAMES[kind]}, Actual type: {NAMES[got]}"
        return self.where(key, at) + text

    def sparse(self, key: bytes, dtype: DType) -> tuple[Array, Array, Array]:
        """A feature of any length: indices, values and shape of a sparse matrix with one row per record."""
        values, counts = self.flat(key, dtype)
        longest = int(counts.max()) if self.size else 0
        indices = np.empty((len(values), 2), np.int64)
        if longest * self.size == len(values):  # all rows full: no need to repeat and count
            table = indices.reshape(self.size, longest, 2)
            table[..., 0], table[..., 1] = np.arange(self.size)[:, None], np.arange(longest)
        else:
            indices[:, 0] = np.repeat(np.arange(self.size), counts)
            indices[:, 1] = within(counts)
        return indices, values, np.array([self.size, longest], np.int64)

    def padded(self, key: bytes, dtype: DType, shape: TensorShape, default: Array) -> Array:
        """A feature of any number of rows, filled up to the longest with the default value."""
        values, counts = self.flat(key, dtype)
        inner = tuple(shape.as_list()[1:])
        stride = int(np.prod(inner, dtype=np.int64))
        uneven = np.flatnonzero(counts % stride)
        if len(uneven):
            at = int(uneven[0])
            text = (
                f"Number of {_COUNTED[KINDS[dtype.name]]} values is not a multiple of stride length. Saw "
                f"{counts[at]} values but output shape is: {brackets(shape)}"
            )
            raise InvalidArgumentError(None, None, self.where(key, at) + text)
        longest = int(counts.max()) if self.size else 0
        fill: Any = default.ravel()[0] if default.size else (b"" if dtype.name == "string" else 0)
        out = np.full((self.size, longest), fill, dtype.np_dtype)
        out[np.repeat(np.arange(self.size), counts), within(counts)] = values
        return out.reshape(self.size, longest // stride, *inner)


def within(counts: Array) -> Array:
    """0, 1, 2, ... for each count, one after the other."""
    if counts.max(initial=0) <= 1:
        return np.zeros(int(counts.sum()), np.int64)
    starts = np.cumsum(counts) - counts
    places: Array = np.arange(int(counts.sum())) - np.repeat(starts, counts)
    return places


def brackets(shape: TensorShape) -> str:
    """A shape as TensorFlow's messages write it."""
    return "[" + ",".join("?" if d is None else str(d) for d in shape.as_list()) + "]"


def flat_strings(value: Strings | Array) -> list[bytes]:
    """The elements of a string tensor."""
    return np.asarray(value, object).ravel().tolist()


def records_of(value: Strings | Array) -> Strings | list[bytes]:
    """The records of a vector."""
    return together(value) or flat_strings(value)


def key_list(tensors: Sequence[Strings | Array]) -> list[bytes]:
    """The keys in scalar string tensors."""
    return [k for t in tensors for k in flat_strings(t)]


def _dense_or_padded(
    batch: ExampleBatch, key: bytes, dtype: DType, shape: TensorShape, default: Array
) -> Array:
    grows = shape.rank and shape.as_list()[0] is None
    return (batch.padded if grows else batch.dense)(key, dtype, shape, np.asarray(default))


# -- Example -----------------------------------------------------------------------------------------


def _parsed_shapes(op: Operation) -> list[TensorShape]:
    serialized = op._inputs[0].shape
    if serialized.rank is not None and serialized.rank != 1:
        raise ValueError(f"Shape must be rank 1 but is rank {serialized.rank}")
    size = serialized.as_list()[0] if serialized.rank else None
    sparse = len(op._attrs["sparse_types"])
    shapes = [TensorShape([None, 2])] * sparse + [vector_of(None)] * sparse + [vector_of(2)] * sparse
    return shapes + [TensorShape([size]).concatenate(s) for s in op._attrs["dense_shapes"]]


@op(
    "ParseExample",
    "serialized: string, names: string, sparse_keys: Nsparse * string, dense_keys: Ndense * string, "
    "dense_defaults: list(Tdense) -> sparse_indices: Nsparse * int64, sparse_values: list(sparse_types), "
    "sparse_shapes: Nsparse * int64, dense_values: list(Tdense)",
    f"Nsparse: int; Ndense: int; sparse_types: list({TYPES}); Tdense: list({TYPES}); dense_shapes: list(shape)",
    shape=_parsed_shapes,
    host=True,
    packed=True,
)
def _parse_example(
    ctx: HostContext,
    serialized: Strings | Array,
    names: Strings | Array,
    sparse_keys: list[Strings | Array],
    dense_keys: list[Strings | Array],
    defaults: list[Array],
    *,
    sparse_types: list[DType],
    Tdense: list[DType],
    dense_shapes: list[TensorShape],
) -> tuple[Array, ...]:
    named = flat_strings(names)
    if named and len(named) != np.size(serialized):
        text = f"Expected len(names) == len(serialized) if names non-empty, got {len(named)} and {np.size(serialized)}"
        raise InvalidArgumentError(None, None, text)
    batch = ExampleBatch(records_of(serialized), named)
    dense = zip(key_list(dense_keys), Tdense, dense_shapes, defaults, strict=True)
    dense_values = [_dense_or_padded(batch, *each) for each in dense]
    sparse = [batch.sparse(k, t) for k, t in zip(key_list(sparse_keys), sparse_types, strict=True)]
    return (*(s[0] for s in sparse), *(s[1] for s in sparse), *(s[2] for s in sparse), *dense_values)


def _single_shapes(op: Operation) -> list[TensorShape]:
    if op._inputs[0].shape.rank not in (None, 0):
        raise ValueError(f"Shape must be rank 0 but is rank {op._inputs[0].shape.rank}")
    sparse = len(op._attrs["sparse_types"])
    shapes = [TensorShape([None, 1])] * sparse + [vector_of(None)] * sparse + [vector_of(1)] * sparse
    return shapes + list(op._attrs["dense_shapes"])


@op(
    "ParseSingleExample",
    "serialized: string, dense_defaults: list(Tdense) -> sparse_indices: num_sparse * int64, "
    "sparse_values: list(sparse_types), sparse_shapes: num_sparse * int64, dense_values: list(Tdense)",
    f"num_sparse: int; sparse_keys: list(string); dense_keys: list(string); sparse_types: list({TYPES}); "
    f"Tdense: list({TYPES}); dense_shapes: list(shape)",
    shape=_single_shapes,
    host=True,
)
def _parse_single_example(
    ctx: HostContext,
    serialized: Array,
    defaults: list[Array],
    *,
    sparse_keys: list[bytes],
    dense_keys: list[bytes],
    sparse_types: list[DType],
    Tdense: list[DType],
    dense_shapes: list[TensorShape],
) -> tuple[Array, ...]:
    batch = ExampleBatch(flat_strings(serialized), None)
    dense = zip(dense_keys, Tdense, dense_shapes, defaults, strict=True)
    # An ellipsis keeps a scalar an array.
    dense_values = [_dense_or_padded(batch, *each)[0, ...] for each in dense]
    sparse = [batch.sparse(k, t) for k, t in zip(sparse_keys, sparse_types, strict=True)]
    indices, shapes = [s[0][:, 1:] for s in sparse], [s[2][1:] for s in sparse]
    return (*indices, *(s[1] for s in sparse), *shapes, *dense_values)


#: An output for many records: an array with a row for each, or a list of arrays where these differ in shape.
Rows: TypeAlias = Array | list[Array]


def parse_each(records: list[bytes], defaults: list[Array], attrs: dict[str, Any]) -> list[Rows]:
    """The outputs of `ParseSingleExample` for each of many records."""
    batch = ExampleBatch(records, None)
    indices: list[Rows] = []
    values: list[Rows] = []
    lengths: list[Rows] = []
    for key, dtype in zip(attrs["sparse_keys"], attrs["sparse_types"], strict=True):
        flat, counts = batch.flat(key, dtype)
        indices.append(_pieces(within(counts)[:, None], counts))
        values.append(_pieces(flat, counts))
        lengths.append(counts.astype(np.int64)[:, None])
    dense: list[Rows] = []
    for key, dtype, shape, default in zip(
        attrs["dense_keys"], attrs["Tdense"], attrs["dense_shapes"], defaults, strict=True
    ):
        if shape.is_fully_defined():
            dense.append(batch.dense(key, dtype, shape, np.asarray(default)))
        else:
            inner = shape.as_list()[1:]
            pieces = _pieces(*batch.flat(key, dtype))
            dense.append([piece.reshape(-1, *inner) for piece in pieces] if inner else pieces)
    return [*indices, *values, *lengths, *dense]


def _pieces(flat: Array, counts: Array) -> list[Array]:
    """So many rows after so many."""
    ends = np.cumsum(counts)
    return [flat[start:end] for start, end in zip((ends - counts).tolist(), ends.tolist(), strict=True)]


not_differentiable("ParseExample", "ParseSingleExample")

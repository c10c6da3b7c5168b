"""The operations that take serialized `tf.train.Example` messages apart into tensors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tensorfleet.base.dtypes import DType
from tensorfleet.base.errors import InvalidArgumentError
from tensorfleet.base.shapes import TensorShape
from tensorfleet.graph.operation import Operation
from tensorfleet.graph.registry import not_differentiable, op
from tensorfleet.kernels import example_wire as wire
from tensorfleet.kernels.example_layouts import Sorted
from tensorfleet.kernels.packed_strings import Strings, together
from tensorfleet.ops.common import vector_of

KINDS = {"string": wire.BYTES, "float32": wire.FLOATS, "int64": wire.INTS}
NAMES = ("", "string", "float", "int64")
_COUNTED = ("", "bytes", "float", "int64")  # where their number is wrong
TYPES = "{float, int64, string}"
NONE: wire.Feature = (wire.MISSING, [])


def _first(found: list[tuple[int, str]]) -> None:
    """Raises the error of the first record that has one."""
    if found:
        raise InvalidArgumentError(None, None, min(found, key=lambda e: e[0])[1])


class Batch:
    """Serialized Examples and where their features are."""

    def __init__(self, records: Strings | list[bytes], names: list[bytes] | None) -> None:
        self.size = len(records)
        self.names = names  # None for a single Example, whose errors have no name
        try:
            found = Sorted(records)
        except wire.Malformed as e:
            at, record = e.args
            text = repr(record[:100])[1:].strip("'\"")
            told = f"Could not parse example input, value: '{text}'"
            raise InvalidArgumentError(None, None, f"{told} (record {at} of {len(records)})") from None
        self.groups, self.walked, self.alone = found.groups, found.walked, found.alone

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

    def dense(self, key: bytes, dtype: DType, shape: TensorShape, default: np.ndarray) -> np.ndarray:
        """A feature that has one shape in all records."""
        kind, dims = KINDS[dtype.name], tuple(shape.as_list())
        size = math.prod(dims)
        found: list[tuple[int, str]] = []
        usable = default.size == size and size > 0
        out: Any = None
        for group in self.groups:
            got = group.layout.kind(key)
            part = default if got != kind else group.take(key)
            at = int(group.positions[0])
            if self._fits(found, key, at, kind, got, part.shape[-1] if got == kind else 0, shape, usable):
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
                self._fits(found, key, int(there[at]), kind, kind, int(counts[at]), shape, usable)
        for there, got in others:
            if self._fits(found, key, int(there[0]), kind, got, 0, shape, usable):
                out[there] = default.ravel()
        _first(found)
        return out.reshape(self.size, *dims)

    def _fits(
        self,
        found: list[tuple[int, str]],
        key: bytes,
        at: int,
        kind: int,
        got: int,
        count: int,
        shape: TensorShape,
        usable: bool,
    ) -> bool:
        """Whether a record can give a dense feature; adds the error to `found` when not."""
        if got == wire.MISSING:
            if not usable:
                found.append((at, self._required(key, kind, at)))
            return usable
        if got != kind:
            text = f"Data types don't match. Data type: {NAMES[got]} but expected type: {NAMES[kind]}"
        elif count != shape.num_elements():
            text = self._mismatch(kind, count, shape)
        else:
            return True
        found.append((at, self.where(key, at) + text))
        return False

    def _mismatch(self, kind: int, count: int, shape: TensorShape) -> str:
        if self.names is None:
            return f"Can't parse serialized Example: {count} {NAMES[kind]} values do not fill shape {brackets(shape)}."
        return f"Number of {_COUNTED[kind]} values != expected.  Values size: {count} but output shape: {brackets(shape)}"

    def _required(self, key: bytes, kind: int, at: int) -> str:
        feature = f"Feature: {key.decode(errors='replace')} (data type: {NAMES[kind]})"
        which = "" if self.names is None else f" (record {at} of {self.size})"
        return f"{self.about(at)}{feature} is required but could not be found.{which}"

    def flat(self, key: bytes, dtype: DType) -> tuple[np.ndarray, np.ndarray]:
        """All values of a feature, record after record, and how many each record has."""
        kind = KINDS[dtype.name]
        counts = np.zeros(self.size, np.int64)
        parts: list[tuple[Any, Any]] = []
        found: list[tuple[int, str]] = []
        for group in self.groups:
            got = group.layout.kind(key)
            if got == kind:
                part = group.take(key)
                counts[group.positions] = part.shape[1]
                parts.append((group.positions, part))
            elif got != wire.MISSING:
                found.append(
                    (int(group.positions[0]), self._other_type(key, int(group.positions[0]), kind, got))
                )
        uneven, others = self._uneven(key, kind)
        for there, got in others:
            if got != wire.MISSING:
                found.append((int(there[0]), self._other_type(key, int(there[0]), kind, got)))
        _first(found)
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

    def _even(self, parts: list[tuple[Any, Any]], dtype: DType) -> np.ndarray | None:
        """The values of records that are all in groups and have as many each; None when they are not, or have not."""
        widths = {part.shape[1] for _, part in parts}
        if len(widths) != 1 or sum(len(positions) for positions, _ in parts) != self.size:
            return None
        made = np.empty((self.size, *widths), dtype.np_dtype)
        for positions, part in parts:
            made[positions] = part
        return made.reshape(-1)

    def _uneven(self, key: bytes, kind: int) -> tuple[list[tuple], list[tuple[Any, int]]]:
        """A feature in the records outside all groups: where it is, its values, how many each has; and where it is not."""
        there: list[tuple] = []
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

    def sparse(self, key: bytes, dtype: DType) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """A feature of any length: indices, values and shape of a sparse matrix with one row per record."""
        values, counts = self.flat(key, dtype)
        longest = int(counts.max()) if self.size else 0
        indices = np.empty((len(values), 2), np.int64)
        if longest * self.size == len(values):
            table = indices.reshape(self.size, longest, 2)
            table[..., 0], table[..., 1] = np.arange(self.size)[:, None], np.arange(longest)
        else:
            indices[:, 0] = np.repeat(np.arange(self.size), counts)
            indices[:, 1] = within(counts)
        return indices, values, np.array([self.size, longest], np.int64)

    def padded(self, key: bytes, dtype: DType, shape: TensorShape, default: np.ndarray) -> np.ndarray:
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


def within(counts: np.ndarray) -> np.ndarray:
    """0, 1, 2, ... for each count, one after the other."""
    if counts.max(initial=0) <= 1:
        return np.zeros(int(counts.sum()), np.int64)
    starts = np.cumsum(counts) - counts
    return np.arange(int(counts.sum())) - np.repeat(starts, counts)


def brackets(shape: TensorShape) -> str:
    """A shape as TensorFlow's messages write it."""
    return "[" + ",".join("?" if d is None else str(d) for d in shape.as_list()) + "]"


def flat_strings(value: Any) -> list[bytes]:
    """The elements of a string tensor."""
    return np.asarray(value, object).ravel().tolist()


def records_of(value: Any) -> Strings | list[bytes]:
    """The records of a vector."""
    return together(value) or flat_strings(value)


def key_list(tensors: list) -> list[bytes]:
    """The keys that scalar string tensors hold."""
    return [k for t in tensors for k in flat_strings(t)]


def _dense_or_padded(batch: Batch, key: bytes, dtype: DType, shape: TensorShape, default: Any) -> np.ndarray:
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
    ctx: Any,
    serialized: Any,
    names: Any,
    sparse_keys: list,
    dense_keys: list,
    defaults: list,
    *,
    sparse_types: list[DType],
    Tdense: list[DType],
    dense_shapes: list[TensorShape],
) -> tuple:
    named = flat_strings(names)
    if named and len(named) != np.size(serialized):
        text = f"Expected len(names) == len(serialized) if names non-empty, got {len(named)} and {np.size(serialized)}"
        raise InvalidArgumentError(None, None, text)
    batch = Batch(records_of(serialized), named)
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
    ctx: Any,
    serialized: Any,
    defaults: list,
    *,
    sparse_keys: list[bytes],
    dense_keys: list[bytes],
    sparse_types: list[DType],
    Tdense: list[DType],
    dense_shapes: list[TensorShape],
) -> tuple:
    batch = Batch(flat_strings(serialized), None)
    dense = zip(dense_keys, Tdense, dense_shapes, defaults, strict=True)
    # An ellipsis keeps a scalar an array.
    dense_values = [_dense_or_padded(batch, *each)[0, ...] for each in dense]
    sparse = [batch.sparse(k, t) for k, t in zip(sparse_keys, sparse_types, strict=True)]
    indices, shapes = [s[0][:, 1:] for s in sparse], [s[2][1:] for s in sparse]
    return (*indices, *(s[1] for s in sparse), *shapes, *dense_values)


def parse_each(records: list[bytes], defaults: list, attrs: dict[str, Any]) -> list:
    """What `ParseSingleExample` gives for each of many records: arrays of one row each, or lists where they differ."""
    batch = Batch(records, None)
    indices: list = []
    values: list = []
    lengths: list = []
    for key, dtype in zip(attrs["sparse_keys"], attrs["sparse_types"], strict=True):
        flat, counts = batch.flat(key, dtype)
        indices.append(_pieces(within(counts)[:, None], counts))
        values.append(_pieces(flat, counts))
        lengths.append(counts.astype(np.int64)[:, None])
    dense: list = []
    for key, dtype, shape, default in zip(
        attrs["dense_keys"], attrs["Tdense"], attrs["dense_shapes"], defaults, strict=True
    ):
        if shape.is_fully_defined():
            dense.append(batch.dense(key, dtype, shape, np.asarray(default)))
        else:
            inner = shape.as_list()[1:]
            found = _pieces(*batch.flat(key, dtype))
            dense.append([piece.reshape(-1, *inner) for piece in found] if inner else found)
    return [*indices, *values, *lengths, *dense]


def _pieces(flat: np.ndarray, counts: np.ndarray) -> list[np.ndarray]:
    """So many rows after so many."""
    ends = np.cumsum(counts)
    return [flat[start:end] for start, end in zip((ends - counts).tolist(), ends.tolist(), strict=True)]


not_differentiable("ParseExample", "ParseSingleExample")

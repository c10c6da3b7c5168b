"""The operations that take serialized `tf.train.SequenceExample` messages apart into tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorfleet.base.dtypes import DType
from tensorfleet.base.errors import InvalidArgumentError
from tensorfleet.base.shapes import TensorShape
from tensorfleet.base.types import Array
from tensorfleet.graph.kernel_types import HostContext
from tensorfleet.graph.operation import Operation
from tensorfleet.graph.registry import not_differentiable, op
from tensorfleet.kernels import example_wire as wire
from tensorfleet.ops.common import vector_of
from tensorfleet.ops.input.example_ops import (
    KINDS,
    NAMES,
    NONE,
    TYPES,
    brackets,
    flat_strings,
    key_list,
    within,
)
from tensorfleet.ops.sparse.arrange import Parts

_SEQUENCE_OUTPUTS = (
    "context_sparse_indices: Ncontext_sparse * int64, context_sparse_values: list(context_sparse_types), "
    "context_sparse_shapes: Ncontext_sparse * int64, context_dense_values: list(Tcontext_dense), "
    "feature_list_sparse_indices: Nfeature_list_sparse * int64, "
    "feature_list_sparse_values: list(feature_list_sparse_types), "
    "feature_list_sparse_shapes: Nfeature_list_sparse * int64, "
    "feature_list_dense_values: list(feature_list_dense_types)"
)
_SEQUENCE_ATTRS = (
    "Ncontext_sparse: int = 0; Ncontext_dense: int = 0; Nfeature_list_sparse: int = 0; "
    f"Nfeature_list_dense: int = 0; context_sparse_types: list({TYPES}) = []; Tcontext_dense: list({TYPES}) = []; "
    f"feature_list_dense_types: list({TYPES}) = []; context_dense_shapes: list(shape) = []; "
    f"feature_list_sparse_types: list({TYPES}) = []; feature_list_dense_shapes: list(shape) = []"
)


#: the names of the kinds of a feature in messages
_FIELDS = ("", "bytes_list", "float_list", "int64_list")


class _SequenceBatch:
    """Serialized SequenceExamples; `single` ones lose the dimension of the batch."""

    def __init__(self, serialized: Array, names: Array, single: bool) -> None:
        self.records = flat_strings(serialized)
        self.names = flat_strings(names)
        self.single = single
        self.context, self.lists = [], []
        for i, record in enumerate(self.records):
            try:
                context, lists = wire.scan_sequence(record)
            except wire.Malformed:
                text = f"Could not parse example input, value: {record[:100]!r} (record {i} of {len(self.records)})"
                raise InvalidArgumentError(None, None, text) from None
            self.context.append(context)
            self.lists.append(lists)

    def about(self, i: int) -> str:
        """How errors name a record."""
        name = self.names[i] if i < len(self.names) else b""
        return f"Name: {name.decode(errors='replace') or '<unknown>'}, "

    def _values(
        self, i: int, key: bytes, feature: wire.Feature, dtype: DType, at: int | None = None
    ) -> Array:
        """The values of a context feature, or of the feature at a place of a list."""
        kind = KINDS[dtype.name]
        if feature[0] not in (kind, wire.MISSING):
            name = key.decode(errors="replace")
            where = f"Context feature: {name}" if at is None else f"Feature list: {name}, Index: {at}"
            text = f"Data types don't match. Expected type: {NAMES[kind]}  Feature is: {_FIELDS[feature[0]]}"
            raise InvalidArgumentError(None, None, f"{self.about(i)}{where}.  {text}")
        if feature[0] == wire.MISSING:
            return np.zeros(0, dtype.np_dtype)
        return wire.values([(self.records[i], feature)], kind)[0]

    def context_sparse(self, key: bytes, dtype: DType) -> Parts:
        """A context feature of any length."""
        rows = [self._values(i, key, c.get(key, NONE), dtype) for i, c in enumerate(self.context)]
        counts = np.array([len(r) for r in rows], np.int64)
        indices = np.stack([np.repeat(np.arange(len(rows)), counts), within(counts)], axis=1)
        shape = np.array([len(rows), counts.max() if len(rows) else 0], np.int64)
        return self._parts(indices, _joined(rows, dtype), shape)

    def _parts(self, indices: Array, values: Array, shape: Array) -> Parts:
        return (indices[:, 1:], values, shape[1:]) if self.single else (indices, values, shape)

    def context_dense(self, key: bytes, dtype: DType, shape: TensorShape, default: Array) -> Array:
        """A context feature of one shape."""
        out = []
        for i, context in enumerate(self.context):
            feature = context.get(key, NONE)
            if feature[0] == wire.MISSING:
                if not np.size(default):
                    what = f"Context feature '{key.decode()}' is required but could not be found."
                    raise InvalidArgumentError(None, None, self.about(i) + what)
                out.append(np.asarray(default).reshape(shape.as_list()))
                continue
            row = self._values(i, key, feature, dtype)
            if len(row) != shape.num_elements():
                text = (
                    f"Number of {dtype.name} values != expected.  Values size: {len(row)} but output shape: "
                )
                place = f"{self.about(i)}Context feature: {key.decode()}.  "
                raise InvalidArgumentError(None, None, f"{place}{text}{brackets(shape)}")
            out.append(row.reshape(shape.as_list()))
        if self.single:
            return out[0]
        return np.stack(out) if out else np.zeros((0, *shape.as_list()), dtype.np_dtype)

    def list_sparse(self, key: bytes, dtype: DType) -> Parts:
        """A feature list whose features have any length."""
        coordinates: list[Array] = []
        parts: list[Array] = []
        most_rows = longest = 0
        for i, lists in enumerate(self.lists):
            features = lists.get(key, [])
            rows = [self._values(i, key, f, dtype, t) for t, f in enumerate(features)]
            counts = np.array([len(r) for r in rows], np.int64)
            most_rows = max(most_rows, len(rows))
            longest = max(longest, int(counts.max()) if len(rows) else 0)
            row = np.repeat(np.arange(len(rows)), counts)
            coordinates.append(np.stack([np.full(len(row), i), row, within(counts)], axis=1))
            parts += rows
        indices = np.concatenate(coordinates) if coordinates else np.zeros((0, 3), np.int64)
        shape = np.array([len(self.lists), most_rows, longest], np.int64)
        return self._parts(indices, _joined(parts, dtype), shape)

    def list_dense(
        self, key: bytes, dtype: DType, shape: TensorShape, may_miss: bool
    ) -> tuple[Array, Array | None]:
        """A feature list whose features have one shape, filled up to the longest list."""
        columns = []
        dims = shape.as_list()
        for i, lists in enumerate(self.lists):
            if key not in lists and not may_miss:
                what = f"Feature list '{key.decode()}' is required but could not be found."
                hint = "Did you mean to include it in feature_list_dense_missing_assumed_empty or feature_list_dense_defaults?"
                raise InvalidArgumentError(None, None, f"{self.about(i)}{what}  {hint}")
            rows = [self._values(i, key, f, dtype, t) for t, f in enumerate(lists.get(key, []))]
            for t, row in enumerate(rows):
                if len(row) != shape.num_elements():
                    place = f"Key: {key.decode()}, Index: {t}.  "
                    text = f"Number of {dtype.name} values != expected.  values size: {len(row)} but output shape: "
                    raise InvalidArgumentError(None, None, f"{self.about(i)}{place}{text}{brackets(shape)}")
            columns.append(
                np.concatenate(rows).reshape(-1, *dims) if rows else np.zeros((0, *dims), dtype.np_dtype)
            )
        if self.single:
            return columns[0], None
        longest = max([len(m) for m in columns], default=0)
        fill: Any = b"" if dtype.name == "string" else 0
        out = np.full((len(columns), longest, *dims), fill, dtype.np_dtype)
        for row_out, part in zip(out, columns, strict=True):
            row_out[: len(part)] = part
        return out, np.array([len(m) for m in columns], np.int64)


def _joined(rows: list[Array], dtype: DType) -> Array:
    """Rows of values, one after the other."""
    if dtype.name == "string":
        return wire.objects([v for row in rows for v in row])
    arrays = [np.asarray(row, dtype.np_dtype) for row in rows if len(row)]
    return np.concatenate([np.zeros(0, dtype.np_dtype), *arrays])


def _run_sequences(
    sequences: _SequenceBatch,
    keys: list[list[bytes]],
    optional: set[bytes],
    defaults: list[Array],
    a: dict[str, Any],
) -> tuple[Array, ...]:
    context_sparse, context_dense, list_sparse, list_dense = keys
    sparse = [
        sequences.context_sparse(k, t) for k, t in zip(context_sparse, a["context_sparse_types"], strict=True)
    ]
    wanted = zip(context_dense, a["Tcontext_dense"], a["context_dense_shapes"], defaults, strict=True)
    dense = [sequences.context_dense(*each) for each in wanted]
    lists = [
        sequences.list_sparse(k, t) for k, t in zip(list_sparse, a["feature_list_sparse_types"], strict=True)
    ]
    shaped = zip(list_dense, a["feature_list_dense_types"], a["feature_list_dense_shapes"], strict=True)
    rows = [sequences.list_dense(k, t, s, k in optional) for k, t, s in shaped]
    outputs = [part[i] for i in range(3) for part in sparse] + dense
    outputs += [part[i] for i in range(3) for part in lists] + [r[0] for r in rows]
    return (*outputs, *(r[1] for r in rows if r[1] is not None))


def _sequence_shapes(op: Operation) -> list[TensorShape]:
    single = op.type == "ParseSingleSequenceExample"
    size = op._inputs[0].shape.as_list()[0] if op._inputs[0].shape.rank else None
    lead = TensorShape([]) if single else TensorShape([size])
    a, extra = op._attrs, 0 if single else 1
    sparse, lists = len(a["context_sparse_types"]), len(a["feature_list_sparse_types"])
    shapes = (
        [TensorShape([None, 1 + extra])] * sparse
        + [vector_of(None)] * sparse
        + [vector_of(1 + extra)] * sparse
    )
    shapes += [lead.concatenate(s) for s in a["context_dense_shapes"]]
    shapes += (
        [TensorShape([None, 2 + extra])] * lists + [vector_of(None)] * lists + [vector_of(2 + extra)] * lists
    )
    shapes += [lead.concatenate(TensorShape([None])).concatenate(s) for s in a["feature_list_dense_shapes"]]
    return shapes + ([] if single else [lead] * len(a["feature_list_dense_types"]))


@op(
    "ParseSingleSequenceExample",
    "serialized: string, feature_list_dense_missing_assumed_empty: string, "
    "context_sparse_keys: Ncontext_sparse * string, context_dense_keys: Ncontext_dense * string, "
    "feature_list_sparse_keys: Nfeature_list_sparse * string, feature_list_dense_keys: Nfeature_list_dense * string, "
    f"context_dense_defaults: list(Tcontext_dense), debug_name: string -> {_SEQUENCE_OUTPUTS}",
    _SEQUENCE_ATTRS,
    shape=_sequence_shapes,
    host=True,
)
def _parse_single_sequence(
    ctx: HostContext,
    serialized: Array,
    optional: Array,
    cs: list[Array],
    cd: list[Array],
    ls: list[Array],
    ld: list[Array],
    defaults: list[Array],
    name: Array,
) -> tuple[Array, ...]:
    sequences = _SequenceBatch(serialized, name, single=True)
    keys = [key_list(cs), key_list(cd), key_list(ls), key_list(ld)]
    return _run_sequences(sequences, keys, set(flat_strings(optional)), defaults, ctx.op._attrs)


@op(
    "ParseSequenceExample",
    "serialized: string, debug_name: string, context_dense_defaults: list(Tcontext_dense) -> "
    f"{_SEQUENCE_OUTPUTS}, feature_list_dense_lengths: Nfeature_list_dense * int64",
    "feature_list_dense_missing_assumed_empty: list(string); context_sparse_keys: list(string); "
    "context_dense_keys: list(string); feature_list_sparse_keys: list(string); feature_list_dense_keys: list(string); "
    f"{_SEQUENCE_ATTRS}",
    shape=_sequence_shapes,
    host=True,
)
def _parse_sequences(
    ctx: HostContext, serialized: Array, names: Array, defaults: list[Array]
) -> tuple[Array, ...]:
    a = ctx.op._attrs
    sequences = _SequenceBatch(serialized, names, single=False)
    keys = [
        a[f"{k}_keys"]
        for k in ("context_sparse", "context_dense", "feature_list_sparse", "feature_list_dense")
    ]
    return _run_sequences(sequences, keys, set(a["feature_list_dense_missing_assumed_empty"]), defaults, a)


not_differentiable("ParseSingleSequenceExample", "ParseSequenceExample")

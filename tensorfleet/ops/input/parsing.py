"""`tf.parse_example` and its relatives: dictionaries of features in, dictionaries of tensors out."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple, TypeAlias

from tensorfleet.base import dtypes
from tensorfleet.base.dtypes import DType
from tensorfleet.base.naming import export
from tensorfleet.base.shapes import TensorShape, as_shape
from tensorfleet.base.types import DTypeLike, ShapeLike, TensorLike
from tensorfleet.graph.apply import apply_any, constant
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import name_scope
from tensorfleet.graph.sparse_tensor import SparseTensor
from tensorfleet.ops.array.shape import expand_dims, reshape, squeeze
from tensorfleet.ops.sparse.order import sparse_merge


@export("FixedLenFeature", "io.FixedLenFeature")
class FixedLenFeature(NamedTuple):
    """A feature with the same number of values in every record."""

    shape: ShapeLike
    dtype: DTypeLike
    default_value: TensorLike = None


@export("VarLenFeature", "io.VarLenFeature")
class VarLenFeature(NamedTuple):
    """A feature with any number of values: becomes a `SparseTensor`."""

    dtype: DTypeLike


@export("FixedLenSequenceFeature", "io.FixedLenSequenceFeature")
class FixedLenSequenceFeature(NamedTuple):
    """A feature with any number of rows of one shape, filled up to the longest of the batch."""

    shape: ShapeLike
    dtype: DTypeLike
    allow_missing: bool = False
    default_value: TensorLike = None


@export("SparseFeature", "io.SparseFeature")
class SparseFeature(NamedTuple):
    """A sparse tensor kept in several features: one with its values, others with their coordinates."""

    index_key: str | list[str]
    value_key: str
    dtype: DTypeLike
    size: int | list[int]
    already_sorted: bool = False


#: The features to parse, by key.
Features: TypeAlias = Mapping[str, Any]
#: The parsed features, by key: a Tensor or a SparseTensor each.
Parsed: TypeAlias = dict[str, Any]


class _Wanted:
    """A dictionary of features, sorted into the arguments of the operations."""

    def __init__(self, features: Features | None, kinds: tuple[type[Any], ...]) -> None:
        self.sparse: dict[str, DType] = {}
        self.dense: dict[str, tuple[DType, TensorShape, TensorLike]] = {}
        self.merged: dict[str, SparseFeature] = {}
        for key in sorted(features or {}):
            feature = (features or {})[key]
            if not isinstance(feature, kinds):
                raise ValueError(f"Unsupported {type(feature).__name__} {feature} for key '{key}'")
            self._add(key, feature)
        if both := self.dense.keys() & self.sparse.keys():
            raise ValueError(
                f"Dense and sparse keys must not intersect; dense_keys: {list(self.dense)}, sparse_keys: "
                f"{list(self.sparse)}, intersection: {both}"
            )

    def _add(self, key: str, feature: Any) -> None:
        if isinstance(feature, SparseFeature):
            self._add_sparse(key, feature)
            return
        if not feature.dtype:
            raise ValueError(f"Missing type for feature {key}. Received feature={feature}")
        dtype = dtypes.as_dtype(feature.dtype)
        if isinstance(feature, VarLenFeature):
            self._add_values(key, dtype)
            return
        if feature.shape is None:
            raise ValueError(f"Missing shape for feature {key}. Received feature={feature}.")
        shape = as_shape(feature.shape)
        dims = shape.as_list()
        if isinstance(feature, FixedLenSequenceFeature):
            self.dense[key] = (dtype, TensorShape([None]).concatenate(shape), feature.default_value)
            return
        if dims and dims[0] is None:
            raise ValueError(
                f"First dimension of shape for feature {key} unknown. Consider using FixedLenSequenceFeature. Received "
                f"feature={feature}."
            )
        if any(d is None for d in dims):
            raise ValueError(
                f"All dimensions of shape for feature {key} need to be known but received {feature.shape}."
            )
        self.dense[key] = (dtype, shape, feature.default_value)

    def _add_values(self, key: str, dtype: DType) -> None:
        if self.sparse.setdefault(key, dtype) != dtype:
            raise ValueError(f"Conflicting type {self.sparse[key].name} vs {dtype.name} for feature {key}.")

    def _add_sparse(self, key: str, feature: SparseFeature) -> None:
        if not feature.index_key:
            raise ValueError(f"Missing index_key for SparseFeature {feature}.")
        if not feature.value_key:
            raise ValueError(f"Missing value_key for SparseFeature {feature}.")
        if not feature.dtype:
            raise ValueError(f"Missing type for feature {key}. Received feature={feature}.")
        keys = feature.index_key if isinstance(feature.index_key, (list, tuple)) else [feature.index_key]
        for index_key in sorted(keys):
            self._add_values(index_key, dtypes.int64)
        self._add_values(feature.value_key, dtypes.as_dtype(feature.dtype))
        self.merged[key] = feature

    def defaults(self) -> list[Tensor]:
        """The default value of each dense feature as a tensor; an empty one where it is required."""
        tensors = []
        for key, (dtype, shape, default) in self.dense.items():
            name = re.sub("[^A-Za-z0-9_.\\-/]", "_", key)
            grows = bool(shape.rank) and shape.as_list()[0] is None
            if default is None:
                tensors.append(constant([], dtype))
            elif grows:
                # One value pads all short rows.
                inner = TensorShape([1]).concatenate(TensorShape(shape.as_list()[1:]))
                value = to_tensor(default, dtype, name=f"padding_{name}")
                tensors.append(value if value.shape.num_elements() == 1 else reshape(value, inner))
            else:
                tensors.append(reshape(to_tensor(default, dtype, name=f"key_{name}"), shape))
        return tensors

    @property
    def types(self) -> list[DType]:
        """The types of the dense features."""
        return [dtype for dtype, _, _ in self.dense.values()]

    @property
    def shapes(self) -> list[TensorShape]:
        """The shapes of the dense features."""
        return [shape for _, shape, _ in self.dense.values()]

    def arrange(
        self, indices: list[Tensor], values: list[Tensor], shapes: list[Tensor], dense: list[Tensor]
    ) -> Parsed:
        """The outputs of an operation, by key."""
        parts = zip(indices, values, shapes, strict=True)
        parsed: Parsed = dict(zip(self.sparse, (SparseTensor(*p) for p in parts), strict=True))
        parsed.update(zip(self.dense, dense, strict=True))
        return parsed

    def merge(self, parsed: dict[str, Any], asked: Features) -> Parsed:
        """Puts sparse features together from their parts and drops the parts nobody asked for."""
        if not self.merged:
            return parsed
        for key in sorted(self.merged):
            feature = self.merged[key]
            keys = feature.index_key
            indices = [parsed[k] for k in keys] if isinstance(keys, (list, tuple)) else parsed[keys]
            parsed[key] = sparse_merge(
                indices,
                parsed[feature.value_key],
                vocab_size=feature.size,
                already_sorted=feature.already_sorted,
            )
        return {k: v for k, v in parsed.items() if k in asked}


_ALL = (VarLenFeature, SparseFeature, FixedLenFeature, FixedLenSequenceFeature)


@export("parse_example", "io.parse_example")
def parse_example(
    serialized: TensorLike, features: Features, name: str | None = None, example_names: TensorLike = None
) -> Parsed:
    """Takes a batch of serialized `tf.train.Example` messages apart.

    `features` describes the features of a record, by key; the result has a tensor, or a SparseTensor, for each.
    """
    if not features:
        raise ValueError(f"Missing: features was {features}. Argument `features` cannot be None or falsy.")
    wanted = _checked(features)
    return wanted.merge(_parse_batch(serialized, wanted, example_names, name), features)


def _checked(features: Features) -> _Wanted:
    for feature in features.values():
        if isinstance(feature, FixedLenSequenceFeature) and not feature.allow_missing:
            raise ValueError("Unsupported: FixedLenSequenceFeature requires allow_missing to be True.")
    return _Wanted(features, _ALL)


def _parse_batch(serialized: TensorLike, wanted: _Wanted, names: TensorLike, name: str | None) -> Parsed:
    with name_scope(name, "ParseExample", [serialized, names]):
        defaults = wanted.defaults()
        outputs = apply_any(
            "ParseExample",
            serialized,
            [] if names is None else names,
            list(wanted.sparse),
            list(wanted.dense),
            defaults,
            sparse_types=list(wanted.sparse.values()),
            Tdense=wanted.types,
            dense_shapes=wanted.shapes,
            name=name,
        )
    return wanted.arrange(*outputs)


@export("parse_single_example", "io.parse_single_example")
def parse_single_example(
    serialized: TensorLike, features: Features, name: str | None = None, example_names: TensorLike = None
) -> Parsed:
    """Takes one serialized `tf.train.Example` apart; see `parse_example`."""
    if not features:
        raise ValueError("Missing features. Invalid argument: features cannot be empty.")
    wanted = _checked(features)
    if example_names is not None:
        return wanted.merge(_parse_named(serialized, wanted, example_names, name), features)
    with name_scope(name, "ParseSingleExample", [serialized]):
        serialized = _scalar(serialized)
        outputs = apply_any(
            "ParseSingleExample",
            serialized,
            wanted.defaults(),
            num_sparse=len(wanted.sparse),
            sparse_keys=list(wanted.sparse),
            dense_keys=list(wanted.dense),
            sparse_types=list(wanted.sparse.values()),
            Tdense=wanted.types,
            dense_shapes=wanted.shapes,
            name=name,
        )
    return wanted.merge(wanted.arrange(*outputs), features)


def _scalar(serialized: TensorLike) -> Tensor:
    result = to_tensor(serialized, name="serialized")
    if result.shape.rank not in (None, 0):
        raise ValueError("Input serialized must be a scalar")
    return result


def _parse_named(serialized: TensorLike, wanted: _Wanted, names: TensorLike, name: str | None) -> Parsed:
    """One record whose errors have its name: a batch of one."""
    with name_scope(name, "ParseSingleExample", [serialized, names]):
        batch = expand_dims(_scalar(serialized), 0)
        parsed = _parse_batch(batch, wanted, expand_dims(to_tensor(names, name="example_names"), 0), name)
        return {key: _first_of(value) for key, value in parsed.items()}


def _first_of(value: Tensor | SparseTensor) -> Tensor | SparseTensor:
    if isinstance(value, SparseTensor):
        return SparseTensor(value.indices[:, 1:], value.values, value.dense_shape[1:])
    return squeeze(value, [0])


# -- sequences ---------------------------------------------------------------------------------------


def _sequence_wanted(
    context: Features | None, sequence: Features | None
) -> tuple[_Wanted, _Wanted, list[str]]:
    if not (context or sequence):
        raise ValueError(
            "Missing features. Both `context_features` and `sequence_features` argument are None, but at least one "
            "should have values."
        )
    lists = _Wanted(sequence, (VarLenFeature, FixedLenSequenceFeature))
    for key, (dtype, shape, default) in lists.dense.items():
        lists.dense[key] = (dtype, TensorShape(shape.as_list()[1:]), default)
    asked = sequence or {}
    optional = [key for key in lists.dense if asked[key].allow_missing]
    return _Wanted(context, (VarLenFeature, FixedLenFeature)), lists, optional


def _sequence_attrs(context: _Wanted, lists: _Wanted) -> dict[str, Any]:
    return {
        "context_sparse_types": list(context.sparse.values()),
        "context_dense_shapes": context.shapes,
        "Tcontext_dense": context.types,
        "feature_list_sparse_types": list(lists.sparse.values()),
        "feature_list_dense_types": lists.types,
        "feature_list_dense_shapes": lists.shapes,
    }


@export("parse_single_sequence_example", "io.parse_single_sequence_example")
def parse_single_sequence_example(
    serialized: TensorLike,
    context_features: Features | None = None,
    sequence_features: Features | None = None,
    example_name: TensorLike = None,
    name: str | None = None,
) -> tuple[Parsed, Parsed]:
    """Takes one serialized `tf.train.SequenceExample` apart: its context, and its lists of features."""
    context, lists, optional = _sequence_wanted(context_features, sequence_features)
    with name_scope(name, "ParseSingleSequenceExample", [serialized]):
        record = _scalar(serialized)
        outputs = apply_any(
            "ParseSingleSequenceExample",
            record,
            constant(optional, dtypes.string, name="feature_list_dense_missing_assumed_empty"),
            list(context.sparse),
            list(context.dense),
            list(lists.sparse),
            list(lists.dense),
            context.defaults(),
            "" if example_name is None else example_name,
            name=name,
            **_sequence_attrs(context, lists),
        )
    return context.arrange(*outputs[:4]), lists.arrange(*outputs[4:8])


@export("io.parse_sequence_example")
def parse_sequence_example(
    serialized: TensorLike,
    context_features: Features | None = None,
    sequence_features: Features | None = None,
    example_names: TensorLike = None,
    name: str | None = None,
) -> tuple[Parsed, Parsed, dict[str, Tensor]]:
    """Takes a batch of `tf.train.SequenceExample` messages apart: contexts, lists, and the lists' lengths."""
    context, lists, optional = _sequence_wanted(context_features, sequence_features)
    with name_scope(name, "ParseSequenceExample", [serialized]):
        records = to_tensor(serialized, dtypes.string, name="serialized")
        outputs = apply_any(
            "ParseSequenceExample",
            records,
            constant([], dtypes.string) if example_names is None else example_names,
            context.defaults(),
            feature_list_dense_missing_assumed_empty=optional,
            context_sparse_keys=list(context.sparse),
            context_dense_keys=list(context.dense),
            feature_list_sparse_keys=list(lists.sparse),
            feature_list_dense_keys=list(lists.dense),
            Ncontext_sparse=len(context.sparse),
            Ncontext_dense=len(context.dense),
            Nfeature_list_sparse=len(lists.sparse),
            Nfeature_list_dense=len(lists.dense),
            name=name,
            **_sequence_attrs(context, lists),
        )
    lengths = dict(zip(lists.dense, outputs[8], strict=True))
    return context.arrange(*outputs[:4]), lists.arrange(*outputs[4:8]), lengths

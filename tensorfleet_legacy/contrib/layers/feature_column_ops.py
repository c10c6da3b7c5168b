"""Model inputs from the columns of `tf.contrib.layers`: dense inputs, weighted sums, parsed examples."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from tensorfleet.base import dtypes
from tensorfleet.base.naming import find
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.sparse_tensor import SparseTensor
from tensorfleet_legacy.contrib.layers.feature_column import described, real_valued_column
from tensorfleet_legacy.feature_column import feature_column_inputs as using
from tensorfleet_legacy.feature_column.feature_column_v2 import NumericColumn, all_collections
from tensorfleet_legacy.feature_column.feature_column_v2_cache import Features
from tensorfleet_legacy.feature_column.feature_column_v2_protocol import CategoricalColumn
from tensorfleet_legacy.feature_column.sequence_feature_column import SequenceCategoricalColumn


def check_feature_columns(feature_columns: Any) -> None:
    """ValueError for an iterator or a dictionary in place of columns, and for two columns of one name."""
    if isinstance(feature_columns, dict):
        raise ValueError("Expected feature_columns to be iterable, found dict.")
    seen = set()
    for column in feature_columns:
        if column.name in seen:
            raise ValueError(f"Duplicate feature column key found for column: {column.name}.")
        seen.add(column.name)


def create_feature_spec_for_parsing(feature_columns: Any) -> dict:
    """The `tf.parse_example` specification of the columns' features."""
    return using.make_parse_example_spec(feature_columns)


def input_from_feature_columns(
    columns_to_tensors: dict,
    feature_columns: Any,
    weight_collections: Any = None,
    trainable: bool = True,
    scope: Any = None,
    cols_to_outs: dict | None = None,
) -> Tensor:
    """A dense tensor of all columns, in the order that their descriptions have in TensorFlow."""
    columns = sorted(using.dense_only(feature_columns), key=described)
    with find("variable_scope")(
        scope, default_name="input_from_feature_columns", custom_getter=_named_as_before([])
    ):
        return using.joined(columns_to_tensors, columns, weight_collections, trainable, None, cols_to_outs)


def _named_as_before(columns: list) -> Any:
    """A getter of variables with the names that they have in checkpoints of `tf.contrib.layers`."""
    dense = {c.var_scope_name for c in columns if not isinstance(c, CategoricalColumn)}

    def get(getter: Any, name: str, *args: Any, **kwargs: Any) -> Any:
        place, _, leaf = name.rpartition("/")
        if leaf == "weights" and place.rpartition("/")[2] in dense:
            leaf = "weight"
        leaf = {"embedding_weights": "weights", "bias_weights": "bias_weight"}.get(leaf, leaf)
        return getter(f"{place}/{leaf}" if place else leaf, *args, **kwargs)

    return get


def weighted_sum_from_feature_columns(
    columns_to_tensors: dict,
    feature_columns: Any,
    num_outputs: int,
    weight_collections: Any = None,
    trainable: bool = True,
    scope: Any = None,
) -> tuple[Tensor, dict, Any]:
    """The weighted sum of all columns, the variables of each column, and the bias."""
    variables: dict = {}
    columns = sorted(using.weighable(feature_columns), key=described)
    with find("variable_scope")(
        scope, default_name="weighted_sum_from_feature_columns", custom_getter=_named_as_before(columns)
    ):
        total = using.summed(
            columns_to_tensors, columns, num_outputs, "sum", weight_collections, trainable, variables
        )
    bias = variables.pop("bias")[0]
    return total, variables, bias


def joint_weighted_sum_from_feature_columns(
    columns_to_tensors: dict,
    feature_columns: Any,
    num_outputs: int,
    weight_collections: Any = None,
    trainable: bool = True,
    scope: Any = None,
) -> tuple[Tensor, list, Any]:
    """The weighted sum of categorical columns whose weights are one variable, that variable, and the bias."""
    columns = using.checked(feature_columns)
    options: dict[str, Any] = dict(trainable=trainable, collections=all_collections(weight_collections))
    batch, parts, start = Features(columns_to_tensors), [], 0
    with find("variable_scope")(scope, default_name="joint_weighted_sum_from_feature_columns"):
        for column in columns:
            if not isinstance(column, CategoricalColumn):
                raise ValueError(
                    "Real-valued columns are not supported. Use weighted_sum_from_feature_columns instead, or "
                    f"bucketize these columns. Given: {column}"
                )
            parts.append((column, start))
            start += column.num_buckets
        zeros = find("zeros_initializer")()
        table = find("get_variable")("weights", [start, num_outputs], dtypes.float32, zeros, **options)
        sums = [_looked_up(table, *column.ids_and_weights(batch), first) for column, first in parts]
        bias = find("get_variable")("bias_weight", [num_outputs], dtypes.float32, zeros, **options)
        return find("nn.bias_add")(find("add_n")(sums), bias), [table], bias


def _looked_up(table: Any, ids: SparseTensor, weights: Any, start: int) -> Tensor:
    moved = SparseTensor(ids.indices, ids.values + np.int64(start), ids.dense_shape)
    return find("nn.safe_embedding_lookup_sparse")(table, moved, sparse_weights=weights, combiner="sum")


def transform_features(features: dict, feature_columns: Any) -> dict:
    """The transformed features of each column: ids for categorical columns, numbers for others."""
    check_feature_columns(feature_columns)
    batch = Features(features)
    return {column: batch.get(column) for column in sorted(set(feature_columns), key=lambda c: c.name)}


def parse_feature_columns_from_examples(
    serialized: Any, feature_columns: Any, name: str | None = None, example_names: Any = None
) -> dict:
    """The features of serialized `tf.Example`s by their names, and what each column makes of them."""
    check_feature_columns(feature_columns)
    spec = create_feature_spec_for_parsing(feature_columns)
    parsed = find("parse_example")(serialized, spec, name=name, example_names=example_names)
    return {**parsed, **transform_features(parsed, feature_columns)}


def parse_feature_columns_from_sequence_examples(
    serialized: Any,
    context_feature_columns: Any,
    sequence_feature_columns: Any,
    name: str | None = None,
    example_name: Any = None,
) -> tuple[dict, dict]:
    """The features of a serialized `tf.SequenceExample`: those of all of it, and those of its steps."""
    if not (context_feature_columns or sequence_feature_columns):
        raise ValueError("context_feature_columns and sequence_feature_columns must not both be empty.")
    context = create_feature_spec_for_parsing(context_feature_columns or [])
    steps = {}
    for key, feature in create_feature_spec_for_parsing(sequence_feature_columns or []).items():
        if isinstance(feature, find("FixedLenFeature")):
            feature = find("FixedLenSequenceFeature")(feature.shape, feature.dtype, allow_missing=True)
        steps[key] = feature
    return find("parse_single_sequence_example")(serialized, context, steps, example_name, name)


def sequence_input_from_feature_columns(
    columns_to_tensors: dict,
    feature_columns: Any,
    weight_collections: Any = None,
    trainable: bool = True,
    scope: Any = None,
) -> Tensor:
    """A tensor [batch, steps, numbers] of all columns, whose features have an axis of steps after the batch's."""
    columns, parts = using.checked(feature_columns), []
    batch, collections = Features(columns_to_tensors), all_collections(weight_collections)
    with find("variable_scope")(scope, default_name="sequence_input_from_feature_columns"):
        for column in columns:
            with find("variable_scope")(None, default_name=column.name):
                parts.append(_of_steps(column, batch, collections, trainable))
        return find("concat")(parts, 2)


def _of_steps(column: Any, batch: Features, collections: Any, trainable: bool) -> Tensor:
    if isinstance(column, NumericColumn):
        numbers = find("cast")(batch.get(column.key), dtypes.float32)
        if column.normalizer_fn is not None:
            numbers = column.normalizer_fn(numbers)
        sizes = find("shape")(numbers)
        return find("reshape")(numbers, [sizes[0], sizes[1], column.variable_shape.num_elements()])
    inner = getattr(column, "categorical_column", None)
    if inner is None:
        raise ValueError(
            f"Column {column.name} cannot be an input of sequences: wrap it in an embedding_column or one_hot_column."
        )
    steps = dataclasses.replace(column, categorical_column=SequenceCategoricalColumn(inner))
    return steps.sequence(batch, collections, trainable)[0]


def infer_real_valued_columns(features: Any) -> list:
    """A column of numbers for each feature, or for the one tensor that is given; named "" then."""
    if not isinstance(features, dict):
        return [_inferred("", features)]
    return [_inferred(key, features[key]) for key in features]


def _inferred(key: str, feature: Any) -> Any:
    if isinstance(feature, SparseTensor):
        raise ValueError(
            f"SparseTensor is not supported for auto detection. Please define corresponding FeatureColumn for tensor {key}."
        )
    kind, shape = feature.dtype.base_dtype, feature.shape
    if not (kind.is_integer or kind.is_floating):
        raise ValueError(
            f"Non integer or non floating types are not supported for auto detection. Please define corresponding FeatureColumn for tensor {key}."
        )
    width = 1
    for size in shape.as_list()[1:]:
        if size is None:
            raise ValueError(
                f"Please define a FeatureColumn for tensor {key}: its shape {shape} is not known."
            )
        width *= size
    return real_valued_column(key, width, dtype=kind)


def make_place_holder_tensors_for_base_features(feature_columns: Any) -> dict:
    """A placeholder for each feature that the columns use."""
    check_feature_columns(feature_columns)
    result: dict = {}
    for key, feature in create_feature_spec_for_parsing(feature_columns).items():
        if isinstance(feature, find("FixedLenFeature")):
            result[key] = find("placeholder")(
                feature.dtype, [None, *feature.shape], name=f"Placeholder_{key}"
            )
        else:
            result[key] = find("sparse_placeholder")(feature.dtype, name=f"Placeholder_{key}")
    return result

"""Parts of TensorFlow's inside about data: datasets, queues and feature columns."""

from __future__ import annotations

import importlib
from typing import Any

from tensorfleet.base.naming import export, find, publish_lazily
from tensorfleet.base.shapes import TensorShape, as_shape
from tensorfleet_legacy.lazy_names import publish_from

_DATASETS = "python.data.ops.dataset_ops"


@export(f"{_DATASETS}.get_legacy_output_types")
def get_legacy_output_types(dataset_or_iterator: Any) -> Any:
    """The types of the elements of a dataset or an iterator."""
    return dataset_or_iterator.output_types


@export(f"{_DATASETS}.get_legacy_output_shapes")
def get_legacy_output_shapes(dataset_or_iterator: Any) -> Any:
    """The shapes of the elements of a dataset or an iterator."""
    return dataset_or_iterator.output_shapes


@export(f"{_DATASETS}.get_legacy_output_classes")
def get_legacy_output_classes(dataset_or_iterator: Any) -> Any:
    """The classes of the elements of a dataset or an iterator."""
    return dataset_or_iterator.output_classes


@export("python.ops.data_flow_ops._as_shape_list")
def as_shape_list(
    shapes: Any, dtypes: Any, unknown_dim_allowed: bool = False, unknown_rank_allowed: bool = False
) -> Any:
    """The shapes of a queue's components, checked; None stays None."""
    if shapes is None:
        return None
    if isinstance(shapes, TensorShape):
        shapes = [shapes]
    if not isinstance(shapes, (list, tuple)):
        raise TypeError("shapes must be a TensorShape or a list or tuple of TensorShapes.")
    if all(shape is None or isinstance(shape, int) for shape in shapes):
        shapes = [shapes]
    result = [as_shape(shape) for shape in shapes]
    if not unknown_dim_allowed and any(not shape.is_fully_defined() for shape in result):
        raise ValueError(f"All shapes must be fully defined: {result}")
    if not unknown_rank_allowed and any(shape.dims is None for shape in result):
        raise ValueError(f"All shapes must have a defined rank: {result}")
    return result


@export("python.ops.data_flow_ops._as_name_list")
def as_name_list(names: Any, dtypes: Any) -> Any:
    """The names of a queue's components, checked; None stays None."""
    if names is None:
        return None
    result = [names] if not isinstance(names, (list, tuple)) else list(names)
    if len(result) != len(dtypes):
        raise ValueError(
            f"List of names must have the same length as the list of dtypes: {len(result)} vs {len(dtypes)}"
        )
    return result


# The classes of feature columns, by the module that has them.
_COLUMNS = {
    "feature_column_v2": """
        BucketizedColumn CrossedColumn HashedCategoricalColumn IdentityCategoricalColumn NumericColumn VocabularyFileCategoricalColumn VocabularyListCategoricalColumn
        WeightedCategoricalColumn
    """,
    "feature_column_v2_dense": "EmbeddingColumn IndicatorColumn SharedEmbeddingColumn",
    "sequence_feature_column": "SequenceCategoricalColumn",
}


for _module, _names in _COLUMNS.items():
    for _place in ("feature_column_v2", "feature_column_lib"):
        publish_from(f"feature_column.{_module}", _names, f"python.feature_column.{_place}")
    _underscored = " ".join(f"_{name}={name}" for name in _names.split())
    publish_from(f"feature_column.{_module}", _underscored, "python.feature_column.feature_column")


def _protocol(full: str) -> Any:
    return importlib.import_module("tensorfleet_legacy.feature_column.feature_column_v2_protocol").NAMED[
        full.rpartition(".")[2]
    ]


for _name in ("CategoricalColumn", "DenseColumn", "FeatureColumn", "SequenceDenseColumn"):
    publish_lazily(_protocol, f"python.feature_column.feature_column._{_name}")
    for _place in ("feature_column_v2", "feature_column_lib"):
        publish_lazily(_protocol, f"python.feature_column.{_place}.{_name}")
for _name in ["bucketized", "crossed", "embedding", "indicator", "numeric", "weighted_categorical"]:
    publish_lazily(
        lambda full: find(f"feature_column.{full.rpartition('.')[2].lstrip('_')}"),
        f"python.feature_column.feature_column._{_name}_column",
    )
for _kind in ("hash_bucket", "identity", "vocabulary_file", "vocabulary_list"):
    publish_lazily(
        lambda full: find(f"feature_column.{full.rpartition('.')[2].lstrip('_')}"),
        f"python.feature_column.feature_column._categorical_column_with_{_kind}",
    )

# What the modules of columns have besides, by the module here that has it.
_PARTS_OF_COLUMNS = {
    "feature_column": {
        "feature_column_v2_cache": "_LazyBuilder=Features",
        "feature_column_layers": "_transform_features=transform_features _LinearModel=LinearModel InputLayer",
    },
    "feature_column_v2": {
        "feature_column_v2_cache": "FeatureTransformationCache",
        "feature_column_v2_state": "StateManager _StateManagerImpl=LayerState",
        "feature_column_layers": "_transform_features_v2=transform_features_v2",
    },
    "sequence_feature_column": {
        "sequence_feature_column": """
            SequenceNumericColumn concatenate_context_input _assert_all_equal_and_return=_equal
        """,
    },
}
_IN_BOTH = {
    "feature_column_v2": "_collect_leaf_level_keys=leaf_keys",
    "feature_column_v2_cache": "_to_sparse_input_and_drop_ignore_values=as_sparse",
    "feature_column_inputs": "_verify_static_batch_size_equality=check_batch_sizes",
}
for _place, _table in _PARTS_OF_COLUMNS.items():
    for _module, _names in _table.items():
        publish_from(f"feature_column.{_module}", _names, f"python.feature_column.{_place}")
for _module, _names in _IN_BOTH.items():
    _places = (f"python.feature_column.{place}" for place in ("feature_column", "feature_column_v2"))
    publish_from(f"feature_column.{_module}", _names, *_places)
for _place in ("dense_features", "dense_features_v2", "feature_column_lib", "feature_column_v2"):
    publish_lazily(
        lambda _: find("keras.layers.DenseFeatures"), f"python.feature_column.{_place}.DenseFeatures"
    )
publish_lazily(
    lambda _: find("keras.experimental.SequenceFeatures"),
    "python.feature_column.sequence_feature_column.SequenceFeatures",
)


@export(
    "python.feature_column.feature_column_v2.is_feature_column_v2",
    "python.feature_column.feature_column_lib.is_feature_column_v2",
)
def is_feature_column_v2(feature_columns: Any) -> bool:
    """Whether all are columns of TensorFlow's own, and none of a library."""
    kind = find("python.feature_column.feature_column_v2.FeatureColumn")
    return all(isinstance(column, kind) for column in feature_columns)

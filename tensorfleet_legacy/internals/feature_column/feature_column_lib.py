"""Parts of TensorFlow's inside about data: datasets, queues and feature columns."""

from __future__ import annotations

import functools
import importlib
from typing import Any

from tensorfleet.base.naming import export, find, publish_lazily
from tensorfleet.base.shapes import TensorShape, as_shape

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
    made = [as_shape(shape) for shape in shapes]
    if not unknown_dim_allowed and any(not shape.is_fully_defined() for shape in made):
        raise ValueError(f"All shapes must be fully defined: {made}")
    if not unknown_rank_allowed and any(shape.dims is None for shape in made):
        raise ValueError(f"All shapes must have a defined rank: {made}")
    return made


@export("python.ops.data_flow_ops._as_name_list")
def as_name_list(names: Any, dtypes: Any) -> Any:
    """The names of a queue's components, checked; None stays None."""
    if names is None:
        return None
    found = [names] if not isinstance(names, (list, tuple)) else list(names)
    if len(found) != len(dtypes):
        raise ValueError(
            f"List of names must have the same length as the list of dtypes: {len(found)} vs {len(dtypes)}"
        )
    return found


# The classes of feature columns, by the module that has them.
_COLUMNS = {
    "feature_column_v2": """
        BucketizedColumn CrossedColumn HashedCategoricalColumn IdentityCategoricalColumn NumericColumn VocabularyFileCategoricalColumn VocabularyListCategoricalColumn
        WeightedCategoricalColumn
    """,
    "feature_column_v2_dense": "EmbeddingColumn IndicatorColumn SharedEmbeddingColumn",
    "sequence_feature_column": "SequenceCategoricalColumn",
}


def _column(full: str) -> Any:
    name = full.rpartition(".")[2].lstrip("_")
    module = next(module for module, names in _COLUMNS.items() if name in names.split())
    return getattr(importlib.import_module(f"tensorfleet_legacy.feature_column.{module}"), name)


for _names in _COLUMNS.values():
    for _name in _names.split():
        publish_lazily(_column, f"python.feature_column.feature_column._{_name}")
        for _place in ("feature_column_v2", "feature_column_lib"):
            publish_lazily(_column, f"python.feature_column.{_place}.{_name}")


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

# What the modules of columns have besides: where it is here, and its name there.
_PARTS_OF_COLUMNS = {
    "feature_column": {
        "_LazyBuilder": "feature_column_v2_cache.Features",
        "_transform_features": "feature_column_layers.transform_features",
        "_LinearModel": "feature_column_layers.LinearModel",
        "InputLayer": "feature_column_layers.InputLayer",
    },
    "feature_column_v2": {
        "FeatureTransformationCache": "feature_column_v2_cache.FeatureTransformationCache",
        "StateManager": "feature_column_v2_state.StateManager",
        "_StateManagerImpl": "feature_column_v2_state.LayerState",
        "_transform_features_v2": "feature_column_layers.transform_features_v2",
    },
    "sequence_feature_column": {
        "SequenceNumericColumn": "sequence_feature_column.SequenceNumericColumn",
        "concatenate_context_input": "sequence_feature_column.concatenate_context_input",
        "_assert_all_equal_and_return": "sequence_feature_column._equal",
    },
}
_IN_BOTH = {
    "_collect_leaf_level_keys": "feature_column_v2.leaf_keys",
    "_to_sparse_input_and_drop_ignore_values": "feature_column_v2_cache.as_sparse",
    "_verify_static_batch_size_equality": "feature_column_inputs.check_batch_sizes",
}


def _part(home: str, full: str) -> Any:
    module, _, name = home.partition(".")
    return getattr(importlib.import_module(f"tensorfleet_legacy.feature_column.{module}"), name)


for _module, _table in _PARTS_OF_COLUMNS.items():
    _both = {} if _module == "sequence_feature_column" else _IN_BOTH
    for _name, _home in (_both | _table).items():
        publish_lazily(functools.partial(_part, _home), f"python.feature_column.{_module}.{_name}")
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

"""The names under `tf.feature_column`; the modules are loaded when one of them is first used."""

from __future__ import annotations

import importlib
from typing import Any

from tensorfleet.base.naming import publish_lazily

_MODULES = {
    "feature_column.feature_column": (
        "bucketized_column",
        "categorical_column_with_hash_bucket",
        "categorical_column_with_identity",
        "categorical_column_with_vocabulary_file",
        "categorical_column_with_vocabulary_list",
        "crossed_column",
        "embedding_column",
        "indicator_column",
        "numeric_column",
        "shared_embedding_columns",
        "weighted_categorical_column",
    ),
    "feature_column.sequence_feature_column": (
        "sequence_categorical_column_with_hash_bucket",
        "sequence_categorical_column_with_identity",
        "sequence_categorical_column_with_vocabulary_file",
        "sequence_categorical_column_with_vocabulary_list",
        "sequence_numeric_column",
    ),
    "feature_column.feature_column_inputs": ("input_layer", "linear_model", "make_parse_example_spec"),
    "contrib.layers.feature_column": (
        "real_valued_column",
        "sparse_column_with_hash_bucket",
        "sparse_column_with_integerized_feature",
        "sparse_column_with_keys",
        "sparse_column_with_vocabulary_file",
        "one_hot_column",
        "weighted_sparse_column",
        "SPARSE_FEATURE_CROSS_DEFAULT_HASH_KEY",
    ),
    "contrib.layers.feature_column_ops": (
        "check_feature_columns",
        "create_feature_spec_for_parsing",
        "infer_real_valued_columns",
        "input_from_feature_columns",
        "joint_weighted_sum_from_feature_columns",
        "make_place_holder_tensors_for_base_features",
        "parse_feature_columns_from_examples",
        "parse_feature_columns_from_sequence_examples",
        "sequence_input_from_feature_columns",
        "transform_features",
        "weighted_sum_from_feature_columns",
    ),
}
# Names that `tf.contrib.layers` has with other arguments.
_OLD = {
    "bucketized_column": "bucketized_column",
    "crossed_column": "old_crossed_column",
    "embedding_column": "old_embedding_column",
    "shared_embedding_columns": "old_shared_embedding_columns",
}


def _load(module: str, name: str) -> Any:
    return getattr(importlib.import_module(f"tensorfleet_legacy.{module}"), name)


def _column(full: str) -> Any:
    name = full.rpartition(".")[2]
    return _load(next(module for module, names in _MODULES.items() if name in names), name)


def _old_column(full: str) -> Any:
    return _load("contrib.layers.feature_column", _OLD[full.rpartition(".")[2]])


def _sequence_input_layer(full: str) -> Any:
    return _load("feature_column.sequence_feature_column", "sequence_input_layer")


for _module, _names in _MODULES.items():
    _place = "contrib.layers" if _module.startswith("contrib.") else "feature_column"
    publish_lazily(_column, *(f"{_place}.{name}" for name in _names))
publish_lazily(_old_column, *(f"contrib.layers.{name}" for name in _OLD))
publish_lazily(
    _column,
    *(f"contrib.feature_column.{name}" for name in _MODULES["feature_column.sequence_feature_column"]),
)
publish_lazily(_sequence_input_layer, "contrib.feature_column.sequence_input_layer")
# Classes of columns inside of `tf.contrib.layers`.
_CLASSES = """
    _FeatureColumn _RealValuedColumn _BucketizedColumn _CrossedColumn _EmbeddingColumn _OneHotColumn _SparseColumn
    _SparseColumnHashed _SparseColumnIntegerized _SparseColumnKeys _SparseColumnVocabulary _WeightedSparseColumn
"""


def _old_class(full: str) -> Any:
    return _load("contrib.layers.feature_column", "CLASSES")[full.rpartition(".")[2]]


for _place in ("contrib.layers.feature_column", "contrib.layers.python.layers.feature_column"):
    publish_lazily(_old_class, *(f"{_place}.{name}" for name in _CLASSES.split()))

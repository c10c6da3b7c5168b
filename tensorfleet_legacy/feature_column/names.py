"""The names under `tf.feature_column`; the modules are loaded when one of them is first used."""

from __future__ import annotations

import importlib
from typing import Any

from tensorfleet.base.naming import publish_lazily
from tensorfleet_legacy.lazy_names import publish_from

_MODULES = {
    "feature_column.feature_column": """
        bucketized_column categorical_column_with_hash_bucket categorical_column_with_identity
        categorical_column_with_vocabulary_file categorical_column_with_vocabulary_list crossed_column embedding_column
        indicator_column numeric_column shared_embedding_columns weighted_categorical_column
    """,
    "feature_column.sequence_feature_column": """
        sequence_categorical_column_with_hash_bucket sequence_categorical_column_with_identity
        sequence_categorical_column_with_vocabulary_file sequence_categorical_column_with_vocabulary_list
        sequence_numeric_column
    """,
    "feature_column.feature_column_inputs": "input_layer linear_model make_parse_example_spec",
    "contrib.layers.feature_column": """
        real_valued_column sparse_column_with_hash_bucket sparse_column_with_integerized_feature sparse_column_with_keys
        sparse_column_with_vocabulary_file one_hot_column weighted_sparse_column SPARSE_FEATURE_CROSS_DEFAULT_HASH_KEY
    """,
    "contrib.layers.feature_column_ops": """
        check_feature_columns create_feature_spec_for_parsing infer_real_valued_columns input_from_feature_columns
        joint_weighted_sum_from_feature_columns make_place_holder_tensors_for_base_features
        parse_feature_columns_from_examples parse_feature_columns_from_sequence_examples
        sequence_input_from_feature_columns transform_features weighted_sum_from_feature_columns
    """,
}
# Names that `tf.contrib.layers` has with other arguments.
_OLD = """
    bucketized_column crossed_column=old_crossed_column embedding_column=old_embedding_column shared_embedding_columns=old_shared_embedding_columns
"""

for _module, _names in _MODULES.items():
    publish_from(_module, _names, "contrib.layers" if _module.startswith("contrib.") else "feature_column")
publish_from("contrib.layers.feature_column", _OLD, "contrib.layers")
_SEQUENCES = "feature_column.sequence_feature_column"
publish_from(_SEQUENCES, f"sequence_input_layer {_MODULES[_SEQUENCES]}", "contrib.feature_column")
# Classes of columns inside of `tf.contrib.layers`.
_CLASSES = """
    _FeatureColumn _RealValuedColumn _BucketizedColumn _CrossedColumn _EmbeddingColumn _OneHotColumn _SparseColumn
    _SparseColumnHashed _SparseColumnIntegerized _SparseColumnKeys _SparseColumnVocabulary _WeightedSparseColumn
"""


def _old_class(full: str) -> Any:
    return importlib.import_module("tensorfleet_legacy.contrib.layers.feature_column").CLASSES[
        full.rpartition(".")[2]
    ]


for _place in ("contrib.layers.feature_column", "contrib.layers.python.layers.feature_column"):
    publish_lazily(_old_class, *(f"{_place}.{name}" for name in _CLASSES.split()))

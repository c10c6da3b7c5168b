"""`tf.keras.layers.DenseFeatures` and its like for sequences: feature columns as a layer."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorfleet.base.naming import find
from tensorfleet.base.shapes import TensorShape
from tensorfleet.graph.operation import Tensor
from tensorfleet_legacy.feature_column.feature_column_inputs import checked
from tensorfleet_legacy.feature_column.feature_column_v2_cache import Features
from tensorfleet_legacy.feature_column.feature_column_v2_protocol import DenseColumn, SequenceDenseColumn
from tensorfleet_legacy.feature_column.sequence_feature_column import _equal
from tensorfleet_legacy.keras import backend as state
from tensorfleet_legacy.keras.engine.base_layer import Layer


class _Columns(Layer):
    """A dictionary of features through columns, in the order of their names."""

    def __init__(
        self, feature_columns: Any, trainable: bool = True, name: str | None = None, **kwargs: Any
    ) -> None:
        super().__init__(trainable=trainable, name=name, **kwargs)
        self._feature_columns = checked(feature_columns)

    def build(self, input_shape: Any) -> None:
        """The variables of columns are made where they are first used."""
        self.built = True

    def _ask(self, column: Any, batch: Features) -> Any:
        """The tensor of one column."""
        return column.dense(batch, None, self.trainable)

    def _made(self, columns: list, batch: Features) -> list:
        """The tensor of each column. Its variables belong to the layer."""
        scope = find("variable_scope")
        with scope(self.name, reuse=find("AUTO_REUSE"), use_resource=True):
            before = {id(v) for v in find("global_variables")()}
            result = []
            for column in columns:
                with scope(column.name):
                    result.append(self._ask(column, batch))
            new = [v for v in find("global_variables")() if id(v) not in before]
        trained = {id(v) for v in find("trainable_variables")()}
        self._trainable_weights += [v for v in new if id(v) in trained]
        self._non_trainable_weights += [v for v in new if id(v) not in trained]
        for variable in new:
            state.track(variable)
        return result


class DenseFeatures(_Columns):
    """A tensor [batch, numbers] of all columns."""

    def __init__(
        self, feature_columns: Any, trainable: bool = True, name: str | None = None, **kwargs: Any
    ) -> None:
        super().__init__(feature_columns, trainable, name, **kwargs)
        for column in self._feature_columns:
            if not isinstance(column, DenseColumn):
                raise ValueError(
                    "Items of feature_columns must be a DenseColumn. You can wrap a categorical column with an "
                    f"embedding_column or indicator_column. Given: {column}"
                )

    def call(self, features: Any, cols_to_output_tensors: dict | None = None) -> Tensor:  # type: ignore[override]
        """The tensors of the columns for a dictionary of features, side by side."""
        if not isinstance(features, dict):
            raise ValueError(f"We expected a dictionary here. Instead we got: {features}")
        parts = []
        result = self._made(self._feature_columns, Features(features))
        for column, tensor in zip(self._feature_columns, result, strict=True):
            size = column.variable_shape.num_elements()
            parts.append(find("reshape")(tensor, find("stack")([find("shape")(tensor)[0], size])))
            if cols_to_output_tensors is not None:
                cols_to_output_tensors[column] = parts[-1]
        return find("concat")(parts, -1)

    def compute_output_shape(self, input_shape: Any) -> TensorShape:
        """[batch, numbers of all columns]."""
        total = sum(c.variable_shape.num_elements() for c in self._feature_columns)
        return TensorShape([None, total])


class SequenceFeatures(_Columns):
    """A tensor [batch, steps, numbers] of all columns of sequences, and the lengths of the sequences."""

    def __init__(
        self, feature_columns: Any, trainable: bool = True, name: str | None = None, **kwargs: Any
    ) -> None:
        super().__init__(feature_columns, trainable, name, **kwargs)
        for column in self._feature_columns:
            if not isinstance(column, SequenceDenseColumn):
                raise ValueError(
                    "Items of feature_columns must be a SequenceDenseColumn. You can wrap a "
                    "sequence_categorical_column with an embedding_column or indicator_column. "
                    f"Given (type {type(column)}): {column}"
                )

    def _ask(self, column: Any, batch: Features) -> Any:
        """The tensor of one column, and the lengths of its sequences."""
        return column.sequence(batch, None, self.trainable)

    def call(self, features: Any) -> tuple[Tensor, Tensor]:  # type: ignore[override]
        """The tensors of the columns for a dictionary of features, side by side in each step."""
        if not isinstance(features, dict):
            raise ValueError(f"We expected a dictionary here. Instead we got: {features}")
        parts, lengths = [], []
        result = self._made(self._feature_columns, Features(features))
        for column, (tensor, length) in zip(self._feature_columns, result, strict=True):
            sizes = find("shape")(tensor)
            outer = find("concat")([sizes[:2], [np.int32(column.variable_shape.num_elements())]], 0)
            parts.append(find("reshape")(tensor, outer))
            lengths.append(length)
        return find("concat")(parts, -1), _equal(lengths)

"""`tf.contrib.kernel_methods`: features of kernels by random waves, and a linear model over them."""

from __future__ import annotations

import abc
import math
from typing import Any

import numpy as np

from tensorfleet.api.losses.losses import Reduction
from tensorfleet.base import dtypes, logging
from tensorfleet.base.naming import find
from tensorfleet.base.properties import readonly
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import GraphKeys, control_dependencies, name_scope
from tensorfleet_legacy.contrib.layers.feature_column import real_valued_column
from tensorfleet_legacy.contrib.learn.estimator import LinearClassifier
from tensorfleet_legacy.feature_column.feature_column_v2 import NumericColumn


class InvalidShapeError(Exception):
    """Raised for tensors that a mapper cannot map."""


class DenseKernelMapper(abc.ABC):
    """Maps features to others whose inner products approximate those of a kernel."""

    @abc.abstractmethod
    def map(self, input_tensor: Any) -> Tensor:
        """The mapped features."""

    @property
    @abc.abstractmethod
    def name(self) -> str:
        """The name of the mapper."""

    @property
    @abc.abstractmethod
    def output_dim(self) -> int:
        """How many features there are after."""


class RandomFourierFeatureMapper(DenseKernelMapper):
    """Cosines of random waves, for a Gaussian kernel of a width `stddev` (Rahimi and Recht 2007)."""

    def __init__(
        self, input_dim: int, output_dim: int, stddev: float = 1.0, seed: int = 1, name: str | None = None
    ) -> None:
        self._input_dim, self._output_dim, self._stddev = input_dim, output_dim, stddev
        self._seed, self._name = seed, name

    input_dim = readonly("_input_dim", "How many features there are before.")
    output_dim = readonly("_output_dim")

    @property
    def name(self) -> str:
        return self._name or str(id(self))

    def map(self, input_tensor: Any) -> Tensor:
        tensor = to_tensor(input_tensor)
        if tensor.shape.ndims != 2:
            raise InvalidShapeError(f"The shape of the tensor should be 2. Got {tensor.shape.ndims} instead.")
        width = tensor.shape.as_list()[1]
        if width != self._input_dim:
            raise InvalidShapeError(
                f"Invalid dimension: expected {self._input_dim} input features, got {width} instead."
            )
        random = np.random.RandomState(self._seed)
        waves = random.normal(scale=1.0 / self._stddev, size=[self._input_dim, self._output_dim])
        phases = random.uniform(0.0, 2 * np.pi, [self._output_dim])
        turned = find("matmul")(tensor, to_tensor(waves, dtypes.float32)) + to_tensor(phases, dtypes.float32)
        return math.sqrt(2.0 / self._output_dim) * find("cos")(turned)


def sparse_multiclass_hinge_loss(
    labels: Any,
    logits: Any,
    weights: Any = 1.0,
    scope: str | None = None,
    loss_collection: Any = GraphKeys.LOSSES,
    reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
) -> Tensor:
    """How far the largest wrong logit is above the right one less 1 (Crammer and Singer 2001)."""
    with name_scope(scope, "sparse_multiclass_hinge_loss", (logits, labels)) as inner:
        logits, labels, weights = to_tensor(logits), to_tensor(labels), to_tensor(weights)
        if logits.shape.ndims != 2:
            raise ValueError(
                f"logits should have rank 2 ([batch_size, num_classes]). Given rank is {logits.shape.ndims}"
            )
        if labels.dtype not in (dtypes.int32, dtypes.int64):
            raise ValueError(f"Invalid dtype for labels: {labels.dtype}. Acceptable dtypes: int32 and int64")
        if labels.shape.ndims not in (1, 2):
            raise ValueError(
                "labels should have rank 1 ([batch_size]) or 2 ([batch_size, 1]). Given rank is "
                f"{labels.shape.ndims}"
            )
        if weights.shape.ndims not in (0, 1, 2):
            raise ValueError(
                "non-scalar weights should have rank 1 ([batch_size]) or 2 ([batch_size, 1]). Given rank is "
                f"{weights.shape.ndims}"
            )
        classes = find("shape")(logits)[1]
        with control_dependencies([find("assert_less")(labels, find("cast")(classes, labels.dtype))]):
            flat = find("reshape")(labels, [-1])
        if weights.shape.ndims:
            weights = find("reshape")(weights, [-1])
            weights.shape.assert_is_compatible_with(flat.shape)
        values = find("cast")(logits, dtypes.float32)
        right = find("one_hot")(flat, classes)
        own = find("reduce_sum")(values * right, 1, keepdims=True)
        margins = find("nn.relu")(values - own + (1.0 - right))
        return find("losses.compute_weighted_loss")(
            find("reduce_max")(margins, 1), weights, inner, loss_collection, reduction
        )


class KernelLinearClassifier(LinearClassifier):
    """A linear classifier over features and what kernel mappers make of them.

    `kernel_mappers` maps columns of `tf.contrib.layers.real_valued_column` to lists of mappers.
    """

    def __init__(
        self,
        feature_columns: Any = None,
        model_dir: Any = None,
        n_classes: int = 2,
        weight_column_name: str | None = None,
        optimizer: Any = None,
        kernel_mappers: Any = None,
        config: Any = None,
    ) -> None:
        if not feature_columns and not kernel_mappers:
            raise ValueError("You should set at least one of feature_columns, kernel_mappers.")
        mappers = {}
        for column, own in (kernel_mappers or {}).items():
            if not all(isinstance(mapper, DenseKernelMapper) for mapper in own):
                raise ValueError("Invalid kernel mappers.")
            if not isinstance(column, NumericColumn):
                logging.warning("Only columns of numbers are mapped: %s is used as it is.", column.name)
                continue
            mappers[column.name] = own
        columns = [
            real_valued_column(f"{name}_MAPPED", sum(mapper.output_dim for mapper in own))
            for name, own in mappers.items()
        ]

        def mapped(features: Any, labels: Any) -> tuple[dict, Any]:
            more = {
                f"{name}_MAPPED": find("concat")([mapper.map(features[name]) for mapper in own], 1)
                for name, own in mappers.items()
            }
            return {**features, **more}, labels

        super().__init__(
            [*(feature_columns or []), *columns],
            model_dir,
            n_classes,
            weight_column_name,
            optimizer,
            config=config,
            feature_engineering_fn=mapped,
        )

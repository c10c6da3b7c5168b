"""Batch normalization."""

from __future__ import annotations

from typing import Any

from tensorfleet import dtypes
from tensorfleet.api import export, publish
from tensorfleet.arguments import function, signature_of
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import colocate_with, name_scope
from tensorfleet.layers.base import Layer
from tensorfleet.layers.options import applied
from tensorfleet.layers.specs import InputSpec, known_bool
from tensorfleet.nn.normalization import batch_normalization as normalize
from tensorfleet.nn.normalization import moments
from tensorfleet.ops.array_shape import reshape, size
from tensorfleet.ops.cast import cast
from tensorfleet.ops.control_flow import cond
from tensorfleet.ops.nn_norm import fused_batch_norm
from tensorfleet.shapes import TensorShape
from tensorfleet.variables.initializers import Ones, Zeros
from tensorfleet.variables.variable import VariableAggregation, VariableSynchronization

_ZEROS, _ONES = Zeros(), Ones()
_HALVES = (dtypes.float16, dtypes.bfloat16)


@export("layers.BatchNormalization")
class BatchNormalization(Layer):
    """Gives each channel mean `beta` and deviation `gamma`, over the batch or, out of training, over all seen.

    The moving averages are updated by the operations in `tf.GraphKeys.UPDATE_OPS`: make the training step
    depend on them.
    """

    #: whether the variance that is kept is that of the population, as `tf.nn.fused_batch_norm` estimates it
    _bessels_correction_test_only = True

    def __init__(
        self,
        axis: Any = -1,
        momentum: float = 0.99,
        epsilon: float = 1e-3,
        center: bool = True,
        scale: bool = True,
        beta_initializer: Any = _ZEROS,
        gamma_initializer: Any = _ONES,
        moving_mean_initializer: Any = _ZEROS,
        moving_variance_initializer: Any = _ONES,
        beta_regularizer: Any = None,
        gamma_regularizer: Any = None,
        beta_constraint: Any = None,
        gamma_constraint: Any = None,
        renorm: bool = False,
        renorm_clipping: Any = None,
        renorm_momentum: float = 0.99,
        fused: bool | None = None,
        trainable: bool = True,
        virtual_batch_size: int | None = None,
        adjustment: Any = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        for what, value in dict(
            renorm=renorm, virtual_batch_size=virtual_batch_size, adjustment=adjustment
        ).items():
            if value:
                raise ValueError(
                    f"BatchNormalization does not support `{what}` here. Leave it out, or build it from "
                    "tf.nn.moments and tf.nn.batch_normalization."
                )
        super().__init__(trainable, name, **kwargs)
        self.axis: Any = list(axis) if isinstance(axis, (list, tuple)) else axis
        self.momentum, self.epsilon, self.center, self.scale = momentum, epsilon, center, scale
        self.beta_initializer, self.gamma_initializer = beta_initializer, gamma_initializer
        self.moving_mean_initializer = moving_mean_initializer
        self.moving_variance_initializer = moving_variance_initializer
        self.beta_regularizer, self.gamma_regularizer = beta_regularizer, gamma_regularizer
        self.beta_constraint, self.gamma_constraint = beta_constraint, gamma_constraint
        self.renorm, self.fused = renorm, fused

    def build(self, input_shape: Any) -> None:
        """Makes gamma, beta and the moving averages."""
        dims = TensorShape(input_shape)
        if dims.ndims is None:
            raise ValueError(f"Input has undefined rank: {dims}")
        sizes = dims.as_list()
        self._axes = self._checked_axes(sizes)
        single = len(self._axes) == 1
        self._uses_fused = self.fused is not False and len(sizes) == 4 and single and self._axes[0] in (1, 3)
        self.input_spec = InputSpec(ndim=len(sizes), axes={a: sizes[a] for a in self._axes})
        wanted = (
            [sizes[self._axes[0]]] if single else [s if a in self._axes else 1 for a, s in enumerate(sizes)]
        )
        kind = dtypes.as_dtype(self.dtype or dtypes.float32)
        self._param_dtype = dtypes.float32 if kind in _HALVES else kind
        self.gamma = self._parameter("gamma", wanted) if self.scale else None
        self.beta = self._parameter("beta", wanted) if self.center else None
        assert self._scope is not None
        partitioner, self._scope._partitioner = self._scope.partitioner, None
        try:
            self.moving_mean = self._average("moving_mean", wanted)
            self.moving_variance = self._average("moving_variance", wanted)
        finally:
            self._scope._partitioner = partitioner
        self.built = True

    def _checked_axes(self, sizes: list) -> list[int]:
        given = self.axis if isinstance(self.axis, list) else [self.axis]
        axes = [a + len(sizes) if a < 0 else a for a in given]
        if any(not 0 <= a < len(sizes) for a in axes):
            raise ValueError(f"Invalid axis: {self.axis}")
        if len(set(axes)) != len(axes):
            raise ValueError(f"Duplicate axis: {self.axis}")
        if any(sizes[a] is None for a in axes):
            raise ValueError(f"Input has undefined `axis` dimension. Input shape: {sizes}")
        return axes

    def _parameter(self, name: str, dims: list) -> Any:
        options = {w: getattr(self, f"{name}_{w}") for w in ("initializer", "regularizer", "constraint")}
        return self.add_weight(name, dims, self._param_dtype, trainable=True, **options)

    def _average(self, name: str, dims: list) -> Any:
        return self.add_weight(
            name,
            dims,
            self._param_dtype,
            initializer=getattr(self, f"{name}_initializer"),
            trainable=False,
            synchronization=VariableSynchronization.ON_READ,
            aggregation=VariableAggregation.MEAN,
        )

    def call(self, inputs: Any, training: Any = False) -> Tensor:  # type: ignore[override]
        """Normalizes with the batch's statistics when `training` (which may be a tensor), else the moving ones."""
        known = known_bool(training)
        if self._uses_fused:
            return self._fused_call(inputs, training, known)
        value = inputs
        if inputs.dtype.base_dtype in _HALVES:
            value = cast(inputs, dtypes.float32)
        mean: Any = self.moving_mean
        variance: Any = self.moving_variance
        if known is not False:
            batch = self._statistics(value)
            mean, variance = batch
            if known is None:
                mean = cond(training, lambda: batch[0], lambda: to_tensor(self.moving_mean))
                variance = cond(training, lambda: batch[1], lambda: to_tensor(self.moving_variance))
            self._update(mean, variance, training, known)
        m, v = self._spread(mean, value), self._spread(variance, value)
        beta, gamma = self._spread(self.beta, value), self._spread(self.gamma, value)
        outputs = normalize(value, m, v, beta, gamma, self.epsilon)
        outputs = cast(outputs, inputs.dtype.base_dtype)
        outputs.set_shape(inputs.shape)
        return outputs

    def _fused_call(self, inputs: Tensor, training: Any, known: bool | None) -> Tensor:
        if known is not None:
            outputs, mean, variance = self._fused(inputs, known)
        else:
            outputs, mean, variance = cond(
                training, lambda: self._fused(inputs, True), lambda: self._fused(inputs, False)
            )
        if known is not False:
            if (
                not self._bessels_correction_test_only
            ):  # as libraries and tests that compare the two ways set it
                count = cast(size(inputs) / size(variance), variance.dtype.base_dtype)
                variance = variance * ((count - 1) / count)
            self._update(mean, variance, training, known)
        return outputs

    def _fused(self, inputs: Tensor, training: bool) -> tuple:
        dims = self.moving_mean.shape.as_list()
        gamma = self.gamma if self.gamma is not None else _ONES(dims, self._param_dtype)
        beta = self.beta if self.beta is not None else _ZEROS(dims, self._param_dtype)
        return fused_batch_norm(
            inputs,
            gamma,
            beta,
            None if training else self.moving_mean,
            None if training else self.moving_variance,
            self.epsilon,
            "NCHW" if self._axes == [1] else "NHWC",
            training,
        )

    def _statistics(self, value: Tensor) -> tuple[Tensor, Tensor]:
        others = [a for a in range(len(value.shape)) if a not in self._axes]
        return moments(value, others, keep_dims=len(self._axes) > 1)

    def _update(self, mean: Tensor, variance: Tensor, training: Any, known: bool | None) -> None:
        momentum = to_tensor(self.momentum, self._param_dtype)
        if known is None:
            kept = momentum
            momentum = cond(training, lambda: kept, lambda: to_tensor(1.0, self._param_dtype))
        for variable, value in ((self.moving_mean, mean), (self.moving_variance, variance)):
            with name_scope("AssignMovingAvg") as scope, colocate_with(variable.op):
                decay = 1.0 - momentum
                self.add_update(variable.assign_sub((variable - value) * decay, name=scope))

    def _spread(self, vector: Any, value: Tensor) -> Any:
        """A vector of one entry per channel, shaped so that it lies along the channels' axis."""
        rank = len(value.shape)
        if vector is None or len(vector.shape) == rank or self._axes == [rank - 1]:
            return vector
        return reshape(vector, [-1 if a == self._axes[0] else 1 for a in range(rank)])

    def compute_output_shape(self, input_shape: Any) -> Any:
        return input_shape


def _normalized(given: dict[str, Any]) -> Tensor:
    training = given.pop("training")
    return applied(BatchNormalization, given, training=training)


batch_normalization = function(
    signature_of(
        "inputs, axis=-1, momentum=0.99, epsilon=1e-3, center=True, scale=True, beta_initializer=zeros, "
        "gamma_initializer=ones, moving_mean_initializer=zeros, moving_variance_initializer=ones, beta_regularizer=None, "
        "gamma_regularizer=None, beta_constraint=None, gamma_constraint=None, training=False, trainable=True, name=None, "
        "reuse=None, renorm=False, renorm_clipping=None, renorm_momentum=0.99, fused=None, virtual_batch_size=None, "
        "adjustment=None",
        zeros=_ZEROS,
        ones=_ONES,
    ),
    "batch_normalization",
    _normalized,
    "Normalizes each channel; see `tf.layers.BatchNormalization` for the updates that go with it.",
)
publish(batch_normalization, "layers.batch_normalization")

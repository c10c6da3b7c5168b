"""Batch normalization."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from tensorfleet.api.layers.base import Layer
from tensorfleet.api.layers.options import applied
from tensorfleet.api.layers.specs import Constraint, InitializerLike, InputSpec, Regularizer, known_bool
from tensorfleet.api.nn.normalization import batch_normalization as normalize
from tensorfleet.api.nn.normalization import moments
from tensorfleet.api.variables.initializers import Ones, Zeros
from tensorfleet.api.variables.variable import Variable, VariableAggregation, VariableSynchronization
from tensorfleet.base import dtypes
from tensorfleet.base.arguments import function, signature_of
from tensorfleet.base.naming import export, publish
from tensorfleet.base.shapes import TensorShape
from tensorfleet.base.types import ShapeLike, TensorLike
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import colocate_with, control_dependencies, name_scope
from tensorfleet.ops.array.basic import identity, stop_gradient
from tensorfleet.ops.array.concat import concat
from tensorfleet.ops.array.constructors import ones_like, zeros_like
from tensorfleet.ops.array.shape import reshape, shape, size
from tensorfleet.ops.control.cond import cond
from tensorfleet.ops.math.binary import maximum, minimum
from tensorfleet.ops.math.cast import cast
from tensorfleet.ops.math.reduce_functions import reduce_mean
from tensorfleet.ops.math.unary import sqrt
from tensorfleet.ops.nn.activations import relu
from tensorfleet.ops.nn.norm import fused_batch_norm

_ZEROS, _ONES = Zeros(), Ones()
_HALVES = (dtypes.float16, dtypes.bfloat16)

#: The scale or the offset of the channels: a variable, or a tensor made of it; None for neither.
_Parameter: TypeAlias = "Variable | Tensor | None"


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
        axis: int | Sequence[int] = -1,
        momentum: float = 0.99,
        epsilon: float = 1e-3,
        center: bool = True,
        scale: bool = True,
        beta_initializer: InitializerLike = _ZEROS,
        gamma_initializer: InitializerLike = _ONES,
        moving_mean_initializer: InitializerLike = _ZEROS,
        moving_variance_initializer: InitializerLike = _ONES,
        beta_regularizer: Regularizer | None = None,
        gamma_regularizer: Regularizer | None = None,
        beta_constraint: Constraint | None = None,
        gamma_constraint: Constraint | None = None,
        renorm: bool = False,
        renorm_clipping: Mapping[str, Any] | None = None,
        renorm_momentum: float = 0.99,
        fused: bool | None = None,
        trainable: bool = True,
        virtual_batch_size: int | None = None,
        adjustment: Callable[[Tensor], tuple[Tensor, Tensor]] | None = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        if virtual_batch_size is not None and adjustment is not None:
            raise ValueError("When using virtual_batch_size, adjustment cannot be specified")
        unfused = {"renorm": renorm, "virtual_batch_size": virtual_batch_size, "adjustment": adjustment}
        for what, value in unfused.items():
            if value and fused:
                raise ValueError(f"Passing both fused=True and {what} is unsupported")
        unknown = set(renorm_clipping or ()) - {"rmax", "rmin", "dmax"}
        if renorm and unknown:
            raise ValueError(f"renorm_clipping {renorm_clipping} contains keys not in rmax, rmin, dmax")
        super().__init__(trainable, name, **kwargs)
        self.axis: int | list[int] = axis if isinstance(axis, int) else list(axis)
        self.momentum, self.epsilon, self.center, self.scale = momentum, epsilon, center, scale
        self.beta_initializer, self.gamma_initializer = beta_initializer, gamma_initializer
        self.moving_mean_initializer = moving_mean_initializer
        self.moving_variance_initializer = moving_variance_initializer
        self.beta_regularizer, self.gamma_regularizer = beta_regularizer, gamma_regularizer
        self.beta_constraint, self.gamma_constraint = beta_constraint, gamma_constraint
        self.renorm, self.renorm_clipping, self.renorm_momentum = renorm, renorm_clipping, renorm_momentum
        self.virtual_batch_size, self.adjustment = virtual_batch_size, adjustment
        self.fused = False if any(unfused.values()) else fused

    def build(self, input_shape: ShapeLike) -> None:
        """Makes gamma, beta and the moving averages."""
        dims = TensorShape(input_shape)
        if dims.ndims is None:
            raise ValueError(f"Input has undefined rank: {dims}")
        sizes = dims.as_list()
        self._axes = self._checked_axes(sizes)
        self.axis = list(self._axes)
        single = len(self._axes) == 1 and self.virtual_batch_size is None
        self._uses_fused = self.fused is not False and len(sizes) == 4 and single and self._axes[0] in (1, 3)
        self.input_spec = InputSpec(ndim=len(sizes), axes={a: sizes[a] for a in self._axes})
        wanted = (
            [sizes[self._axes[0]]] if single else [s if a in self._axes else 1 for a, s in enumerate(sizes)]
        )
        if self.virtual_batch_size is not None:
            if self.virtual_batch_size <= 0:
                raise ValueError(
                    "virtual_batch_size must be a positive integer that divides the true batch size of the input "
                    "tensor"
                )
            # Batches are cut into groups, which have an axis of their own.
            wanted, self._axes = [wanted[0], 1, *wanted[1:]], [a + 1 for a in self._axes]
        kind = dtypes.as_dtype(self.dtype or dtypes.float32)
        self._param_dtype = dtypes.float32 if kind in _HALVES else kind
        self.gamma = self._parameter("gamma", wanted) if self.scale else None
        self.beta = self._parameter("beta", wanted) if self.center else None
        assert self._scope is not None
        # Moving averages are updated as a whole, so that they are never cut into parts.
        partitioner = self._scope.partitioner
        self._scope.set_partitioner(None)
        try:
            self.moving_mean = self._average("moving_mean", wanted)
            self.moving_variance = self._average("moving_variance", wanted)
            if self.renorm:
                self.moving_stddev = self._average("moving_stddev", wanted, self._first_stddev)
                self.renorm_mean = self._average("renorm_mean", wanted, self.moving_mean_initializer)
                self.renorm_stddev = self._average("renorm_stddev", wanted, self._first_stddev)
        finally:
            self._scope.set_partitioner(partitioner)
        self.built = True

    def _checked_axes(self, sizes: list[int | None]) -> list[int]:
        given = self.axis if isinstance(self.axis, list) else [self.axis]
        axes = [a + len(sizes) if a < 0 else a for a in given]
        if any(not 0 <= a < len(sizes) for a in axes):
            raise ValueError(f"Invalid axis: {self.axis}")
        if len(set(axes)) != len(axes):
            raise ValueError(f"Duplicate axis: {self.axis}")
        if any(sizes[a] is None for a in axes):
            raise ValueError(f"Input has undefined `axis` dimension. Input shape: {sizes}")
        return axes

    def _parameter(self, name: str, dims: list[int | None]) -> Variable:
        options = {w: getattr(self, f"{name}_{w}") for w in ("initializer", "regularizer", "constraint")}
        result: Variable = self.add_weight(name, dims, self._param_dtype, trainable=True, **options)
        return result

    def _first_stddev(self, *args: object, **kwargs: object) -> Tensor:
        first: Any = self.moving_variance_initializer
        result: Tensor = sqrt(first(*args, **kwargs))
        return result

    def _average(self, name: str, dims: list[int | None], initializer: InitializerLike = None) -> Variable:
        result: Variable = self.add_weight(
            name,
            dims,
            self._param_dtype,
            initializer=initializer or getattr(self, f"{name}_initializer"),
            trainable=False,
            synchronization=VariableSynchronization.ON_READ,
            aggregation=VariableAggregation.MEAN,
        )
        return result

    def call(self, inputs: Tensor, training: TensorLike = False) -> Tensor:  # type: ignore[override]
        """Normalizes with the batch's statistics when `training` (which may be a tensor), else the moving ones."""
        known = known_bool(training)
        if self._uses_fused:
            return self._fused_call(inputs, training, known)
        value = inputs
        if self.virtual_batch_size is not None:
            rest = shape(inputs)[1:]
            value = reshape(inputs, concat([[self.virtual_batch_size, -1], rest], 0))
            value.set_shape([self.virtual_batch_size, None, *inputs.shape[1:]])
        if inputs.dtype.base_dtype in _HALVES:
            value = cast(value, dtypes.float32)
        mean: Variable | Tensor = self.moving_mean
        variance: Variable | Tensor = self.moving_variance
        gamma: _Parameter = self.gamma
        beta: _Parameter = self.beta
        if known is not False:
            mean, variance = (
                self._chosen(training, known, new, old)
                for new, old in zip(self._statistics(value), (mean, variance), strict=True)
            )
            gamma, beta = self._after_adjustment(inputs, training, known, gamma, beta)
            gamma, beta = self._update(mean, variance, training, known, gamma, beta)
        m, v = self._spread(mean, value), self._spread(variance, value)
        beta, gamma = self._spread(beta, value), self._spread(gamma, value)
        outputs = normalize(value, m, v, beta, gamma, self.epsilon)
        outputs = cast(outputs, inputs.dtype.base_dtype)
        if self.virtual_batch_size is not None:
            outputs = reshape(outputs, shape(inputs))
        outputs.set_shape(inputs.shape)
        return outputs

    def _chosen(self, training: TensorLike, known: bool | None, new: Tensor, old: TensorLike) -> Tensor:
        """The first while training, else the second."""
        return new if known else cond(training, lambda: new, lambda: to_tensor(old))

    def _after_adjustment(
        self, inputs: Tensor, training: TensorLike, known: bool | None, gamma: _Parameter, beta: _Parameter
    ) -> tuple[_Parameter, _Parameter]:
        if self.adjustment is None:
            return gamma, beta
        factor, shift = self.adjustment(shape(inputs))
        factor = self._chosen(training, known, factor, ones_like(factor))
        shift = self._chosen(training, known, shift, zeros_like(shift))
        return _both(factor, shift, gamma, beta)

    def _fused_call(self, inputs: Tensor, training: TensorLike, known: bool | None) -> Tensor:
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

    def _fused(self, inputs: Tensor, training: bool) -> Sequence[Tensor]:
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
        apart = self._axes if self.virtual_batch_size is None else [1, *self._axes]
        others = [a for a in range(len(value.shape)) if a not in apart]
        return moments(value, others, keep_dims=len(apart) > 1)

    def _update(
        self,
        mean: Tensor,
        variance: Tensor,
        training: TensorLike,
        known: bool | None,
        gamma: _Parameter = None,
        beta: _Parameter = None,
    ) -> tuple[_Parameter, _Parameter]:
        """Updates the moving averages; gives gamma and beta, which renormalization changes."""
        if self.virtual_batch_size is not None:
            mean, variance = (reduce_mean(t, 1, keepdims=True) for t in (mean, variance))
        if self.renorm:
            # Renormalization (Ioffe 2017): gamma and beta correct the batch by the averages of those before it.
            stddev = sqrt(variance + self.epsilon)
            factor, shift = self._corrections(mean, stddev)
            with control_dependencies([factor, shift]):
                part = self._kept(self.renorm_momentum, training, known)
                kept = [
                    self._moved(self.renorm_mean, mean, part),
                    self._moved(self.renorm_stddev, stddev, part),
                ]
            with control_dependencies(kept):
                mean, stddev = identity(mean), identity(stddev)
            factor = self._chosen(training, known, factor, ones_like(factor))
            shift = self._chosen(training, known, shift, zeros_like(shift))
            gamma, beta = _both(factor, shift, gamma, beta)
        part = self._kept(self.momentum, training, known)
        self.add_update(self._moved(self.moving_mean, mean, part))
        if not self.renorm:
            self.add_update(self._moved(self.moving_variance, variance, part))
            return gamma, beta
        moved = self._moved(self.moving_stddev, stddev, part)
        # The deviation is kept with epsilon inside, the variance without; rounding may make it negative.
        implied = relu(moved * moved - self.epsilon)
        self.add_update(
            self.moving_variance.assign(self._chosen(training, known, implied, self.moving_variance))
        )
        return gamma, beta

    def _corrections(self, mean: Tensor, stddev: Tensor) -> tuple[Tensor, Tensor]:
        """The difference of the batch from the averages before it, within the limits."""
        limits = self.renorm_clipping or {}
        factor, shift = stddev / self.renorm_stddev, (mean - self.renorm_mean) / self.renorm_stddev
        if limits.get("rmin") is not None:
            factor = maximum(factor, limits["rmin"])
        if limits.get("rmax") is not None:
            factor = minimum(factor, limits["rmax"])
        if limits.get("dmax") is not None:
            shift = minimum(maximum(shift, -limits["dmax"]), limits["dmax"])
        return stop_gradient(factor), stop_gradient(shift)

    def _kept(self, momentum: float, training: TensorLike, known: bool | None) -> Tensor:
        """How much of a moving average stays: all of it out of training."""
        return self._chosen(
            training,
            known,
            to_tensor(momentum, self._param_dtype),
            np.array(1, self._param_dtype.as_numpy_dtype),
        )

    def _moved(self, variable: Variable, value: Tensor, kept: Tensor) -> Tensor:
        with name_scope("AssignMovingAvg") as scope, colocate_with(variable.op):
            result: Tensor = variable.assign_sub((variable - value) * (1.0 - kept), name=scope)
            return result

    def _spread(self, vector: _Parameter, value: Tensor) -> _Parameter:
        """A vector of one entry per channel, shaped so that it lies along the channels' axis."""
        rank = len(value.shape)
        if vector is None or len(vector.shape) == rank or self._axes == [rank - 1]:
            return vector
        return reshape(vector, [-1 if a == self._axes[0] else 1 for a in range(rank)])

    def compute_output_shape(self, input_shape: ShapeLike) -> ShapeLike:
        """The shape of the input: normalization keeps it."""
        return input_shape


def _both(factor: Tensor, shift: Tensor, gamma: _Parameter, beta: _Parameter) -> tuple[Tensor, Tensor]:
    """The scale and the offset of one transformation after another, of which either part may be missing."""
    if gamma is not None:
        factor, shift = factor * gamma, shift * gamma
    return factor, shift if beta is None else shift + beta


def _normalized(given: dict[str, Any]) -> Tensor:
    training = given.pop("training")
    result: Tensor = applied(BatchNormalization, given, training=training)
    return result


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

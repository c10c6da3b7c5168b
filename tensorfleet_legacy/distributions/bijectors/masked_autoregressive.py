"""Bijectors that are networks: autoregressive flows, real-valued non-volume preserving maps, batch normalization."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tensorfleet.base.naming import find
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import name_scope
from tensorfleet_legacy.distributions.bijector_impl import Bijector, ConditionalBijector
from tensorfleet_legacy.distributions.distribution import number


def _depth(x: Tensor) -> int:
    depth = x.shape.as_list()[-1] if x.shape.rank else None
    if depth is None:
        raise NotImplementedError("Rightmost dimension must be known prior to graph execution.")
    return depth


class _ShiftAndScale(ConditionalBijector):
    """A bijector of vectors whose shift and scale a function gives."""

    def __init__(
        self, function: Callable, is_constant_jacobian: bool, validate_args: bool, name: str
    ) -> None:
        self._function = function
        super().__init__(
            forward_min_event_ndims=1,
            is_constant_jacobian=is_constant_jacobian,
            validate_args=validate_args,
            name=name,
        )


def _scaled(x: Tensor, shift: Any, log_scale: Any) -> Tensor:
    x = x if log_scale is None else x * find("exp")(log_scale)
    return x if shift is None else x + shift


def _unscaled(y: Tensor, shift: Any, log_scale: Any) -> Tensor:
    y = y if shift is None else y - shift
    return y if log_scale is None else y * find("exp")(-log_scale)


def _stretch(log_scale: Any, like: Tensor) -> Tensor:
    return number(0.0, like) if log_scale is None else find("reduce_sum")(log_scale, -1)


class MaskedAutoregressiveFlow(_ShiftAndScale):
    """Each element is scaled and shifted by what a function makes of the elements before it.

    The inverse takes one call of `shift_and_log_scale_fn`, `forward` as many as there are elements.
    """

    def __init__(
        self,
        shift_and_log_scale_fn: Callable,
        is_constant_jacobian: bool = False,
        validate_args: bool = False,
        unroll_loop: bool = False,
        name: str | None = None,
    ) -> None:
        self._unroll_loop = unroll_loop
        called = name or "masked_autoregressive_flow"
        super().__init__(shift_and_log_scale_fn, is_constant_jacobian, validate_args, called)

    def _forward(self, x: Tensor, **condition: Any) -> Tensor:
        y = find("zeros_like")(x)
        if self._unroll_loop:
            for _ in range(_depth(x)):
                y = _scaled(x, *self._function(y, **condition))
            return y
        self._function(y, **condition)  # its variables must not be made inside the loop

        def step(count: Any, y: Tensor) -> tuple:
            result = _scaled(x, *self._function(y, **condition))
            result.set_shape(x.shape)
            return count + 1, result

        size = find("shape")(x)[-1]
        return find("while_loop")(lambda count, _: count < size, step, (0, y))[1]

    def _inverse(self, y: Tensor, **condition: Any) -> Tensor:
        return _unscaled(y, *self._function(y, **condition))

    def _inverse_log_det_jacobian(self, y: Tensor, **condition: Any) -> Tensor:
        return -_stretch(self._function(y, **condition)[1], y)


def _mask(blocks: int, rows: int, columns: int, exclusive: bool) -> np.ndarray:
    """[rows, columns]: ones where a column's block comes after a row's, or is the same one unless `exclusive`."""
    mask = np.zeros([rows, columns], np.float32)
    tall, wide = rows // blocks, columns // blocks
    for block in range(blocks):
        mask[block * tall : (block + 1) * tall, (block + exclusive) * wide :] = 1
    return mask


def masked_dense(
    inputs: Any,
    units: int,
    num_blocks: int | None = None,
    exclusive: bool = False,
    kernel_initializer: Any = None,
    reuse: bool | None = None,
    name: str | None = None,
    *args: Any,
    **kwargs: Any,
) -> Tensor:
    """A dense layer whose outputs see only the blocks of inputs up to their own, or before it if `exclusive`."""
    mask = _mask(num_blocks or 1, _depth(inputs), units, exclusive)
    start = kernel_initializer or find("glorot_normal_initializer")()

    def masked(shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        return find("cast")(mask, dtype) * start(shape, dtype, partition_info)

    with name_scope(name, "masked_dense", [inputs]):
        layer = find("layers.Dense")(
            units,
            *args,
            kernel_initializer=masked,
            kernel_constraint=lambda kernel: find("cast")(mask, kernel.dtype.base_dtype) * kernel,
            name=name,
            dtype=inputs.dtype.base_dtype,
            _scope=name,
            _reuse=reuse,
            **kwargs,
        )
        return layer.apply(inputs)


def _clipped(value: Tensor, low: float, high: float, clip_gradient: bool) -> Tensor:
    clipped = find("clip_by_value")(value, low, high)
    return clipped if clip_gradient else value + find("stop_gradient")(clipped - value)


def masked_autoregressive_default_template(
    hidden_layers: Sequence[int],
    shift_only: bool = False,
    activation: Any = None,
    log_scale_min_clip: float = -5.0,
    log_scale_max_clip: float = 3.0,
    log_scale_clip_gradient: bool = False,
    name: str | None = None,
    *args: Any,
    **kwargs: Any,
) -> Callable:
    """A network of masked layers that gives the shift and log-scale of an autoregressive flow."""
    activation = activation or find("nn.relu")

    def network(x: Tensor) -> tuple:
        depth, shape = _depth(x), find("shape")(x)
        result = x
        for i, units in enumerate(hidden_layers):
            result = masked_dense(result, units, depth, i == 0, *args, activation=activation, **kwargs)
        width = depth if shift_only else 2 * depth
        result = masked_dense(result, width, depth, not hidden_layers, *args, activation=None, **kwargs)
        if shift_only:
            return find("reshape")(result, shape), None
        pairs = find("reshape")(result, find("concat")([shape, [2]], 0))
        shift, log_scale = find("unstack")(pairs, num=2, axis=-1)
        return shift, _clipped(log_scale, log_scale_min_clip, log_scale_max_clip, log_scale_clip_gradient)

    return find("make_template")(name or "masked_autoregressive_default_template", network)


class RealNVP(_ShiftAndScale):
    """The first `num_masked` elements stay; the others are scaled and shifted by what a function makes of those."""

    def __init__(
        self,
        num_masked: int,
        shift_and_log_scale_fn: Callable,
        is_constant_jacobian: bool = False,
        validate_args: bool = False,
        name: str | None = None,
    ) -> None:
        if num_masked <= 0:
            raise ValueError("num_masked must be a positive integer.")
        self._num_masked = num_masked
        super().__init__(shift_and_log_scale_fn, is_constant_jacobian, validate_args, name or "real_nvp")

    def _parts(self, x: Tensor, condition: dict) -> tuple:
        """The elements that stay, the others, and shift and log-scale of those."""
        depth = _depth(x)
        if self._num_masked >= depth:
            raise ValueError("Number of masked units must be smaller than the event size.")
        kept, rest = x[..., : self._num_masked], x[..., self._num_masked :]
        return kept, rest, *self._function(kept, depth - self._num_masked, **condition)

    def _forward(self, x: Tensor, **condition: Any) -> Tensor:
        kept, rest, shift, log_scale = self._parts(x, condition)
        return find("concat")([kept, _scaled(rest, shift, log_scale)], -1)

    def _inverse(self, y: Tensor, **condition: Any) -> Tensor:
        kept, rest, shift, log_scale = self._parts(y, condition)
        return find("concat")([kept, _unscaled(rest, shift, log_scale)], -1)

    def _inverse_log_det_jacobian(self, y: Tensor, **condition: Any) -> Tensor:
        return -_stretch(self._parts(y, condition)[3], y)

    def _forward_log_det_jacobian(self, x: Tensor, **condition: Any) -> Tensor:
        return _stretch(self._parts(x, condition)[3], x)


def real_nvp_default_template(
    hidden_layers: Sequence[int],
    shift_only: bool = False,
    activation: Any = None,
    name: str | None = None,
    *args: Any,
    **kwargs: Any,
) -> Callable:
    """A network that gives the shift and log-scale of a `RealNVP`."""
    activation, dense = activation or find("nn.relu"), find("layers.dense")

    def network(x: Tensor, output_units: int) -> tuple:
        for units in hidden_layers:
            x = dense(x, units, activation, *args, **kwargs)
        x = dense(x, output_units if shift_only else 2 * output_units, None, *args, **kwargs)
        return (x, None) if shift_only else tuple(find("split")(x, 2, axis=-1))

    return find("make_template")(name or "real_nvp_default_template", network)


class BatchNormalization(Bijector):
    """The inverse normalizes a batch, `forward` undoes it with the moving averages."""

    def __init__(
        self,
        batchnorm_layer: Any = None,
        training: bool = True,
        validate_args: bool = False,
        name: str = "batch_normalization",
    ) -> None:
        kind = find("layers.BatchNormalization")
        self.batchnorm = batchnorm_layer or kind(
            trainable=True, gamma_constraint=lambda gamma: find("nn.relu")(gamma) + 1e-6
        )
        if not isinstance(self.batchnorm, kind):
            raise ValueError("batchnorm_layer must be an instance of BatchNormalization layer.")
        self._training = training
        super().__init__(forward_min_event_ndims=1, validate_args=validate_args, name=name)

    def _built(self, x: Tensor) -> Any:
        if not self.batchnorm.built:
            self.batchnorm.apply(x, training=False)
        return self.batchnorm

    def _forward(self, y: Tensor) -> Tensor:
        layer = self._built(y)
        scale = find("sqrt")(layer.moving_variance + layer.epsilon)
        scale = scale if layer.gamma is None else scale / layer.gamma
        shift = layer.moving_mean if layer.beta is None else layer.moving_mean - scale * layer.beta
        return y * scale + shift

    def _inverse(self, y: Tensor) -> Tensor:
        return self.batchnorm.apply(y, training=self._training)

    def _forward_log_det_jacobian(self, x: Tensor) -> Tensor:
        return -self._inverse_log_det_jacobian(x)

    def _inverse_log_det_jacobian(self, y: Tensor) -> Tensor:
        layer = self._built(y)
        if self._training:
            _, variance = find("nn.moments")(y, list(range((y.shape.rank or 1) - 1)))
        else:
            variance = layer.moving_variance
        each = -0.5 * find("log")(variance + layer.epsilon)
        return find("reduce_sum")(each if layer.gamma is None else each + find("log")(layer.gamma))

"""`tf.contrib.mixed_precision`: losses scaled up, so that small gradients are not lost in half precision."""

from __future__ import annotations

import abc
from typing import Any

from tensorfleet.api.train.optimizer import Optimizer
from tensorfleet.base import dtypes
from tensorfleet.base.naming import find
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.indexed_slices import IndexedSlices
from tensorfleet.graph.operation import Tensor
from tensorfleet.ops.array.basic import group


class LossScaleManager(abc.ABC):
    """Gives the loss scale, and changes it after each step."""

    @abc.abstractmethod
    def get_loss_scale(self) -> Any:
        """The factor of the loss, a float32."""

    @abc.abstractmethod
    def update_loss_scale(self, finite_grads: Any) -> Any:
        """An operation that changes the scale; `finite_grads` tells whether the gradients were all finite."""


class FixedLossScaleManager(LossScaleManager):
    """The same scale in all steps."""

    def __init__(self, loss_scale: float) -> None:
        if loss_scale < 1:
            raise ValueError("loss scale must be at least 1.")
        self._loss_scale = to_tensor(loss_scale, dtypes.float32)

    def get_loss_scale(self) -> Tensor:
        return self._loss_scale

    def update_loss_scale(self, finite_grads: Any) -> Any:
        return find("no_op")()


class ExponentialUpdateLossScaleManager(LossScaleManager):
    """A scale that grows after some steps with finite gradients in a row, and shrinks after some without."""

    def __init__(
        self,
        init_loss_scale: float,
        incr_every_n_steps: int,
        decr_every_n_nan_or_inf: int = 2,
        incr_ratio: float = 2,
        decr_ratio: float = 0.8,
    ) -> None:
        self._incr_every_n_steps, self._decr_every_n_nan_or_inf = incr_every_n_steps, decr_every_n_nan_or_inf
        self._incr_ratio, self._decr_ratio = incr_ratio, decr_ratio

        def kept(start: Any, dtype: Any, name: str) -> Any:
            return find("Variable")(to_tensor(start, dtype), trainable=False, dtype=dtype, name=name)

        self._loss_scale = kept(init_loss_scale, dtypes.float32, "loss_scale")
        self._num_good_steps = kept(0, dtypes.int32, "good_steps")
        self._num_bad_steps = kept(0, dtypes.int32, "bad_steps")

    def get_loss_scale(self) -> Tensor:
        return self._loss_scale

    def update_loss_scale(self, finite_grads: Any) -> Any:
        where = find("where")
        scale, good, bad = (
            v.read_value() for v in (self._loss_scale, self._num_good_steps, self._num_bad_steps)
        )
        larger, smaller = scale * self._incr_ratio, find("maximum")(1.0, scale * self._decr_ratio)
        larger = where(find("is_finite")(larger), larger, scale)
        up = find("logical_and")(finite_grads, good + 1 >= self._incr_every_n_steps)
        down = find("logical_and")(
            find("logical_not")(finite_grads), bad + 1 >= self._decr_every_n_nan_or_inf
        )
        turned = find("logical_or")(up, down)
        zero = find("zeros_like")(good)
        new_good = where(turned, zero, where(finite_grads, good + 1, zero))
        new_bad = where(turned, zero, where(finite_grads, bad, bad + 1))
        return group(
            self._loss_scale.assign(where(up, larger, where(down, smaller, scale))),
            self._num_good_steps.assign(new_good),
            self._num_bad_steps.assign(new_bad),
        )


class LossScaleOptimizer(Optimizer):
    """An optimizer of a scaled loss; steps whose gradients are not all finite are left out."""

    def __init__(self, opt: Any, loss_scale_manager: LossScaleManager) -> None:
        super().__init__(False, "LossScaleOptimizer")
        self._opt, self._loss_scale_manager = opt, loss_scale_manager

    def compute_gradients(
        self,
        loss: Any,
        var_list: Any = None,
        gate_gradients: int = Optimizer.GATE_OP,
        aggregation_method: Any = None,
        colocate_gradients_with_ops: bool = False,
        grad_loss: Any = None,
    ) -> list:
        """The gradients of the loss, computed of the scaled loss and scaled back."""
        scale = to_tensor(self._loss_scale_manager.get_loss_scale())
        loss = loss() if callable(loss) else loss
        pairs = self._opt.compute_gradients(
            loss * find("cast")(scale, loss.dtype.base_dtype),
            var_list,
            gate_gradients,
            aggregation_method,
            colocate_gradients_with_ops,
            grad_loss,
        )
        back = find("reciprocal")(scale)
        return [(None if g is None else _times(g, back), v) for g, v in pairs]

    def apply_gradients(self, grads_and_vars: Any, global_step: Any = None, name: str | None = None) -> Any:
        """Applies gradients that are all finite; then the scale is changed."""
        pairs = list(grads_and_vars)
        finite = find("reduce_all")(
            [find("reduce_all")(find("is_finite")(_values(g))) for g, _ in pairs if g is not None]
        )
        changed = find("cond")(
            finite, lambda: group(self._opt.apply_gradients(pairs, global_step, name)), find("no_op")
        )
        return group(changed, self._loss_scale_manager.update_loss_scale(finite))


def _values(grad: Any) -> Tensor:
    return grad.values if isinstance(grad, IndexedSlices) else grad


def _times(grad: Any, factor: Tensor) -> Any:
    factor = find("cast")(factor, grad.dtype.base_dtype)
    if isinstance(grad, IndexedSlices):
        return IndexedSlices(grad.values * factor, grad.indices, grad.dense_shape)
    return grad * factor

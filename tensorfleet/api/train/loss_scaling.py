"""`tf.train.experimental`: losses are scaled up so that small gradients are not lost in half precision."""

from __future__ import annotations

import abc
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from tensorfleet.api.distribute.context import ReduceOp, get_replica_context, get_strategy, has_strategy
from tensorfleet.api.train.optimizer import Optimizer
from tensorfleet.api.variables.base import Variable
from tensorfleet.base import dtypes
from tensorfleet.base.naming import export
from tensorfleet.base.nest import flatten
from tensorfleet.base.properties import readonly
from tensorfleet.base.types import DTypeLike, TensorLike
from tensorfleet.graph.apply import constant
from tensorfleet.graph.convert import convert_to_tensor
from tensorfleet.graph.indexed_slices import IndexedSlices
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.scopes import control_dependencies
from tensorfleet.ops.array.basic import group, identity, no_op
from tensorfleet.ops.array.constructors import zeros_like
from tensorfleet.ops.array.stack import stack
from tensorfleet.ops.control.cond import cond
from tensorfleet.ops.math.binary import maximum
from tensorfleet.ops.math.cast import cast
from tensorfleet.ops.math.compare import equal, logical_and, logical_not
from tensorfleet.ops.math.compare import where as tf_where
from tensorfleet.ops.math.reduce_functions import reduce_all
from tensorfleet.ops.math.unary import is_finite
from tensorfleet.session.config import set_experimental_options

if TYPE_CHECKING:
    from tensorfleet.api.distribute.strategy import Strategy
    from tensorfleet.api.train.types import GlobalStep, Gradient, GradsAndVars, VariableList

_PLACE = "python.training.experimental"


@export("train.experimental.LossScale", f"{_PLACE}.loss_scale.LossScale")
class LossScale(abc.ABC):
    """The factor of a loss: calling it gives the number, `update` may change it."""

    _is_tracked = True

    def __init__(self) -> None:
        self._weights: dict[str, Any] = {}

    @abc.abstractmethod
    def __call__(self) -> Tensor:
        """The scale, a float32 scalar."""

    @abc.abstractmethod
    def update(self, grads: Sequence[Any]) -> tuple[Any, Any]:
        """An operation or tensor that updates the scale from the gradients, and whether to apply these."""

    def _add_weight(self, name: str, initial_value: TensorLike, dtype: DTypeLike | None = None) -> Variable:
        """A variable that the scale keeps."""
        with control_dependencies(None):
            weight = Variable(initial_value, name=name, dtype=dtype, trainable=False, use_resource=True)
        self._weights[name] = weight
        return weight

    def _checkpoint_dependencies(self) -> Iterator[tuple[str, Any]]:
        yield from sorted(self._weights.items())

    @abc.abstractmethod
    def get_config(self) -> dict[str, Any]:
        """The arguments of `from_config` for an equal scale."""

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> LossScale:
        """A scale from the result of `get_config`."""
        return cls(**config)


@export("train.experimental.FixedLossScale", f"{_PLACE}.loss_scale.FixedLossScale")
class FixedLossScale(LossScale):
    """The same number always."""

    def __init__(self, loss_scale_value: float) -> None:
        super().__init__()
        if not isinstance(loss_scale_value, (int, float)):
            raise ValueError("loss_scale_value must be a Python int or float.")
        if loss_scale_value < 1:
            raise ValueError(f"loss_scale_value must be at least 1, got: {loss_scale_value}")
        self._loss_scale_value = float(loss_scale_value)

    def __call__(self) -> Tensor:
        """The number."""
        return constant(self._loss_scale_value, dtypes.float32)

    def update(self, grads: Sequence[Any]) -> tuple[Operation, bool]:
        """Nothing to do; gradients are always applied."""
        return no_op(), True

    def __repr__(self) -> str:
        return f"FixedLossScale({self._loss_scale_value})"

    def get_config(self) -> dict[str, Any]:
        """The number."""
        return {"loss_scale_value": self._loss_scale_value}


def _all_finite(grads: Sequence[Any]) -> Tensor:
    flat = [g.values if isinstance(g, IndexedSlices) else g for g in flatten(grads)]
    checks = [reduce_all(is_finite(g)) for g in flat if g is not None]
    return reduce_all(stack(checks) if checks else constant([], dtypes.bool_))


def _finite_everywhere(grads: Sequence[Any]) -> Tensor:
    """Whether the gradients of all replicas are finite."""
    if not has_strategy():
        return _all_finite(grads)
    strategy = get_strategy()

    def finite(*mine: Tensor) -> Tensor:
        number: Tensor = cast(_all_finite(mine), dtypes.float32)
        return number

    each = strategy.extended.call_for_each_replica(finite, args=tuple(flatten(grads)))
    total = strategy.reduce(ReduceOp.SUM, each, axis=None)
    everywhere: Tensor = equal(total, float(strategy.num_replicas_in_sync))
    return everywhere


@export("train.experimental.DynamicLossScale", f"{_PLACE}.loss_scale.DynamicLossScale")
class DynamicLossScale(LossScale):
    """Grows by `multiplier` after `increment_period` steps of finite gradients, and shrinks at one that is not."""

    def __init__(
        self, initial_loss_scale: float = 2**15, increment_period: int = 2000, multiplier: float = 2.0
    ) -> None:
        super().__init__()
        self._initial_loss_scale = float(initial_loss_scale)
        self._increment_period = int(increment_period)
        self._multiplier = float(multiplier)
        self._current_loss_scale = self._add_weight(
            "current_loss_scale", self._initial_loss_scale, dtypes.float32
        )
        self._num_good_steps = self._add_weight("good_steps", 0, dtypes.int64)

    initial_loss_scale: float = readonly("_initial_loss_scale", "The scale to begin with.")
    increment_period: int = readonly("_increment_period", "After how many good steps it grows.")
    multiplier: float = readonly("_multiplier", "By how much it grows and shrinks.")

    def __call__(self) -> Tensor:
        """The scale as it is now."""
        return convert_to_tensor(self._current_loss_scale)

    def update(self, grads: Sequence[Any]) -> tuple[Tensor, Tensor]:
        """Grows, shrinks or counts; only finite gradients should be applied."""
        finite = _finite_everywhere(grads)
        where, scale = tf_where, self._current_loss_scale.read_value()
        steps = self._num_good_steps.read_value() + 1
        due = logical_and(finite, steps >= self._increment_period)
        grown = scale * self._multiplier
        # Twice an already huge scale is infinite: then it stays as it is.
        larger = where(is_finite(grown), grown, scale)
        # Below 1, scaling would lose the small gradients that it is meant to keep.
        smaller = maximum(scale / self._multiplier, 1.0)
        new_scale = where(due, larger, where(finite, scale, smaller))
        counting = logical_and(finite, logical_not(due))
        new_steps = where(counting, steps, zeros_like(steps))
        updates = self._current_loss_scale.assign(new_scale), self._num_good_steps.assign(new_steps)
        with control_dependencies(updates):
            return identity(finite), finite

    def __repr__(self) -> str:
        config = ", ".join(f"{name}={value}" for name, value in self.get_config().items())
        return f"DynamicLossScale({config})"

    def get_config(self) -> dict[str, Any]:
        """The numbers to begin with."""
        return {
            "initial_loss_scale": self._initial_loss_scale,
            "increment_period": self._increment_period,
            "multiplier": self._multiplier,
        }


@export(f"{_PLACE}.loss_scale.get")
def get(identifier: LossScale | float | str | None) -> LossScale | None:
    """A scale from a number, the word `dynamic`, a scale, or None."""
    if identifier is None or isinstance(identifier, LossScale):
        return identifier
    if isinstance(identifier, (int, float)):
        return FixedLossScale(identifier)
    if identifier == "dynamic":
        return DynamicLossScale()
    raise ValueError(f"Could not interpret loss scale identifier: {identifier}")


def times(gradient: Gradient, factor: Tensor) -> Any:
    """A gradient multiplied by a factor; None stays None."""
    if gradient is None:
        return None
    if isinstance(gradient, IndexedSlices):
        return IndexedSlices(times(gradient.values, factor), gradient.indices, gradient.dense_shape)
    return gradient * cast(factor, gradient.dtype)


@export(
    "train.experimental.MixedPrecisionLossScaleOptimizer",
    f"{_PLACE}.loss_scale_optimizer.MixedPrecisionLossScaleOptimizer",
)
class MixedPrecisionLossScaleOptimizer(Optimizer):
    """Has another optimizer minimize a scaled loss; a step with gradients that are not finite changes nothing."""

    def __init__(self, opt: Optimizer, loss_scale: LossScale | float | str | None) -> None:
        if not isinstance(opt, Optimizer):
            raise ValueError(f'"opt" must be an instance of Optimizer, but got: {type(opt)}')
        super().__init__(opt._use_locking, opt.get_name())
        self._optimizer = opt
        scale = get(loss_scale)
        if scale is None:
            raise ValueError("loss_scale cannot be None")
        self._loss_scale = scale

    def compute_gradients(
        self,
        loss: Tensor | Callable[[], Tensor],
        var_list: VariableList | None = None,
        gate_gradients: int = Optimizer.GATE_OP,
        aggregation_method: int | None = None,
        colocate_gradients_with_ops: bool = False,
        grad_loss: Tensor | None = None,
    ) -> list[tuple[Any, Any]]:
        """The gradients of the loss: computed from the scaled one, and scaled back."""
        value = loss() if callable(loss) else loss
        pairs = self._optimizer.compute_gradients(
            times(value, self._loss_scale()),
            var_list,
            gate_gradients=gate_gradients,
            aggregation_method=aggregation_method,
            colocate_gradients_with_ops=colocate_gradients_with_ops,
            grad_loss=grad_loss,
        )
        back = 1.0 / self._loss_scale()
        return [(times(gradient, back), variable) for gradient, variable in pairs]

    def apply_gradients(
        self, grads_and_vars: GradsAndVars, global_step: GlobalStep | None = None, name: str | None = None
    ) -> Operation:
        """Applies the gradients if all are finite, and updates the scale."""
        pairs = tuple(grads_and_vars)
        with control_dependencies(None):
            self._optimizer._create_slots([v for g, v in pairs if g is not None])
        if not has_strategy():
            return self._apply_if_finite(None, pairs, global_step, name)
        replica = get_replica_context()
        applied: Operation = replica.merge_call(self._apply_if_finite, args=(pairs, global_step, name))
        return applied

    def _apply_if_finite(
        self, strategy: Strategy | None, pairs: GradsAndVars, global_step: GlobalStep | None, name: str | None
    ) -> Operation:
        """With a strategy, called for all replicas together: they skip a step all or none."""
        update, should_apply = self._loss_scale.update([g for g, _ in pairs])

        def applied() -> Operation:
            given = (pairs, global_step, name)
            if strategy is None:
                return self._optimizer.apply_gradients(*given)
            done = strategy.extended.call_for_each_replica(self._optimizer.apply_gradients, args=given)
            return group(strategy.experimental_local_results(done))

        # A fixed scale decides nothing at run time, so that no condition is built.
        if should_apply is True:
            with control_dependencies([update]):
                return applied()
        return group(cond(should_apply, applied, no_op), update)

    def get_slot(self, var: Variable, name: str) -> Any:
        """A slot of the other optimizer."""
        return self._optimizer.get_slot(var, name)

    def _checkpoint_dependencies(self) -> Iterator[tuple[str, Any]]:
        yield "base_optimizer", self._optimizer
        yield "loss_scale", self._loss_scale

    def variables(self) -> list[Variable]:
        """The variables of the other optimizer and of the scale."""
        return [*self._optimizer.variables(), *self._loss_scale._weights.values()]


@export(
    "train.experimental.enable_mixed_precision_graph_rewrite",
    f"{_PLACE}.mixed_precision.enable_mixed_precision_graph_rewrite",
    f"{_PLACE}.mixed_precision.enable_mixed_precision_graph_rewrite_v1",
)
def enable_mixed_precision_graph_rewrite(
    opt: Optimizer, loss_scale: LossScale | float | str | None = "dynamic"
) -> MixedPrecisionLossScaleOptimizer:
    """The optimizer with a scaled loss. Operations keep their types: XLA chooses how it computes them."""
    if isinstance(opt, MixedPrecisionLossScaleOptimizer):
        raise ValueError(
            f'"opt" must not already be an instance of a {type(opt).__name__}. `enable_mixed_precision_graph_rewrite` '
            f"will automatically wrap the optimizer with a {type(opt).__name__}."
        )
    if not isinstance(opt, Optimizer):
        raise ValueError(
            '"opt" must be an instance of a tf.train.Optimizer or a tf.keras.optimizers.Optimizer, but got: '
            f"{opt}"
        )
    set_experimental_options({"auto_mixed_precision": True})
    return MixedPrecisionLossScaleOptimizer(opt, loss_scale)


@export(
    "train.experimental.disable_mixed_precision_graph_rewrite",
    f"{_PLACE}.mixed_precision.disable_mixed_precision_graph_rewrite",
    f"{_PLACE}.mixed_precision.disable_mixed_precision_graph_rewrite_v1",
)
def disable_mixed_precision_graph_rewrite() -> None:
    """Undoes `enable_mixed_precision_graph_rewrite`; optimizers that were wrapped stay so."""
    set_experimental_options({"auto_mixed_precision": False})

"""Follow the regularized leader."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorfleet.api.train.optimizer import Optimizer, cast
from tensorfleet.api.train.optimizers import one_op
from tensorfleet.api.variables.initializers import Ones
from tensorfleet.base import dtypes
from tensorfleet.base.naming import export
from tensorfleet.base.types import DTypeLike, ShapeLike
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Tensor

if TYPE_CHECKING:
    from tensorfleet.api.train.types import Hyperparameter
    from tensorfleet.api.variables.partitioned import PartitionInfo
    from tensorfleet.api.variables.variable import Variable


@export("train.FtrlOptimizer")
@one_op
class FtrlOptimizer(Optimizer):
    """Follow the regularized leader: for sparse linear models, with L1 and L2 penalties."""

    _op_slots = ("accum", "linear")

    def __init__(
        self,
        learning_rate: Hyperparameter,
        learning_rate_power: float = -0.5,
        initial_accumulator_value: float = 0.1,
        l1_regularization_strength: float = 0.0,
        l2_regularization_strength: float = 0.0,
        use_locking: bool = False,
        name: str = "Ftrl",
        accum_name: str | None = None,
        linear_name: str | None = None,
        l2_shrinkage_regularization_strength: float = 0.0,
    ) -> None:
        super().__init__(use_locking, name)
        _check_ftrl(
            initial_accumulator_value,
            learning_rate_power,
            l1_regularization_strength,
            l2_regularization_strength,
            l2_shrinkage_regularization_strength,
        )
        self._learning_rate = learning_rate
        self._learning_rate_power = learning_rate_power
        self._initial_accumulator_value = initial_accumulator_value
        self._l1_regularization_strength = l1_regularization_strength
        self._l2_regularization_strength = l2_regularization_strength
        self._l2_shrinkage_regularization_strength = l2_shrinkage_regularization_strength
        self._accum_name = accum_name
        self._linear_name = linear_name
        # Only V2 has shrinkage. Without it TensorFlow's graphs have V1.
        self._op_name = "FtrlV2" if l2_shrinkage_regularization_strength > 0.0 else "Ftrl"

    def _create_slots(self, var_list: list[Variable]) -> None:
        def start(
            shape: ShapeLike, dtype: DTypeLike = dtypes.float32, partition_info: PartitionInfo | None = None
        ) -> Tensor:
            return Ones()(shape, dtype) * self._initial_accumulator_value

        for v in var_list:
            dtype, shape = v.dtype.base_dtype, v.get_shape()
            name = self._accum_name or self._name
            self._get_or_make_slot_with_initializer(v, start, shape, dtype, "accum", name)
            self._zeros_slot(v, "linear", self._linear_name or self._name)

    def _prepare(self) -> None:
        self._learning_rate_tensor = to_tensor(self._learning_rate, name="learning_rate")
        for name in _FTRL_STRENGTHS:
            setattr(self, f"_{name}_tensor", to_tensor(getattr(self, f"_{name}"), name=name))

    def _dense_inputs(self, grad: Tensor, var: Variable) -> list[Any]:
        return [grad, *self._rates(var)]

    def _sparse_inputs(self, grad: Tensor, var: Variable, indices: Tensor) -> list[Any]:
        return [grad, indices, *self._rates(var)]

    def _rates(self, var: Variable) -> list[Tensor]:
        l1, l2, shrinkage, power = (cast(getattr(self, f"_{n}_tensor"), var.dtype) for n in _FTRL_STRENGTHS)
        rate = cast(self._learning_rate_tensor, var.dtype)
        return [rate, l1, l2, shrinkage, power] if self._op_name == "FtrlV2" else [rate, l1, l2, power]


_FTRL_STRENGTHS = (
    "l1_regularization_strength",
    "l2_regularization_strength",
    "l2_shrinkage_regularization_strength",
    "learning_rate_power",
)


def _check_ftrl(start: float, power: float, l1: float, l2: float, shrinkage: float) -> None:
    if start < 0.0:
        raise ValueError(f"initial_accumulator_value {start:f} needs to be positive or zero")
    if power > 0.0:
        raise ValueError(f"learning_rate_power {power:f} needs to be negative or zero")
    if l1 < 0.0:
        raise ValueError(f"l1_regularization_strength {l1:f} needs to be positive or zero")
    if l2 < 0.0:
        raise ValueError(f"l2_regularization_strength {l2:f} needs to be positive or zero")
    if shrinkage < 0.0:
        raise ValueError(f"l2_shrinkage_regularization_strength {shrinkage:f} needs to be positive or zero")

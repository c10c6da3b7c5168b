"""Gradient descent, momentum and the Adagrad family: optimizers that are one training op per variable."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from tensorfleet.api.train.optimizer import Optimizer, cast
from tensorfleet.api.variables.initializers import Constant, Ones
from tensorfleet.api.variables.variable import ResourceVariable, Variable
from tensorfleet.base import dtypes
from tensorfleet.base.naming import export
from tensorfleet.graph.apply import apply, apply_any, constant
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.indexed_slices import IndexedSlices
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.scopes import colocate_with, get_default_graph
from tensorfleet.ops.array.basic import identity

if TYPE_CHECKING:
    from tensorfleet.api.train.types import GlobalStep, Hyperparameter

T = TypeVar("T", bound=Optimizer)


class _OneOp(Optimizer):
    """The methods that `one_op` adds to a class: an update of a variable is one op of the Apply* family.

    The class has the op's name, its slots in the op's order, and its hyperparameters: attributes that `_prepare`
    fills, in the op's order, with where the gradient stands among them.
    """

    _op_name = ""
    _op_slots: tuple[str, ...] = ()
    _attrs: dict[str, Any] = {}

    def _dense_inputs(self, grad: Tensor, var: Variable) -> list[Any]:
        """The op's inputs after variable and slots, for a dense gradient."""
        raise NotImplementedError(f"{type(self).__name__} must define _dense_inputs().")

    def _sparse_inputs(self, grad: Tensor, var: Variable, indices: Tensor) -> list[Any]:
        """The same for a gradient by rows; the default adds the indices at the end."""
        return [*self._dense_inputs(grad, var), indices]

    def _state(self, var: Variable) -> list[Tensor]:
        variables = [var, *(self.get_slot(var, name) for name in self._op_slots)]
        return [v.handle if isinstance(v, ResourceVariable) else v for v in variables]

    def _apply_op(self, kind: str, var: Variable, inputs: list[Any]) -> Operation:
        op_type = f"{kind}{self._op_name}"
        update = apply_any(op_type, *self._state(var), *inputs, use_locking=self._use_locking, **self._attrs)
        return update.op if isinstance(update, Tensor) else update

    def _apply_dense(self, grad: Tensor, var: Variable) -> Any:
        return self._apply_op("Apply", var, self._dense_inputs(grad, var))

    def _resource_apply_dense(self, grad: Tensor, handle: ResourceVariable) -> Any:
        return self._apply_op("ResourceApply", handle, self._dense_inputs(grad, handle))

    def _apply_sparse(self, grad: IndexedSlices, var: Variable) -> Any:
        inputs = self._sparse_inputs(grad.values, var, grad.indices)
        return self._apply_op("SparseApply", var, inputs)

    def _resource_apply_sparse(self, grad: Tensor, handle: ResourceVariable, indices: Tensor) -> Any:
        return self._apply_op("ResourceSparseApply", handle, self._sparse_inputs(grad, handle, indices))


def one_op(cls: type[T]) -> type[T]:
    """Class decorator for an optimizer that is one op per variable.

    Not a class in between: libraries know TensorFlow's own optimizers by their base, which is `tf.train.Optimizer`.
    """
    for name, value in vars(_OneOp).items():
        if not name.startswith("__") and name not in vars(cls):
            setattr(cls, name, value)
    return cls


@export("train.GradientDescentOptimizer")
@one_op
class GradientDescentOptimizer(Optimizer):
    """Plain gradient descent."""

    _op_name = "GradientDescent"

    def __init__(
        self, learning_rate: Hyperparameter, use_locking: bool = False, name: str = "GradientDescent"
    ) -> None:
        super().__init__(use_locking, name)
        self._learning_rate = learning_rate
        self._learning_rate_tensor: Tensor | None = None

    def _prepare(self) -> None:
        rate = self._call_if_callable(self._learning_rate)
        self._learning_rate_tensor = to_tensor(rate, name="learning_rate")

    def _dense_inputs(self, grad: Tensor, var: Variable) -> list[Any]:
        return [cast(self._learning_rate_tensor, var.dtype), grad]

    def _apply_sparse_duplicate_indices(self, grad: IndexedSlices, var: Variable) -> Any:
        # Rows that repeat simply add up here.
        step = grad.values * cast(self._learning_rate_tensor, var.dtype)
        return var.scatter_sub(
            IndexedSlices(step, grad.indices, grad.dense_shape), use_locking=self._use_locking
        )

    def _resource_apply_sparse_duplicate_indices(
        self, grad: Tensor, handle: ResourceVariable, indices: Tensor
    ) -> Any:
        rate = cast(self._learning_rate_tensor, grad.dtype)
        return apply_any("ResourceScatterAdd", handle.handle, indices, -grad * rate)


@export("train.ProximalGradientDescentOptimizer")
@one_op
class ProximalGradientDescentOptimizer(Optimizer):
    """Gradient descent with L1 and L2 penalties applied as proximal steps."""

    _op_name = "ProximalGradientDescent"

    def __init__(
        self,
        learning_rate: Hyperparameter,
        l1_regularization_strength: float = 0.0,
        l2_regularization_strength: float = 0.0,
        use_locking: bool = False,
        name: str = "ProximalGradientDescent",
    ) -> None:
        super().__init__(use_locking, name)
        self._learning_rate = learning_rate
        self._l1_regularization_strength = l1_regularization_strength
        self._l2_regularization_strength = l2_regularization_strength
        self._l1_regularization_strength_tensor: Tensor | None = None
        self._l2_regularization_strength_tensor: Tensor | None = None

    def _prepare(self) -> None:
        _prepare_penalties(self)

    def _dense_inputs(self, grad: Tensor, var: Variable) -> list[Any]:
        return [*_penalties(self, var), grad]


def _prepare_penalties(self: Any) -> None:
    self._learning_rate_tensor = to_tensor(self._learning_rate, name="learning_rate")
    self._l1_regularization_strength_tensor = to_tensor(
        self._l1_regularization_strength, name="l1_regularization_strength"
    )
    self._l2_regularization_strength_tensor = to_tensor(
        self._l2_regularization_strength, name="l2_regularization_strength"
    )


def _penalties(self: Any, var: Variable) -> list[Tensor]:
    """Learning rate and both penalties in the variable's type."""
    return [
        cast(self._learning_rate_tensor, var.dtype),
        cast(self._l1_regularization_strength_tensor, var.dtype),
        cast(self._l2_regularization_strength_tensor, var.dtype),
    ]


@export("train.MomentumOptimizer")
@one_op
class MomentumOptimizer(Optimizer):
    """Gradient descent with momentum; `use_nesterov` looks ahead."""

    _op_name = "Momentum"
    _op_slots = ("momentum",)

    def __init__(
        self,
        learning_rate: Hyperparameter,
        momentum: Hyperparameter,
        use_locking: bool = False,
        name: str = "Momentum",
        use_nesterov: bool = False,
    ) -> None:
        super().__init__(use_locking, name)
        self._learning_rate = learning_rate
        self._momentum = momentum
        self._use_nesterov = use_nesterov
        self._attrs = {"use_nesterov": use_nesterov}

    def _create_slots(self, var_list: list[Variable]) -> None:
        for v in var_list:
            self._zeros_slot(v, "momentum", self._name)

    def _prepare(self) -> None:
        rate = self._call_if_callable(self._learning_rate)
        self._learning_rate_tensor = to_tensor(rate, name="learning_rate")
        self._momentum_tensor = to_tensor(self._call_if_callable(self._momentum), name="momentum")

    def _dense_inputs(self, grad: Tensor, var: Variable) -> list[Any]:
        return [cast(self._learning_rate_tensor, var.dtype), grad, cast(self._momentum_tensor, var.dtype)]

    def _sparse_inputs(self, grad: Tensor, var: Variable, indices: Tensor) -> list[Any]:
        rate, grad, momentum = self._dense_inputs(grad, var)
        return [rate, grad, indices, momentum]


@export("train.AdagradOptimizer")
@one_op
class AdagradOptimizer(Optimizer):
    """Smaller steps for elements that had large gradients so far."""

    _op_name = "Adagrad"
    _op_slots = ("accumulator",)

    def __init__(
        self,
        learning_rate: Hyperparameter,
        initial_accumulator_value: float = 0.1,
        use_locking: bool = False,
        name: str = "Adagrad",
    ) -> None:
        if initial_accumulator_value <= 0.0:
            raise ValueError(f"initial_accumulator_value must be positive: {initial_accumulator_value}")
        super().__init__(use_locking, name)
        self._learning_rate = learning_rate
        self._initial_accumulator_value = initial_accumulator_value
        self._learning_rate_tensor: Tensor | None = None

    def _create_slots(self, var_list: list[Variable]) -> None:
        for v in var_list:
            dtype = v.dtype.base_dtype
            start = Constant(self._initial_accumulator_value, dtype=dtype)
            if v.get_shape().is_fully_defined():
                self._get_or_make_slot_with_initializer(
                    v, start, v.get_shape(), dtype, "accumulator", self._name
                )
            else:
                self._get_or_make_slot(v, self._filled_like(v), "accumulator", self._name)

    def _filled_like(self, v: Variable) -> Tensor:
        value = constant(self._initial_accumulator_value, v.dtype.base_dtype)
        return apply("Fill", apply("Shape", v), value)

    def _prepare(self) -> None:
        rate = self._call_if_callable(self._learning_rate)
        self._learning_rate_tensor = to_tensor(rate, name="learning_rate")

    def _dense_inputs(self, grad: Tensor, var: Variable) -> list[Any]:
        return [cast(self._learning_rate_tensor, var.dtype), grad]


@export("train.ProximalAdagradOptimizer")
@one_op
class ProximalAdagradOptimizer(Optimizer):
    """Adagrad with L1 and L2 penalties applied as proximal steps."""

    _op_name = "ProximalAdagrad"
    _op_slots = ("accumulator",)

    def __init__(
        self,
        learning_rate: Hyperparameter,
        initial_accumulator_value: float = 0.1,
        l1_regularization_strength: float = 0.0,
        l2_regularization_strength: float = 0.0,
        use_locking: bool = False,
        name: str = "ProximalAdagrad",
    ) -> None:
        if initial_accumulator_value <= 0.0:
            raise ValueError(f"initial_accumulator_value must be positive: {initial_accumulator_value}")
        super().__init__(use_locking, name)
        self._learning_rate = learning_rate
        self._initial_accumulator_value = initial_accumulator_value
        self._l1_regularization_strength = l1_regularization_strength
        self._l2_regularization_strength = l2_regularization_strength

    def _create_slots(self, var_list: list[Variable]) -> None:
        for v in var_list:
            with colocate_with(v.op):
                value = constant(self._initial_accumulator_value, v.dtype.base_dtype, v.get_shape())
            self._get_or_make_slot(v, value, "accumulator", self._name)

    def _prepare(self) -> None:
        _prepare_penalties(self)

    def _dense_inputs(self, grad: Tensor, var: Variable) -> list[Any]:
        return [*_penalties(self, var), grad]


@export("train.AdagradDAOptimizer")
@one_op
class AdagradDAOptimizer(Optimizer):
    """Adagrad by dual averaging: with an L1 penalty it gives very sparse linear models.

    `global_step` is the variable that counts steps; pass the same one to `minimize`.
    """

    _op_name = "AdagradDA"
    _op_slots = ("gradient_accumulator", "gradient_squared_accumulator")

    def __init__(
        self,
        learning_rate: Hyperparameter,
        global_step: GlobalStep,
        initial_gradient_squared_accumulator_value: float = 0.1,
        l1_regularization_strength: float = 0.0,
        l2_regularization_strength: float = 0.0,
        use_locking: bool = False,
        name: str = "AdagradDA",
    ) -> None:
        if initial_gradient_squared_accumulator_value <= 0.0:
            raise ValueError(
                "initial_gradient_squared_accumulator_value must be positive: "
                f"{initial_gradient_squared_accumulator_value}"
            )
        super().__init__(use_locking, name)
        self._learning_rate = learning_rate
        self._initial_gradient_squared_accumulator_value = initial_gradient_squared_accumulator_value
        self._learning_rate_tensor: Tensor | None = None
        self._l1_regularization_strength = l1_regularization_strength
        self._l2_regularization_strength = l2_regularization_strength
        self._global_step = global_step
        self._global_step_on_worker: Tensor | None = None

    def _create_slots(self, var_list: list[Variable]) -> None:
        for v in var_list:
            with colocate_with(v.op):
                dtype, shape = v.dtype.base_dtype, v.get_shape()
                zeros = constant(0.0, dtype, shape)
                start = constant(self._initial_gradient_squared_accumulator_value, dtype, shape)
            self._get_or_make_slot(v, zeros, "gradient_accumulator", self._name)
            self._get_or_make_slot(v, start, "gradient_squared_accumulator", self._name)

    def _prepare(self) -> None:
        self._learning_rate_tensor = to_tensor(self._learning_rate, name="learning_rate")
        # A copy, so that the updates do not all ask the task that holds the global step.
        with get_default_graph().colocate_with(None, ignore_existing=True):
            self._global_step_on_worker = identity(self._global_step) + 1

    def _dense_inputs(self, grad: Tensor, var: Variable) -> list[Any]:
        step = self._step_beside(grad)
        rate, l1, l2 = self._rates(var)
        return [grad, rate, l1, l2, step]

    def _sparse_inputs(self, grad: Tensor, var: Variable, indices: Tensor) -> list[Any]:
        step = self._step_beside(grad)
        rate, l1, l2 = self._rates(var)
        return [grad, indices, rate, l1, l2, step]

    def _step_beside(self, grad: Tensor) -> Tensor:
        with get_default_graph().device(grad.device or None):
            step: Tensor = cast(identity(self._global_step_on_worker), dtypes.int64)
        return step

    def _rates(self, var: Variable) -> list[Tensor]:
        return [
            cast(self._learning_rate_tensor, var.dtype),
            cast(self._l1_regularization_strength, var.dtype),
            cast(self._l2_regularization_strength, var.dtype),
        ]


@export("train.AdadeltaOptimizer")
@one_op
class AdadeltaOptimizer(Optimizer):
    """Steps whose size follows from past gradients and past updates alone."""

    _op_name = "Adadelta"
    _op_slots = ("accum", "accum_update")

    def __init__(
        self,
        learning_rate: Hyperparameter = 0.001,
        rho: Hyperparameter = 0.95,
        epsilon: Hyperparameter = 1e-8,
        use_locking: bool = False,
        name: str = "Adadelta",
    ) -> None:
        super().__init__(use_locking, name)
        self._lr = learning_rate
        self._rho = rho
        self._epsilon = epsilon
        self._lr_t: Tensor | None = None
        self._rho_t: Tensor | None = None
        self._epsilon_t: Tensor | None = None

    def _create_slots(self, var_list: list[Variable]) -> None:
        for v in var_list:
            self._zeros_slot(v, "accum", self._name)
            self._zeros_slot(v, "accum_update", self._name)

    def _prepare(self) -> None:
        self._lr_t = to_tensor(self._call_if_callable(self._lr), name="lr")
        self._rho_t = to_tensor(self._call_if_callable(self._rho), name="rho")
        self._epsilon_t = to_tensor(self._call_if_callable(self._epsilon), name="epsilon")

    def _dense_inputs(self, grad: Tensor, var: Variable) -> list[Any]:
        return [*(cast(t, var.dtype) for t in (self._lr_t, self._rho_t, self._epsilon_t)), grad]


@export("train.RMSPropOptimizer")
@one_op
class RMSPropOptimizer(Optimizer):
    """Gradients scaled by their running root mean square; `centered` uses the standard deviation."""

    def __init__(
        self,
        learning_rate: Hyperparameter,
        decay: Hyperparameter = 0.9,
        momentum: Hyperparameter = 0.0,
        epsilon: Hyperparameter = 1e-10,
        use_locking: bool = False,
        centered: bool = False,
        name: str = "RMSProp",
    ) -> None:
        super().__init__(use_locking, name)
        self._learning_rate = learning_rate
        self._decay = decay
        self._momentum = momentum
        self._epsilon = epsilon
        self._centered = centered
        self._op_name = "CenteredRMSProp" if centered else "RMSProp"
        self._op_slots = ("mg", "rms", "momentum") if centered else ("rms", "momentum")
        self._learning_rate_tensor: Tensor | None = None
        self._decay_tensor: Tensor | None = None
        self._momentum_tensor: Tensor | None = None
        self._epsilon_tensor: Tensor | None = None

    def _create_slots(self, var_list: list[Variable]) -> None:
        for v in var_list:
            dtype = v.dtype.base_dtype
            if v.get_shape().is_fully_defined():
                self._get_or_make_slot_with_initializer(v, Ones(), v.get_shape(), dtype, "rms", self._name)
            else:
                ones = apply("Fill", apply("Shape", v), constant(1, dtype))
                self._get_or_make_slot(v, ones, "rms", self._name)
            if self._centered:
                self._zeros_slot(v, "mg", self._name)
            self._zeros_slot(v, "momentum", self._name)

    def _prepare(self) -> None:
        rate = self._call_if_callable(self._learning_rate)
        self._learning_rate_tensor = to_tensor(rate, name="learning_rate")
        self._decay_tensor = to_tensor(self._call_if_callable(self._decay), name="decay")
        self._momentum_tensor = to_tensor(self._call_if_callable(self._momentum), name="momentum")
        self._epsilon_tensor = to_tensor(self._call_if_callable(self._epsilon), name="epsilon")

    def _dense_inputs(self, grad: Tensor, var: Variable) -> list[Any]:
        prepared = (
            self._learning_rate_tensor,
            self._decay_tensor,
            self._momentum_tensor,
            self._epsilon_tensor,
        )
        return [*(cast(t, var.dtype) for t in prepared), grad]

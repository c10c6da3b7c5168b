"""`tf.keras.optimizers`: the optimizers themselves, and optimizers by name."""

from __future__ import annotations

from typing import Any

from tensorfleet.api.train.optimizer import Optimizer as TrainOptimizer
from tensorfleet.api.variables.initializers import Constant
from tensorfleet.base.arguments import signature_of, taking
from tensorfleet.base.naming import find
from tensorfleet.graph.apply import apply_any, apply_op
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Tensor
from tensorfleet_legacy.keras.optimizer_v2.optimizer_v2 import Optimizer, TFOptimizer
from tensorfleet_legacy.keras.optimizer_v2.optimizer_v2_rules import Ruled, epsilon_of, ruled


class SGD(Ruled):
    """Gradient descent, with momentum if wanted."""

    _hypers = ("momentum",)
    __init__ = ruled("learning_rate=0.01, momentum=0.0, nesterov=False, name='SGD', **kwargs")

    def _create_slots(self, var_list: list) -> None:
        for var in var_list if self._momentum else ():
            self.add_slot(var, "momentum")

    def _resource_apply_dense(self, grad: Tensor, var: Any) -> Any:
        n = self._for(var)
        if not self._momentum:
            return apply_op("ResourceApplyGradientDescent", var.handle, n["lr"], grad)
        state = self._handles(var, "momentum")
        return apply_op(
            "ResourceApplyKerasMomentum", *state, n["lr"], grad, n["momentum"], use_nesterov=self.nesterov
        )

    def _resource_apply_sparse_duplicate_indices(self, grad: Tensor, var: Any, indices: Tensor) -> Any:
        if self._momentum:
            return super()._resource_apply_sparse_duplicate_indices(grad, var, indices)
        return apply_any("ResourceScatterAdd", var.handle, indices, -grad * self._for(var)["lr"])

    def _resource_apply_sparse(self, grad: Tensor, var: Any, indices: Tensor) -> Any:
        n, state = self._for(var), self._handles(var, "momentum")
        return apply_op(
            "ResourceSparseApplyKerasMomentum",
            *state,
            n["lr"],
            grad,
            indices,
            n["momentum"],
            use_nesterov=self.nesterov,
        )


class Adam(Ruled):
    """Steps by the running mean of the gradients over the root of their running mean square."""

    _hypers = ("beta_1", "beta_2")
    __init__ = ruled(
        "learning_rate=0.001, beta_1=0.9, beta_2=0.999, epsilon=1e-7, amsgrad=False, name='Adam', **kwargs"
    )

    def _create_slots(self, var_list: list) -> None:
        for slot in ("m", "v", "vhat") if self.amsgrad else ("m", "v"):
            for var in var_list:
                self.add_slot(var, slot)

    def _numbers(self, kind: Any) -> dict[str, Any]:
        n = super()._numbers(kind)
        step = self._step(kind)
        n["power_1"], n["power_2"] = find("pow")(n["beta_1"], step), find("pow")(n["beta_2"], step)
        n["rate"] = n["lr"] * find("sqrt")(1 - n["power_2"]) / (1 - n["power_1"])
        return n

    def _resource_apply_dense(self, grad: Tensor, var: Any) -> Any:
        n = self._for(var)
        rates = [n["power_1"], n["power_2"], n["lr"], n["beta_1"], n["beta_2"], self._small(var), grad]
        if self.amsgrad:
            return apply_op("ResourceApplyAdamWithAmsgrad", *self._handles(var, "m", "v", "vhat"), *rates)
        return apply_op("ResourceApplyAdam", *self._handles(var, "m", "v"), *rates)

    def _resource_apply_sparse(self, grad: Tensor, var: Any, indices: Tensor) -> Any:
        n = self._for(var)
        m = self._decay_rows(self.get_slot(var, "m"), n["beta_1"], grad * (1 - n["beta_1"]), indices)
        v = self._decay_rows(self.get_slot(var, "v"), n["beta_2"], grad * grad * (1 - n["beta_2"]), indices)
        done = []
        if self.amsgrad:
            highest = self.get_slot(var, "vhat")
            v = find("maximum")(to_tensor(highest), v)
            done.append(highest.assign(v, read_value=False))
        step = n["rate"] * m / (find("sqrt")(v) + self._small(var))
        return find("group")(var.assign_sub(step, read_value=False), *done)


class Adamax(Ruled):
    """Adam with the largest past gradient in place of the second moment."""

    _hypers = ("beta_1", "beta_2")
    _slot_names = ("m", "v")
    __init__ = ruled("learning_rate=0.001, beta_1=0.9, beta_2=0.999, epsilon=1e-7, name='Adamax', **kwargs")

    def _numbers(self, kind: Any) -> dict[str, Any]:
        n = super()._numbers(kind)
        n["power_1"] = find("pow")(n["beta_1"], self._step(kind))
        return n

    def _resource_apply_dense(self, grad: Tensor, var: Any) -> Any:
        n = self._for(var)
        rates = [n["power_1"], n["lr"], n["beta_1"], n["beta_2"], self._small(var), grad]
        return apply_op("ResourceApplyAdaMax", *self._handles(var, "m", "v"), *rates)

    def _resource_apply_sparse(self, grad: Tensor, var: Any, indices: Tensor) -> Any:
        n, (m, v) = self._for(var), (self.get_slot(var, s) for s in ("m", "v"))
        gather = find("gather")
        m_rows = gather(m, indices) * n["beta_1"] + grad * (1 - n["beta_1"])
        v_rows = find("maximum")(gather(v, indices) * n["beta_2"], find("abs")(grad))
        step = -n["lr"] / (1 - n["power_1"]) * (m_rows / (v_rows + self._small(var)))
        return find("group")(
            apply_any("ResourceScatterUpdate", m.handle, indices, m_rows),
            apply_any("ResourceScatterUpdate", v.handle, indices, v_rows),
            apply_any("ResourceScatterAdd", var.handle, indices, step),
        )


class Nadam(Ruled):
    """Adam with Nesterov momentum, whose first moment warms up."""

    _hypers = ("beta_1", "beta_2")
    _slot_names = ("m", "v")

    @taking(
        signature_of("learning_rate=0.001, beta_1=0.9, beta_2=0.999, epsilon=1e-7, name='Nadam', **kwargs")
    )
    def __init__(self, given: dict[str, Any]) -> None:
        given["decay"] = given.pop("schedule_decay", 0.004)
        self._make(given)
        self._product: Any = None

    def _create_slots(self, var_list: list) -> None:
        if self._product is None:
            self._product = self._variable("momentum_cache", 1.0)
            self._own.append(self._product)
        super()._create_slots(var_list)

    def _decayed_lr(self, dtype: Any) -> Tensor:
        return self._get_hyper("learning_rate", dtype)

    def _prepare(self, var_list: list) -> None:
        before = self._product.value()
        self._before = before
        super()._prepare(var_list)
        now = next(iter(self._shared.values()))["product"]
        self._advance = self._product.assign(find("cast")(now, "float32"), read_value=False)

    def _numbers(self, kind: Any) -> dict[str, Any]:
        n = super()._numbers(kind)
        step, decay = self._step(kind), self._initial_decay
        base = find("constant")(0.96, kind)
        now = n["beta_1"] * (1.0 - 0.5 * find("pow")(base, decay * step))
        after = n["beta_1"] * (1.0 - 0.5 * find("pow")(base, decay * (step + 1)))
        product = find("cast")(self._before, kind) * now
        n.update(now=now, after=after, product=product, product_after=product * after)
        n["power_2"] = find("pow")(n["beta_2"], step)
        return n

    def _moved(self, n: dict, grad: Any, m: Any, v: Any, small: Any) -> Any:
        """The step, from a gradient and the new moments."""
        corrected = grad / (1.0 - n["product"]) * (1.0 - n["now"])
        mean = m / (1.0 - n["product_after"]) * n["after"] + corrected
        return n["lr"] * mean / (find("sqrt")(v / (1.0 - n["power_2"])) + small)

    def _resource_apply_dense(self, grad: Tensor, var: Any) -> Any:
        n, (m, v) = self._for(var), (self.get_slot(var, s) for s in ("m", "v"))
        m_t = n["beta_1"] * m + (1 - n["beta_1"]) * grad
        v_t = n["beta_2"] * v + (1 - n["beta_2"]) * find("square")(grad)
        moved = self._moved(n, grad, m_t, v_t, self._small(var))
        writes = [m.assign(m_t, read_value=False), v.assign(v_t, read_value=False), self._advance]
        return find("group")(var.assign_sub(moved, read_value=False), *writes)

    def _resource_apply_sparse(self, grad: Tensor, var: Any, indices: Tensor) -> Any:
        n, (m, v) = self._for(var), (self.get_slot(var, s) for s in ("m", "v"))
        m_t = self._decay_rows(m, n["beta_1"], grad * (1 - n["beta_1"]), indices)
        v_t = self._decay_rows(v, n["beta_2"], grad * grad * (1 - n["beta_2"]), indices)
        gather = find("gather")
        moved = self._moved(n, grad, gather(m_t, indices), gather(v_t, indices), self._small(var))
        return find("group")(apply_any("ResourceScatterAdd", var.handle, indices, -moved), self._advance)


class RMSprop(Ruled):
    """Steps by the gradient over the root of its running mean square."""

    _hypers = ("rho", "momentum")
    __init__ = ruled(
        "learning_rate=0.001, rho=0.9, momentum=0.0, epsilon=1e-7, centered=False, name='RMSprop', **kwargs"
    )

    def _create_slots(self, var_list: list) -> None:
        slots = ["rms", *(["momentum"] if self._momentum else []), *(["mg"] if self.centered else [])]
        for slot in slots:
            for var in var_list:
                self.add_slot(var, slot)

    def _resource_apply_dense(self, grad: Tensor, var: Any) -> Any:
        n, small = self._for(var), self._small(var)
        if self._momentum:
            slots = ("mg", "rms", "momentum") if self.centered else ("rms", "momentum")
            kind = "ResourceApplyCenteredRMSProp" if self.centered else "ResourceApplyRMSProp"
            return apply_any(kind, *self._handles(var, *slots), n["lr"], n["rho"], n["momentum"], small, grad)
        rms, rho = self.get_slot(var, "rms"), n["rho"]
        rms_t = rho * rms + (1 - rho) * find("square")(grad)
        writes = [rms.assign(rms_t, read_value=False)]
        spread = rms_t
        if self.centered:
            mean = self.get_slot(var, "mg")
            mean_t = rho * mean + (1 - rho) * grad
            writes.append(mean.assign(mean_t, read_value=False))
            spread = rms_t - find("square")(mean_t)
        step = n["lr"] * grad / (find("sqrt")(spread) + small)
        return find("group")(var.assign_sub(step, read_value=False), *writes)

    def _resource_apply_sparse(self, grad: Tensor, var: Any, indices: Tensor) -> Any:
        n, small = self._for(var), self._small(var)
        if self._momentum:
            slots = ("mg", "rms", "momentum") if self.centered else ("rms", "momentum")
            kind = f"ResourceSparseApply{'Centered' if self.centered else ''}RMSProp"
            rates = [n["lr"], n["rho"], n["momentum"], small, grad, indices]
            return apply_any(kind, *self._handles(var, *slots), *rates)
        rho, gather = n["rho"], find("gather")
        rms_t = self._decay_rows(self.get_slot(var, "rms"), rho, grad * grad * (1 - rho), indices)
        spread = gather(rms_t, indices)
        if self.centered:
            mean_t = self._decay_rows(self.get_slot(var, "mg"), rho, grad * (1 - rho), indices)
            spread = spread - find("square")(gather(mean_t, indices))
        step = -n["lr"] * grad / (find("sqrt")(spread) + small)
        return apply_any("ResourceScatterAdd", var.handle, indices, step)


class Adagrad(Ruled):
    """Steps scaled by the root of the sum of all squared gradients."""

    def __init__(
        self,
        learning_rate: Any = 0.001,
        initial_accumulator_value: float = 0.1,
        epsilon: Any = 1e-7,
        name: str = "Adagrad",
        **kwargs: Any,
    ) -> None:
        if initial_accumulator_value < 0.0:
            raise ValueError(f"initial_accumulator_value must be non-negative: {initial_accumulator_value}")
        self._start(name, learning_rate, kwargs)
        self.epsilon, self._initial_accumulator_value = epsilon_of(epsilon), initial_accumulator_value

    def _create_slots(self, var_list: list) -> None:
        for var in var_list:
            self.add_slot(var, "accumulator", Constant(self._initial_accumulator_value))

    def _resource_apply_dense(self, grad: Tensor, var: Any) -> Any:
        handles = self._handles(var, "accumulator")
        return apply_op("ResourceApplyAdagradV2", *handles, self._for(var)["lr"], self._small(var), grad)

    def _resource_apply_sparse(self, grad: Tensor, var: Any, indices: Tensor) -> Any:
        inputs = [*self._handles(var, "accumulator"), self._for(var)["lr"], self._small(var), grad, indices]
        return apply_op("ResourceSparseApplyAdagradV2", *inputs)


class Adadelta(Ruled):
    """Steps in the units of the variable: the root of past updates over the root of past gradients."""

    _hypers = ("rho",)
    _slot_names = ("accum_grad", "accum_var")
    __init__ = ruled("learning_rate=0.001, rho=0.95, epsilon=1e-7, name='Adadelta', **kwargs")

    def _inputs(self, var: Any, *rest: Any) -> list:
        n, handles = self._for(var), self._handles(var, "accum_grad", "accum_var")
        return [*handles, n["lr"], n["rho"], self._small(var), *rest]

    def _resource_apply_dense(self, grad: Tensor, var: Any) -> Any:
        return apply_op("ResourceApplyAdadelta", *self._inputs(var, grad))

    def _resource_apply_sparse(self, grad: Tensor, var: Any, indices: Tensor) -> Any:
        return apply_op("ResourceSparseApplyAdadelta", *self._inputs(var, grad, indices))


class Ftrl(Ruled):
    """Follow the regularized leader."""

    _hypers = ("learning_rate_power", "l1_regularization_strength", "l2_regularization_strength")

    def __init__(
        self,
        learning_rate: Any = 0.001,
        learning_rate_power: float = -0.5,
        initial_accumulator_value: float = 0.1,
        l1_regularization_strength: float = 0.0,
        l2_regularization_strength: float = 0.0,
        name: str = "Ftrl",
        l2_shrinkage_regularization_strength: float = 0.0,
        **kwargs: Any,
    ) -> None:
        given = {
            "initial_accumulator_value": initial_accumulator_value,
            "l1_regularization_strength": l1_regularization_strength,
            "l2_regularization_strength": l2_regularization_strength,
            "l2_shrinkage_regularization_strength": l2_shrinkage_regularization_strength,
        }
        for key, value in given.items():
            if value < 0.0:
                raise ValueError(f"{key} {value} needs to be positive or zero")
        if learning_rate_power > 0.0:
            raise ValueError(f"learning_rate_power {learning_rate_power} needs to be negative or zero")
        given["learning_rate_power"] = learning_rate_power
        self._start(name, learning_rate, kwargs, **{hyper: given[hyper] for hyper in self._hypers})
        self._initial_accumulator_value = initial_accumulator_value
        self._l2_shrinkage_regularization_strength = l2_shrinkage_regularization_strength

    def _create_slots(self, var_list: list) -> None:
        for var in var_list:
            self.add_slot(var, "accumulator", Constant(self._initial_accumulator_value))
            self.add_slot(var, "linear")

    def _apply(self, kind: str, var: Any, *gradient: Any) -> Any:
        n, shrinkage = self._for(var), self._l2_shrinkage_regularization_strength
        inputs = [
            *self._handles(var, "accumulator", "linear"),
            *gradient,
            n["lr"],
            n["l1_regularization_strength"],
            n["l2_regularization_strength"],
        ]
        if shrinkage > 0.0:
            kind += "V2"
            inputs.append(find("constant")(shrinkage, var.dtype.base_dtype))
        return apply_any(kind, *inputs, n["learning_rate_power"])

    def _resource_apply_dense(self, grad: Tensor, var: Any) -> Any:
        return self._apply("ResourceApplyFtrl", var, grad)

    def _resource_apply_sparse(self, grad: Tensor, var: Any, indices: Tensor) -> Any:
        return self._apply("ResourceSparseApplyFtrl", var, grad, indices)

    def get_config(self) -> dict[str, Any]:
        shrinkage = self._l2_shrinkage_regularization_strength
        return {**super().get_config(), "l2_shrinkage_regularization_strength": shrinkage}


_CLASSES = {c.__name__.lower(): c for c in (SGD, RMSprop, Adagrad, Adadelta, Adam, Adamax, Nadam, Ftrl)}


def serialize(optimizer: Any) -> dict[str, Any]:
    """An optimizer as a dictionary."""
    return {"class_name": type(optimizer).__name__, "config": optimizer.get_config()}


def deserialize(config: dict[str, Any], custom_objects: dict[str, Any] | None = None) -> Optimizer:
    """An optimizer from what `serialize` gave."""
    from tensorfleet_legacy.keras.utils.generic_utils import custom

    name = config["class_name"]
    result = custom(name, custom_objects) or _CLASSES.get(str(name).lower())
    if result is None:
        raise ValueError(f"Unknown optimizer: {name}")
    return result.from_config(config["config"])


def get(identifier: Any) -> Any:
    """The optimizer of a name, or from a dictionary; one of `tf.train` is wrapped, any other is as it is."""
    if isinstance(identifier, Optimizer):
        return identifier
    if isinstance(identifier, TrainOptimizer):
        return TFOptimizer(identifier)
    if isinstance(identifier, dict):
        return deserialize(identifier)
    if isinstance(identifier, str):
        return deserialize({"class_name": identifier, "config": {}})
    raise ValueError(f"Could not interpret optimizer identifier: {identifier}")

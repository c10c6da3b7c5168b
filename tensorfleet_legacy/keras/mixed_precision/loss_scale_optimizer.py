"""`tf.keras.mixed_precision.experimental`: policies of types, and an optimizer of a scaled loss."""

from __future__ import annotations

from typing import Any

from tensorfleet.api.train import loss_scaling
from tensorfleet.base import dtypes, logging
from tensorfleet.base.naming import find
from tensorfleet.base.properties import readonly
from tensorfleet.graph.operation import Operation
from tensorfleet.ops.array.basic import group
from tensorfleet_legacy.keras import backend as state
from tensorfleet_legacy.keras.optimizer_v2.optimizer_v2 import Optimizer

_DEFAULT = "USE_DEFAULT"
_FLOAT32 = "_with_float32_vars"


class Policy:
    """The dtypes of a layer's computations and of its variables: "float16", "infer_with_float32_vars", ..."""

    def __init__(self, name: str, loss_scale: Any = _DEFAULT) -> None:
        if isinstance(name, dtypes.DType):
            raise TypeError(
                f"'name' must be a string, not a DType. Instead, pass DType.name. Got: {name.name}"
            )
        if not isinstance(name, str):
            raise TypeError(f"'name' must be a string, but got: {name}")
        older = {"infer_float32_vars": "infer_with_float32_vars", "float32_with_float32_vars": "float32"}
        self._name = older.get(name, name)
        self._compute_dtype, self._variable_dtype = _types(self._name)
        if loss_scale == _DEFAULT:
            loss_scale = "dynamic" if self._name == "mixed_float16" else None
        if loss_scale and self._compute_dtype not in (None, "float16"):
            logging.warning(
                "Creating a Policy with a loss scale is only useful for float16 policies. You passed loss_scale=%r for policy "
                "%s. Consider not passing any loss_scale instead.",
                loss_scale,
                name,
            )
        self._loss_scale = loss_scaling.get(loss_scale)

    name = readonly("_name", "Its name.")
    compute_dtype = readonly("_compute_dtype", "The type that a layer computes in; None: that of its input.")
    variable_dtype = readonly("_variable_dtype", "The type of a layer's variables; None: that of its input.")
    loss_scale = readonly("_loss_scale", "How the loss is scaled, if it is.")

    @property
    def should_cast_variables(self) -> bool:
        """Whether variables have another type than a layer computes in."""
        return self._variable_dtype != self._compute_dtype

    def __repr__(self) -> str:
        return f'<Policy "{self._name}", loss_scale={self._loss_scale}>'


def _types(name: str) -> tuple[str | None, str | None]:
    if name in ("mixed_float16", "mixed_bfloat16"):
        return name.removeprefix("mixed_"), "float32"
    base = name.removesuffix(_FLOAT32)
    if base == "infer":
        result = None
    else:
        try:
            result = dtypes.as_dtype(base).name
        except TypeError:
            rest = f" The value {name} ends with {_FLOAT32}, but {base} cannot be converted to a DType"
            raise ValueError(
                f"Cannot convert value {name} to a mixed precision Policy. Valid policies include include those in the form "
                f'"<dtype>" and "<dtype>{_FLOAT32}", where <dtype> is the name of a dtype.'
                + (rest if base != name else "")
            ) from None
    return result, "float32" if base != name else result


_policy: list[Policy] = []


def global_policy() -> Policy:
    """The policy of layers that have none of their own."""
    return _policy[0] if _policy else Policy("infer")


def set_policy(policy: Any) -> None:
    """Sets the policy of layers that have none of their own: as in TensorFlow 1, one whose types are those of the input."""
    if policy is not None and not isinstance(policy, Policy):
        policy = Policy(policy)
    if policy is not None and policy.compute_dtype:
        raise ValueError("The global policy can only be set to a non-infer policy in TensorFlow 2")
    _policy[:] = [] if policy is None else [policy]


class LossScaleOptimizer(Optimizer):
    """Has another optimizer minimize a scaled loss; a step with gradients that are not finite changes nothing."""

    def __init__(self, opt: Any, loss_scale: Any) -> None:
        if not isinstance(opt, Optimizer):
            raise ValueError(f'"opt" must be an instance of OptimizerV2, but got: {opt}')
        for clip in ("clipnorm", "clipvalue"):
            if opt.__dict__.get(clip) is not None:
                raise ValueError(
                    f"LossScaleOptimizer does not support wrapping optimizers with a {clip}. Optimizer {opt} has {clip} "
                    f"{opt.__dict__[clip]}"
                )
        super().__init__(name="LossScaleOptimizer")
        scale = loss_scaling.get(loss_scale)
        if scale is None:
            raise ValueError("loss_scale cannot be None: give a number, a LossScale, or 'dynamic'.")
        self._optimizer, self._loss_scale = opt, scale
        for weight in self._loss_scale._weights.values():
            state.track(weight)

    loss_scale = readonly("_loss_scale", "How the loss is scaled.")

    def get_scaled_loss(self, loss: Any) -> Any:
        """The loss times the scale; of a function, a function."""
        if callable(loss):
            return lambda: self.get_scaled_loss(loss())
        return loss_scaling.times(loss, self._loss_scale())

    def get_unscaled_gradients(self, grads: Any) -> list:
        """Gradients of a scaled loss as those of the loss itself."""
        back = 1.0 / self._loss_scale()
        return [loss_scaling.times(g, back) for g in grads]

    def get_gradients(self, loss: Any, params: Any) -> list:
        """The gradients of a loss."""
        return self.get_unscaled_gradients(self._optimizer.get_gradients(self.get_scaled_loss(loss), params))

    def minimize(self, loss: Any, var_list: Any, grad_loss: Any = None, name: str | None = None) -> Any:
        """An operation that updates variables once, if the gradients are finite."""
        variables = list(var_list() if callable(var_list) else var_list)
        scaled = self.get_scaled_loss(loss() if callable(loss) else loss)
        grads = find("gradients")(scaled, variables, grad_ys=grad_loss)
        return self.apply_gradients(
            list(zip(self.get_unscaled_gradients(grads), variables, strict=True)), name
        )

    def apply_gradients(self, grads_and_vars: Any, name: str | None = None) -> Any:
        """Updates variables by gradients if all of these are finite, and the scale."""
        pairs = list(grads_and_vars)
        update, finite = self._loss_scale.update([g for g, _ in pairs])
        if finite is True:
            return group(update, self._optimizer.apply_gradients(pairs, name))
        self._optimizer._create_hypers()
        self._optimizer._create_slots([v for g, v in pairs if g is not None])

        def applied() -> Operation:
            return group(self._optimizer.apply_gradients(pairs, name))

        return group(find("cond")(finite, applied, find("no_op")), update)

    @property
    def iterations(self) -> Any:
        """How many steps were made."""
        return self._optimizer.iterations

    @iterations.setter
    def iterations(self, variable: Any) -> None:
        self._optimizer.iterations = variable

    def __getattr__(self, name: str) -> Any:
        if name in ("lr", "learning_rate"):
            return getattr(self.__dict__["_optimizer"], name)
        return super().__getattribute__(name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in ("lr", "learning_rate"):
            setattr(self._optimizer, name, value)
        else:
            super().__setattr__(name, value)

    def get_slot_names(self) -> list[str]:
        """The names of the other optimizer's slots."""
        return self._optimizer.get_slot_names()

    def get_config(self) -> dict[str, Any]:
        """Not implemented, as in TensorFlow."""
        raise NotImplementedError("get_config() is not yet implemented for LossScaleOptimizers")

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> LossScaleOptimizer:
        """Not implemented, as in TensorFlow."""
        raise NotImplementedError("from_config() is not yet implemented for LossScaleOptimizers")

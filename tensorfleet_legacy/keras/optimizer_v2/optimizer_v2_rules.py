"""Optimizers by rules: numbers shared by all updates of a step, and slots beside each variable."""

from __future__ import annotations

from typing import Any

from tensorfleet.base.arguments import signature_of, taking
from tensorfleet.base.naming import find
from tensorfleet.graph.apply import apply_any
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import control_dependencies
from tensorfleet_legacy.keras import backend as state
from tensorfleet_legacy.keras.optimizer_v2.optimizer_v2 import Optimizer

_FIXED = ("epsilon", "amsgrad", "centered", "nesterov")


class Ruled(Optimizer):
    """An optimizer with numbers that every update of one type shares: computed once a step."""

    #: arguments that may change from step to step, and variables beside each one that is trained
    _hypers: tuple[str, ...] = ()
    _slot_names: tuple[str, ...] = ()

    def _make(self, given: dict[str, Any]) -> None:
        """Handles the arguments of constructors."""
        name, rate = given.pop("name"), given.pop("learning_rate")
        hypers = {key: given.pop(key) for key in self._hypers}
        fixed = {key: given.pop(key) for key in _FIXED if key in given}
        if "momentum" in hypers:
            momentum = hypers["momentum"]
            number = isinstance(momentum, (int, float))
            if number and not 0 <= momentum <= 1:
                raise ValueError("`momentum` must be between [0, 1].")
            self._momentum = not number or momentum > 0
        self._start(name, rate, given, **hypers)
        for key, value in fixed.items():
            setattr(self, key, epsilon_of(value) if key == "epsilon" else value)

    def _start(self, name: str, learning_rate: Any, kwargs: dict[str, Any], **hypers: Any) -> None:
        Optimizer.__init__(self, name, **kwargs)
        self._set_hyper("learning_rate", kwargs.get("lr", learning_rate))
        self._set_hyper("decay", self._initial_decay)
        for key, value in hypers.items():
            self._set_hyper(key, value)

    def _create_slots(self, var_list: list) -> None:
        for slot in self._slot_names:
            for var in var_list:
                self.add_slot(var, slot)

    def _prepare(self, var_list: list) -> None:
        self._shared: dict[Any, dict[str, Any]] = {}
        for kind in dict.fromkeys(v.dtype.base_dtype for v in var_list):
            self._shared[kind] = self._numbers(kind)

    def _numbers(self, kind: Any) -> dict[str, Any]:
        return {"lr": self._decayed_lr(kind), **{h: self._get_hyper(h, kind) for h in self._hypers}}

    def _for(self, var: Any) -> dict[str, Any]:
        return self._shared[var.dtype.base_dtype]

    def _step(self, kind: Any) -> Tensor:
        return find("cast")(self.iterations, kind) + 1

    def _small(self, var: Any) -> Any:
        return find("constant")(self.epsilon, var.dtype.base_dtype)

    def _handles(self, var: Any, *slots: str) -> list:
        return [var.handle, *(self.get_slot(var, s).handle for s in slots)]

    def _decay_rows(self, slot: Any, factor: Any, rows: Any, indices: Any) -> Tensor:
        """`slot` times `factor`, with rows added; then its value."""
        with control_dependencies([slot.assign(to_tensor(slot) * factor, read_value=False)]):
            with control_dependencies([apply_any("ResourceScatterAdd", slot.handle, indices, rows)]):
                return slot.value()

    def get_config(self) -> dict[str, Any]:
        config = super().get_config()
        config["learning_rate"] = self._serialize_hyperparameter("learning_rate")
        config["decay"] = self._serialize_hyperparameter("decay")
        for key in self._hypers:
            config[key] = self._serialize_hyperparameter(key)
        for key in _FIXED:
            if key in self.__dict__:
                config[key] = self.__dict__[key]
        if "_initial_accumulator_value" in self.__dict__:
            config["initial_accumulator_value"] = self._initial_accumulator_value
        return config


def epsilon_of(given: Any) -> float:
    """A small number, Keras's own unless given."""
    return state.epsilon() if given is None else given


def ruled(arguments: str) -> Any:
    """A constructor with these arguments."""
    return taking(signature_of(arguments))(Ruled._make)

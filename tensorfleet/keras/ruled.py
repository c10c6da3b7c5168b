"""Optimizers by rules: numbers shared by all updates of a step, and slots beside each variable."""

from __future__ import annotations

from typing import Any

from tensorfleet.api import find
from tensorfleet.graph.apply import apply
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import control_dependencies
from tensorfleet.keras import state
from tensorfleet.keras.optimizer import Optimizer


class Ruled(Optimizer):
    """An optimizer with numbers that every update of one type shares: computed once a step."""

    _hypers: tuple[str, ...] = ()

    def _start(self, name: str, learning_rate: Any, kwargs: dict[str, Any], **hypers: Any) -> None:
        Optimizer.__init__(self, name, **kwargs)
        self._set_hyper("learning_rate", kwargs.get("lr", learning_rate))
        self._set_hyper("decay", self._initial_decay)
        for key, value in hypers.items():
            self._set_hyper(key, value)

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
            with control_dependencies([apply("ResourceScatterAdd", slot.handle, indices, rows)]):
                return slot.value()

    def get_config(self) -> dict[str, Any]:
        config = super().get_config()
        config["learning_rate"] = self._serialize_hyperparameter("learning_rate")
        config["decay"] = self._serialize_hyperparameter("decay")
        for key in self._hypers:
            config[key] = self._serialize_hyperparameter(key)
        for key in ("epsilon", "amsgrad", "centered", "nesterov"):
            if key in self.__dict__:
                config[key] = self.__dict__[key]
        if "_initial_accumulator_value" in self.__dict__:
            config["initial_accumulator_value"] = self._initial_accumulator_value
        return config


def epsilon_of(given: Any) -> float:
    """A small number, Keras's own unless given."""
    return state.epsilon() if given is None else given

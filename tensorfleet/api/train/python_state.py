"""`tf.train.experimental.PythonState`: state of a Python program, saved with its variables."""

from __future__ import annotations

import abc
from collections.abc import Callable
from typing import Any

import numpy as np

from tensorfleet.api.train.saveables import SaveableObject, SaveSpec
from tensorfleet.base import dtypes
from tensorfleet.base.naming import export
from tensorfleet.base.types import Array
from tensorfleet.graph.operation import Tensor
from tensorfleet.ops.control.host_ops import py_func


class _StateSaveable(SaveableObject):
    """A string that Python makes when a checkpoint is written, and takes when it is restored."""

    def __init__(self, name: str, state: PythonState) -> None:
        self._state = state
        super().__init__(state, [SaveSpec(self._written, "", name, dtypes.string, "/device:CPU:0")], name)

    def _written(self) -> Tensor:
        def serialized() -> Array:
            return np.array(self._state.serialize(), object)

        # The shape of a py_func is unknown: this one gives a scalar.
        return _with_no_shape(py_func(serialized, [], dtypes.string))

    def restore(self, restored_tensors: list[Tensor], restored_shapes: list[Any] | None) -> Any:
        """Gives Python the string back."""

        def deserialized(text: bytes) -> None:
            self._state.deserialize(text)

        return py_func(deserialized, [restored_tensors[0]], [])


def _with_no_shape(tensor: Tensor) -> Tensor:
    tensor.set_shape([])
    return tensor


@export("train.experimental.PythonState")
class PythonState(abc.ABC):
    """The base of Python state that `tf.train.Checkpoint` saves: it converts itself to a string and back."""

    @abc.abstractmethod
    def serialize(self) -> str | bytes:
        """The string to save."""

    @abc.abstractmethod
    def deserialize(self, string_value: bytes) -> None:
        """Takes a string that was saved."""

    def _gather_saveables_for_checkpoint(self) -> dict[str, Callable[[str], SaveableObject]]:
        return {"py_state": lambda name: _StateSaveable(name, self)}

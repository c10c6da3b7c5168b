"""`tf.contrib.checkpoint`: objects that are saved under names of their own."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

import numpy as np

from tensorfleet.api.train.object_graph import is_held
from tensorfleet.api.train.python_state import PythonState


class UniqueNameTracker:
    """Holds objects for a checkpoint by names that are made different by numbers."""

    _is_tracked = True

    def __init__(self) -> None:
        self._held: dict[str, Any] = {}

    def track(self, trackable: Any, base_name: str) -> Any:
        """Adds an object under a name, or the name and the next number; gives the object back."""
        if not is_held(trackable):
            raise ValueError(
                f"Expected a trackable value, got {trackable} which does not inherit from tf.track.Trackable."
            )
        name, number = base_name, 0
        while name in self._held:
            number += 1
            name = f"{base_name}_{number}"
        self._held[name] = trackable
        return trackable

    def _checkpoint_dependencies(self) -> Iterator[tuple[str, Any]]:
        yield from self._held.items()


class _Array(PythonState):
    """An array in the form of numpy's files."""

    def __init__(self, array: Any) -> None:
        self.array = array

    def serialize(self) -> bytes:
        file = io.BytesIO()
        np.save(file, self.array, allow_pickle=False)
        return file.getvalue()

    def deserialize(self, string_value: bytes) -> None:
        self.array = np.load(io.BytesIO(string_value), allow_pickle=False)


class NumpyState:
    """An object whose arrays of numpy are saved by `tf.train.Checkpoint`.

    `checkpoint.restore` makes its attributes anew, and at once: they need no session.
    """

    _is_tracked = True

    def __init__(self) -> None:
        object.__setattr__(self, "_arrays", {})

    def __getattr__(self, name: str) -> Any:
        arrays = self.__dict__.get("_arrays", {})
        if name not in arrays:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return arrays[name].array

    def __setattr__(self, name: str, value: Any) -> None:
        if not isinstance(value, (np.ndarray, np.generic)):
            raise NotImplementedError(
                f"Assigned {value} to the {name} property of {self}, which is not a NumPy array. Currently mixing NumPy "
                "arrays and other trackable objects is not supported: hold those beside it in the checkpoint."
            )
        self._arrays.setdefault(name, _Array(value)).array = value

    def _checkpoint_dependencies(self) -> Iterator[tuple[str, Any]]:
        yield from self._arrays.items()

    def _restored_at_once(self, name: str, saved: bytes) -> None:
        """Takes what a checkpoint has under the name of an attribute."""
        self._arrays.setdefault(name, _Array(None)).deserialize(saved)

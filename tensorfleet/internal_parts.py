"""Small parts of TensorFlow's inside that scripts use and that have no public name."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import Any

from tensorfleet.api import export, publish
from tensorfleet.ops.basic import with_dependencies
from tensorfleet.platform import logging
from tensorfleet.platform.compat import as_text
from tensorfleet.shapes import TensorShape
from tensorfleet.summary.events import EventFile

publish(with_dependencies, "python.ops.control_flow_ops.with_dependencies")


@export("python.pywrap_tensorflow.EventsWriter")
class EventsWriter:
    """Writes `Event` messages to `<prefix>.out.tfevents.<time>.<host>`."""

    def __init__(self, file_prefix: Any) -> None:
        folder, name = os.path.split(as_text(file_prefix))
        self._file = EventFile(folder or ".", prefix=name)

    def WriteEvent(self, event: Any) -> None:
        """Appends an event."""
        self._file.write([event.SerializeToString()])

    def FileName(self) -> bytes:
        """The file's name; empty before the first event."""
        return self._file.name.encode()

    def Flush(self) -> bool:
        """Hands what was written to the operating system."""
        self._file.flush()
        return True

    def Close(self) -> bool:
        """Closes the file."""
        self._file.close()
        return True


@export("python.framework.tensor_shape.scalar")
def scalar() -> TensorShape:
    """The shape of a scalar."""
    return TensorShape([])


@export("python.framework.tensor_shape.vector")
def vector(length: Any) -> TensorShape:
    """The shape of a vector."""
    return TensorShape([length])


@export("python.framework.tensor_shape.matrix")
def matrix(rows: Any, cols: Any) -> TensorShape:
    """The shape of a matrix."""
    return TensorShape([rows, cols])


@export("python.framework.tensor_shape.unknown_shape")
def unknown_shape(ndims: int | None = None) -> TensorShape:
    """A shape of which at most the rank is known."""
    return TensorShape(None if ndims is None else [None] * ndims)


@export("python.util.deprecation.deprecated", "contrib.framework.deprecated")
def deprecated(date: str | None, instructions: str, warn_once: bool = True) -> Callable:
    """Marks a function as deprecated: its first call logs a warning."""
    if not instructions:
        raise ValueError("Don't deprecate things without conversion instructions!")

    def decorate(function: Callable) -> Callable:
        warned = False

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            nonlocal warned
            if not (warned and warn_once):
                warned = True
                logging.warning(
                    "%s (from %s) is deprecated and will be removed %s.\nInstructions for updating:\n%s",
                    function.__name__,
                    function.__module__,
                    "in a future version" if date is None else f"after {date}",
                    instructions,
                )
            return function(*args, **kwargs)

        return call

    return decorate


@export("python.util.deprecation.deprecated_args", "contrib.framework.deprecated_args")
def deprecated_args(date: str | None, instructions: str, *names: Any, **kwargs: Any) -> Callable:
    """Marks arguments as deprecated; calls pass through."""
    return lambda function: function


@export("contrib.learn.ModeKeys")
class ModeKeys:
    """What a model function is called for."""

    TRAIN = "train"
    EVAL = "eval"
    INFER = "infer"


@export("contrib.learn.TaskType")
class TaskType:
    """The jobs of a cluster."""

    MASTER = "master"
    PS = "ps"
    WORKER = "worker"

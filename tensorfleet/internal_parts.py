"""Small parts of TensorFlow's inside that scripts use and that have no public name."""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable
from typing import Any

from tensorfleet.api import export, find, publish
from tensorfleet.ops.basic import with_dependencies
from tensorfleet.platform import logging
from tensorfleet.platform.compat import as_text
from tensorfleet.shapes import TensorShape
from tensorfleet.summary.events import EventFile
from tensorfleet.train import slots

publish(with_dependencies, "python.ops.control_flow_ops.with_dependencies")
publish(inspect, "python.util.tf_inspect")
for _create in (slots.create_slot, slots.create_slot_with_initializer, slots.create_zeros_slot):
    publish(_create, f"python.training.slot_creator.{_create.__name__}")


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


@export("python.util.tf_export.tf_export")
def tf_export(*names: str, **kwargs: Any) -> Callable:
    """Publishes nothing: what is exported here is in the table of public names."""
    return lambda value: value


@export("python.tools.inspect_checkpoint.print_tensors_in_checkpoint_file")
def print_tensors_in_checkpoint_file(
    file_name: str,
    tensor_name: str | None,
    all_tensors: bool,
    all_tensor_names: bool = False,
    count_exclude_pattern: str = "",
) -> None:
    """Prints what a checkpoint holds: one tensor, all of them, or their names with shapes."""
    reader = find("train.NewCheckpointReader")(file_name)
    if all_tensors or all_tensor_names:
        for name in sorted(reader.get_variable_to_shape_map()):
            print("tensor_name: ", name)
            if all_tensors:
                print(reader.get_tensor(name))
    elif tensor_name:
        print("tensor_name: ", tensor_name)
        print(reader.get_tensor(tensor_name))
    else:
        print(reader.debug_string().decode())


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

"""Small parts of TensorFlow's inside that scripts use and that have no public name."""

from __future__ import annotations

import contextlib
import functools
import inspect
import itertools
import os
from collections.abc import Callable
from typing import Any

from tensorfleet.api import export, find, publish
from tensorfleet.devices import canonical_name
from tensorfleet.graph.constant import constant_value_as_shape
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.graphdef import prepend_scope, strip_scope
from tensorfleet.graph.operation import Operation
from tensorfleet.graph.scopes import control_dependencies
from tensorfleet.ops.basic import identity, with_dependencies
from tensorfleet.platform import logging
from tensorfleet.platform.compat import as_text
from tensorfleet.shapes import TensorShape, as_dimension, as_shape
from tensorfleet.summary.events import EventFile
from tensorfleet.train import slots
from tensorfleet.variables.base import Variable
from tensorfleet.variables.partitioned import PartitionedVariable
from tensorfleet.variables.variable import RefVariable, ResourceVariable

publish(with_dependencies, "python.ops.control_flow_ops.with_dependencies")
publish(Variable, "python.ops.variables.VariableV1", "python.ops.variable_v1.VariableV1")
publish(RefVariable, "python.ops.variables.RefVariable", "python.ops.ref_variable.RefVariable")
publish(PartitionedVariable, "python.ops.variables.PartitionedVariable")
publish(ResourceVariable, "python.ops.resource_variable_ops.ResourceVariable")
publish(find("get_static_value"), "python.framework.tensor_util.constant_value")
publish(constant_value_as_shape, "python.framework.tensor_util.constant_value_as_shape")
publish(find("make_ndarray"), "python.framework.tensor_util.MakeNdarray")
publish(as_shape, "python.framework.tensor_shape.as_shape")
publish(as_dimension, "python.framework.tensor_shape.as_dimension")
publish(canonical_name, "python.framework.device.canonical_name")
publish(strip_scope, "python.framework.ops.strip_name_scope")
publish(prepend_scope, "python.framework.ops.prepend_name_scope")
publish(contextlib.nullcontext, "python.framework.ops.NullContextmanager")
publish(contextlib.contextmanager, "python.util.tf_contextlib.contextmanager")
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


@export("python.ops.resource_variable_ops.is_resource_variable")
def is_resource_variable(var: Any) -> bool:
    """Whether a variable is reached through a handle."""
    return isinstance(var, ResourceVariable)


@export("python.framework.ops.convert_n_to_tensor")
def convert_n_to_tensor(
    values: Any, dtype: Any = None, name: str | None = None, preferred_dtype: Any = None
) -> list:
    """Each of several values as a tensor."""
    names = [None if name is None else f"{name}_{i}" for i in range(len(values))]
    convert = find("convert_to_tensor")
    return [
        convert(v, dtype, name=n, preferred_dtype=preferred_dtype) for v, n in zip(values, names, strict=True)
    ]


@export("python.framework.ops.get_name_scope")
def get_name_scope() -> str:
    """The name scope that is open now, without a slash at its end."""
    return find("get_default_graph")().get_name_scope()


_last_uid = itertools.count(1)


@export("python.framework.ops.uid")
def uid() -> int:
    """A number that no other call in this process gives."""
    return next(_last_uid)


@export(
    "python.framework.ops.executing_eagerly_outside_functions",
    "python.framework.ops.inside_function",
    "python.tf2.enabled",
)
def never() -> bool:
    """False: there are only graphs of version 1."""
    return False


class _Context:
    """What TensorFlow asks of the state of eager execution: there is none."""

    device_name = ""
    scope_name = ""

    def executing_eagerly(self) -> bool:
        """False: there are only graphs."""
        return False

    def in_graph_mode(self) -> bool:
        """True: there are only graphs."""
        return True

    def num_gpus(self) -> int:
        """How many GPUs a session has."""
        with find("Session")() as session:
            return sum(d.device_type == "GPU" for d in session.list_devices())

    def ensure_initialized(self) -> None:
        """Does nothing."""


publish(_Context(), "python.eager.context._context")


@export("python.eager.context.context")
def context() -> _Context:
    """The state of eager execution: it is off."""
    return find("python.eager.context._context")


@export("python.eager.context.graph_mode")
def graph_mode() -> contextlib.AbstractContextManager:
    """A block in which operations go into graphs, as everywhere here."""
    return contextlib.nullcontext()


@export("python.eager.context.eager_mode")
def eager_mode() -> contextlib.AbstractContextManager:
    """Raises `unittest.SkipTest`: a test of eager execution does not apply here."""
    from unittest import SkipTest

    raise SkipTest("TensorFleet has graphs only: there is no eager execution.")


@export("python.training.training_util._increment_global_step")
def increment_global_step(increment: Any, graph: Any = None) -> Any:
    """Adds to the global step; ValueError when there is none."""
    step = find("train.get_global_step")(graph)
    if step is None:
        raise ValueError("Global step tensor should be created by tf.train.get_or_create_global_step first.")
    with step.graph.as_default():
        return find("assign_add")(step, increment)


@export("python.framework.ops.get_gradient_function")
def get_gradient_function(op: Any) -> Callable | None:
    """What computes the gradient of an operation; None for one without inputs, LookupError without a gradient."""
    if not op.inputs:
        return None
    spec = op.spec
    if spec.gradient is None and spec.differentiable:
        raise LookupError(f"gradient registry has no entry for: {op.type}")
    return spec.gradient


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


@export("python.framework.graph_util_impl._extract_graph_summary")
def _extract_graph_summary(graph_def: Any) -> tuple[dict, dict, dict]:
    """By the name of a node: the names of its inputs, the node, its place in the list."""
    inputs, nodes, places = {}, {}, {}
    for place, node in enumerate(graph_def.node):
        nodes[node.name], places[node.name] = node, place
        inputs[node.name] = [name.removeprefix("^").partition(":")[0] for name in node.input]
    return inputs, nodes, places


@export("python.framework.graph_util_impl._bfs_for_reachable_nodes")
def _bfs_for_reachable_nodes(target_nodes: Any, name_to_input_name: dict) -> set[str]:
    """The names of all nodes that some nodes need."""
    found: set[str] = set()
    waiting = list(target_nodes)
    while waiting:
        name = waiting.pop(0)
        if name not in found:
            found.add(name)
            waiting += name_to_input_name.get(name, ())
    return found


@export("xla.experimental.compile")
def compile(computation: Callable, inputs: Any = None) -> Any:
    """The tensors that `computation(*inputs)` gives. The runtime decides what is compiled, as for all ops."""
    if inputs is not None and not isinstance(inputs, (list, tuple)):
        raise TypeError("`inputs` must be a list or tuple.")
    made = computation(*[to_tensor(x) for x in inputs or ()])
    if isinstance(made, Operation) or made is None:
        return made
    with control_dependencies([x for x in _listed(made) if isinstance(x, Operation)]):
        return [identity(x) for x in _listed(made) if not isinstance(x, Operation)]


def _listed(made: Any) -> list:
    return list(made) if isinstance(made, (list, tuple)) else [made]


@export("xla.experimental.jit_scope")
@contextlib.contextmanager
def experimental_jit_scope(compile_ops: Any = True, separate_compiled_gradients: bool = False) -> Any:
    """Changes nothing: the runtime decides what is compiled, as for all ops."""
    yield

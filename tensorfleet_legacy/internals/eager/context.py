"""Queries about eager execution, AutoGraph and XLA: there are only graphs, compiled as the runtime decides."""

from __future__ import annotations

import contextlib
import enum
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tensorfleet.base.naming import export, find, publish, publish_lazily, publish_module
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.scopes import control_dependencies
from tensorfleet.graph.stacks import replaced
from tensorfleet.ops.array.basic import identity


@export(
    "python.framework.ops.executing_eagerly_outside_functions",
    "python.framework.ops.inside_function",
    "python.tf2.enabled",
)
def never() -> bool:
    """False: there are only graphs of version 1."""
    return False


# Libraries for both kinds of execution take these from `tensorflow.contrib.eager.python import tfe`.
for _module in ("contrib.eager.python", "contrib.eager.python.tfe"):
    publish_module(_module, "contrib.eager")
publish_lazily(
    lambda _: find("executing_eagerly"), "contrib.eager.executing_eagerly", "contrib.eager.in_eager_mode"
)
publish_lazily(
    lambda _: find("python.framework.test_util.run_in_graph_and_eager_modes"),
    "contrib.eager.run_test_in_graph_and_eager_modes",
)


class _Context:
    """The state of eager execution: there is none."""

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
# What eager execution does with tensors that are on another device.
for _number, _name in enumerate(("EXPLICIT", "WARN", "SILENT", "SILENT_FOR_INT32")):
    publish(_number, f"python.eager.context.DEVICE_PLACEMENT_{_name}")


@export("python.eager.context.context")
def context() -> _Context:
    """The state of eager execution: it is off."""
    return find("python.eager.context._context")


# The modes of execution, by the names that TensorFlow's tests use; there is one.
for _name, _value in {"GRAPH_MODE": 0, "EAGER_MODE": 1, "SYNC": 0, "ASYNC": 1}.items():
    publish(_value, f"python.eager.context.{_name}")


@export("python.eager.context.num_gpus")
def num_gpus() -> int:
    """How many GPUs a session has."""
    return context().num_gpus()


@export("python.eager.context.in_graph_mode")
def in_graph_mode() -> bool:
    """True: there are only graphs."""
    return True


@export("python.eager.context.in_eager_mode")
def in_eager_mode() -> bool:
    """False: there are only graphs."""
    return False


@export("python.eager.context.list_devices")
def list_devices() -> list[str]:
    """The names of the devices that a session has."""
    with find("Session")() as session:
        return [d.name for d in session.list_devices()]


@export("python.eager.context.shared_name")
def shared_name(name: str | None = None) -> str | None:
    """The name itself: graphs tell resources apart by it."""
    return name


@export("python.eager.context.async_wait", "python.eager.context.ensure_initialized")
def nothing_to_wait_for() -> None:
    """Does nothing: nothing runs outside of sessions."""


@export("python.framework.ops.EagerTensor")
class EagerTensor:
    """The class of tensors with a value: no tensor of a graph is one."""


publish(True, "python.framework.ops._USE_C_API", "python.framework.ops._USE_C_SHAPES")


@export("python.ops.math_ops.tensor_equals")
def tensor_equals(self: Any, other: Any) -> bool:
    """Whether two tensors of a graph are one."""
    return self is other


@export("python.ops.math_ops.tensor_not_equals")
def tensor_not_equals(self: Any, other: Any) -> bool:
    """Whether two tensors of a graph are not one."""
    return self is not other


@export("python.eager.context.graph_mode")
def graph_mode() -> contextlib.AbstractContextManager:
    """A block in which operations go into graphs, as everywhere here."""
    return contextlib.nullcontext()


@export("python.eager.context.eager_mode")
def eager_mode() -> contextlib.AbstractContextManager:
    """Raises `unittest.SkipTest`: a test of eager execution does not apply here."""
    from unittest import SkipTest

    raise SkipTest("TensorFleet has graphs only: there is no eager execution.")


@export("xla.experimental.compile", "contrib.compiler.xla.compile", "python.compiler.xla.xla.compile")
def compile(computation: Callable, inputs: Any = None) -> Any:
    """The tensors that `computation(*inputs)` gives. The runtime decides what is compiled, as for all ops."""
    if inputs is not None and not isinstance(inputs, (list, tuple)):
        raise TypeError("`inputs` must be a list or tuple.")
    result = computation(*[to_tensor(x) for x in inputs or ()])
    if isinstance(result, Operation) or result is None:
        return result
    with control_dependencies([x for x in _listed(result) if isinstance(x, Operation)]):
        return [identity(x) for x in _listed(result) if not isinstance(x, Operation)]


def _listed(made: Any) -> list:
    return list(made) if isinstance(made, (list, tuple)) else [made]


@export(
    "xla.experimental.jit_scope",
    "contrib.compiler.jit.experimental_jit_scope",
    "python.compiler.xla.jit.experimental_jit_scope",
)
@contextlib.contextmanager
def experimental_jit_scope(compile_ops: Any = True, separate_compiled_gradients: bool = False) -> Any:
    """Changes nothing: the runtime decides what is compiled, as for all ops."""
    yield


@export("python.autograph.core.ag_ctx.ControlStatusCtx")
@contextmanager
def control_status(status: Any = None, options: Any = None) -> Iterator[None]:
    """A block in which Python is or is not turned into graphs: it never is here, as errors in it say."""
    by_name = {
        Status.ENABLED: ": AutoGraph did not convert this function",
        Status.DISABLED: ": AutoGraph is disabled in this function",
    }
    with replaced(Tensor, "_why_symbolic", by_name.get(status, Tensor._why_symbolic)):
        yield


@export("python.autograph.core.ag_ctx.Status")
class Status(enum.Enum):
    """The mode that the block asks for."""

    UNSPECIFIED = 0
    ENABLED = 1
    DISABLED = 2

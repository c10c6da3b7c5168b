"""The arguments of kernels besides arrays, as protocols. Their classes are in the runtime, a later folder."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar

import numpy as np

if TYPE_CHECKING:
    from tensorfleet.base import errors
    from tensorfleet.base.types import Array
    from tensorfleet.graph.operation import Operation

#: The function that computes an op. Its parameters follow the op's signature (graph/registry.py).
Kernel: TypeAlias = Callable[..., Any]


T = TypeVar("T")


class Wakeable(Protocol):
    """An object that a step wakes when it ends."""

    def set(self) -> None:
        """Wakes it."""


class Event(Wakeable, Protocol):
    """An event that a step waits for, as `threading.Event` is."""

    def wait(self, timeout: float | None = None) -> bool:
        """Whether it is set before the time is over."""


class Resources(Protocol):
    """The resources of a session or server, by container, kind and name."""

    @property
    def owner(self) -> str:
        """The task that has them, "" in one process."""

    @property
    def finished(self) -> bool:
        """Whether the session that had them ended in good order."""

    def get(self, container: str, kind: str, name: str, make: Callable[[], T]) -> T:
        """The resource of that kind and name, made at the first call."""


class Step(Protocol):
    """The step that a host op runs in."""

    @property
    def reason(self) -> errors.OpError | None:
        """Why the step was cancelled, None while it was not."""

    @property
    def asker(self) -> Any:
        """The process that asked for the results, if it is another one: it may have gone."""

    def wait(self, event: Event, what: str, long: Any = None) -> None:
        """Waits until `event` is set; raises when the step is cancelled or its deadline passes."""

    @property
    def is_exclusive(self) -> bool:
        """Whether no other step changes variables now: on a durable server these run one at a time."""

    def beside_others(self) -> AbstractContextManager[None]:
        """Lets other steps go on meanwhile. What was read of variables before has to be copied."""

    def hold(self, held: Wakeable) -> None:
        """Has `held.set()` called when the step ends, unless it is released before."""

    def release(self, held: Wakeable) -> None:
        """Undoes `hold`."""

    def stoppable(self, call: Any) -> Any:
        """Calls a Python function, which is interrupted when the step is cancelled; gives its result."""


class VariableMemory(Protocol):
    """The memory of a variable: a host op that takes a reference or a handle gets it."""

    value: np.ndarray[Any, Any] | None

    def read(self) -> np.ndarray[Any, Any] | None:
        """The value, None before it is initialized."""

    def clear(self) -> None:
        """Forgets the value."""


class HostContext(Protocol):
    """The first argument of a host op's kernel, in place of the array namespace."""

    @property
    def op(self) -> Operation:
        """The operation that runs."""

    @property
    def step(self) -> Step:
        """The step that it runs in."""

    @property
    def resources(self) -> Resources:
        """The resources of the session or server."""

    @property
    def private(self) -> Resources:
        """The resources that belong to this session alone."""

    def random(self, blocks: int) -> np.ndarray[Any, Any]:
        """The state of this op's random stream, which then moves on by `blocks`."""


class Check(Protocol):
    """The function with which a kernel refuses its arguments: at once in NumPy, after the program has run in XLA."""

    def __call__(
        self,
        ok: Array | np.bool_ | bool,
        message: Callable[[], str] | str,
        kind: type[errors.OpError] | None = None,
    ) -> None:
        """Raises with the message unless every element of `ok` is true."""

"""What kernels are given besides arrays, as protocols: the runtime, which comes later in a step, has the classes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from tensorfleet.base import errors
    from tensorfleet.graph.operation import Operation

#: The function that computes an op. Its parameters follow the op's signature (graph/registry.py).
Kernel: TypeAlias = Callable[..., Any]


class Event(Protocol):
    """An event that a step waits for, as `threading.Event` is."""

    def set(self) -> None:
        """Wakes whoever waits."""

    def wait(self, timeout: float | None = None) -> bool:
        """Whether it is set before the time is over."""


class Resources(Protocol):
    """The resources of a session or server, by container, kind and name."""

    @property
    def owner(self) -> str:
        """The task that has them, "" in one process."""

    def get(self, container: str, kind: str, name: str, make: Callable[[], Any]) -> Any:
        """The resource of that kind and name, made at the first call."""


class Step(Protocol):
    """The step that a host op runs in."""

    @property
    def reason(self) -> errors.OpError | None:
        """Why the step was cancelled, None while it was not."""

    @property
    def asker(self) -> Any:
        """Who asked for the results, when it was another process: it may have gone."""

    def wait(self, event: Any, what: str, long: Any = None) -> None:
        """Waits until `event` is set; raises when the step is cancelled or its deadline passes."""

    def hold(self, held: Any) -> None:
        """Has `held.set()` called when the step ends, unless it is let go before."""

    def let_go(self, held: Any) -> None:
        """Ends what `hold` began."""

    def stoppable(self, call: Any) -> Any:
        """What a Python function returns, which is interrupted when the step is cancelled."""


class VariableMemory(Protocol):
    """The memory of a variable: a host op that takes a reference or a handle gets it."""

    value: np.ndarray[Any, Any] | None

    def read(self) -> np.ndarray[Any, Any] | None:
        """The value, None before it is initialized."""

    def clear(self) -> None:
        """Forgets the value."""


class HostContext(Protocol):
    """What a host op's kernel receives instead of an array namespace."""

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
    """What a kernel calls to refuse its arguments: at once in NumPy, when the program has run under XLA."""

    def __call__(
        self, ok: Any, message: Callable[[], str] | str, kind: type[errors.OpError] | None = None
    ) -> None:
        """Raises with the message unless every element of `ok` is true."""

"""How functions and branches are executed, as programs ask for it: the runtime decides that itself."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tensorfleet.base.naming import export


@export("experimental.function_executor_type")
@contextmanager
def function_executor_type(executor_type: str | None) -> Iterator[None]:
    """A block that sets the executor of functions. There is only one executor: it has no effect."""
    yield


@export("experimental.output_all_intermediates")
def output_all_intermediates(state: bool | None) -> None:
    """Whether branches and loops give all values inside of them to their gradients. They give those that are needed."""
    if state not in (True, False, None):
        raise ValueError(f"state must be True, False or None, not {state!r}.")

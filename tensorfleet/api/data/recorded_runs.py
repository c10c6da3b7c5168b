"""Input pipelines in a trace: while a process records, every stage of its datasets is an event of the thread it runs in.

The classes of the stages are changed while a recording is under way and put back after it, so that a stage costs
nothing more at any other time.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterator
from typing import Any

from tensorfleet.api.data.nodes import DatasetRun
from tensorfleet.runtime import recording

_METHODS = ("next", "one")
_lock = threading.Lock()
#: the methods that were replaced: class, name, and what was there
_replaced: list[tuple[type[DatasetRun], str, Any]] = []


def observe(current: recording.Recording | None) -> None:
    """Begins to record the stages of input pipelines; with None, ends it."""
    with _lock:
        while _replaced:
            cls, name, method = _replaced.pop()
            setattr(cls, name, method)
        if current is None:
            return
        for cls in _kinds(DatasetRun):  # type: ignore[type-abstract]
            for name in _METHODS:
                method = vars(cls).get(name)
                if method is not None and not getattr(method, "__isabstractmethod__", False):
                    _replaced.append((cls, name, method))
                    setattr(cls, name, _recorded(current, cls, method))


def _kinds(base: type[DatasetRun]) -> Iterator[type[DatasetRun]]:
    for cls in base.__subclasses__():
        yield cls
        yield from _kinds(cls)


def _recorded(
    current: recording.Recording, cls: type[DatasetRun], method: Callable[..., Any]
) -> Callable[..., Any]:
    """A method that notes when it begins and ends, and how many elements it gives."""
    label = cls.__name__.removeprefix("_").removesuffix("Run")

    @functools.wraps(method)
    def run(*args: Any) -> Any:
        span = current.open("input", label)
        block = None
        try:
            block = method(*args)
            return block
        finally:
            size = getattr(block, "size", None)
            span.end(elements=1 if size is None and block is not None else size or 0)

    return run


def begin() -> None:
    """From now on, recordings show input pipelines; the one under way too, when a program makes its first dataset."""
    recording.observers.append(observe)
    observe(recording.current)

"""Small things that TensorFlow keeps its books with: registries, stacks that know their lines, locks, lazy modules."""

from __future__ import annotations

import importlib
import inspect
import sys
import threading
import traceback
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tensorfleet.base.naming import export, publish
from tensorfleet.graph.source_lines import TraceableObject

_TRACES = "python.framework.traceable_stack"


@export("python.framework.registry.Registry")
class Registry:
    """Objects by name."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._registry: dict[str, Any] = {}
        self._lines: dict[str, traceback.FrameSummary] = {}

    def register(self, candidate: Any, name: str | None = None) -> None:
        """Adds an object, under its own name or another; KeyError when there is one."""
        key = name or candidate.__name__
        if key in self._registry:
            line = self._lines[key]
            raise KeyError(
                f"Registering two {self._name} with name '{key}'! (Previous registration was in {line.name} "
                f"{line.filename}:{line.lineno}) Give the second another name."
            )
        self._registry[key] = candidate
        self._lines[key] = traceback.extract_stack(limit=2)[0]

    def list(self) -> Any:
        """All names."""
        return self._registry.keys()

    def lookup(self, name: str) -> Any:
        """The object with a name; LookupError without one."""
        if name not in self._registry:
            raise LookupError(f"{self._name} registry has no entry for: {name}")
        return self._registry[name]


publish(TraceableObject, f"{_TRACES}.TraceableObject")


@export(f"{_TRACES}.TraceableStack")
class TraceableStack:
    """A stack of objects, each with the line that pushed it."""

    def __init__(self, existing_stack: list | None = None) -> None:
        self._stack: list[TraceableObject] = existing_stack[:] if existing_stack else []

    def push_obj(self, obj: Any, offset: int = 0) -> int:
        """Puts an object on top."""
        result = TraceableObject(obj)
        self._stack.append(result)
        return result.set_filename_and_line_from_caller(offset + 1)

    def pop_obj(self) -> Any:
        """Takes the object on top away."""
        return self._stack.pop().obj

    def peek_top_obj(self) -> Any:
        """The object on top."""
        return self._stack[-1].obj

    def peek_objs(self) -> list:
        """All objects, the top one first."""
        return [t.obj for t in reversed(self._stack)]

    def peek_traceable_objs(self) -> list[TraceableObject]:
        """All objects with their lines, the top one first."""
        return list(reversed(self._stack))

    def copy(self) -> TraceableStack:
        """Another stack of the same objects."""
        return TraceableStack(self._stack)

    def __len__(self) -> int:
        return len(self._stack)


@export("python.util.lock_util.GroupLock")
class GroupLock:
    """A lock that members of one group hold together, while other groups wait."""

    def __init__(self, num_groups: int = 2) -> None:
        if num_groups < 1:
            raise ValueError(f"num_groups must be a positive integer, got {num_groups}")
        self._ready = threading.Condition()
        self._group_member_counts = [0] * num_groups

    def acquire(self, group_id: int) -> None:
        """Enters a group, once no other has members."""
        self._check(group_id)
        with self._ready:
            self._ready.wait_for(
                lambda: not any(n for g, n in enumerate(self._group_member_counts) if g != group_id)
            )
            self._group_member_counts[group_id] += 1

    def release(self, group_id: int) -> None:
        """Leaves a group."""
        self._check(group_id)
        with self._ready:
            self._group_member_counts[group_id] -= 1
            if not self._group_member_counts[group_id]:
                self._ready.notify_all()

    def _check(self, group_id: int) -> None:
        if not 0 <= group_id < len(self._group_member_counts):
            raise ValueError(
                f"group_id must be between 0 and num_groups ({len(self._group_member_counts)}), got {group_id}"
            )

    @contextmanager
    def group(self, group_id: int) -> Iterator[None]:
        """A block inside of a group."""
        self.acquire(group_id)
        try:
            yield
        finally:
            self.release(group_id)


@export("python.util.lazy_loader.LazyLoader")
class LazyLoader(types.ModuleType):
    """A module that is imported when it is first used."""

    def __init__(
        self, local_name: str, parent_module_globals: dict, name: str, warning: str | None = None
    ) -> None:
        super().__init__(name)
        self._local_name = local_name
        self._parent_module_globals = parent_module_globals

    def _load(self) -> types.ModuleType:
        module = importlib.import_module(self.__name__)
        self._parent_module_globals[self._local_name] = module
        self.__dict__.update(module.__dict__)
        return module

    def __getattr__(self, item: str) -> Any:
        return getattr(self._load(), item)

    def __dir__(self) -> list[str]:
        return dir(self._load())


_DISPATCH = "python.util.dispatch"


@export(f"{_DISPATCH}.OpDispatcher")
class OpDispatcher:
    """Runs an op for arguments that the op itself does not take; override `handle`."""

    NOT_SUPPORTED = object()

    def handle(self, args: Any, kwargs: Any) -> Any:
        """The result, or `NOT_SUPPORTED`."""
        return self.NOT_SUPPORTED

    def register(self, op: Any) -> None:
        """Has an op ask this one."""
        if not hasattr(op, "_tf_dispatchers"):
            raise AssertionError(f"Dispatching not enabled for {op}")
        op._tf_dispatchers.append(self)


class _ForTypes(OpDispatcher):
    """Calls a function when an argument, or a member of one that is a list, has one of some types."""

    def __init__(self, function: Callable, types: tuple) -> None:
        self._function, self._types = function, types

    def handle(self, args: Any, kwargs: Any) -> Any:
        """The function's result."""
        given = [*args, *kwargs.values()]
        flat = [x for a in given for x in (a if isinstance(a, (list, tuple)) else [a])]
        if any(isinstance(x, self._types) for x in flat):
            return self._function(*args, **kwargs)
        return self.NOT_SUPPORTED


@export(f"{_DISPATCH}.dispatch")
def dispatch(op: Any, *args: Any, **kwargs: Any) -> Any:
    """The result of the first dispatcher that takes the arguments; `NOT_SUPPORTED` if none does."""
    for dispatcher in op._tf_dispatchers:
        result = dispatcher.handle(args, kwargs)
        if result is not OpDispatcher.NOT_SUPPORTED:
            return result
    return OpDispatcher.NOT_SUPPORTED


@export(f"{_DISPATCH}.add_dispatch_list")
def add_dispatch_list(target: Any) -> Any:
    """Gives a function a list of dispatchers."""
    if hasattr(target, "_tf_dispatchers"):
        raise AssertionError(f"{target} already has a dispatch list")
    target._tf_dispatchers = []
    return target


@export(f"{_DISPATCH}.add_dispatch_support")
def add_dispatch_support(target: Callable) -> Any:
    """Asks the dispatchers of a function when it raises TypeError or ValueError."""
    import functools

    @functools.wraps(target)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return target(*args, **kwargs)
        except (TypeError, ValueError):
            result = dispatch(call, *args, **kwargs)
            if result is OpDispatcher.NOT_SUPPORTED:
                raise
            return result

    return add_dispatch_list(call)


@export(f"{_DISPATCH}.dispatch_for_types")
def dispatch_for_types(op: Any, *types: type) -> Callable:
    """Has an op call the decorated function when an argument has one of some types."""

    def decorate(function: Callable) -> Callable:
        mine, theirs = inspect.signature(function), inspect.signature(op)
        if list(mine.parameters) != list(theirs.parameters):
            raise AssertionError(
                f"The decorated function's signature must exactly match the signature of the overridden op: {theirs}."
            )
        _ForTypes(function, types).register(op)
        return function

    return decorate


@export("python.util.tf_stack.extract_stack")
def extract_stack(limit: int = -1) -> list:
    """The lines of the program that led here, the outermost first."""
    import traceback

    frames = traceback.extract_stack(sys._getframe(1))
    return list(frames) if limit < 0 else list(frames)[-limit:]

"""`tf.contrib.framework.arg_scope`: default arguments for functions, within a block."""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Callable, Iterator
from typing import Any

from tensorfleet.base.naming import export

Scope = dict[str, dict[str, Any]]
_stack: list[Scope] = [{}]
_decorated: dict[str, list[str]] = {}


def _key(function: Any) -> str:
    return getattr(function, "_key_op", f"{function.__module__}.{function.__qualname__}")


@export("contrib.framework.add_arg_scope")
def add_arg_scope(func: Callable) -> Callable:
    """Lets `arg_scope` give a function's arguments."""

    @functools.wraps(func)
    def call(*args: Any, **kwargs: Any) -> Any:
        return func(*args, **{**_stack[-1].get(_key(call), {}), **kwargs})

    call._key_op = _key(func)  # type: ignore[attr-defined]
    parameters = inspect.signature(func).parameters.values()
    _decorated[_key(call)] = [p.name for p in parameters if p.default is not p.empty]
    return call


def given_to(func: Callable) -> dict[str, Any]:
    """The arguments that `arg_scope` gives a function at this place."""
    return _stack[-1].get(_key(func), {})


@export("contrib.framework.has_arg_scope")
def has_arg_scope(func: Any) -> bool:
    """Whether `arg_scope` can give a function's arguments."""
    return _key(func) in _decorated


@export("contrib.framework.arg_scoped_arguments")
def arg_scoped_arguments(func: Any) -> tuple[str, ...]:
    """The arguments that `arg_scope` can give a function."""
    if not has_arg_scope(func):
        raise ValueError(f"{func} is not decorated with @add_arg_scope")
    return tuple(_decorated[_key(func)])


@export("contrib.framework.current_arg_scope")
def current_arg_scope() -> Scope:
    """The arguments given at this place, by function."""
    return _stack[-1]


@export("contrib.framework.arg_scope", "contrib.framework.python.ops.arg_scope")
@contextlib.contextmanager
def arg_scope(list_ops_or_scope: Any, **kwargs: Any) -> Iterator[Scope]:
    """Gives functions default arguments within the block; `as` yields a scope to enter again elsewhere."""
    if isinstance(list_ops_or_scope, dict):
        if kwargs:
            raise ValueError(
                "When attempting to re-use a scope by suppling adictionary, kwargs must be empty."
            )
        scope = dict(list_ops_or_scope)
    else:
        if not isinstance(list_ops_or_scope, (list, tuple)):
            raise TypeError("list_ops_or_scope must either be a list/tuple or reused scope (i.e. dict)")
        scope = dict(_stack[-1])
        for function in list_ops_or_scope:
            if not has_arg_scope(function):
                raise ValueError(f"{function} is not decorated with @add_arg_scope")
            scope[_key(function)] = {**scope.get(_key(function), {}), **kwargs}
    _stack.append(scope)
    try:
        yield scope
    finally:
        _stack.pop()

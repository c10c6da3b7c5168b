"""`tf.Module`: an object that holds variables and other modules."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

from tensorfleet.api.variables.variable import Variable
from tensorfleet.base.naming import export
from tensorfleet.base.properties import readonly
from tensorfleet.graph.scopes import name_scope


@export("Module")
class Module:
    """Base for objects with variables: finds them among its attributes, at any depth of modules and containers."""

    _is_tracked = True
    # Attributes that are not looked into; a class adds attributes that lead back to the module.
    _TF_MODULE_IGNORED_PROPERTIES: frozenset[str] = frozenset()

    def __setattr__(self, name: str, value: object) -> None:
        # Libraries assign a property the value that it has. That must not fail.
        if getattr(self, name, self) is not value:
            super().__setattr__(name, value)

    def _no_dependency(self, value: Any) -> Any:
        """A value that is given to the module and is not saved with it: libraries ask for it so."""
        return value

    def __init__(self, name: str | None = None) -> None:
        own = name or _snake_case(type(self).__name__)
        if not re.fullmatch(r"[A-Za-z_]\w*", own):
            raise ValueError(
                f"{own!r} is not a valid module name. Module names must be valid Python identifiers (e.g. a valid "
                "class name)."
            )
        self._name = own
        with name_scope(own) as scope:
            self._scope_name = scope

    name: str = readonly("_name", "The name it was given, or its class's in snake case.")

    @property
    def name_scope(self) -> AbstractContextManager[str]:
        """A name scope for operations of the module."""
        return name_scope(self._scope_name)

    @property
    def variables(self) -> tuple[Variable, ...]:
        """All variables of it and its submodules, by the names of attributes."""
        return tuple(v for v in _held(self, set()) if isinstance(v, Variable))

    @property
    def trainable_variables(self) -> tuple[Variable, ...]:
        """Those of them that are trained."""
        return tuple(v for v in self.variables if v.trainable)

    @property
    def submodules(self) -> tuple[Module, ...]:
        """The modules it holds, and those they hold."""
        return tuple(m for m in _held(self, set()) if not isinstance(m, Variable))

    @classmethod
    def with_name_scope(cls, method: Callable[..., Any]) -> Callable[..., Any]:
        """Decorator for a method: its operations are named inside the module."""

        @functools.wraps(method)
        def wrapped(self: Module, *args: Any, **kwargs: Any) -> Any:
            with self.name_scope:
                return method(self, *args, **kwargs)

        return wrapped


def _snake_case(name: str) -> str:
    apart = re.sub(r"(.)([A-Z][a-z0-9]+)", r"\1_\2", name)
    return re.sub(r"([a-z])([A-Z])", r"\1_\2", apart).lower()


def _held(node: object, seen: set[int]) -> Iterator[Any]:
    """The variables and modules a module holds: its own first, then those of the modules it holds."""
    later = []
    seen.add(id(node))
    ignored = getattr(type(node), "_TF_MODULE_IGNORED_PROPERTIES", ())
    for name in sorted(set(vars(node)) - set(ignored)):
        for item in _leaves(vars(node)[name]):
            if id(item) not in seen:
                seen.add(id(item))
                yield item
                if not isinstance(item, Variable):
                    later.append(item)
    # Breadth first: a module's own variables come before those of its submodules.
    for module in later:
        yield from _held(module, seen)


def _leaves(value: object) -> Iterator[Any]:
    if isinstance(value, Variable) or getattr(type(value), "_is_tracked", False):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _leaves(item)
    elif isinstance(value, dict):
        for key in sorted(value, key=str):
            yield from _leaves(value[key])

"""How the long argument lists of layers travel: a constructor's to its base, a function's to its class."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any


def given(arguments: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a constructor, out of its `locals()`."""
    own = {k: v for k, v in arguments.items() if k not in ("self", "kwargs", "__class__")}
    return {**own, **arguments.get("kwargs", {})}


def applied(layer: type, arguments: dict[str, Any], **kwargs: Any) -> Any:
    """Makes a layer with the arguments of a function, by name, and applies it to its inputs."""
    inputs = arguments.pop("inputs")
    reuse = arguments.pop("reuse")
    return layer(**arguments, _reuse=reuse, _scope=arguments["name"])(inputs, **kwargs)


def function_of(layer: type, name: str) -> Callable[..., Any]:
    """The function of that name that makes a layer and applies it: `inputs`, what the layer takes, `reuse`."""
    own = [p for p in inspect.signature(layer).parameters.values() if p.kind is not p.VAR_KEYWORD]
    first = inspect.Parameter("inputs", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    last = inspect.Parameter("reuse", inspect.Parameter.POSITIONAL_OR_KEYWORD, default=None)
    signature = inspect.Signature([first, *own, last])

    def function(*args: Any, **kwargs: Any) -> Any:
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError as e:
            raise TypeError(f"{name}() {e}") from None
        bound.apply_defaults()
        return applied(layer, bound.arguments)

    function.__name__ = function.__qualname__ = name
    function.__module__, function.__doc__ = layer.__module__, layer.__doc__
    function.__signature__ = signature  # type: ignore[attr-defined]
    return function

"""How the long argument lists of layers travel: a constructor's to its base, a function's to its class."""

from __future__ import annotations

from typing import Any


def given(arguments: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a constructor, out of its `locals()`."""
    own = {k: v for k, v in arguments.items() if k not in ("self", "kwargs", "__class__")}
    return {**own, **arguments.get("kwargs", {})}


def applied(layer: type, arguments: dict[str, Any], **kwargs: Any) -> Any:
    """Makes a layer with the arguments of a function, out of its `locals()`, and applies it to its inputs."""
    inputs = arguments.pop("inputs")
    reuse = arguments.pop("reuse")
    return layer(**arguments, _reuse=reuse, _scope=arguments["name"])(inputs, **kwargs)

"""How the long argument lists of layers travel: a constructor's to its base, a function's to its class."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tensorfleet.base.arguments import function

if TYPE_CHECKING:
    from tensorfleet.api.layers.base import Layer


def given(arguments: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a constructor, out of its `locals()`."""
    own = {k: v for k, v in arguments.items() if k not in ("self", "kwargs", "__class__")}
    return {**own, **arguments.get("kwargs", {})}


def applied(layer: type[Layer], arguments: dict[str, Any], **kwargs: Any) -> Any:
    """Makes a layer with the arguments of a function, by name, and applies it to its inputs."""
    inputs = arguments.pop("inputs")
    reuse = arguments.pop("reuse")
    # The name of a function is the scope of its variables: the same name with `reuse` finds them again.
    return layer(**arguments, _reuse=reuse, _scope=arguments["name"])(inputs, **kwargs)


def function_of(layer: type[Layer], name: str) -> Callable[..., Any]:
    """The function of that name that makes a layer and applies it: `inputs`, the layer's arguments, `reuse`."""
    own = [p for p in inspect.signature(layer).parameters.values() if p.kind is not p.VAR_KEYWORD]
    first = inspect.Parameter("inputs", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    last = inspect.Parameter("reuse", inspect.Parameter.POSITIONAL_OR_KEYWORD, default=None)
    signature = inspect.Signature([first, *own, last])
    return function(signature, name, lambda given: applied(layer, given), layer.__doc__)

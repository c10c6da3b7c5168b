"""Argument lists as data: written as text, or taken from another function, where several callables share them."""

from __future__ import annotations

import ast
import inspect
import types
from collections.abc import Callable
from inspect import Parameter, Signature
from typing import Any

REQUIRED = Parameter.empty


def signature_of(text: str, **values: Any) -> Signature:
    """The signature that a text such as "units, activation=relu, **kwargs" describes.

    A default is a literal, or a name whose value is given.
    """
    written = ast.parse(f"lambda {text}: 0", mode="eval").body
    assert isinstance(written, ast.Lambda)
    names = [arg.arg for arg in written.args.args]
    defaults = [_value(node, values) for node in written.args.defaults]
    empty = [REQUIRED] * (len(names) - len(defaults))
    parameters = [_parameter(n, d) for n, d in zip(names, [*empty, *defaults], strict=True)]
    if written.args.kwarg:
        parameters.append(Parameter(written.args.kwarg.arg, Parameter.VAR_KEYWORD))
    return Signature(parameters)


def _value(node: ast.expr, values: dict[str, Any]) -> Any:
    return values[node.id] if isinstance(node, ast.Name) else ast.literal_eval(node)


def _parameter(name: str, default: Any = REQUIRED) -> Parameter:
    return Parameter(name, Parameter.POSITIONAL_OR_KEYWORD, default=default)


def like(function: Callable[..., Any], without: tuple[str, ...] = (), **defaults: Any) -> Signature:
    """The signature of a function, or of a class, without some arguments and with other defaults for some."""
    parameters = [p for p in inspect.signature(function).parameters.values() if p.name not in without]
    return Signature([p.replace(default=defaults.get(p.name, p.default)) for p in parameters])


def bound(signature: Signature, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """The value of every argument of a call, those of `**kwargs` among them."""
    try:
        given = signature.bind(*args, **kwargs)
    except TypeError as e:
        raise TypeError(f"{name}() {e}") from None
    given.apply_defaults()
    values = given.arguments
    for p in signature.parameters.values():
        if p.kind is Parameter.VAR_KEYWORD:
            values.update(values.pop(p.name))
    return values


def function(
    signature: Signature, name: str, body: Callable[[dict[str, Any]], Any], does: str | None
) -> Callable[..., Any]:
    """A function with a signature, which gives `body` its arguments by name."""

    def made(*args: object, **kwargs: object) -> Any:
        return body(bound(signature, name, args, kwargs))

    made.__name__ = made.__qualname__ = name
    made.__module__, made.__doc__ = body.__module__, does
    made.__signature__ = signature  # type: ignore[attr-defined]
    return made


def taking(signature: Signature) -> Callable[[Callable[[Any, dict[str, Any]], Any]], Callable[..., Any]]:
    """Decorator of a method that gets its arguments in a dictionary; its callers give them as the signature says."""

    def decorate(method: Callable[[Any, dict[str, Any]], Any]) -> Callable[..., Any]:
        def made(self: object, *args: object, **kwargs: object) -> Any:
            return method(self, bound(signature, type(self).__name__, args, kwargs))

        whole = [_parameter("self"), *signature.parameters.values()]
        made.__signature__ = Signature(whole)  # type: ignore[attr-defined]
        made.__name__, made.__doc__ = method.__name__, method.__doc__
        return made

    return decorate


def with_defaults(function: Any, **defaults: Any) -> Any:
    """A copy of a function some of whose arguments have other defaults."""
    # A copy of the function, not a wrapper: `inspect` shows its arguments, and a call costs no more.
    code = function.__code__
    known = code.co_varnames[code.co_argcount - len(function.__defaults__) : code.co_argcount]
    changed = tuple(defaults.get(name, old) for name, old in zip(known, function.__defaults__, strict=True))
    copied = types.FunctionType(code, function.__globals__, function.__name__, changed, function.__closure__)
    copied.__qualname__, copied.__doc__ = function.__qualname__, function.__doc__
    copied.__annotations__ = function.__annotations__
    return copied

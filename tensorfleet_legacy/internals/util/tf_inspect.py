"""`tensorflow.python.util.tf_inspect`: looking at functions through the decorators that are marked as such."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

from tensorfleet.base import packages
from tensorfleet.base.naming import export, publish, publish_finder
from tensorfleet_legacy.internals.util.tf_decorator import TFDecorator, unwrap

_PLACE = "python.util.tf_inspect"
# What is asked of the function behind the decorators.
_BEHIND = """
    getfile getmembers getmodule getsource getsourcefile getsourcelines isbuiltin isclass isfunction isframe isgenerator
    isgeneratorfunction ismethod ismodule isroutine istraceback
"""


class ArgSpec(NamedTuple):
    """The arguments of a function, as Python 2 describes them."""

    args: list[str]
    varargs: str | None
    keywords: str | None
    defaults: tuple | None


publish(ArgSpec, f"{_PLACE}.ArgSpec")
publish(inspect.FullArgSpec, f"{_PLACE}.FullArgSpec")
# All else is Python's own, which has other names in each version.
publish_finder(
    _PLACE, lambda name: getattr(inspect, name) if name in inspect.__all__ else None, lambda: inspect.__all__
)


def _through(function: Callable) -> Callable:
    @functools.wraps(function)
    def look(obj: Any, *args: Any, **kwargs: Any) -> Any:
        return function(unwrap(obj)[1], *args, **kwargs)

    return look


for _name in _BEHIND.split():
    publish(_through(getattr(inspect, _name)), f"{_PLACE}.{_name}")


def _told(decorators: list[TFDecorator]) -> Any:
    """The arguments that the outermost decorator which tells any takes."""
    return next((d.decorator_argspec for d in decorators if d.decorator_argspec is not None), None)


def _full(target: Any) -> inspect.FullArgSpec:
    if isinstance(target, type) or not (inspect.isroutine(target) or isinstance(target, functools.partial)):
        target = target.__init__ if isinstance(target, type) else type(target).__call__  # type: ignore[misc]
    if str(getattr(target, "__module__", "")).partition(".")[0] not in packages.NAMES:
        return inspect.getfullargspec(target)
    behind = inspect.unwrap(target, stop=lambda f: hasattr(f, "__signature__"))
    return inspect.getfullargspec(behind)._replace(annotations={})  # TensorFlow's functions have none


@export(f"{_PLACE}.getfullargspec")
def getfullargspec(obj: Any) -> inspect.FullArgSpec:
    """The arguments of a function, or those that one of its decorators tells."""
    decorators, target = unwrap(obj)
    result = _told(decorators)
    if result is None:
        return _full(target)
    if isinstance(result, inspect.FullArgSpec):
        return result
    return inspect.FullArgSpec(result.args, result.varargs, result.keywords, result.defaults, [], None, {})


@export(f"{_PLACE}.getargspec")
def getargspec(obj: Any) -> ArgSpec:
    """The same without those that only a keyword gives."""
    if isinstance(obj, functools.partial):
        return _of_partial(obj)
    spec = getfullargspec(obj)
    return ArgSpec(spec.args, spec.varargs, spec.varkw, spec.defaults)


def _of_partial(obj: functools.partial) -> ArgSpec:
    """The remaining arguments of a function; ValueError if one without a default would follow one with a default."""
    args, varargs, keywords, defaults = getargspec(obj.func)
    known = dict(zip(args[len(args) - len(defaults or ()) :], defaults or (), strict=True))
    known.update({k: v for k, v in (obj.keywords or {}).items() if k in args})
    if len(obj.args) > len(args) and varargs is None:
        raise ValueError(f"{obj} gives more arguments than {obj.func} takes.")
    left = args[len(obj.args) :]
    first = next((i for i, a in enumerate(left) if a in known), len(left))
    wrong = [a for a in left[first:] if a not in known]
    if wrong:
        raise ValueError(
            f"Some arguments {wrong} do not have default value, but they are positioned after those with."
        )
    if keywords is None and (unknown := set(obj.keywords or {}) - set(args)):
        raise ValueError(f"{obj.func} does not take {sorted(unknown)}.")
    return ArgSpec(left, varargs, keywords, tuple(known[a] for a in left[first:]) or None)


@export(f"{_PLACE}.getcallargs")
def getcallargs(*func_and_positional: Any, **named: Any) -> dict[str, Any]:
    """The values of all arguments in a call."""
    func, *positional = func_and_positional
    decorators, target = unwrap(func)
    spec = getfullargspec(func)
    values = inspect.getcallargs(target, *positional, **named) if _told(decorators) is None else {}
    if not values:
        values = dict(zip(spec.args, positional, strict=False)) | named
        for name, value in zip(reversed(spec.args), reversed(spec.defaults or ()), strict=False):
            values.setdefault(name, value)
    return values


@export(f"{_PLACE}.getdoc")
def getdoc(object: Any) -> str | None:
    """A docstring, with what decorators say in it."""
    return inspect.getdoc(object)


@export(f"{_PLACE}.signature")
def signature(obj: Any, *, follow_wrapped: bool = True) -> inspect.Signature:
    """The signature of what is behind the decorators."""
    return inspect.signature(unwrap(obj)[1], follow_wrapped=follow_wrapped)


@export(f"{_PLACE}.isanytargetmethod")
def isanytargetmethod(object: Any) -> bool:
    """Whether a function, or any that its decorators hold, is a method."""
    decorators, target = unwrap(object)
    return any(inspect.ismethod(d.decorated_target) for d in decorators) or inspect.ismethod(target)


@export("python.util.tf_decorator.rewrap")
def rewrap(decorator_func: Any, previous_target: Any, new_target: Any) -> Any:
    """Puts another function behind the decorators; without decorators it is the function itself."""
    inner, current = None, decorator_func
    while current is not previous_target:
        decorator = current if isinstance(current, TFDecorator) else getattr(current, "_tf_decorator", None)
        if decorator is None:
            break
        inner, current = (current, decorator), decorator.decorated_target
    if inner is None:
        return new_target
    outer, decorator = inner
    decorator.decorated_target = new_target
    if outer is not decorator:
        outer.__wrapped__ = new_target
    return decorator_func

"""Functions about functions: decorators, their signatures, deprecation, and objects by their identity."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Iterable, Iterator, MutableMapping, MutableSet
from typing import Any

from tensorfleet.base.naming import export, publish
from tensorfleet.graph.references import Reference

publish(
    Reference, "python.util.object_identity._ObjectIdentityWrapper", "python.util.object_identity.Reference"
)


@export("python.util.object_identity.ObjectIdentityDictionary")
class ObjectIdentityDictionary(MutableMapping):
    """A dictionary whose keys are told apart by what they are, not by what they equal."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._items: dict[Reference, Any] = {}
        self.update(*args, **kwargs)

    def __getitem__(self, key: Any) -> Any:
        return self._items[Reference(key)]

    def __setitem__(self, key: Any, value: Any) -> None:
        self._items[Reference(key)] = value

    def __delitem__(self, key: Any) -> None:
        del self._items[Reference(key)]

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator:
        return (reference.deref() for reference in self._items)


publish(ObjectIdentityDictionary, "python.util.object_identity.ObjectIdentityWeakKeyDictionary")


@export("python.util.object_identity.ObjectIdentitySet", "python.util.object_identity.ObjectIdentityWeakSet")
class ObjectIdentitySet(MutableSet):
    """A set whose members are told apart by what they are, not by what they equal."""

    def __init__(self, items: Iterable = ()) -> None:
        self._items = {Reference(item) for item in items}

    def __contains__(self, item: Any) -> bool:
        return Reference(item) in self._items

    def add(self, value: Any) -> None:
        """Adds an object."""
        self._items.add(Reference(value))

    def discard(self, value: Any) -> None:
        """Removes an object, if it is there."""
        self._items.discard(Reference(value))

    def update(self, items: Iterable) -> None:
        """Adds several objects."""
        self._items.update(Reference(item) for item in items)

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator:
        return (reference.deref() for reference in self._items)


@export("python.util.tf_decorator.TFDecorator")
class TFDecorator:
    """A decorated function: the original, and the decorator's name."""

    def __init__(
        self,
        decorator_name: str,
        target: Any,
        decorator_doc: str = "",
        decorator_argspec: Any = None,
    ) -> None:
        self._decorated_target = target
        self._decorator_name = decorator_name
        self._decorator_doc = decorator_doc
        self._decorator_argspec = decorator_argspec
        self.__name__ = getattr(target, "__name__", type(target).__name__)
        self.__qualname__ = getattr(target, "__qualname__", type(target).__qualname__)
        self.__doc__ = decorator_doc or getattr(target, "__doc__", None) or ""

    def __get__(self, obj: Any, objtype: Any) -> Any:
        return self._decorated_target.__get__(obj, objtype)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._decorated_target(*args, **kwargs)

    @property
    def decorated_target(self) -> Any:
        """The function."""
        return self._decorated_target

    @decorated_target.setter
    def decorated_target(self, target: Any) -> None:
        self._decorated_target = target

    @property
    def decorator_name(self) -> str:
        """The decorator's name."""
        return self._decorator_name

    @property
    def decorator_doc(self) -> str:
        """The decorator's documentation."""
        return self._decorator_doc

    @property
    def decorator_argspec(self) -> Any:
        """The arguments that the decorated function takes, when they are not the function's own."""
        return self._decorator_argspec


@export("python.util.tf_decorator.make_decorator")
def make_decorator(
    target: Any,
    decorator_func: Any,
    decorator_name: str | None = None,
    decorator_doc: str = "",
    decorator_argspec: Any = None,
) -> Any:
    """Marks a function as the decorated form of another."""
    name = decorator_name or inspect.stack()[1][3]
    decorator = TFDecorator(name, target, decorator_doc, decorator_argspec)
    decorator_func._tf_decorator = decorator
    for attribute in ("__name__", "__qualname__", "__module__"):
        if hasattr(target, attribute):
            setattr(decorator_func, attribute, getattr(target, attribute))
    # What the function was given besides, unless the decorated form has its own.
    for attribute, value in getattr(target, "__dict__", {}).items():
        decorator_func.__dict__.setdefault(attribute, value)
    decorator_func.__doc__ = decorator.__doc__
    decorator_func.__wrapped__ = decorator_func.__original_wrapped__ = target
    return decorator_func


@export("python.util.tf_decorator.unwrap")
def unwrap(maybe_tf_decorator: Any) -> tuple[list[TFDecorator], Any]:
    """The decorators of a function, outermost first, and the function itself."""
    decorators: list[TFDecorator] = []
    result = maybe_tf_decorator
    while True:
        one = result if isinstance(result, TFDecorator) else getattr(result, "_tf_decorator", None)
        if one is None:
            return decorators, result
        decorators.append(one)
        result = one.decorated_target


@export("python.util.function_utils.fn_args", "python.estimator.util.fn_args")
def fn_args(fn: Any) -> tuple[str, ...]:
    """The names of a function's arguments, without `self` and those that a partial application gives."""
    if isinstance(fn, functools.partial):
        given = fn_args(fn.func)[len(fn.args) :]
        return tuple(a for a in given if a not in set(fn.keywords or {}))
    bound = inspect.ismethod(fn)
    if not inspect.isfunction(fn) and not bound and callable(fn) and not isinstance(fn, type):
        fn, bound = type(fn).__call__, True
    names = inspect.getfullargspec(unwrap(fn)[1]).args
    return tuple(names[1:] if bound else names)


@export("python.util.all_util.remove_undocumented")
def remove_undocumented(
    module_name: str, allowed_exception_list: Any = None, doc_string_modules: Any = None
) -> None:
    """Leaves a module as it is: what libraries do with it only hides names."""


@export("python.util.all_util.make_all")
def make_all(module_name: str, doc_string_modules: Any = None) -> list[str]:
    """The public names of a module, for its `__all__`."""
    return [name for name in dir(sys.modules[module_name]) if not name.startswith("_")]


@export("python.util.function_utils.has_kwargs")
def has_kwargs(fn: Any) -> bool:
    """Whether a function takes any keyword."""
    if isinstance(fn, functools.partial):
        fn = fn.func
    if not callable(fn):
        raise TypeError(f"fn should be a function-like object, but is of type {type(fn)}.")
    return inspect.getfullargspec(fn).varkw is not None


@export("python.util.function_utils.get_func_name")
def get_func_name(func: Any) -> str:
    """A function's name."""
    _, func = unwrap(func)
    if not callable(func):
        raise ValueError("Argument must be callable")
    if inspect.ismethod(func):
        return f"{type(func.__self__).__name__}.{func.__func__.__name__}"
    return func.__name__ if inspect.isfunction(func) else str(type(func))


@export("python.util.function_utils.get_func_code")
def get_func_code(func: Any) -> Any:
    """A function's code object; None when it has none."""
    _, func = unwrap(func)
    if not callable(func):
        raise ValueError("Argument must be callable")
    return getattr(func, "__code__", None) or getattr(func.__call__, "__code__", None)


@export("python.util.tf_should_use.should_use_result")
def should_use_result(fn: Any = None, warn_in_eager: bool = False, error_in_function: bool = False) -> Any:
    """Marks a function whose result is not to be thrown away; calls pass through."""
    return fn if fn is not None else lambda function: function


@export("python.util.keyword_args.keyword_args_only")
def keyword_args_only(func: Callable) -> Callable:
    """Lets a function be called with keywords only."""

    @functools.wraps(func)
    def call(*args: Any, **kwargs: Any) -> Any:
        if args:
            raise ValueError(f"Must use keyword args to call {func.__name__}.")
        return func(**kwargs)

    return call


@export("python.util.protobuf.compare.assertProtoEqual")
def assert_proto_equal(
    self: Any,
    a: Any,
    b: Any,
    check_initialized: bool = True,
    normalize_numbers: bool = False,
    msg: str | None = None,
) -> None:
    """Fails a test when two messages differ; either may be text."""
    self.assertProtoEquals(a, b, msg)

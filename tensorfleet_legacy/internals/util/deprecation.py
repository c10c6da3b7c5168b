"""`tensorflow.python.util.deprecation` and `decorator_utils`: marks on what is going to be removed, logged when used."""

from __future__ import annotations

import functools
import inspect
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tensorfleet.base import logging
from tensorfleet.base.naming import export, publish
from tensorfleet_legacy.internals.util.tf_decorator import make_decorator

_PLACE = "python.util.deprecation"
_warned: dict[Any, bool] = {}
_logging = [True]
publish(_warned, f"{_PLACE}._PRINTED_WARNING")


@export("python.util.decorator_utils.get_qualified_name")
def get_qualified_name(function: Any) -> str:
    """A function's name, with the class it is in."""
    return getattr(function, "__qualname__", getattr(function, "__name__", str(function))).rpartition(
        "<locals>."
    )[2]


@export("python.util.decorator_utils.validate_callable")
def validate_callable(func: Any, decorator_name: str) -> None:
    """ValueError for what cannot be called, such as a property."""
    if not callable(func):
        raise ValueError(
            f"{func} is not a function. If this is a property, make sure @property appears before "
            f"@{decorator_name} in your source code:\n\n@property\n@{decorator_name}\ndef method(...)"
        )


@export("python.util.decorator_utils.add_notice_to_docstring")
def add_notice_to_docstring(
    doc: str | None, instructions: str, no_doc_str: str, suffix_str: str, notice: list[str]
) -> str:
    """A docstring with a warning behind its first line."""
    warning = ["", f"Warning: {notice[0]}", *notice[1:], instructions]
    if not doc:
        return "\n".join([no_doc_str, *warning])
    first, *rest = inspect.cleandoc(doc).splitlines()
    while rest and not rest[0].strip():
        rest.pop(0)
    return "\n".join([f"{first} {suffix_str}", *warning, *([""] + rest if rest else [])])


@export("python.util.decorator_utils._normalize_docstring")
def normalize_docstring(docstring: str | None) -> str:
    """A docstring without the indentation of the code it is in."""
    return inspect.cleandoc(docstring) if docstring else ""


def _check(date: str | None, instructions: str | None) -> None:
    if date is not None and not re.match(r"20\d\d-[01]\d-[0123]\d", date):
        raise ValueError("Date must be YYYY-MM-DD.")
    if not instructions:
        raise ValueError("Don't deprecate things without conversion instructions! Say instructions.")


def _when(date: str | None) -> str:
    return "in a future version" if date is None else f"after {date}"


def _place() -> str:
    """Where the program called what is deprecated."""
    frame: Any = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename == __file__:
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


def _warn(key: Any, once: bool, text: str, *args: Any) -> None:
    if not _logging[0] or key in _warned:
        return
    if once:
        _warned[key] = True
    logging.warning(text, _place(), *args)


def _documented(
    function: Any, instructions: str, kind: str, date: str | None, what: str, plural: bool
) -> str:
    removal = f"{'They' if plural else 'It'} will be removed {_when(date)}."
    return add_notice_to_docstring(
        function.__doc__,
        instructions,
        f"DEPRECATED FUNCTION{kind.upper()}",
        f"(deprecated{kind})",
        [f"{what}. {removal}", "Instructions for updating:"],
    )


def _decorated(function: Any, call: Callable, name: str, doc: str) -> Any:
    return make_decorator(function, call, name, doc)


@export(f"{_PLACE}.deprecated", "contrib.framework.deprecated")
def deprecated(date: str | None, instructions: str, warn_once: bool = True) -> Callable:
    """Marks a function or class as deprecated: its first call logs a warning, or every call."""
    _check(date, instructions)

    def decorate(marked: Any) -> Any:
        is_class = isinstance(marked, type)
        function = marked.__init__ if is_class else marked
        validate_callable(function, "deprecated")

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            _warn(
                function,
                warn_once,
                "From %s: %s (from %s) is deprecated and will be removed %s.\nInstructions for updating:\n%s",
                get_qualified_name(function),
                function.__module__,
                _when(date),
                instructions,
            )
            return function(*args, **kwargs)

        doc = _documented(marked, instructions, "", date, "THIS FUNCTION IS DEPRECATED", False)
        if is_class:
            marked.__init__ = _decorated(function, call, "deprecated", function.__doc__ or "")
            return marked
        return _decorated(function, call, "deprecated", doc)

    return decorate


def _not_taken(function: Any, names: list[str]) -> list[str]:
    return [n for n in names if n not in inspect.signature(function).parameters]


@export(f"{_PLACE}.deprecated_args", "contrib.framework.deprecated_args")
def deprecated_args(
    date: str | None, instructions: str, *deprecated_arg_names_or_tuples: Any, **kwargs: Any
) -> Callable:
    """Marks arguments as deprecated: calls that give them log a warning.

    Each is a name, or a name and the value that is no reason for one.
    """
    _check(date, instructions)
    if not deprecated_arg_names_or_tuples:
        raise ValueError("Specify which argument is deprecated.")
    once = kwargs.get("warn_once", True)
    fine: dict[str, tuple] = {}
    for given in deprecated_arg_names_or_tuples:
        name, *allowed = (given,) if isinstance(given, str) else given
        fine[name] = tuple(allowed)

    def decorate(function: Any) -> Any:
        validate_callable(function, "deprecated_args")
        missing = _not_taken(function, list(fine))
        if missing:
            raise ValueError(
                "The following deprecated arguments are not present in the function signature: "
                f"{missing}. Expected arguments: {list(inspect.signature(function).parameters)}."
            )
        signature = inspect.signature(function)

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            if _logging[0]:
                given = signature.bind(*args, **kwargs).arguments
                _warn_of(function, [n for n in fine if n in given and not _same(given[n], fine[n])])
            return function(*args, **kwargs)

        def _warn_of(function: Any, names: list[str]) -> None:
            for name in names:
                _warn(
                    (function, name),
                    once,
                    "From %s: calling %s (from %s) with %s is deprecated and will be removed %s.\n"
                    "Instructions for updating:\n%s",
                    get_qualified_name(function),
                    function.__module__,
                    name,
                    _when(date),
                    instructions,
                )

        which = f"`({', '.join(sorted(fine))})`"
        what = f"SOME ARGUMENTS ARE DEPRECATED: {which}"
        doc = _documented(function, instructions, " arguments", date, what, True)
        return _decorated(function, call, "deprecated", doc)

    return decorate


def _same(value: Any, allowed: tuple) -> bool:
    return bool(allowed) and (value is allowed[0] or bool(value == allowed[0]))


@export(f"{_PLACE}.deprecated_arg_values", "contrib.framework.deprecated_arg_values")
def deprecated_arg_values(
    date: str | None, instructions: str, warn_once: bool = True, **deprecated_kwargs: Any
) -> Callable:
    """Marks values of arguments as deprecated: calls with them, by default too, log a warning."""
    _check(date, instructions)
    if not deprecated_kwargs:
        raise ValueError("Specify which argument values are deprecated.")

    def decorate(function: Any) -> Any:
        validate_callable(function, "deprecated_arg_values")
        signature = inspect.signature(function)

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            bound = signature.bind(*args, **kwargs)
            bound.apply_defaults()
            for name, value in deprecated_kwargs.items():
                if name in bound.arguments and _same(bound.arguments[name], (value,)):
                    _warn(
                        (function, name),
                        warn_once,
                        "From %s: calling %s (from %s) with %s=%s is deprecated and will be removed %s.\n"
                        "Instructions for updating:\n%s",
                        get_qualified_name(function),
                        function.__module__,
                        name,
                        value,
                        _when(date),
                        instructions,
                    )
            return function(*args, **kwargs)

        which = ", ".join(f"{k}={v}" for k, v in sorted(deprecated_kwargs.items()))
        what = f"SOME ARGUMENT VALUES ARE DEPRECATED: `({which})`"
        doc = _documented(function, instructions, " argument values", date, what, True)
        return _decorated(function, call, "deprecated", doc)

    return decorate


@export(f"{_PLACE}.DeprecatedNamesAlreadySet")
class DeprecatedNamesAlreadySet(Exception):
    """Deprecated names were set twice for one object."""


@export(f"{_PLACE}.deprecated_endpoints")
def deprecated_endpoints(*args: str) -> Callable:
    """Marks names of a function as deprecated."""

    def decorate(function: Any) -> Any:
        if "_tf_deprecated_api_names" in function.__dict__:
            raise DeprecatedNamesAlreadySet(
                f"Cannot set deprecated names for {function.__name__} to {args}. Deprecated names are already set "
                f"to {function._tf_deprecated_api_names}."
            )
        function._tf_deprecated_api_names = args
        return function

    return decorate


@export(f"{_PLACE}.deprecated_alias")
def deprecated_alias(deprecated_name: str, name: str, func_or_class: Any, warn_once: bool = True) -> Any:
    """The same function or class under a name that is deprecated: its use logs a warning."""
    function = func_or_class.__init__ if isinstance(func_or_class, type) else func_or_class  # type: ignore[misc]
    key = (deprecated_name, function)

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        text = "From %s: The name %s is deprecated. Please use %s instead.\n"
        _warn(key, warn_once, text, deprecated_name, name)
        return function(*args, **kwargs)

    if not isinstance(func_or_class, type):
        return make_decorator(function, call, "deprecated_alias")
    by_name = {
        "__init__": make_decorator(function, call, "deprecated_alias"),
        "__doc__": func_or_class.__doc__,
        "__module__": func_or_class.__module__,
    }
    return type(func_or_class.__name__, (func_or_class,), by_name)


@export(f"{_PLACE}.deprecated_argument_lookup")
def deprecated_argument_lookup(new_name: str, new_value: Any, old_name: str, old_value: Any) -> Any:
    """The value of an argument that has two names; ValueError if both were given."""
    if old_value is None:
        return new_value
    if new_value is not None:
        raise ValueError(f"Cannot specify both '{old_name}' and '{new_name}'")
    return old_value


@export(f"{_PLACE}.rewrite_argument_docstring")
def rewrite_argument_docstring(old_doc: str, old_argument: str, new_argument: str) -> str:
    """A docstring in which an argument has another name."""
    return old_doc.replace(f"`{old_argument}`", f"`{new_argument}`").replace(
        f"{old_argument}:", f"{new_argument}:"
    )


@export(f"{_PLACE}.silence")
@contextmanager
def silence() -> Iterator[None]:
    """A block in which nothing is logged as deprecated."""
    before, _logging[0] = _logging[0], False
    try:
        yield
    finally:
        _logging[0] = before

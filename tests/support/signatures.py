"""Tables of names with their argument lists, and what differs from them."""

import ast
import enum
import inspect
import types
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from tensorfleet.base.dtypes import DType


def read_table(name: str) -> dict[str, tuple[str, ...]]:
    """name -> (kind, argument, argument=default, ...) of a file of tests/data."""
    lines = (Path(__file__).parent.parent / "data" / name).read_text().splitlines()
    rows = (line.split("\t") for line in lines if not line.startswith("#"))
    return {name: tuple(rest) for name, *rest in rows}


def kind_of(value: Any) -> str:
    if isinstance(value, types.ModuleType):
        return "module"
    if inspect.isclass(value):
        return "class"
    return "function" if inspect.isroutine(value) else "member"


def text_of(default: Any) -> str:
    """A default as the table writes it."""
    if isinstance(default, DType):
        return f"<dtype: '{default.name}'>"
    if isinstance(default, enum.Enum):
        return f"{type(default).__name__}.{default.name}"
    if inspect.isfunction(default):
        return f"<function {default.__name__} instance>"
    return str(default).replace("\t", "\\t").replace("\n", "\\n")


def same_default(ours: str, theirs: str) -> bool:
    if ours == theirs or (theirs.startswith("<") and theirs.endswith("instance>") and ours.startswith("<")):
        return True
    if ours.startswith("<class ") and theirs.startswith("<class "):
        return True
    try:
        return ast.literal_eval(ours) == ast.literal_eval(theirs)
    except (ValueError, SyntaxError):
        return False


def arguments(function: Any) -> list[str]:
    """The arguments of a function, written as the table writes them."""
    written = []
    for p in inspect.signature(function).parameters.values():
        star = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
        written.append(star + p.name + ("" if p.default is p.empty else f"={text_of(p.default)}"))
    return written


def same_arguments(ours: list[str], theirs: tuple[str, ...]) -> bool:
    if len(ours) != len(theirs):
        return False
    for a, b in zip(ours, theirs, strict=True):
        (name, eq, default), (their_name, their_eq, their_default) = a.partition("="), b.partition("=")
        stars = name.startswith("*")
        if (name != their_name and not stars) or name.count("*") != their_name.count("*") or eq != their_eq:
            return False
        if eq and not same_default(default, their_default):
            return False
    return True


def difference(function: Any, theirs: tuple[str, ...]) -> str | None:
    if theirs == ("?",):
        return None
    ours = arguments(function)
    return None if same_arguments(ours, theirs) else f"has ({', '.join(ours)}), 1.15 ({', '.join(theirs)})"


def problems_of_members(
    name: str, cls: type, members: Iterable[tuple[str, tuple[str, ...]]]
) -> Iterator[tuple[str, str]]:
    """What a class lacks of its members, or has otherwise."""
    for member, (kind, *args) in members:
        try:
            result = inspect.getattr_static(cls, member)
        except AttributeError:
            yield f"{name}.{member}", "is missing"
            continue
        if kind == "method":
            function = result.__func__ if isinstance(result, staticmethod | classmethod) else result
            # The name of a bound argument is of no use to anybody: a decorator of 1.15 calls it `instance`.
            args = ["self", *args[1:]] if args[:1] == ["instance"] else args
            problem = difference(function, tuple(args)) if callable(function) else "is not a method"
            if problem:
                yield f"{name}.{member}", problem

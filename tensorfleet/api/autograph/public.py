"""`tf.autograph`: functions converted on request, their source, and functions left as they are."""

from __future__ import annotations

import ast
import enum
import functools
import sys
import types
from collections.abc import Callable, Mapping
from typing import Any

from tensorfleet.api.autograph import calls
from tensorfleet.api.autograph.calls import ConversionError
from tensorfleet.base import logging
from tensorfleet.base.naming import export

_state = {"verbosity": 0, "to_stdout": False}
export("python.autograph.impl.api.ConversionError")(ConversionError)


@export("autograph.experimental.Feature", "python.autograph.core.converter.Feature")
class Feature(enum.Enum):
    """Optional features of conversions."""

    ALL = "ALL"
    AUTO_CONTROL_DEPS = "AUTO_CONTROL_DEPS"
    ASSERT_STATEMENTS = "ASSERT_STATEMENTS"
    BUILTIN_FUNCTIONS = "BUILTIN_FUNCTIONS"
    EQUALITY_OPERATORS = "EQUALITY_OPERATORS"
    LISTS = "LISTS"
    NAME_SCOPES = "NAME_SCOPES"


def _converted(entity: Callable[..., Any]) -> Callable[..., Any]:
    function, first = calls.function_of(entity)
    if function is None:
        raise ConversionError(
            f"converting {entity}: ValueError: Entity {entity} is not a function: give a function or a method."
        )
    try:
        result = calls.convert(function)
    except ConversionError as e:
        raise ConversionError(f"converting {entity}: ValueError: {e}") from e
    if not first:
        return result
    return functools.update_wrapper(functools.partial(result, *first), function)


@export("autograph.to_graph", "python.autograph.impl.api.to_graph", "contrib.autograph.to_graph")
def to_graph(
    entity: Callable[..., Any],
    recursive: bool = True,
    arg_values: Mapping[str, object] | None = None,
    arg_types: Mapping[str, object] | None = None,
    experimental_optional_features: object = None,
) -> Callable[..., Any]:
    """A function like `entity`, whose branches and loops may depend on tensors."""
    return _converted(entity)


@export("autograph.to_code", "python.autograph.impl.api.to_code", "contrib.autograph.to_code")
def to_code(
    entity: Callable[..., Any],
    recursive: bool = True,
    arg_values: Mapping[str, object] | None = None,
    arg_types: Mapping[str, object] | None = None,
    indentation: str = "  ",
    experimental_optional_features: object = None,
) -> str:
    """The Python source that `to_graph` makes of a function."""
    function, _ = calls.function_of(entity)
    if function is None:
        raise ConversionError(f"converting {entity}: ValueError: Entity {entity} is not a function.")
    return ast.unparse(ast.fix_missing_locations(calls.tree_of(function)))


@export(
    "autograph.experimental.do_not_convert",
    "contrib.autograph.do_not_convert",
    "python.autograph.impl.api.do_not_convert",
)
def do_not_convert(func: Callable[..., Any] | None = None) -> Callable[..., Any]:
    """A function that is not converted, nor any function that it calls."""
    if func is None:
        return do_not_convert

    def called(*args: Any, **kwargs: Any) -> Any:
        with calls.conversion(False):
            return func(*args, **kwargs)

    if isinstance(func, (types.FunctionType, types.MethodType)):
        functools.update_wrapper(called, func)
    called.__ag_compiled = True  # type: ignore[attr-defined]
    return called


@export("contrib.autograph.convert", "python.autograph.impl.api.convert")
def convert(
    recursive: bool = False, optional_features: object = None, user_requested: bool = True
) -> Callable[..., Any]:
    """Decorator of a function that is converted when it is called."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def called(*args: Any, **kwargs: Any) -> Any:
            return calls.converted_call(function, args, kwargs)

        called.__ag_compiled = True  # type: ignore[attr-defined]
        return called

    return decorate


@export("autograph.set_verbosity", "contrib.autograph.set_verbosity")
def set_verbosity(level: int, alsologtostdout: bool = False) -> None:
    """Sets how much is logged about conversions; 0 logs nothing."""
    _state.update(verbosity=level, to_stdout=alsologtostdout)


@export("autograph.trace", "contrib.autograph.trace")
def trace(*args: object) -> None:
    """Prints values when the function is converted and run, and not with each step."""
    text = " ".join(map(str, args))
    logging.info("%s", text)
    print(text, file=sys.stdout)


@export("autograph.experimental.set_loop_options")
def set_loop_options(
    parallel_iterations: object = None,
    back_prop: object = None,
    swap_memory: object = None,
    maximum_iterations: object = None,
) -> None:
    """Options of the loop that this is called in. The runtime decides how its turns overlap, whatever they say."""

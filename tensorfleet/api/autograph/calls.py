"""Functions that are converted when they are called from converted ones, and those that are called as they are."""

from __future__ import annotations

import ast
import builtins
import functools
import inspect
import sys
import textwrap
import threading
import types
import warnings
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tensorfleet.api.autograph import operators
from tensorfleet.api.autograph.iterables import registered_for
from tensorfleet.api.autograph.rewriting import convertible, rewritten
from tensorfleet.base import dtypes, logging, packages
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.stacks import replaced
from tensorfleet.ops.array.constructors import range_
from tensorfleet.ops.array.shape import shape
from tensorfleet.ops.control.host_ops import py_func
from tensorfleet.ops.math.binary import maximum
from tensorfleet.ops.math.cast import cast
from tensorfleet.ops.math.unary import abs as tf_abs
from tensorfleet.ops.state.tensor_array import TensorArray
from tensorfleet.ops.string.elements import string_to_number

# Modules whose functions know tensors already, or never see one.
_KNOWN = {*packages.NAMES, "tensorflow", "numpy", "scipy", "pandas", "jax", "jaxlib", "absl", "six"}
_KNOWN |= {"pytest", "_pytest"}
_local = threading.local()
# Weak, so that a function that is made anew in each step, such as a lambda, does not stay for ever.
_made: weakref.WeakKeyDictionary[types.FunctionType, types.CodeType] = weakref.WeakKeyDictionary()
_converted_code: set[types.CodeType] = set()


class ConversionError(Exception):
    """A function cannot be converted."""


def enabled() -> bool:
    """Whether functions called from here are converted."""
    return getattr(_local, "enabled", True)


@contextmanager
def conversion(on: bool) -> Iterator[None]:
    """A block in which functions are, or are not, converted."""
    if not hasattr(_local, "enabled"):
        _local.enabled = True
    reason = ": AutoGraph did not convert this function" if on else ": AutoGraph is disabled in this function"
    with replaced(_local, "enabled", on), replaced(Tensor, "_why_symbolic", reason):
        yield


def converted_call(f: Any, args: tuple[Any, ...], kwargs: dict[str, Any], requested: bool = False) -> Any:
    """`f(*args, **kwargs)`, of a function that is converted if that makes sense; if not, says so when it was asked for."""
    if not enabled():
        return f(*args, **kwargs)
    # Only built-in functions and classes are looked up: hashing a user's object may call the user's code.
    if (overload := _OVERLOADS.get(f) if _hashable(f) else None) is not None:
        return overload(*args, **kwargs)
    while isinstance(f, functools.partial):
        args, kwargs, f = (*f.args, *args), {**f.keywords, **kwargs}, f.func
    function, first = function_of(f)
    if function is None or not wants(function):
        return f(*args, **kwargs)
    try:
        converted = convert(function)
    except ConversionError as e:
        tell = logging.warning if requested else logging.debug
        tell("Entity %s could not be transformed and will be executed as-is. Cause: %s", function, e)
        return f(*args, **kwargs)
    return converted(*first, *args, **kwargs)


def _hashable(f: object) -> bool:
    return isinstance(f, (types.BuiltinFunctionType, type))


def function_of(f: object) -> tuple[types.FunctionType | None, tuple[Any, ...]]:
    """The Python function behind something that can be called, and what it gets first."""
    if isinstance(f, types.FunctionType):
        return f, ()
    if isinstance(f, types.MethodType):
        inner, first = function_of(f.__func__)
        return inner, (f.__self__, *first)
    if isinstance(f, type) or not callable(f):
        return None, ()
    # An object with `__call__`: the function is its class's, and the object its first argument.
    call = type(f).__call__
    return (call, (f,)) if isinstance(call, types.FunctionType) else (None, ())


def wants(function: types.FunctionType) -> bool:
    """Whether a function is a program's own, with code that can be read."""
    if function.__code__ in _converted_code or getattr(function, "__ag_compiled", False):
        return False
    module = (function.__module__ or "").partition(".")[0]
    # Converting a library that never sees a tensor costs time and may break it.
    if module in _KNOWN or (module in sys.stdlib_module_names and module != "__main__"):
        return False
    return not inspect.isgeneratorfunction(function) and not inspect.iscoroutinefunction(function)


def convert(function: types.FunctionType) -> Callable[..., Any]:
    """A function of the same arguments whose branches and loops may depend on tensors; ConversionError if there is none."""
    code = _made.get(function)
    if code is None:
        code = _made[function] = _code_of(function)
    # The code is compiled once; each function made from it keeps the cells of its own closure.
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    cells["ag__"] = types.CellType(sys.modules[__name__])
    closure = tuple(cells[name] for name in code.co_freevars)
    converted = types.FunctionType(
        code, function.__globals__, function.__name__, function.__defaults__, closure
    )
    converted.__kwdefaults__ = function.__kwdefaults__
    return functools.update_wrapper(converted, function)


def _code_of(function: types.FunctionType) -> types.CodeType:
    tree = tree_of(function)
    names = ["ag__", *(n for n in function.__code__.co_freevars if n != "ag__")]
    # A free variable is one only inside a function that has it: the factory stands for the scopes around.
    outer = ast.parse(f"def factory__({', '.join(names)}):\n pass")
    factory = outer.body[0]
    assert isinstance(factory, ast.FunctionDef)
    factory.body = [tree]
    compiled = compile(ast.fix_missing_locations(outer), function.__code__.co_filename, "exec")
    (inner,) = _inner(compiled, "factory__")
    (result,) = _inner(inner, tree.name)
    _remember(result)
    return result


def _inner(code: types.CodeType, name: str) -> list[types.CodeType]:
    return [c for c in code.co_consts if isinstance(c, types.CodeType) and c.co_name == name]


def _remember(code: types.CodeType) -> None:
    """A converted function, and all inside of it, is not converted again."""
    _converted_code.add(code)
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            _remember(inner)


def tree_of(function: types.FunctionType) -> ast.FunctionDef:
    """The rewritten source of a function, its lines numbered as in its file."""
    try:
        lines, start = inspect.getsourcelines(function)
        source = textwrap.dedent("".join(lines))
        tree = _read(source if source.strip() else "pass")
    except (OSError, TypeError, SyntaxError) as e:
        tree, start = _lambda_tree(function, e)
    ast.increment_lineno(tree, start - 1)
    definition = _defined(tree, function)
    definition.decorator_list = []
    if not convertible(definition):
        raise ConversionError("it is a generator or a coroutine")
    return rewritten(definition)


def _read(source: str) -> ast.Module:
    """The tree of a source that Python has compiled before, and warned of then."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)
        warnings.simplefilter("ignore", DeprecationWarning)
        return ast.parse(source)


def _lambda_tree(function: types.FunctionType, error: Exception) -> tuple[ast.Module, int]:
    """The lines around a lambda, which begin or end in the middle of a statement: as much of them as can be read."""
    if function.__name__ != "<lambda>" or not isinstance(error, SyntaxError):
        raise ConversionError(f"its source is not known: {error}") from error
    lines, start = inspect.getsourcelines(function)
    text = "".join(lines).strip()
    at = text.find("lambda")
    # The source of a lambda ends somewhere in its line: the longest text that can be read is it.
    for end in range(len(text), at, -1):
        try:
            return _read(text[at:end].strip()), start
        except SyntaxError:
            continue
    raise ConversionError("the source of the lambda cannot be told from what is around it") from error


def _defined(tree: ast.Module, function: types.FunctionType) -> ast.FunctionDef:
    """The definition of a function among the lines that it is in."""
    if function.__name__ != "<lambda>":
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef) and node.name == function.__code__.co_name:
                return node
        raise ConversionError("its definition is not in its source")
    code = function.__code__
    # Lambdas have no names: those of their arguments tell most of them apart.
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    definitions = [n for n in ast.walk(tree) if isinstance(n, ast.Lambda)]
    definitions = [
        n
        for n in definitions
        if tuple(a.arg for a in (*n.args.posonlyargs, *n.args.args, *n.args.kwonlyargs)) == names
    ]
    if len(definitions) > 1:  # several on one line: those that compile to the same
        definitions = [n for n in definitions if _same_code(n, function)]
    if len(definitions) != 1:
        raise ConversionError("several lambdas are on its line: put them on lines of their own")
    (node,) = definitions
    body = ast.copy_location(ast.Return(node.body), node)
    definition = ast.copy_location(ast.FunctionDef("lambda_", node.args, [body], []), node)
    definition.type_params = []  # type: ignore[attr-defined]
    return ast.fix_missing_locations(definition)


def _same_code(node: ast.Lambda, function: types.FunctionType) -> bool:
    names = ", ".join(function.__code__.co_freevars)
    outer = ast.parse(f"lambda {names}: 0")
    outer.body[0].value.body = node  # type: ignore[attr-defined]
    compiled = compile(ast.fix_missing_locations(outer), "", "exec")
    (around,) = [c for c in compiled.co_consts if isinstance(c, types.CodeType)]
    (code,) = [c for c in around.co_consts if isinstance(c, types.CodeType)]
    mine = function.__code__
    return (code.co_code, code.co_names) == (mine.co_code, mine.co_names) and _constants(code) == _constants(
        mine
    )


def _constants(code: types.CodeType) -> list[object]:
    return [c for c in code.co_consts if not isinstance(c, types.CodeType)]


# -- Python's own functions, for tensors ----------------------------------------------------------------


def _abs(x: Any) -> Any:
    return tf_abs(x) if isinstance(x, Tensor) else abs(x)


def _number(kind: type[int | float], name: str) -> Callable[..., Any]:
    def made(x: Any = 0, *base: Any) -> Any:
        if not isinstance(x, Tensor):
            return kind(x, *base)
        if base not in ((), (10,)):
            raise ValueError(f"base {base[0]} not supported for int")
        if x.dtype == dtypes.string:
            return string_to_number(x, dtypes.as_dtype(name))
        return cast(x, dtypes.as_dtype(name))

    return made


def _len(x: Any) -> Tensor | int:
    if isinstance(x, TensorArray):
        return x.size()
    if not isinstance(x, Tensor):
        return len(x)
    if x.shape.ndims == 0:
        raise ValueError(f"len requires a non-scalar tensor, got one of shape {x.shape}")
    known = x.shape.as_list()[0] if x.shape.ndims else None
    return shape(x)[0] if known is None else known


def _print(*values: object, **options: Any) -> Any:
    if not any(isinstance(v, Tensor) for v in values):
        return print(*values, **options)

    def shown(*found: object) -> None:
        computed = iter(found)
        texts = [next(computed) if isinstance(v, Tensor) else v for v in values]
        texts = [v.decode() if isinstance(v, bytes) else v for v in texts]
        print(*texts, **{"flush": True, **options})

    return py_func(shown, [v for v in values if isinstance(v, Tensor)], [])


def _range(*limits: Any) -> Tensor | range:
    if not any(isinstance(n, Tensor) for n in limits):
        return range(*limits)
    if len(limits) == 1:
        # Python's range of a negative number is empty; TensorFlow's is an error.
        return range_(maximum(limits[0], 0))
    if len(limits) == 2:
        return range_(limits[0], maximum(*limits))
    return range_(*limits)


def _enumerate(items: Any, start: int = 0) -> Any:
    if (sequenced := registered_for(items)) is not None:
        return sequenced.enumerated(items, start)
    return enumerate(items, start)


def _zip(*items: Any, strict: bool = False) -> Any:
    sequenced = registered_for(items[0]) if items else None
    if sequenced is not None and all(isinstance(i, sequenced.kind) for i in items):
        return sequenced.zipped(items)
    return zip(*items, strict=strict)


_OVERLOADS: dict[Callable[..., Any], Callable[..., Any]] = {
    builtins.abs: _abs,
    builtins.float: _number(float, "float32"),
    builtins.int: _number(int, "int32"),
    builtins.len: _len,
    builtins.print: _print,
    builtins.range: _range,
    builtins.enumerate: _enumerate,
    builtins.zip: _zip,
}

# The names that converted code uses: this module is its `ag__`.
Undefined, UndefinedReturnValue = operators.Undefined, operators.UndefinedReturnValue
retval, ldu, not_, and_, or_ = operators.retval, operators.ldu, operators.not_, operators.and_, operators.or_
eq, not_eq = operators.eq, operators.not_eq
if_exp, assert_stmt, if_stmt = operators.if_exp, operators.assert_stmt, operators.if_stmt
while_stmt, for_stmt = operators.while_stmt, operators.for_stmt

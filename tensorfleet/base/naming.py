"""Which functions and classes a user sees, and under which names after `tf.`.

`@export("math.tanh", "tanh", "nn.tanh")` above a definition is all it takes to publish it;
`tensorfleet/__init__.py` gathers the names into modules. A name of a module that is not imported yet comes
from the index (base/index.py).
"""

from __future__ import annotations

import functools
import sys
import types
from collections.abc import Callable, Container, Iterable
from typing import Any, TypeVar

from tensorfleet.base import index

T = TypeVar("T")
_NAMES: dict[str, Any] = {}
_LAZY: dict[str, Callable[[str], Any]] = {}
# Modules with names of others: where to look for what was not published in them.
_BORROWS: dict[str, tuple[str, ...]] = {}
# Modules whose names follow a rule: what gives their value, or None for a name that is not theirs.
_FINDERS: dict[str, Callable[[str], Any]] = {}
_LISTED: dict[str, Callable[[], Iterable[str]]] = {}
# Names that tests replace, such as a module's clock: our modules that use what is put there.
_HOMES: dict[str, tuple[types.ModuleType, ...]] = {}

# What is made of functions with these names before they are published; and of which function what was made.
_WRAPPERS: dict[str, Callable[[Any], Any]] = {}
_WRAPPED: dict[types.FunctionType, Any] = {}

_GRAPHS = "TensorFleet runs graphs: build one and run it in a tf.Session, or see docs/compatibility.md"
# What to do without a part of TensorFlow that is not there.
INSTEAD = {
    **dict.fromkeys(("eager", "enable_eager_execution", "enable_v2_behavior"), _GRAPHS),
    "estimator": "TensorFleet has not every estimator: give tf.estimator.Estimator a model_fn of your own, or see "
    "docs/compatibility.md",
    "distribute": "docs/distribute.md says which strategies there are",
    "debug": "TensorFleet has no tfdbg: look at values with tf.Print, tf.add_check_numerics_ops or a run with "
    "tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)",
}


def export(*names: str) -> Callable[[T], T]:
    """Publishes the decorated object as `tf.<name>` for each name."""

    def register(value: T) -> T:
        publish(value, *names)
        return value

    return register


def publish(value: object, *names: str) -> None:
    """Publishes any object, such as a constant, as `tf.<name>` for each name."""
    value = _wrapped(value, names)
    for name in names:
        _check_new(name, _NAMES, _LAZY)
        _NAMES[name] = value


def wrap(wrapper: Callable[[Any], Any], *names: str) -> None:
    """Publishes `wrapper(function)` for the functions with these names, also under all their other names.

    It must be called before the functions are published.
    """
    for name in names:
        _check_new(name, _WRAPPERS, _NAMES)
        _WRAPPERS[name] = wrapper


def _wrapped(value: Any, names: Iterable[str]) -> Any:
    if not isinstance(value, types.FunctionType):
        return value
    for name in names:
        if name in _WRAPPERS and value not in _WRAPPED:
            _WRAPPED[value] = _WRAPPERS[name](value)
    return _WRAPPED.get(value, value)


def exported() -> dict[str, Any]:
    """All published names with their values."""
    index.load_all("name")
    return {**_NAMES, **{name: load(name) for name, load in tuple(_LAZY.items())}}


def find(name: str) -> Any:
    """The value of a published name."""
    index.load("name", name)  # always: another thread may be importing its module
    return _NAMES[name] if name in _NAMES else _LAZY[name](name)


def publish_lazily(load: Callable[[str], Any], *names: str) -> None:
    """Publishes names whose values `load(name)` gives when they are first used."""
    for name in names:
        _check_new(name, _NAMES, _LAZY)
        _LAZY[name] = load


def _check_new(name: str, *tables: Container[str]) -> None:
    """Refuses a name that is in one of the tables.

    Of two definitions only one would be used: the other would be maintained and tested for nothing.
    """
    for table in tables:
        if name in table:
            raise ValueError(f"tf.{name} is published twice. Delete one of its definitions.")


def homes(pairs: Iterable[tuple[str, T]]) -> dict[str, T]:
    """A table of names and where their values are, from pairs of which no two have the same name."""
    table: dict[str, T] = {}
    for name, home in pairs:
        _check_new(name, table)
        table[name] = home
    return table


def publish_module(name: str, *lenders: str) -> None:
    """Publishes a module that has, besides its own names, all those of other modules; "" is `tf` itself."""
    _check_new(name, _BORROWS)
    _BORROWS[name] = lenders


def publish_finder(
    module: str, finder: Callable[[str], Any], listed: Callable[[], Iterable[str]] = tuple
) -> None:
    """Publishes a module whose names `finder(name)` gives when they are first used; None: there is no such name.

    `listed()` are the names that `dir` shows.
    """
    _check_new(module, _FINDERS)
    _FINDERS[module] = finder
    _LISTED[module] = listed


def publish_replaceable(name: str, *homes: types.ModuleType) -> None:
    """Publishes a name of some of our modules; when a test replaces it, these modules use the replacement."""
    publish(getattr(homes[0], name.rpartition(".")[2]), name)
    _HOMES[name] = homes
    package = sys.modules[__name__.partition(".")[0]]
    _module_of(package, name).__class__ = _Replaceable


class _Replaceable(types.ModuleType):
    """A module that passes replacements of its names on to the modules that use them."""

    def __setattr__(self, name: str, value: object) -> None:
        super().__setattr__(name, value)
        for home in _HOMES.get(f"{self.__name__.partition('.')[2]}.{name}", ()):
            setattr(home, name, value)


def install(package: types.ModuleType) -> None:
    """Puts every published name where it belongs under `package`, making modules on the way."""
    for name in (*_LAZY, *index.listed("name")):
        _module_of(package, name)
    for place in (*_BORROWS, *_FINDERS, *index.listed("place")):
        _module_of(package, f"{place}.")
    for name, value in _NAMES.items():
        setattr(_module_of(package, name), name.rpartition(".")[2], value)
        _make_findable(package, name, value)


def _make_findable(package: types.ModuleType, name: str, value: object) -> None:
    """A function that was made by another is known by its public name: so it can be pickled."""
    if not isinstance(value, types.FunctionType):
        return
    home = sys.modules.get(value.__module__)
    if getattr(home, value.__qualname__, None) is not value:
        place, _, value.__qualname__ = name.rpartition(".")
        value.__module__ = f"{package.__name__}.{place}".rstrip(".")


def _module_of(package: types.ModuleType, name: str) -> types.ModuleType:
    *path, _ = name.split(".")
    module = package
    for depth, part in enumerate(["", *path]):
        module = _child(module, part) if part else module
        # A module asks its `__getattr__` only for names that it does not have: each name comes through here once.
        if "__getattr__" not in module.__dict__:
            inner = ".".join(path[:depth])
            module.__getattr__ = _lazy_getter(module, inner)  # type: ignore[method-assign]
            module.__dir__ = functools.partial(_names_in, module, inner)  # type: ignore[method-assign]
    return module


def _lazy_getter(module: types.ModuleType, path: str) -> Callable[[str], Any]:
    def get(name: str) -> Any:
        if name == "__all__":  # for `from ... import *`
            return [public for public in _names_in(module, path) if not public.startswith("_")]
        if not name.startswith("__"):  # which tools ask every module of the process for
            index.load("place", path)
        full = f"{path}.{name}" if path else name
        source = full if _is_known(full) else _lent(path, name)
        result = None
        if source is None and not name.startswith("__"):
            result = _FINDERS[path](name) if path in _FINDERS else _lent_module(path, name)
            result = _imported(path, name) if result is None else result
        if result is not None:
            setattr(module, name, result)
            return result
        if source is None:
            part = (
                full.removeprefix("python.").removeprefix("contrib.").removeprefix("compat.v2.").split(".")[0]
            )
            instead = INSTEAD.get(part, "docs/compatibility.md lists what is supported")
            error = AttributeError(
                f"module 'tf{'.' + path if path else ''}' has no attribute {name!r}; {instead}"
            )
            if part in INSTEAD:  # we know better what was meant than Python, which looks for a similar name
                error.name, error.obj = name, None
            raise error
        value = find(source)
        setattr(module, name, value)
        _make_findable(sys.modules[__name__.partition(".")[0]], source, value)
        return value

    return get


def _is_known(name: str) -> bool:
    return name in _NAMES or name in _LAZY or name in index.listed("name")


def _names_in(module: types.ModuleType, path: str) -> list[str]:
    """The names of a module, loaded or not."""
    names = {*vars(module), *_LISTED.get(path, tuple)()}
    for place in (path, *filter(None, _BORROWS.get(path, ()))):
        start = f"{place}." if place else ""
        names.update(
            rest
            for name in (*_LAZY, *_NAMES, *index.listed("name"))
            if name.startswith(start) and "." not in (rest := name[len(start) :])
        )
    return sorted(names - {""})


def _lent(module: str, name: str) -> str | None:
    """The full name of a name that a module borrows. TensorFlow's inner name `x_v1` is the public `x`."""
    inner = name.removesuffix("_v1").removesuffix("V1") if module.startswith("python.") else name
    for called in dict.fromkeys((name, inner)):
        for lender in _BORROWS.get(module, ()):
            full = f"{lender}.{called}" if lender else called
            if _is_known(full):
                return full
    return None


def _lent_module(module: str, name: str) -> types.ModuleType | None:
    """A module that a module has from another, such as `contrib.keras.layers`."""
    package = __name__.partition(".")[0]
    for lender in filter(None, _BORROWS.get(module, ())):
        if (child := sys.modules.get(f"{package}.{lender}.{name}")) is not None:
            return child
    return None


def _imported(module: str, name: str) -> types.ModuleType | None:
    """A module that one of TensorFlow's inner modules imports, such as `dtypes` in `python.ops.variables`."""
    if module != "python" and (not module.startswith("python.") or module.count(".") < 2):
        return None
    package = __name__.partition(".")[0]
    places = (f"{package}.python.{folder}.{name}" for folder in ("framework", "ops"))
    return next((sys.modules[place] for place in places if place in sys.modules), None)


def _child(parent: types.ModuleType, part: str) -> types.ModuleType:
    child = parent.__dict__.get(part)
    if isinstance(child, types.ModuleType):
        return child
    full = f"{parent.__name__}.{part}"
    child = sys.modules.get(full)
    if child is None:
        child = types.ModuleType(full, f"The public names under `tf.{full.partition('.')[2]}`.")
        child.__path__ = []  # so that `import tensorfleet.math` works
        sys.modules[full] = child
    if not _is_known(full.partition(".")[2]):  # a function may have its module's name, as arg_scope has
        setattr(parent, part, child)
    return child

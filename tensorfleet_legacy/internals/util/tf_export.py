"""`tensorflow.python.util.tf_export`: marks on what a library publishes. They publish nothing here by themselves."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

from tensorfleet.base.naming import export, publish
from tensorfleet_legacy.internals.util.tf_decorator import unwrap

_PLACE = "python.util.tf_export"
_ATTRIBUTES = {"tensorflow": "_tf_api", "estimator": "_estimator_api", "keras": "_keras_api"}
_NAMESPACES = ("estimator", "keras")
for _name in _ATTRIBUTES:
    publish(_name, f"{_PLACE}.{_name.upper()}_API_NAME")


@export(f"{_PLACE}.SymbolAlreadyExposedError")
class SymbolAlreadyExposedError(Exception):
    """A symbol has a public name already."""


@export(f"{_PLACE}.InvalidSymbolNameError")
class InvalidSymbolNameError(Exception):
    """A name that a library may not publish under."""


@export(f"{_PLACE}.api_export")
class api_export:
    """A decorator that notes the public names of a function or class."""

    def __init__(self, *args: str, **kwargs: Any) -> None:
        self._names = args
        self._names_v1: Sequence[str] = kwargs.get("v1", args)
        self._overrides = kwargs.get("overrides", [])
        self._api_name = kwargs.get("api_name", "tensorflow")
        self._check()

    def _check(self) -> None:
        for name in (*self._names, *self._names_v1):
            first = name.split(".")[0]
            if self._api_name == "tensorflow" and first in _NAMESPACES and "." in name:
                raise InvalidSymbolNameError(f"Cannot export {name}: it belongs to {first}.")
            if self._api_name == "estimator" and (first != "estimator" or "." not in name):
                raise InvalidSymbolNameError(f"{name} must be inside of the package estimator.")

    def __call__(self, func: Any) -> Any:
        """Notes the names."""
        attribute = _ATTRIBUTES[self._api_name]
        for other in self._overrides:
            target = unwrap(other)[1]
            for suffix in ("_names", "_names_v1"):
                if attribute + suffix in target.__dict__:
                    delattr(target, attribute + suffix)
        target = unwrap(func)[1]
        for suffix, names in (("_names", self._names), ("_names_v1", self._names_v1)):
            if attribute + suffix in target.__dict__:
                already = getattr(target, attribute + suffix)
                raise SymbolAlreadyExposedError(f"Symbol {target.__name__} is already exposed as {already}.")
            setattr(target, attribute + suffix, names)
        return func

    def export_constant(self, module_name: str, name: Any) -> None:
        """Notes the public names of a module's constant."""
        module: Any = sys.modules[module_name]
        attribute = _ATTRIBUTES[self._api_name]
        for suffix, names in (("_constants", self._names), ("_constants_v1", self._names_v1)):
            if not hasattr(module, attribute + suffix):
                setattr(module, attribute + suffix, [])
            getattr(module, attribute + suffix).append((names, name))


@export(f"{_PLACE}.tf_export")
def tf_export(*args: str, **kwargs: Any) -> api_export:
    """Notes public names of TensorFlow."""
    return api_export(*args, api_name="tensorflow", **kwargs)


@export(f"{_PLACE}.estimator_export")
def estimator_export(*args: str, **kwargs: Any) -> api_export:
    """Notes public names of estimators."""
    return api_export(*args, api_name="estimator", **kwargs)


@export(f"{_PLACE}.keras_export")
def keras_export(*args: str, **kwargs: Any) -> api_export:
    """Notes public names of Keras."""
    return api_export(*args, api_name="keras", **kwargs)


def _names(symbol: Any, suffix: str) -> list:
    target = unwrap(symbol)[1]
    result: list = []
    for attribute in (_ATTRIBUTES["tensorflow"], _ATTRIBUTES["estimator"], _ATTRIBUTES["keras"]):
        result.extend(vars(target).get(attribute + suffix, ()))
    return result


@export(f"{_PLACE}.get_v1_names")
def get_v1_names(symbol: Any) -> list:
    """The public names of a symbol in version 1."""
    return _names(symbol, "_names_v1")


@export(f"{_PLACE}.get_v2_names")
def get_v2_names(symbol: Any) -> list:
    """The public names of a symbol in version 2."""
    return _names(symbol, "_names")


@export(f"{_PLACE}.get_v1_constants")
def get_v1_constants(module: Any) -> list:
    """The constants of a module that are public in version 1, and their names."""
    return _names(module, "_constants_v1")


@export(f"{_PLACE}.get_v2_constants")
def get_v2_constants(module: Any) -> list:
    """The constants of a module that are public in version 2, and their names."""
    return _names(module, "_constants")


@export(f"{_PLACE}.kwarg_only")
def kwarg_only(f: Callable) -> Callable:
    """Lets a function be called with keywords only."""
    from tensorfleet_legacy.internals.util.tf_decorator import keyword_args_only

    return keyword_args_only(f)

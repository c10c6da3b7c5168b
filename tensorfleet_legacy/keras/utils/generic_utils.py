"""Objects by their names: one's own beside Keras's."""

from __future__ import annotations

import inspect
from typing import Any

_custom: dict[str, Any] = {}


def get_custom_objects() -> dict[str, Any]:
    """The dictionary of one's own classes and functions, by name."""
    return _custom


class CustomObjectScope:
    """Makes dictionaries of classes and functions known by name inside a `with` block."""

    def __init__(self, *args: dict[str, Any]) -> None:
        self.custom_objects = args

    def __enter__(self) -> CustomObjectScope:
        self._before = dict(_custom)
        for objects in self.custom_objects:
            _custom.update(objects)
        return self

    def __exit__(self, *args: Any) -> None:
        _custom.clear()
        _custom.update(self._before)


def custom_object_scope(*args: dict[str, Any]) -> CustomObjectScope:
    """Makes dictionaries of classes and functions known by name inside a `with` block."""
    return CustomObjectScope(*args)


def custom(name: Any, objects: dict[str, Any] | None = None) -> Any:
    """One's own class or function of a name, or None."""
    if objects and name in objects:
        return objects[name]
    return _custom.get(name)


def serialize_keras_object(instance: Any) -> Any:
    """An object as the name of its class and its configuration, a function as its name."""
    if instance is None:
        return None
    if hasattr(instance, "get_config"):
        return {"class_name": type(instance).__name__, "config": instance.get_config()}
    if hasattr(instance, "__name__"):
        return instance.__name__
    raise ValueError(f"Cannot serialize {instance}")


def deserialize_keras_object(
    identifier: Any,
    module_objects: dict[str, Any] | None = None,
    custom_objects: dict[str, Any] | None = None,
    printable_module_name: str = "object",
) -> Any:
    """An object from what `serialize_keras_object` gave, or a function or a new object from its name."""
    if identifier is None:
        return None
    if isinstance(identifier, str):
        result = custom(identifier, custom_objects) or (module_objects or {}).get(identifier)
        if result is None:
            raise ValueError(f"Unknown {printable_module_name}:{identifier}")
        return result() if isinstance(result, type) else result
    if not isinstance(identifier, dict) or "class_name" not in identifier or "config" not in identifier:
        raise ValueError(f"Improper config format: {identifier}")
    result = custom(identifier["class_name"], custom_objects) or (module_objects or {}).get(
        identifier["class_name"]
    )
    if result is None:
        raise ValueError(f"Unknown {printable_module_name}: {identifier['class_name']}")
    if not hasattr(result, "from_config"):
        return result(**identifier["config"])
    with CustomObjectScope(custom_objects or {}):
        if "custom_objects" in inspect.signature(result.from_config).parameters:
            known = {**_custom, **(custom_objects or {})}
            return result.from_config(identifier["config"], custom_objects=known)
        return result.from_config(identifier["config"])

"""Activations, initializers, regularizers and constraints as configurations, and made from them."""

from __future__ import annotations

from typing import Any

from tensorfleet.keras import getting
from tensorfleet.keras.serializing import CustomObjectScope


def _known(custom_objects: dict[str, Any] | None) -> CustomObjectScope:
    return CustomObjectScope(custom_objects or {})


def serialize_activation(activation: Any) -> Any:
    """An activation's name."""
    return getting.serialized(activation)


def serialize_initializer(initializer: Any) -> Any:
    """An initializer's class and configuration."""
    return getting.serialized(initializer)


def serialize_regularizer(regularizer: Any) -> Any:
    """A regularizer's class and configuration."""
    return getting.serialized(regularizer)


def serialize_constraint(constraint: Any) -> Any:
    """A constraint's class and configuration."""
    return getting.serialized(constraint)


def activation_from(name: Any, custom_objects: dict[str, Any] | None = None) -> Any:
    """The activation of a name."""
    with _known(custom_objects):
        return getting.activation(name)


def initializer_from(config: Any, custom_objects: dict[str, Any] | None = None) -> Any:
    """The initializer of a configuration or name."""
    with _known(custom_objects):
        return getting.initializer(config)


def regularizer_from(config: Any, custom_objects: dict[str, Any] | None = None) -> Any:
    """The regularizer of a configuration or name."""
    with _known(custom_objects):
        return getting.regularizer(config)


def constraint_from(config: Any, custom_objects: dict[str, Any] | None = None) -> Any:
    """The constraint of a configuration or name."""
    with _known(custom_objects):
        return getting.constraint(config)

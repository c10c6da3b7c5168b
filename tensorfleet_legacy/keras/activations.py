"""Activations, initializers, regularizers and constraints by their names, as Keras's layers take them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorfleet.api.layers.specs import snake_case
from tensorfleet.api.variables import initializers
from tensorfleet.base import dtypes
from tensorfleet.base.arguments import with_defaults
from tensorfleet.base.naming import find
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Tensor
from tensorfleet_legacy.keras import backend_arithmetic as arithmetic
from tensorfleet_legacy.keras import regularizers as restraints
from tensorfleet_legacy.keras.utils.generic_utils import deserialize_keras_object, serialize_keras_object

# -- activations --------------------------------------------------------------------------------------


def linear(x: Any) -> Any:
    """The input."""
    return x


def hard_sigmoid(x: Any) -> Tensor:
    """A sigmoid of straight lines: 0 below -2.5, 1 above 2.5, 0.2 x + 0.5 between."""
    x = to_tensor(x)
    return find("clip_by_value")(x * 0.2 + 0.5, 0.0, 1.0)


def exponential(x: Any) -> Tensor:
    """e to the x."""
    return find("exp")(x)


softmax = arithmetic.forwarding(
    "softmax", "x, axis=-1", "nn.softmax", "Numbers that sum to one along an axis."
)


def relu(x: Any, alpha: float = 0.0, max_value: float | None = None, threshold: float = 0) -> Tensor:
    """Zero below `threshold` (or `alpha` times what is below it), at most `max_value`."""
    if not alpha and max_value is None and not threshold:
        return find("nn.relu")(x)
    x = to_tensor(x)
    above = find("nn.relu")(x) if not threshold else x * find("cast")(find("greater")(x, threshold), x.dtype)
    if max_value is not None:
        above = find("clip_by_value")(above, 0.0, max_value)
    return above - alpha * find("nn.relu")(threshold - x) if alpha else above


def elu(x: Any, alpha: float = 1.0) -> Tensor:
    """`x` above zero, `alpha * (exp(x) - 1)` below."""
    output = find("nn.elu")(x)
    return output if alpha == 1 else find("where")(find("greater")(x, 0), output, alpha * output)


_ACTIVATIONS: dict[str, Callable] = {
    f.__name__: f for f in (linear, hard_sigmoid, exponential, softmax, relu, elu)
}
_ACTIVATIONS |= {
    name: getattr(arithmetic, name) for name in ("selu", "softplus", "softsign", "tanh", "sigmoid")
}


def activation(identifier: Any) -> Callable:
    """The activation of a name, a function as it is, and the identity for None."""
    if identifier is None:
        return linear
    if isinstance(identifier, (str, dict)):
        return deserialize_activation(identifier)
    if callable(identifier):
        return identifier
    raise TypeError(f"Could not interpret activation function identifier: {identifier!r}")


def serialize_activation(activation: Any) -> Any:
    """The name of an activation."""
    return serialize_keras_object(activation)


def deserialize_activation(name: Any, custom_objects: dict[str, Any] | None = None) -> Any:
    """The activation of a name."""
    return deserialize_keras_object(name, _ACTIVATIONS, custom_objects, "activation function")


# -- initializers -------------------------------------------------------------------------------------


class RandomNormal(initializers.RandomNormal):
    """Normal random numbers, near zero unless told otherwise."""

    __init__ = with_defaults(initializers.RandomNormal.__init__, stddev=0.05)


class RandomUniform(initializers.RandomUniform):
    """Random numbers between two, near zero unless told otherwise."""

    __init__ = with_defaults(initializers.RandomUniform.__init__, minval=-0.05, maxval=0.05)


class TruncatedNormal(initializers.TruncatedNormal):
    """Normal random numbers within two deviations, near zero unless told otherwise."""

    __init__ = with_defaults(initializers.TruncatedNormal.__init__, stddev=0.05)


def _initializers() -> dict[str, Any]:
    """The classes and functions by all their names."""
    kinds = "Zeros Ones Constant UniformUnitScaling VarianceScaling GlorotUniform GlorotNormal Orthogonal Identity"
    known = {name: getattr(initializers, name) for name in kinds.split()}
    known |= {kind.__name__: kind for kind in (RandomNormal, RandomUniform, TruncatedNormal)}
    known |= {snake_case(name): kind for name, kind in known.items()}
    known |= {"uniform": RandomUniform, "normal": RandomNormal, "zero": initializers.Zeros}
    known["one"] = initializers.Ones
    scaled = ("he_normal", "he_uniform", "lecun_normal", "lecun_uniform")
    return {**known, **{name: find(f"initializers.{name}") for name in scaled}}


def initializer(identifier: Any) -> Any:
    """The initializer of a name; an object or a function as it is."""
    if identifier is None:
        return None
    if isinstance(identifier, dict):
        return deserialize_initializer(identifier)
    if isinstance(identifier, str):
        result = deserialize_initializer(identifier)
        return result() if identifier.startswith(("he_", "lecun_")) else result
    if callable(identifier):
        return identifier() if isinstance(identifier, type) else identifier
    raise ValueError(f"Could not interpret initializer identifier: {identifier}")


def serialize_initializer(initializer: Any) -> Any:
    """An initializer as its class and configuration."""
    return serialize_keras_object(initializer)


def deserialize_initializer(config: Any, custom_objects: dict[str, Any] | None = None) -> Any:
    """An initializer from what `serialize` gave, or of a name."""
    return deserialize_keras_object(config, _initializers(), custom_objects, "initializer")


# -- regularizers and constraints ---------------------------------------------------------------------

_REGULARIZERS: dict[str, Any] = {
    **dict.fromkeys(("L1L2", "L1", "L2"), restraints.L1L2),
    **{f.__name__: f for f in (restraints.l1, restraints.l2, restraints.l1_l2)},
}


def regularizer(identifier: Any) -> Any:
    """The regularizer of a name ("l1", "l2", "l1_l2"); an object or a function as it is."""
    if identifier is None:
        return None
    if isinstance(identifier, dict):
        return deserialize_regularizer(identifier)
    if isinstance(identifier, str):
        result = deserialize_regularizer(identifier)
        return result() if result in _REGULARIZERS.values() else result
    if callable(identifier):
        return identifier
    raise ValueError(f"Could not interpret regularizer identifier: {identifier}")


def serialize_regularizer(regularizer: Any) -> Any:
    """A regularizer as its class and configuration."""
    return serialize_keras_object(regularizer)


def deserialize_regularizer(config: Any, custom_objects: dict[str, Any] | None = None) -> Any:
    """A regularizer from what `serialize` gave, or of a name."""
    return deserialize_keras_object(config, _REGULARIZERS, custom_objects, "regularizer")


_CONSTRAINTS: dict[str, Any] = {}
for _kind in ("MaxNorm", "MinMaxNorm", "NonNeg", "RadialConstraint", "UnitNorm"):
    _CONSTRAINTS[_kind] = _CONSTRAINTS[snake_case(_kind)] = getattr(restraints, _kind)


def constraint(identifier: Any) -> Any:
    """The constraint of a name such as "max_norm"; an object or a function as it is."""
    if identifier is None:
        return None
    if isinstance(identifier, (dict, str)):
        return deserialize_constraint(identifier)
    if callable(identifier):
        return identifier
    raise ValueError(f"Could not interpret constraint identifier: {identifier}")


def serialize_constraint(constraint: Any) -> Any:
    """A constraint as its class and configuration."""
    return serialize_keras_object(constraint)


def deserialize_constraint(config: Any, custom_objects: dict[str, Any] | None = None) -> Any:
    """A constraint from what `serialize` gave, or of a name."""
    return deserialize_keras_object(config, _CONSTRAINTS, custom_objects, "constraint")


def serialized(value: Any) -> Any:
    """A function's name, an object's class with its configuration, a plain value as it is."""
    if isinstance(value, dtypes.DType):
        return value.name
    if hasattr(value, "get_config") and not isinstance(value, type):
        return serialize_keras_object(value)
    return getattr(value, "__name__", value) if callable(value) else value

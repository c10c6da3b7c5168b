"""Activations, initializers, regularizers and constraints by their names, as Keras's layers take them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorfleet import dtypes
from tensorfleet.api import find
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Tensor
from tensorfleet.keras.serializing import custom, deserialize_keras_object, serialize_keras_object
from tensorfleet.layers.specs import snake_case
from tensorfleet.variables import initializers

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


def softmax(x: Any, axis: int = -1) -> Tensor:
    """Numbers that sum to one along an axis."""
    return find("nn.softmax")(x, axis=axis)


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
    made = find("nn.elu")(x)
    return made if alpha == 1 else find("where")(find("greater")(x, 0), made, alpha * made)


_OWN: dict[str, Callable] = {f.__name__: f for f in (linear, hard_sigmoid, exponential, softmax, relu, elu)}
_OF_NN = ("selu", "softplus", "softsign", "tanh", "sigmoid")


def activation(identifier: Any) -> Callable:
    """The activation of a name, a function as it is, and the identity for None."""
    if identifier is None:
        return linear
    if callable(identifier):
        return identifier
    own = custom(identifier)
    if own is not None:
        return own
    if identifier in _OWN:
        return _OWN[identifier]
    if identifier in _OF_NN:
        return find(f"nn.{identifier}")
    raise ValueError(f"Unknown activation function:{identifier}")


# -- initializers -------------------------------------------------------------------------------------


def _uniform(seed: Any = None) -> Any:
    return initializers.RandomUniform(-0.05, 0.05, seed=seed)


def _normal(seed: Any = None) -> Any:
    return initializers.RandomNormal(0.0, 0.05, seed=seed)


def _truncated(seed: Any = None) -> Any:
    return initializers.TruncatedNormal(0.0, 0.05, seed=seed)


_INITIALIZERS: dict[str, Callable] = {
    "uniform": _uniform,
    "random_uniform": _uniform,
    "normal": _normal,
    "random_normal": _normal,
    "truncated_normal": _truncated,
    "zero": initializers.Zeros,
    "one": initializers.Ones,
}


def initializer(identifier: Any) -> Any:
    """The initializer of a name; an object or a function as it is."""
    if identifier is None or (callable(identifier) and not isinstance(identifier, type)):
        return identifier
    if isinstance(identifier, type):
        return identifier()
    if isinstance(identifier, dict):
        return (
            initializer(identifier["class_name"]) if not identifier.get("config") else _configured(identifier)
        )
    name = snake_case(str(identifier))
    if name in _INITIALIZERS:
        return _INITIALIZERS[name]()
    try:
        return find(f"initializers.{name}")()
    except KeyError:
        raise ValueError(f"Unknown initializer: {identifier}") from None


def _configured(identifier: dict) -> Any:
    own = custom(identifier["class_name"])
    made = own or find(f"initializers.{snake_case(identifier['class_name'])}")
    return made(**identifier["config"])


# -- regularizers and constraints ---------------------------------------------------------------------


class Regularizer:
    """Base of regularizers: a loss for a weight."""

    def __call__(self, x: Any) -> Tensor:
        """The loss."""
        return to_tensor(0.0)

    def get_config(self) -> dict[str, float]:
        """The arguments to make the same one again."""
        return {k: float(v) for k, v in vars(self).items()}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Regularizer:
        """A regularizer from what `get_config` gave."""
        return cls(**config)


class L1L2(Regularizer):
    """`l1` times the sum of absolute values, and `l2` times that of the squares."""

    def __init__(self, l1: float = 0.0, l2: float = 0.0) -> None:
        self.l1, self.l2 = l1, l2

    def __call__(self, x: Any) -> Tensor:
        x = to_tensor(x)
        losses = []
        if self.l1:
            losses.append(self.l1 * find("reduce_sum")(find("abs")(x)))
        if self.l2:
            losses.append(self.l2 * find("reduce_sum")(find("square")(x)))
        return sum(losses[1:], losses[0]) if losses else to_tensor(0.0, dtypes.float32)


def l1(l: float = 0.01) -> L1L2:  # noqa: E741 - its name in Keras
    """`l` times the sum of absolute values."""
    return L1L2(l1=l)


def l2(l: float = 0.01) -> L1L2:  # noqa: E741 - its name in Keras
    """`l` times the sum of squares."""
    return L1L2(l2=l)


def l1_l2(l1: float = 0.01, l2: float = 0.01) -> L1L2:
    """Both."""
    return L1L2(l1=l1, l2=l2)


def regularizer(identifier: Any) -> Any:
    """The regularizer of a name ("l1", "l2", "l1_l2"); an object or a function as it is."""
    if identifier is None or callable(identifier):
        return identifier
    if isinstance(identifier, dict):
        return deserialize_keras_object(
            identifier, dict.fromkeys(("L1L2", "L1", "L2"), L1L2), None, "regularizer"
        )
    if custom(identifier) is not None:
        return custom(identifier)
    known: dict[str, Callable[[], L1L2]] = {"l1": l1, "l2": l2, "l1_l2": l1_l2}
    if identifier not in known:
        raise ValueError(f"Could not interpret regularizer identifier: {identifier}")
    return known[identifier]()


class Constraint:
    """Base of constraints: a function of a weight, applied after each of its updates."""

    def __call__(self, w: Any) -> Any:
        """The weight as it may be."""
        return w

    def get_config(self) -> dict[str, Any]:
        """The arguments to make the same one again."""
        return dict(vars(self))

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Constraint:
        """A constraint from what `get_config` gave."""
        return cls(**config)


class MaxNorm(Constraint):
    """Keeps the norms of columns at most `max_value`."""

    def __init__(self, max_value: float = 2, axis: Any = 0) -> None:
        self.max_value, self.axis = max_value, axis

    def __call__(self, w: Any) -> Tensor:
        """The weight, scaled down where it is too long."""
        norms = find("sqrt")(find("reduce_sum")(find("square")(w), self.axis, keepdims=True))
        return w * (find("clip_by_value")(norms, 0.0, self.max_value) / (1e-7 + norms))


class NonNeg(Constraint):
    """Makes negative weights zero."""

    def __call__(self, w: Any) -> Tensor:
        """The weight without its negative entries."""
        return w * find("cast")(find("greater_equal")(w, 0.0), w.dtype.base_dtype)


class UnitNorm(Constraint):
    """Makes the norms of columns one."""

    def __init__(self, axis: Any = 0) -> None:
        self.axis = axis

    def __call__(self, w: Any) -> Tensor:
        """The weight, scaled."""
        return w / (1e-7 + find("sqrt")(find("reduce_sum")(find("square")(w), self.axis, keepdims=True)))


def constraint(identifier: Any) -> Any:
    """The constraint of a name ("max_norm", "non_neg", "unit_norm"); an object or a function as it is."""
    if identifier is None or callable(identifier):
        return identifier
    known = {"max_norm": MaxNorm, "non_neg": NonNeg, "unit_norm": UnitNorm}
    if isinstance(identifier, dict):
        classes = {c.__name__: c for c in known.values()}
        return deserialize_keras_object(identifier, classes, None, "constraint")
    if custom(identifier) is not None:
        return custom(identifier)
    name = snake_case(str(identifier))
    if name not in known:
        raise ValueError(f"Could not interpret constraint identifier: {identifier}")
    return known[name]()


def serialized(value: Any) -> Any:
    """A function's name, an object's class with its configuration, a plain value as it is."""
    if isinstance(value, dtypes.DType):
        return value.name
    if hasattr(value, "get_config") and not isinstance(value, type):
        return serialize_keras_object(value)
    return getattr(value, "__name__", value) if callable(value) else value

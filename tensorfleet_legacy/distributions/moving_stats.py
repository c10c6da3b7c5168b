"""`tf.contrib.distributions`: moving means and variances, correlations of a sequence with itself, streams of seeds."""

from __future__ import annotations

import hashlib
from typing import Any

from tensorfleet.api.variables.scope import variable_scope
from tensorfleet.base import dtypes
from tensorfleet.base.naming import find
from tensorfleet.base.properties import readonly
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import GraphKeys, control_dependencies, name_scope


def _floating(kind: Any, what: str) -> Any:
    if not kind.is_floating:
        raise TypeError(f"{what}.base_dtype({kind.name}) does not have float type `dtype`.")
    return kind


def assign_moving_mean_variance(
    mean_var: Any, variance_var: Any, value: Any, decay: Any, name: str | None = None
) -> tuple[Any, Any]:
    """Moves a mean and a variance towards a value, the more the smaller `decay` is; gives both after."""
    with name_scope(name, "assign_moving_mean_variance", [value, decay]):
        kind = _floating(mean_var.dtype.base_dtype, "mean_var")
        other = variance_var.dtype.base_dtype
        if kind != other:
            raise TypeError(f"mean_var.base_dtype({kind.name}) != variance_var.base_dtype({other.name})")
        value, decay = to_tensor(value, kind, name="value"), to_tensor(decay, kind, name="decay")
        away = value - find("identity")(mean_var)
        with control_dependencies([away]):
            mean = mean_var.assign_add((1.0 - decay) * away)
            less = (1.0 - decay) * (variance_var - decay * find("square")(away))
            return mean, variance_var.assign_sub(less)


def moving_mean_variance(
    value: Any, decay: Any, collections: Any = None, name: str | None = None
) -> tuple[Any, Any]:
    """The moving mean and variance of a value, in variables of their own."""
    places = [GraphKeys.GLOBAL_VARIABLES] if collections is None else collections
    with variable_scope(name, "moving_mean_variance", [value, decay]):
        value = to_tensor(value, name="value")
        _floating(value.dtype.base_dtype, "value")
        zeros = find("zeros_initializer")()
        variance, mean = (
            find("get_variable")(
                f"moving_{what}", value.shape, value.dtype, zeros, trainable=False, collections=places
            )
            for what in ("variance", "mean")
        )
        return assign_moving_mean_variance(mean, variance, value, decay)


def assign_log_moving_mean_exp(
    log_mean_exp_var: Any, log_value: Any, decay: Any, name: str | None = None
) -> Any:
    """Moves the logarithm of a mean towards a value that is given by its logarithm."""
    with name_scope(name, "assign_log_moving_mean_exp", [log_value, decay]):
        kind = _floating(log_mean_exp_var.dtype.base_dtype, "log_mean_exp_var")
        value, decay = to_tensor(log_value, kind, name="log_value"), to_tensor(decay, kind, name="decay")
        away = value - log_mean_exp_var
        old = find("log")(decay) * find("ones_like")(away)
        both = find("stack")([old, away + find("log1p")(-decay)])
        return log_mean_exp_var.assign_add(find("reduce_logsumexp")(both, 0))


def auto_correlation(
    x: Any,
    axis: int = -1,
    max_lags: Any = None,
    center: bool = True,
    normalize: bool = True,
    name: str = "auto_correlation",
) -> Tensor:
    """The correlation of values along an axis with those some steps later, from 0 to `max_lags` steps."""
    with name_scope(name, values=[x]):
        x = to_tensor(x, name="x")
        kind, rank = x.dtype, len(x.shape)
        if not (kind.is_floating or kind.is_complex):
            raise TypeError(f"Argument x must have either float or complex dtype found: {kind}")
        at = axis % rank
        order = [d for d in range(rank) if d != at] + [at]
        turned = find("transpose")(x, order)
        if center:
            turned = turned - find("reduce_mean")(turned, -1, keepdims=True)
        size = turned.shape.as_list()[-1] or find("shape")(turned)[-1]
        most = size - 1 if max_lags is None else find("minimum")(size - 1, to_tensor(max_lags))
        # As many zeros behind the values as there are values: no step meets the beginning again.
        padded = find("pad")(turned, [[0, 0]] * (rank - 1) + [[0, size]])
        wide = dtypes.complex128 if kind in (dtypes.float64, dtypes.complex128) else dtypes.complex64
        spectrum = find("fft")(find("cast")(padded, wide))
        products = find("ifft")(spectrum * find("conj")(spectrum))
        products = find("cast")(products if kind.is_complex else find("real")(products), kind)
        counts = find("cast")(size - find("range")(most + 1), kind)
        result = products[..., : most + 1] / counts
        result = result / result[..., :1] if normalize else result
        back = [order.index(d) for d in range(rank)]
        return find("transpose")(result, back)


class SeedStream:
    """Seeds that differ from each other, and from those of streams with another salt."""

    def __init__(self, seed: Any, salt: str) -> None:
        self._seed = seed.original_seed if isinstance(seed, SeedStream) else seed
        self._salt, self._counter = salt, 0

    original_seed = readonly("_seed", "The seed it was made with.")
    salt = readonly("_salt", "What tells it from other streams.")

    def __call__(self) -> int | None:
        """The next seed; None when there is no seed to begin with."""
        self._counter += 1
        if self._seed is None:
            return None
        text = str((self._seed, self._counter, self._salt))
        return int(hashlib.sha512(text.encode()).hexdigest(), 16)

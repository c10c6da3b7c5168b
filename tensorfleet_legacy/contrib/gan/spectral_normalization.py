"""`tf.contrib.gan.features`: weights divided by their largest singular value (Miyato et al. 2018)."""

from __future__ import annotations

import numbers
import re
from collections.abc import Callable
from typing import Any

from tensorfleet.api.variables.scope import variable_scope
from tensorfleet.base import dtypes
from tensorfleet.base.naming import find
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import control_dependencies, name_scope

_VECTOR = "spectral_norm_u"
_KERNELS = re.compile(r"(.*/)?(depthwise_|pointwise_)?(weights|kernel)$")


def compute_spectral_norm(
    w_tensor: Any, power_iteration_rounds: int = 1, training: bool = True, name: str | None = None
) -> Tensor:
    """The largest singular value of a matrix, nearly: each step goes on from where the last one was."""
    with variable_scope(name, "spectral_norm"):
        w = to_tensor(w_tensor)
        w = find("reshape")(w, [-1, w.shape.as_list()[-1]])
        start = find("random_normal_initializer")()
        kept = find("get_variable")(_VECTOR, [w.shape.as_list()[0], 1], w.dtype, start, trainable=False)
        dot, unit, u = find("matmul"), find("nn.l2_normalize"), to_tensor(kept)
        for _ in range(power_iteration_rounds):
            v = unit(dot(w, u, transpose_a=True))
            u = unit(dot(w, v))
        if training:
            with control_dependencies([kept.assign(u, name="update_u")]):
                u = find("identity")(u)
        u, v = find("stop_gradient")(u), find("stop_gradient")(v)
        return dot(dot(u, w, transpose_a=True), v)[0, 0]


def spectral_normalize(
    w: Any, power_iteration_rounds: int = 1, training: bool = True, name: str | None = None
) -> Tensor:
    """Weights divided by their largest singular value."""
    with variable_scope(name, "spectral_normalize"):
        normalized = to_tensor(w) / compute_spectral_norm(w, power_iteration_rounds, training)
        return find("reshape")(normalized, w.shape)


def spectral_norm_regularizer(
    scale: float, power_iteration_rounds: int = 1, training: bool = True, scope: str | None = None
) -> Callable:
    """A regularizer: `scale` times the largest singular value of weights."""
    if isinstance(scale, numbers.Integral):
        raise ValueError(f"scale cannot be an integer: {scale}")
    if isinstance(scale, numbers.Real):
        if scale < 0.0:
            raise ValueError(f"Setting a scale less than 0 on a regularizer: {scale:g}")
        if scale == 0.0:
            find("logging.info")("Scale of 0 disables regularizer.")
            return lambda _: None

    def regularizer(weights: Any, name: str | None = None) -> Tensor:
        with name_scope(scope, "SpectralNormRegularizer", [weights]) as inner:
            factor = to_tensor(scale, weights.dtype.base_dtype, name="scale")
            norm = compute_spectral_norm(weights, power_iteration_rounds, training)
            return find("multiply")(factor, norm, name=inner)

    return regularizer


def _is_kernel(name: str) -> bool:
    return _KERNELS.match(name) is not None


def spectral_normalization_custom_getter(
    name_filter: Callable[[str], bool] = _is_kernel, power_iteration_rounds: int = 1, training: bool = True
) -> Callable:
    """A custom getter under which the weights of layers are divided by their largest singular value."""
    if not callable(name_filter):
        raise ValueError("name_filter must be callable")

    def get(getter: Callable, name: str, *args: Any, **kwargs: Any) -> Any:
        if not name_filter(name):
            return getter(name, *args, **kwargs)
        if name.endswith(_VECTOR):
            raise ValueError(
                "Cannot apply Spectral Normalization to internal variables created for Spectral Normalization. Tried "
                f"to normalized variable [{name}]"
            )
        if not dtypes.as_dtype(kwargs["dtype"]).is_floating:
            raise ValueError(f"Disallowed data type {kwargs['dtype']}")
        weights = getter(name, *args, **kwargs)
        if len(weights.shape) < 2:
            raise ValueError("Spectral norm can only be applied to multi-dimensional tensors")
        return spectral_normalize(weights, power_iteration_rounds, training, f"{name}/spectral_normalize")

    return get

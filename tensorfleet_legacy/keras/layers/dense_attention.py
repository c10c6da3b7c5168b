"""Keras's attention: each query gets a mean of the values, weighted by how well their keys fit."""

from __future__ import annotations

from typing import Any

from tensorfleet.base.naming import find
from tensorfleet.graph.operation import Tensor
from tensorfleet_legacy.keras.engine.base_layer import Layer


class _Attention(Layer):
    """Inputs are [queries, values] or [queries, values, keys], [batch, steps, depth] each."""

    def __init__(self, causal: bool = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.causal = causal
        self.scale: Any = None

    def _check(self, given: Any) -> None:
        if not isinstance(given, list) or len(given) not in (2, 3):
            raise ValueError(
                f"{type(self).__name__} layer accepts inputs list of length 2 or 3, namely [query, value] or [query, "
                "value, key]."
            )

    def _scores(self, query: Tensor, key: Tensor) -> Tensor:
        raise AssertionError

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        return mask[0] if mask else None

    def call(self, inputs: Any, mask: Any = None) -> Tensor:  # type: ignore[override]
        """The means, for each query."""
        self._check(inputs)
        query, value = inputs[:2]
        of_query, of_value = (mask[0], mask[1]) if mask else (None, None)
        scores = self._scores(query, inputs[2] if len(inputs) > 2 else value)
        cast = find("cast")
        if of_value is not None:
            scores = scores - 1e9 * (1.0 - cast(find("expand_dims")(of_value, 1), scores.dtype))
        if self.causal:
            seen = find("matrix_band_part")(find("ones_like")(scores), -1, 0)
            scores = scores - 1e9 * (1.0 - seen)
        result = find("matmul")(find("nn.softmax")(scores), value)
        if of_query is not None:
            result = result * cast(find("expand_dims")(of_query, -1), result.dtype)
        return result


class Attention(_Attention):
    """Queries and keys fit by their product (Luong et al. 2015)."""

    def __init__(self, use_scale: bool = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.use_scale = use_scale

    def build(self, input_shape: Any) -> None:
        self.scale = self.add_weight("scale", (), initializer="ones") if self.use_scale else None
        self.built = True

    def _scores(self, query: Tensor, key: Tensor) -> Tensor:
        scores = find("matmul")(query, key, transpose_b=True)
        return scores if self.scale is None else scores * self.scale


class AdditiveAttention(_Attention):
    """Queries and keys fit by the tangent of their sum (Bahdanau et al. 2014)."""

    def __init__(self, use_scale: bool = True, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.use_scale = use_scale

    def build(self, input_shape: Any) -> None:
        self._check(input_shape)
        depth = input_shape[1].as_list()[-1]
        self.scale = (
            self.add_weight("scale", (depth,), initializer="glorot_uniform") if self.use_scale else None
        )
        self.built = True

    def _scores(self, query: Tensor, key: Tensor) -> Tensor:
        both = find("tanh")(query[:, :, None] + key[:, None])
        return find("reduce_sum")(both if self.scale is None else both * self.scale, -1)

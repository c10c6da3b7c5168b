"""Attention mechanisms: additive and multiplicative ones, and monotonic ones."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tensorfleet.api.layers.base import Layer
from tensorfleet.api.layers.core import Dense
from tensorfleet.base import dtypes, nest
from tensorfleet.base.naming import find
from tensorfleet.base.properties import readonly
from tensorfleet.graph.apply import apply
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import name_scope
from tensorfleet.ops.array.shape import shape as shape_of
from tensorfleet_legacy.seq2seq.attention_wrapper_monotonic import monotonic_probabilities


def hardmax(logits: Any, name: str | None = None) -> Tensor:
    """One at the largest of each row's logits, zero elsewhere."""
    with name_scope(name, "Hardmax", [logits]):
        logits = to_tensor(logits, name="logits")
        depth = logits.shape.as_list()[-1] or shape_of(logits)[-1]
        return find("one_hot")(find("argmax")(logits, -1), depth, dtype=logits.dtype)


class AttentionMechanism:
    """Scores a memory against a query; `mechanism(query, state)` gives (alignments, state)."""

    @property
    def alignments_size(self) -> Any:
        """How long the memory is."""
        raise TypeError(f"{type(self).__name__} has no memory.")

    @property
    def state_size(self) -> Any:
        """The size of what the mechanism remembers."""
        raise TypeError(f"{type(self).__name__} has no state.")


def _mask(memory: Any, memory_sequence_length: Any, memory_mask: Any, kind: Any) -> Tensor | None:
    """One at the steps of a memory that count, or None when all do."""
    if memory_sequence_length is not None and memory_mask is not None:
        raise ValueError("memory_sequence_length and memory_mask can't be provided at same time.")
    if memory_mask is not None:
        return find("cast")(memory_mask, kind)
    if memory_sequence_length is None:
        return None
    return find("sequence_mask")(memory_sequence_length, shape_of(memory)[1], dtype=kind)


def prepare_memory(
    memory: Any,
    memory_sequence_length: Any = None,
    memory_mask: Any = None,
    check_inner_dims_defined: bool = True,
) -> Any:
    """A memory as tensors that are zero behind the end of each sequence."""
    memory = nest.map_structure(lambda m: to_tensor(m, name="memory"), memory)
    if memory_sequence_length is not None:
        memory_sequence_length = to_tensor(memory_sequence_length, name="memory_sequence_length")

    def prepared(part: Tensor) -> Tensor:
        if check_inner_dims_defined and not part.shape[2:].is_fully_defined():
            raise ValueError(
                f"Expected memory {part.name} to have fully defined inner dims, but saw shape: {part.shape}"
            )
        mask = _mask(part, memory_sequence_length, memory_mask, part.dtype.base_dtype)
        if mask is None:
            return part
        for _ in range((part.shape.ndims or 2) - 2):
            mask = apply("ExpandDims", mask, -1)
        return part * mask

    return nest.map_structure(prepared, memory)


def maybe_mask_score(
    score: Tensor, memory_sequence_length: Any = None, memory_mask: Any = None, score_mask_value: Any = None
) -> Tensor:
    """Scores that are `score_mask_value` behind the end of each sequence."""
    inside = _mask(score, memory_sequence_length, memory_mask, dtypes.bool_)
    if inside is None:
        return score
    value = -math.inf if score_mask_value is None else score_mask_value
    masked = to_tensor(value, score.dtype.base_dtype) * find("ones_like")(score)
    return apply("Select", inside, score, masked)


class BaseAttentionMechanism(AttentionMechanism):
    """A mechanism over a memory [batch, time, depth], of which `memory_sequence_length` steps count.

    `_probability_fn(score, previous)` gives the alignments of scores, for mechanisms of one's own.
    """

    def __init__(
        self,
        query_layer: Any,
        memory: Any,
        probability_fn: Callable,
        memory_sequence_length: Any = None,
        memory_layer: Any = None,
        check_inner_dims_defined: bool = True,
        score_mask_value: Any = None,
        custom_key_value_fn: Callable | None = None,
        name: str | None = None,
    ) -> None:
        for label, layer in (("query_layer", query_layer), ("memory_layer", memory_layer)):
            if layer is not None and not isinstance(layer, Layer):
                raise TypeError(f"{label} is not a Layer: {type(layer).__name__}")
        if not callable(probability_fn):
            raise TypeError(f"probability_fn must be callable, saw type: {type(probability_fn).__name__}")
        self._query_layer, self._memory_layer = query_layer, memory_layer
        self.dtype = None if memory_layer is None else memory_layer.dtype
        with name_scope(name, "BaseAttentionMechanismInit", nest.flatten(memory)):
            if memory_sequence_length is not None:
                memory_sequence_length = to_tensor(memory_sequence_length, name="memory_sequence_length")
            self._values = prepare_memory(
                memory, memory_sequence_length, check_inner_dims_defined=check_inner_dims_defined
            )
            self._keys = self._values if memory_layer is None else memory_layer(self._values)
            if custom_key_value_fn is not None:
                self._keys, self._values = custom_key_value_fn(self._keys, self._values)
            self._batch_size = self._keys.shape.as_list()[0] or shape_of(self._keys)[0]
            self._alignments_size = self._keys.shape.as_list()[1] or shape_of(self._keys)[1]

        def masked(score: Tensor, previous: Any) -> Tensor:
            return probability_fn(
                maybe_mask_score(score, memory_sequence_length, score_mask_value=score_mask_value), previous
            )

        self._probability_fn = masked

    _num_units: int
    keys = readonly("_keys", "What queries are compared with.")
    values = readonly("_values", "The memory.")
    batch_size = readonly("_batch_size", "How many sequences there are.")
    memory_layer = readonly("_memory_layer", "What makes the keys of the memory.")
    query_layer = readonly("_query_layer", "What a query goes through.")
    alignments_size = readonly("_alignments_size")
    state_size = readonly("_alignments_size")

    def initial_alignments(self, batch_size: Any, dtype: Any) -> Tensor:
        """Zeros, before the first step."""
        return find("zeros")(apply("Pack", [as_int(batch_size), as_int(self._alignments_size)]), dtype)

    def initial_state(self, batch_size: Any, dtype: Any) -> Tensor:
        """The state of the mechanism before the first step."""
        return self.initial_alignments(batch_size, dtype)


class BaseMonotonicAttentionMechanism(BaseAttentionMechanism):
    """A mechanism that looks at the first step of its memory before the first step of its own."""

    def initial_alignments(self, batch_size: Any, dtype: Any) -> Tensor:
        """All at the first step of the memory."""
        places = find("zeros")(apply("Pack", [as_int(batch_size)]), dtypes.int32)
        return find("one_hot")(places, self._alignments_size, dtype=dtype)


def as_int(value: Any) -> Any:
    """A size as the ops take it."""
    return value if isinstance(value, Tensor) else np.int32(value)


def _dense(units: int, name: str, dtype: Any) -> Dense:
    return Dense(units, name=name, use_bias=False, dtype=dtypes.float32 if dtype is None else dtype)


def _of_score_alone(probability_fn: Callable | None) -> Callable:
    function = probability_fn or find("nn.softmax")
    return lambda score, _: function(score)


def bahdanau_score(
    processed_query: Tensor, keys: Tensor, attention_v: Any, attention_g: Any = None, attention_b: Any = None
) -> Tensor:
    """The scores of a small network; normalized by a gain and a bias when they are given."""
    hidden = keys + apply("ExpandDims", processed_query, 1)
    if attention_g is not None and attention_b is not None:
        squares = find("reduce_sum")(find("square")(attention_v))
        attention_v = attention_g * attention_v * find("rsqrt")(squares)
        hidden = hidden + attention_b
    return find("reduce_sum")(attention_v * find("tanh")(hidden), [2])


def luong_score(query: Tensor, keys: Tensor, scale: Any) -> Tensor:
    """The products of a query and the keys, by a scale unless that is None."""
    depth, units = query.shape.as_list()[-1], keys.shape.as_list()[-1]
    if depth != units:
        raise ValueError(
            f"Incompatible or unknown inner dimensions between query and keys.  Query ({query}) has units: "
            f"{depth}.  Keys ({keys}) have units: {units}.  Perhaps you need to set num_units to the keys' "
            f"dimension ({units})?"
        )
    product = find("matmul")(apply("ExpandDims", query, 1), keys, transpose_b=True)
    score = apply("Squeeze", product, squeeze_dims=[1])
    return score if scale is None else score * scale


def _additive(num_units: int, query: Tensor, query_layer: Any, keys: Tensor, normalize: bool) -> Tensor:
    """Bahdanau's score with variables of the current scope."""
    get, kind = find("get_variable"), query.dtype.base_dtype
    weights, gain, bias = get("attention_v", [num_units], dtype=kind), None, None
    processed = query if query_layer is None else query_layer(query)
    if normalize:
        start = find("constant_initializer")(math.sqrt(1.0 / num_units))
        gain = get("attention_g", dtype=kind, initializer=start, shape=())
        bias = get("attention_b", [num_units], kind, find("zeros_initializer")())
    return bahdanau_score(processed, keys, weights, gain, bias)


def _multiplicative(query: Tensor, keys: Tensor, scale: bool) -> Tensor:
    """Luong's score with a variable of the current scope."""
    one = find("ones_initializer")()
    gain = find("get_variable")("attention_g", (), query.dtype.base_dtype, one) if scale else None
    return luong_score(query, keys, gain)


def _biased(score: Tensor, start: float) -> Tensor:
    first = find("constant_initializer")(start)
    return score + find("get_variable")("attention_score_bias", (), score.dtype.base_dtype, first)


def _start(
    mechanism: BaseAttentionMechanism, given: dict[str, Any], query_layer: Any, probability_fn: Callable
) -> None:
    """Ends the constructor of a mechanism, whose `locals()` are `given`."""
    BaseAttentionMechanism.__init__(
        mechanism,
        query_layer,
        given["memory"],
        probability_fn,
        given["memory_sequence_length"],
        _dense(given["num_units"], "memory_layer", given["dtype"]),
        score_mask_value=given["score_mask_value"],
        custom_key_value_fn=given.get("custom_key_value_fn"),
        name=given["name"],
    )
    vars(mechanism).update(_num_units=given["num_units"], _name=given["name"])


def _forward_only(given: dict[str, Any]) -> Callable:
    """The probabilities of a mechanism that only moves forward, by the `locals()` of its constructor."""
    return functools.partial(
        monotonic_probabilities,
        sigmoid_noise=given["sigmoid_noise"],
        mode=given["mode"],
        seed=given["sigmoid_noise_seed"],
    )


class BahdanauAttention(BaseAttentionMechanism):
    """Additive attention: a small network scores each step of the memory against the query."""

    def __init__(
        self,
        num_units: int,
        memory: Any,
        memory_sequence_length: Any = None,
        normalize: bool = False,
        probability_fn: Callable | None = None,
        score_mask_value: Any = None,
        dtype: Any = None,
        custom_key_value_fn: Callable | None = None,
        name: str = "BahdanauAttention",
    ) -> None:
        _start(self, locals(), _dense(num_units, "query_layer", dtype), _of_score_alone(probability_fn))
        self._normalize = normalize

    def __call__(self, query: Tensor, state: Any) -> tuple[Tensor, Tensor]:
        with find("variable_scope")(None, "bahdanau_attention", [query]):
            score = _additive(self._num_units, query, self._query_layer, self._keys, self._normalize)
        alignments = self._probability_fn(score, state)
        return alignments, alignments


class LuongAttention(BaseAttentionMechanism):
    """Multiplicative attention: the product of the query and each step of the memory."""

    def __init__(
        self,
        num_units: int,
        memory: Any,
        memory_sequence_length: Any = None,
        scale: bool = False,
        probability_fn: Callable | None = None,
        score_mask_value: Any = None,
        dtype: Any = None,
        custom_key_value_fn: Callable | None = None,
        name: str = "LuongAttention",
    ) -> None:
        _start(self, locals(), None, _of_score_alone(probability_fn))
        self._scale = scale

    def __call__(self, query: Tensor, state: Any) -> tuple[Tensor, Tensor]:
        with find("variable_scope")(None, "luong_attention", [query]):
            score = _multiplicative(query, self._keys, self._scale)
        alignments = self._probability_fn(score, state)
        return alignments, alignments


class BahdanauMonotonicAttention(BaseMonotonicAttentionMechanism):
    """Additive attention that only moves forward over its memory (Raffel et al. 2017)."""

    def __init__(
        self,
        num_units: int,
        memory: Any,
        memory_sequence_length: Any = None,
        normalize: bool = False,
        score_mask_value: Any = None,
        sigmoid_noise: float = 0.0,
        sigmoid_noise_seed: int | None = None,
        score_bias_init: float = 0.0,
        mode: str = "parallel",
        dtype: Any = None,
        name: str = "BahdanauMonotonicAttention",
    ) -> None:
        given = locals()
        _start(self, given, _dense(num_units, "query_layer", dtype), _forward_only(given))
        self._normalize, self._score_bias_init = normalize, score_bias_init

    def __call__(self, query: Tensor, state: Any) -> tuple[Tensor, Tensor]:
        with find("variable_scope")(None, "bahdanau_monotonic_attention", [query]):
            score = _additive(self._num_units, query, self._query_layer, self._keys, self._normalize)
            score = _biased(score, self._score_bias_init)
        alignments = self._probability_fn(score, state)
        return alignments, alignments


class LuongMonotonicAttention(BaseMonotonicAttentionMechanism):
    """Multiplicative attention that only moves forward over its memory."""

    def __init__(
        self,
        num_units: int,
        memory: Any,
        memory_sequence_length: Any = None,
        scale: bool = False,
        score_mask_value: Any = None,
        sigmoid_noise: float = 0.0,
        sigmoid_noise_seed: int | None = None,
        score_bias_init: float = 0.0,
        mode: str = "parallel",
        dtype: Any = None,
        name: str = "LuongMonotonicAttention",
    ) -> None:
        given = locals()
        _start(self, given, None, _forward_only(given))
        self._scale, self._score_bias_init = scale, score_bias_init

    def __call__(self, query: Tensor, state: Any) -> tuple[Tensor, Tensor]:
        with find("variable_scope")(None, "luong_monotonic_attention", [query]):
            score = _biased(_multiplicative(query, self._keys, self._scale), self._score_bias_init)
        alignments = self._probability_fn(score, state)
        return alignments, alignments

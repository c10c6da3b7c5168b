"""Attention: a cell that looks, in every step, at the part of a memory that its output asks for."""

from __future__ import annotations

import math
from collections import namedtuple
from collections.abc import Callable
from typing import Any

import numpy as np

from tensorfleet import dtypes, nest
from tensorfleet.api import find
from tensorfleet.graph.apply import apply
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import name_scope
from tensorfleet.layers.core import Dense
from tensorfleet.layers.rnn_cells import RNNCell
from tensorfleet.layers.rnn_wrappers import assert_like_rnncell
from tensorfleet.ops.array_shape import shape as shape_of
from tensorfleet.ops.tensor_array import TensorArray
from tensorfleet.properties import readonly
from tensorfleet.shapes import TensorShape


def hardmax(logits: Any, name: str | None = None) -> Tensor:
    """One at the largest of each row's logits, zero elsewhere."""
    with name_scope(name, "Hardmax", [logits]):
        logits = to_tensor(logits, name="logits")
        depth = logits.shape.as_list()[-1] or shape_of(logits)[-1]
        return find("one_hot")(find("argmax")(logits, -1), depth, dtype=logits.dtype)


class AttentionMechanism:
    """What scores a memory against a query; `mechanism(query, state)` gives (alignments, state)."""

    @property
    def alignments_size(self) -> Any:
        """How long the memory is."""
        raise TypeError(f"{type(self).__name__} has no memory.")

    @property
    def state_size(self) -> Any:
        """The size of what the mechanism remembers."""
        raise TypeError(f"{type(self).__name__} has no state.")


class _Mechanism(AttentionMechanism):
    """A mechanism over a memory [batch, time, depth], of which `memory_sequence_length` steps count."""

    def _start(self, query_layer: Any, given: dict[str, Any]) -> None:
        """What both constructors do; `given` are their `locals()`."""
        kind = dtypes.float32 if given["dtype"] is None else given["dtype"]
        self._num_units = given["num_units"]
        self._query_layer = query_layer and _dense(self._num_units, query_layer, kind)
        self._memory_layer = _dense(self._num_units, "memory_layer", kind)
        self._probability_fn = given["probability_fn"] or find("nn.softmax")
        memory, memory_sequence_length = given["memory"], given["memory_sequence_length"]
        with name_scope(given["name"], "BaseAttentionMechanismInit", nest.flatten(memory)):
            memory = to_tensor(memory, name="memory")
            self._lengths = None
            self._mask_value = given["score_mask_value"]
            if memory_sequence_length is not None:
                self._lengths = to_tensor(memory_sequence_length, name="memory_sequence_length")
                mask = find("sequence_mask")(
                    self._lengths, shape_of(memory)[1], dtype=memory.dtype.base_dtype
                )
                memory = memory * apply("ExpandDims", mask, -1)
                if self._mask_value is None:
                    self._mask_value = -math.inf
            self._values = memory
            self._keys = self._memory_layer(memory)
            self._batch_size = self._keys.shape.as_list()[0] or shape_of(self._keys)[0]
            self._time = self._keys.shape.as_list()[1] or shape_of(self._keys)[1]
        if given["custom_key_value_fn"] is not None:
            self._keys, self._values = given["custom_key_value_fn"](self._keys, self._values)

    keys = readonly("_keys", "What queries are compared with.")
    values = readonly("_values", "The memory.")
    batch_size = readonly("_batch_size", "How many sequences there are.")
    memory_layer = readonly("_memory_layer", "What makes the keys of the memory.")
    query_layer = readonly("_query_layer", "What a query goes through.")
    alignments_size = readonly("_time")
    state_size = readonly("_time")

    def initial_alignments(self, batch_size: Any, dtype: Any) -> Tensor:
        """Zeros, before the first step."""
        made = find("zeros")(apply("Pack", [_int(batch_size), _int(self._time)]), dtype)
        return made

    def initial_state(self, batch_size: Any, dtype: Any) -> Tensor:
        """What the mechanism remembers before the first step."""
        return self.initial_alignments(batch_size, dtype)

    def _alignments(self, score: Tensor) -> Tensor:
        if self._lengths is not None:
            inside = find("sequence_mask")(self._lengths, shape_of(score)[1])
            masked = to_tensor(self._mask_value, score.dtype.base_dtype) * find("ones_like")(score)
            score = apply("Select", inside, score, masked)
        return self._probability_fn(score)


def _int(value: Any) -> Any:
    return value if isinstance(value, Tensor) else np.int32(value)


def _dense(units: int, name: str, dtype: Any) -> Dense:
    return Dense(units, name=name, use_bias=False, dtype=dtype)


class BahdanauAttention(_Mechanism):
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
        custom_key_value_fn: Any = None,
        name: str = "BahdanauAttention",
    ) -> None:
        self._start("query_layer", locals())
        self._normalize = normalize

    def __call__(self, query: Tensor, state: Any) -> tuple[Tensor, Tensor]:
        with find("variable_scope")(None, "bahdanau_attention", [query]):
            asked = apply("ExpandDims", self._query_layer(query), 1)
            score = self._score(self._keys + asked, query.dtype.base_dtype)
            alignments = self._alignments(score)
        return alignments, alignments

    def _score(self, hidden: Tensor, kind: Any) -> Tensor:
        get = find("get_variable")
        weights = get("attention_v", [self._num_units], dtype=kind)
        if self._normalize:
            start = find("constant_initializer")(math.sqrt(1.0 / self._num_units))
            gain = get("attention_g", dtype=kind, initializer=start, shape=())
            bias = get("attention_b", [self._num_units], kind, find("zeros_initializer")())
            squares = find("reduce_sum")(find("square")(weights))
            weights = gain * weights * find("rsqrt")(squares)
            hidden = hidden + bias
        return find("reduce_sum")(weights * find("tanh")(hidden), [2])


class LuongAttention(_Mechanism):
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
        custom_key_value_fn: Any = None,
        name: str = "LuongAttention",
    ) -> None:
        self._start(None, locals())
        self._scale = scale

    def __call__(self, query: Tensor, state: Any) -> tuple[Tensor, Tensor]:
        with find("variable_scope")(None, "luong_attention", [query]):
            depth, units = query.shape.as_list()[-1], self._keys.shape.as_list()[-1]
            if depth != units:
                raise ValueError(
                    "Incompatible or unknown inner dimensions between query and keys.  Query "
                    f"({query}) has units: {depth}.  Keys ({self._keys}) have units: {units}.  Perhaps you "
                    "need to set num_units to the keys' dimension "
                    f"({units})?"
                )
            product = find("matmul")(apply("ExpandDims", query, 1), self._keys, transpose_b=True)
            score = apply("Squeeze", product, squeeze_dims=[1])
            if self._scale:
                one = find("ones_initializer")()
                score = score * find("get_variable")("attention_g", (), query.dtype.base_dtype, one)
            alignments = self._alignments(score)
        return alignments, alignments


class AttentionWrapperState(
    namedtuple(
        "AttentionWrapperState",
        ("cell_state", "attention", "time", "alignments", "alignment_history", "attention_state"),
    )
):
    """The state of an `AttentionWrapper`."""

    def clone(self, **kwargs: Any) -> AttentionWrapperState:
        """The same state with some parts replaced."""
        return self._replace(**kwargs)


def _listed(value: Any) -> list:
    return list(value) if isinstance(value, (list, tuple)) else [value]


class AttentionWrapper(RNNCell):
    """A cell with attention: its input is joined by what it attended to, its output is what it attends to."""

    def __init__(
        self,
        cell: Any,
        attention_mechanism: Any,
        attention_layer_size: Any = None,
        alignment_history: bool = False,
        cell_input_fn: Callable | None = None,
        output_attention: bool = True,
        initial_cell_state: Any = None,
        name: str | None = None,
        attention_layer: Any = None,
        attention_fn: Callable | None = None,
    ) -> None:
        super().__init__(name=name)
        assert_like_rnncell("cell", cell)
        self._is_multi = isinstance(attention_mechanism, (list, tuple))
        self._mechanisms = _listed(attention_mechanism)
        for mechanism in self._mechanisms:
            if not isinstance(mechanism, AttentionMechanism):
                raise TypeError(
                    "attention_mechanism must be an AttentionMechanism or list of multiple "
                    f"AttentionMechanism instances, saw type: {type(mechanism).__name__}"
                )
        self._cell, self._history = cell, alignment_history
        self._cell_input_fn = cell_input_fn or (
            lambda inputs, attention: find("concat")([inputs, attention], -1)
        )
        self._output_attention, self._attend = output_attention, attention_fn
        self._initial_cell_state = initial_cell_state
        self._layers = self._attention_layers(attention_layer_size, attention_layer)

    def _attention_layers(self, sizes: Any, layers: Any) -> list | None:
        if sizes is not None and layers is not None:
            raise ValueError("Only one of attention_layer_size and attention_layer should be set")
        if sizes is not None:
            listed = _listed(sizes)
            if len(listed) != len(self._mechanisms):
                raise ValueError(
                    "If provided, attention_layer_size must contain exactly one integer per "
                    f"attention_mechanism, saw: {len(listed)} vs {len(self._mechanisms)}"
                )
            self._attention_size = sum(listed)
            kind = self._mechanisms[0].values.dtype.base_dtype
            return [Dense(size, name="attention_layer", use_bias=False, dtype=kind) for size in listed]
        if layers is not None:
            listed = _listed(layers)
            pairs = zip(listed, self._mechanisms, strict=True)
            self._attention_size = sum(
                layer.compute_output_shape(
                    [None, self._cell.output_size + m.values.shape.as_list()[-1]]
                ).as_list()[-1]
                for layer, m in pairs
            )
            return listed
        self._attention_size = sum(m.values.shape.as_list()[-1] for m in self._mechanisms)
        return None

    def _packed(self, parts: list) -> Any:
        """One thing per mechanism: a tuple only if a list of mechanisms was given."""
        return tuple(parts) if self._is_multi else parts[0]

    @property
    def output_size(self) -> Any:
        """The size of what is attended to, or of the cell's output."""
        return self._attention_size if self._output_attention else self._cell.output_size

    @property
    def state_size(self) -> AttentionWrapperState:
        """The sizes of the parts of the state."""
        alignments = self._packed([m.alignments_size for m in self._mechanisms])
        return AttentionWrapperState(
            cell_state=self._cell.state_size,
            time=TensorShape([]),
            attention=self._attention_size,
            alignments=alignments,
            attention_state=self._packed([m.state_size for m in self._mechanisms]),
            alignment_history=self._packed([a if self._history else () for a in _listed(alignments)]),
        )

    def zero_state(self, batch_size: Any, dtype: Any) -> AttentionWrapperState:
        """The state before the first step; `clone(cell_state=...)` starts from an encoder's."""
        with name_scope(f"{type(self).__name__}ZeroState", values=[batch_size]):
            cell_state = self._initial_cell_state
            if cell_state is None:
                cell_state = self._cell.zero_state(batch_size, dtype)
            else:
                cell_state = nest.map_structure(
                    lambda s: find("identity")(s, name="checked_cell_state"), cell_state
                )
            history = [
                TensorArray(dtype, size=0, dynamic_size=True, element_shape=TensorShape([None, None]))
                if self._history
                else ()
                for _ in self._mechanisms
            ]
            size = apply("Pack", [_int(batch_size), np.int32(self._attention_size)])
            return AttentionWrapperState(
                cell_state=cell_state,
                time=find("zeros")([], dtypes.int32),
                attention=find("zeros")(size, dtype),
                alignments=self._packed([m.initial_alignments(batch_size, dtype) for m in self._mechanisms]),
                attention_state=self._packed([m.initial_state(batch_size, dtype) for m in self._mechanisms]),
                alignment_history=self._packed(history),
            )

    def call(self, inputs: Tensor, state: Any) -> tuple[Tensor, AttentionWrapperState]:  # type: ignore[override]
        """One step of the cell, then one look at the memory."""
        if not isinstance(state, AttentionWrapperState):
            raise TypeError(
                f"Expected state to be instance of AttentionWrapperState. Received type {type(state)} instead."
            )
        output, cell_state = self._cell(self._cell_input_fn(inputs, state.attention), state.cell_state)
        attentions, alignments, remembered, history = [], [], [], []
        before = state.attention_state if self._is_multi else (state.attention_state,)
        stores = state.alignment_history if self._is_multi else (state.alignment_history,)
        for i, mechanism in enumerate(self._mechanisms):
            attention, found, kept = self._attended(i, mechanism, output, before[i])
            attentions.append(attention)
            alignments.append(found)
            remembered.append(kept)
            history.append(stores[i].write(state.time, found) if self._history else ())
        whole = find("concat")(attentions, 1)
        new = AttentionWrapperState(
            cell_state=cell_state,
            attention=whole,
            time=state.time + np.int32(1),
            alignments=self._packed(alignments),
            alignment_history=self._packed(history),
            attention_state=self._packed(remembered),
        )
        return (whole if self._output_attention else output), new

    def _attended(self, i: int, mechanism: Any, output: Tensor, state: Any) -> tuple[Tensor, Tensor, Any]:
        layer = None if self._layers is None else self._layers[i]
        if self._attend is not None:
            return self._attend(mechanism, output, state, layer)
        alignments, kept = mechanism(output, state)
        product = find("matmul")(apply("ExpandDims", alignments, 1), mechanism.values)
        context = apply("Squeeze", product, squeeze_dims=[1])
        if layer is None:
            return context, alignments, kept
        return layer(find("concat")([output, context], 1)), alignments, kept

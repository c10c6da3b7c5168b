"""Attention: a cell that looks, in every step, at the part of a memory that its output asks for."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from typing import Any

import numpy as np

from tensorfleet.api.layers.core import Dense
from tensorfleet.api.layers.rnn_cells import RNNCell
from tensorfleet.api.layers.rnn_wrappers import assert_like_rnncell
from tensorfleet.base import dtypes, nest
from tensorfleet.base.naming import find
from tensorfleet.base.shapes import TensorShape
from tensorfleet.graph.apply import apply
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import name_scope
from tensorfleet.ops.state.tensor_array import TensorArray
from tensorfleet_legacy.seq2seq.attention_wrapper_mechanisms import AttentionMechanism, as_int


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


def compute_attention(
    attention_mechanism: Any, cell_output: Tensor, attention_state: Any, attention_layer: Any
) -> tuple[Tensor, Tensor, Any]:
    """A mechanism's context vector, its alignments, and its state."""
    alignments, kept = attention_mechanism(cell_output, attention_state)
    product = find("matmul")(apply("ExpandDims", alignments, 1), attention_mechanism.values)
    context = apply("Squeeze", product, squeeze_dims=[1])
    if attention_layer is None:
        return context, alignments, kept
    return attention_layer(find("concat")([cell_output, context], 1)), alignments, kept


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
        dtype: Any = None,
    ) -> None:
        super().__init__(name=name, dtype=dtype)
        assert_like_rnncell("cell", cell)
        self._is_multi = isinstance(attention_mechanism, (list, tuple))
        self._attention_mechanisms = _listed(attention_mechanism)
        for mechanism in self._attention_mechanisms:
            if not isinstance(mechanism, AttentionMechanism):
                raise TypeError(
                    "attention_mechanism must be an AttentionMechanism or list of multiple "
                    f"AttentionMechanism instances, saw type: {type(mechanism).__name__}"
                )
        self._cell, self._alignment_history = cell, alignment_history
        self._cell_input_fn = cell_input_fn or (
            lambda inputs, attention: find("concat")([inputs, attention], -1)
        )
        self._output_attention, self._attention_fn = output_attention, attention_fn or compute_attention
        self._initial_cell_state = initial_cell_state
        self._attention_layers = self._made_layers(attention_layer_size, attention_layer)

    def _made_layers(self, sizes: Any, layers: Any) -> list | None:
        if sizes is not None and layers is not None:
            raise ValueError("Only one of attention_layer_size and attention_layer should be set")
        if sizes is not None:
            listed = _listed(sizes)
            if len(listed) != len(self._attention_mechanisms):
                raise ValueError(
                    "If provided, attention_layer_size must contain exactly one integer per "
                    f"attention_mechanism, saw: {len(listed)} vs {len(self._attention_mechanisms)}"
                )
            self._attention_layer_size = sum(listed)
            kind = self._attention_mechanisms[0].values.dtype.base_dtype
            return [Dense(size, name="attention_layer", use_bias=False, dtype=kind) for size in listed]
        if layers is not None:
            listed = _listed(layers)
            pairs = zip(listed, self._attention_mechanisms, strict=True)
            self._attention_layer_size = sum(
                layer.compute_output_shape(
                    [None, self._cell.output_size + m.values.shape.as_list()[-1]]
                ).as_list()[-1]
                for layer, m in pairs
            )
            return listed
        self._attention_layer_size = sum(m.values.shape.as_list()[-1] for m in self._attention_mechanisms)
        return None

    def _item_or_tuple(self, parts: list) -> Any:
        """One thing per mechanism: a tuple only if a list of mechanisms was given."""
        return tuple(parts) if self._is_multi else parts[0]

    @property
    def output_size(self) -> Any:
        """The size of what is attended to, or of the cell's output."""
        return self._attention_layer_size if self._output_attention else self._cell.output_size

    @property
    def state_size(self) -> AttentionWrapperState:
        """The sizes of the parts of the state."""
        alignments = self._item_or_tuple([m.alignments_size for m in self._attention_mechanisms])
        return AttentionWrapperState(
            cell_state=self._cell.state_size,
            time=TensorShape([]),
            attention=self._attention_layer_size,
            alignments=alignments,
            attention_state=self._item_or_tuple([m.state_size for m in self._attention_mechanisms]),
            alignment_history=self._item_or_tuple(
                [a if self._alignment_history else () for a in _listed(alignments)]
            ),
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
                if self._alignment_history
                else ()
                for _ in self._attention_mechanisms
            ]
            size = apply("Pack", [as_int(batch_size), np.int32(self._attention_layer_size)])
            return AttentionWrapperState(
                cell_state=cell_state,
                time=find("zeros")([], dtypes.int32),
                attention=find("zeros")(size, dtype),
                alignments=self._item_or_tuple(
                    [m.initial_alignments(batch_size, dtype) for m in self._attention_mechanisms]
                ),
                attention_state=self._item_or_tuple(
                    [m.initial_state(batch_size, dtype) for m in self._attention_mechanisms]
                ),
                alignment_history=self._item_or_tuple(history),
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
        for i, mechanism in enumerate(self._attention_mechanisms):
            layer = self._attention_layers[i] if self._attention_layers else None
            attention, result, kept = self._attention_fn(mechanism, output, before[i], layer)
            attentions.append(attention)
            alignments.append(result)
            remembered.append(kept)
            history.append(stores[i].write(state.time, result) if self._alignment_history else ())
        whole = find("concat")(attentions, 1)
        new = AttentionWrapperState(
            cell_state=cell_state,
            attention=whole,
            time=state.time + np.int32(1),
            alignments=self._item_or_tuple(alignments),
            alignment_history=self._item_or_tuple(history),
            attention_state=self._item_or_tuple(remembered),
        )
        return (whole if self._output_attention else output), new

"""`tf.contrib.rnn`: cells around other cells."""

from __future__ import annotations

from typing import Any

from tensorfleet.api.layers import rnn
from tensorfleet.api.layers.rnn_cells import LayerCell, RNNCell, _constant
from tensorfleet.api.layers.rnn_wrappers import assert_like_rnncell
from tensorfleet.base import logging, nest
from tensorfleet.base.naming import export, find, publish
from tensorfleet.base.properties import readonly
from tensorfleet.graph.operation import Tensor
from tensorfleet_legacy.contrib.rnn.lstm_ops import linear
from tensorfleet_legacy.contrib.rnn.rnn_cell_lstm import vector

publish(LayerCell, "contrib.rnn.LayerRNNCell", "python.ops.rnn_cell_impl.LayerRNNCell")
publish(rnn.transpose_batch_time, "contrib.rnn.transpose_batch_time")
publish(rnn._batch_size, "contrib.rnn.best_effort_input_batch_size")


@export("contrib.rnn.AttentionCellWrapper")
class AttentionCellWrapper(RNNCell):
    """A cell that looks back at its last `attn_length` outputs."""

    def __init__(
        self,
        cell: Any,
        attn_length: int,
        attn_size: int | None = None,
        attn_vec_size: int | None = None,
        input_size: int | None = None,
        state_is_tuple: bool = True,
        reuse: bool | None = None,
    ) -> None:
        super().__init__(_reuse=reuse)
        assert_like_rnncell("cell", cell)
        if nest.is_nested(cell.state_size) and not state_is_tuple:
            raise ValueError(
                "Cell returns tuple of states, but the flag state_is_tuple is not set. State size is: "
                f"{cell.state_size}"
            )
        if attn_length <= 0:
            raise ValueError(f"attn_length should be greater than zero, got {attn_length}")
        if not state_is_tuple:
            logging.warning(
                "%s: Using a concatenated state is slower and will soon be deprecated.  Use state_is_tuple=True.",
                self,
            )
        self._cell, self._length, self._state_is_tuple = cell, attn_length, state_is_tuple
        self._size = attn_size or cell.output_size
        self._vector_size, self._input_size = attn_vec_size or self._size, input_size

    output_size = readonly("_size")

    @property
    def state_size(self) -> Any:
        sizes = (self._cell.state_size, self._size, self._size * self._length)
        return sizes if self._state_is_tuple else sum(sizes)

    def call(self, inputs: Any, state: Any) -> tuple:  # type: ignore[override]
        if not self._state_is_tuple:
            state = find("split")(
                state, [self._cell.state_size, self._size, self._size * self._length], axis=1
            )
        inner, seen, memory = state
        width = self._input_size or inputs.shape.as_list()[1]
        output, inner = self._cell(linear([inputs, seen], width, True), inner)
        query = find("concat")(nest.flatten(inner), 1) if self._state_is_tuple else inner
        memory = find("reshape")(memory, [-1, self._length, self._size])
        seen = self._look_back(query, memory)
        with find("variable_scope")("attn_output_projection"):
            output = linear([output, seen], self._size, True)
        memory = find("concat")([memory[:, 1:], find("expand_dims")(output, 1)], 1)
        after = inner, seen, find("reshape")(memory, [-1, self._length * self._size])
        return output, after if self._state_is_tuple else find("concat")(list(after), 1)

    def _look_back(self, query: Tensor, memory: Tensor) -> Tensor:
        """The average of what is remembered, weighted by how well it answers the query."""
        reshape, total = find("reshape"), find("reduce_sum")
        with find("variable_scope")("attention"):
            shape = [1, 1, self._size, self._vector_size]
            kernel = find("get_variable")("attn_w", shape, dtype=query.dtype)
            answer = vector("attn_v", self._vector_size, query.dtype)
            asked = linear(query, self._vector_size, True)
        known = reshape(memory, [-1, self._length, 1, self._size])
        features = find("nn.conv2d")(known, kernel, [1, 1, 1, 1], "SAME")
        asked = reshape(asked, [-1, 1, 1, self._vector_size])
        weights = find("nn.softmax")(total(answer * find("tanh")(features + asked), [2, 3]))
        return total(reshape(weights, [-1, self._length, 1]) * memory, 1)


class _Around(RNNCell):
    """A cell with the state of the one inside it, whose variables keep their names."""

    def __init__(self, cell: Any) -> None:
        super().__init__()
        self._cell = cell

    state_size = readonly("_cell.state_size")
    output_size = readonly("_cell.output_size")

    def zero_state(self, batch_size: Any, dtype: Any) -> Any:
        return self._cell.zero_state(batch_size, dtype)


@export("contrib.rnn.HighwayWrapper")
class HighwayWrapper(_Around):
    """A cell whose inputs may pass it: a gate mixes them with its outputs."""

    def __init__(
        self, cell: Any, couple_carry_transform_gates: bool = True, carry_bias_init: float = 1.0
    ) -> None:
        super().__init__(cell)
        self._coupled, self._bias = couple_carry_transform_gates, carry_bias_init

    def __call__(self, inputs: Any, state: Any = None, scope: Any = None, *args: Any, **kwargs: Any) -> Any:
        """The cell's step, and the mixture of its inputs and outputs."""
        outputs, after = self._cell(inputs, state, scope=scope)
        nest.assert_same_structure(inputs, outputs)
        return nest.map_structure(self._mix, inputs, outputs), after

    def _mix(self, x: Tensor, y: Tensor) -> Tensor:
        carry = self._gate(x, "carry", self._bias)
        return x * carry + y * (1 - carry if self._coupled else self._gate(x, "transform", -self._bias))

    def _gate(self, x: Tensor, name: str, bias: float) -> Tensor:
        depth, variable = x.shape.as_list()[-1], find("get_variable")
        weights = variable(f"{name}_w", [depth, depth], dtype=x.dtype)
        start = variable(f"{name}_b", [depth], dtype=x.dtype, initializer=_constant(bias, x.dtype))
        return find("sigmoid")(find("nn.xw_plus_b")(x, weights, start))


@export("contrib.rnn.CompiledWrapper")
class CompiledWrapper(_Around):
    """A cell as it is: steps are compiled by XLA with or without it."""

    def __init__(self, cell: Any, compile_stateful: Any = False) -> None:
        super().__init__(cell)

    def __call__(self, inputs: Any, state: Any = None, scope: Any = None, *args: Any, **kwargs: Any) -> Any:
        """The cell's step."""
        return self._cell(inputs, state, scope)

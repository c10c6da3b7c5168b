"""`tf.contrib.rnn`: LSTMs that run over frequencies as well as over time."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Sequence
from typing import Any

from tensorfleet.api.layers.rnn_cells import RNNCell
from tensorfleet.base.naming import export, find
from tensorfleet.base.properties import readonly
from tensorfleet.graph.operation import Tensor
from tensorfleet_legacy.contrib.rnn.rnn_cell_lstm import clipped, own_initializer, sharded, vector


def _windows(inputs: Tensor, start: int, count: int, size: int, skip: int) -> list[Tensor]:
    return [inputs[:, start + f * skip : start + f * skip + size] for f in range(count)]


@export("contrib.rnn.TimeFreqLSTMCell")
class TimeFreqLSTMCell(RNNCell):
    """An LSTM that slides over the columns of its input; its state is one tensor, (c, m) of each position."""

    def __init__(
        self,
        num_units: int,
        use_peepholes: bool = False,
        cell_clip: float | None = None,
        initializer: Any = None,
        num_unit_shards: int = 1,
        forget_bias: float = 1.0,
        feature_size: int | None = None,
        frequency_skip: int = 1,
        reuse: bool | None = None,
    ) -> None:
        super().__init__(_reuse=reuse)
        self._num_units, self._use_peepholes, self._cell_clip = num_units, use_peepholes, cell_clip
        self._initializer, self._shards, self._forget_bias = initializer, num_unit_shards, forget_bias
        self._feature_size, self._skip = feature_size, frequency_skip

    output_size = readonly("_num_units")

    @property
    def state_size(self) -> int:
        return 2 * self._num_units

    def call(self, inputs: Any, state: Any) -> tuple:  # type: ignore[override]
        depth = inputs.shape.as_list()[1]
        size = self._feature_size or depth
        parts = _windows(inputs, 0, (depth - size) // self._skip + 1, size, self._skip)
        old = find("split")(state, 2 * len(parts), axis=1)
        with own_initializer(self._initializer):
            outputs, states = self._slide(parts, old[::2], old[1::2])
        return find("concat")(outputs, 1), find("concat")(states, 1)

    def _slide(self, parts: list[Tensor], c_old: list, m_old: list) -> tuple[list, list]:
        units, dtype, sigmoid, tanh = self._num_units, parts[0].dtype, find("sigmoid"), find("tanh")
        depth = parts[0].shape.as_list()[1] + 2 * units
        weights = sharded("W", depth, 4 * units, dtype, self._shards)
        bias = vector("B", 4 * units, dtype, 0.0)
        peep = {g: vector(f"W_{g}_diag", units, dtype) if self._use_peepholes else 0.0 for g in "FIO"}
        below, outputs, states = find("zeros_like")(m_old[0]), [], []
        for x, c, m in zip(parts, c_old, m_old, strict=True):
            joined = find("matmul")(find("concat")([x, m, below], 1), weights)
            i, j, f, o = find("split")(find("nn.bias_add")(joined, bias), 4, axis=1)
            kept = sigmoid(f + self._forget_bias + peep["F"] * c) * c
            c = clipped(kept + sigmoid(i + peep["I"] * c) * tanh(j), self._cell_clip)
            below = sigmoid(o + peep["O"] * c) * tanh(c)
            outputs.append(below)
            states += [c, below]
        return outputs, states


class _Direction:
    """The variables of one way of a grid: for its frequencies ("f") or for its time ("t")."""

    def __init__(self, cell: Any, way: str, block: int, depth: int, dtype: Any) -> None:
        gates = 3 if cell._coupled else 4
        units = cell._num_units
        self.weights = sharded(f"W_{way}_{block}", depth, gates * units, dtype, cell._shards)
        self.bias = vector(f"B_{way}_{block}", gates * units, dtype, 0.0)
        self._long, self._cell, self._block = {"f": "freq", "t": "time"}[way], cell, block

    def peepholes(self) -> None:
        """Makes what the gates see of the states below and before."""
        cell = self._cell
        self._seen = {
            (gate, of): vector(
                f"W_{gate}_diag_{self._long}{of}_{self._block}", cell._num_units, self.bias.dtype.base_dtype
            )
            for gate in ("IO" if cell._coupled else "FIO")
            for of in "ft"
        }

    def gates(self, joined: Tensor) -> tuple:
        """Input, new value, forget and output, before the sigmoid; without forget gate when that is coupled."""
        product = find("nn.bias_add")(find("matmul")(joined, self.weights), self.bias)
        if self._cell._coupled:
            i, j, o = find("split")(product, 3, axis=1)
            return i, j, None, o
        return tuple(find("split")(product, 4, axis=1))

    def _peep(self, gate: str, below: Any, before: Any) -> Any:
        if not self._cell._use_peepholes:
            return 0.0
        return self._seen[gate, "f"] * below + self._seen[gate, "t"] * before

    def state(self, gates: tuple, below: Any, before: Any, own: Any) -> Any:
        """The new state of this way, whose old one is `own`."""
        i, j, f, _ = gates
        sigmoid, cell = find("sigmoid"), self._cell
        take = sigmoid(i + self._peep("I", below, before))
        if f is None:
            keep = 1.0 - take
        else:
            keep = sigmoid(f + cell._forget_bias + self._peep("F", below, before))
        return clipped(keep * own + take * find("tanh")(j), cell._cell_clip)

    def output(self, gates: tuple, below: Any, before: Any, own: Any) -> Any:
        """The outputs in this direction."""
        return find("sigmoid")(gates[3] + self._peep("O", below, before)) * find("tanh")(own)


@export("contrib.rnn.GridLSTMCell")
class GridLSTMCell(RNNCell):
    """Two LSTMs over windows of the input's columns, one through frequencies, one through time.

    The state is a named tuple of type `state_tuple_type`: (c, m) of the second one, window by window.
    """

    def __init__(
        self,
        num_units: int,
        use_peepholes: bool = False,
        share_time_frequency_weights: bool = False,
        cell_clip: float | None = None,
        initializer: Any = None,
        num_unit_shards: int = 1,
        forget_bias: float = 1.0,
        feature_size: int | None = None,
        frequency_skip: int | None = None,
        num_frequency_blocks: Sequence[int] | None = None,
        start_freqindex_list: Sequence[int] | None = None,
        end_freqindex_list: Sequence[int] | None = None,
        couple_input_forget_gates: bool = False,
        state_is_tuple: bool = True,
        reuse: bool | None = None,
    ) -> None:
        super().__init__(_reuse=reuse)
        if num_frequency_blocks is None:
            raise ValueError("Must specify num_frequency_blocks")
        self._num_units, self._use_peepholes, self._shared = (
            num_units,
            use_peepholes,
            share_time_frequency_weights,
        )
        self._cell_clip, self._initializer, self._shards = cell_clip, initializer, num_unit_shards
        self._forget_bias, self._coupled = forget_bias, couple_input_forget_gates
        self._feature_size, self._skip = feature_size, frequency_skip or 1
        self._blocks, self._starts, self._ends = (
            list(num_frequency_blocks),
            start_freqindex_list,
            end_freqindex_list,
        )
        self._state_is_tuple = state_is_tuple
        self._state_tuple_type: Any = self._named("GridLSTMStateTuple", ("state",))

    def _named(self, title: str, prefixes: Sequence[str]) -> Any:
        """The type of the state: a field for each prefix, block, window and part."""
        places = [(f, b) for b, count in enumerate(self._blocks) for f in range(count)]
        fields = [f"{p}_f{f:02d}_b{b:02d}_{part}" for p in prefixes for f, b in places for part in "cm"]
        return namedtuple(title, fields)

    @property
    def output_size(self) -> int:
        return len(self._state_tuple_type._fields) * self._num_units

    @property
    def state_size(self) -> Any:
        count = len(self._state_tuple_type._fields)
        if not self._state_is_tuple:
            return count * self._num_units
        return self._state_tuple_type(*[self._num_units] * count)

    state_tuple_type = readonly("_state_tuple_type", "The named tuple that states are.")

    def _inputs(self, inputs: Tensor, offset: int = 0) -> list[list[Tensor]]:
        """The windows of each block, `offset` columns further; zeros beyond the ends."""
        depth = inputs.shape.as_list()[1]
        if self._starts is None:
            if len(self._blocks) != 1:
                raise ValueError(
                    f"Length of num_frequency_blocks is not 1, but instead is {len(self._blocks)}"
                )
            bounds = [(0, depth)]
        else:
            ends = self._ends or []
            if not len(self._starts) == len(ends) == len(self._blocks):
                raise ValueError(
                    "Length of num_frequency_blocks is not equal to start_freqindex_list and end_freqindex_list: "
                    f"{len(self._blocks)}, {len(self._starts)}, {len(ends)}"
                )
            bounds = list(zip(self._starts, ends, strict=True))
        if offset:
            inputs = find("pad")(inputs, [[0, 0], [max(-offset, 0), max(offset, 0)]])
        size = self._feature_size or depth
        for (start, end), wanted in zip(bounds, self._blocks, strict=True):
            if (result := (end - start - size) // self._skip + 1) != wanted:
                raise ValueError(
                    f"Invalid num_frequency_blocks, requires {result} but gets {wanted}, please check the input size "
                    "and filter config are correct."
                )
        first = max(offset, 0)
        return [
            _windows(inputs, start + first, count, size, self._skip)
            for (start, _), count in zip(bounds, self._blocks, strict=True)
        ]

    def call(self, inputs: Any, state: Any) -> tuple:  # type: ignore[override]
        if not self._state_is_tuple:
            state = find("split")(state, len(self._state_tuple_type._fields), axis=1)
        with own_initializer(self._initializer):
            outputs, states = self._over(self._inputs(inputs), list(state))
        joined = find("concat")(outputs, 1)
        if self._state_is_tuple:
            return joined, self._state_tuple_type(*states)
        return joined, find("concat")(states, 1)

    def _over(self, blocks: list[list[Tensor]], state: list) -> tuple[list, list]:
        """Runs over all blocks: (outputs, new states), window by window."""
        outputs, states = [], []
        for number, windows in enumerate(blocks):
            old, state = state[: 2 * len(windows)], state[2 * len(windows) :]
            for m, new in self._up(windows, number, old):
                outputs += m
                states += new
        return outputs, states

    def _up(self, windows: list[Tensor], block: int, state: list) -> list[tuple[list, list]]:
        """Runs from the lowest frequencies of a block to the highest."""
        depth, dtype = windows[0].shape.as_list()[1] + 2 * self._num_units, windows[0].dtype
        over = _Direction(self, "f", block, depth, dtype)
        along = over if self._shared else _Direction(self, "t", block, depth, dtype)
        if self._use_peepholes:
            over.peepholes()
            if along is not over:
                along.peepholes()
        c_below = m_below = find("zeros_like")(state[0])
        result = []
        for x, c, m in zip(windows, state[::2], state[1::2], strict=True):
            joined = find("concat")([x, m, m_below], 1)
            one = over.gates(joined)
            other = one if self._shared else along.gates(joined)
            c_up, c_on = over.state(one, c_below, c, c_below), along.state(other, c_below, c, c)
            m_up, m_on = over.output(one, c_up, c_on, c_up), along.output(other, c_up, c_on, c_on)
            c_below, m_below = c_up, m_up
            result.append(([m_on, m_up], [c_on, m_on]))
        return result


@export("contrib.rnn.BidirectionalGridLSTMCell")
class BidirectionalGridLSTMCell(GridLSTMCell):
    """A grid LSTM that runs through the frequencies upwards and, with weights of its own, downwards."""

    def __init__(
        self,
        num_units: int,
        use_peepholes: bool = False,
        share_time_frequency_weights: bool = False,
        cell_clip: float | None = None,
        initializer: Any = None,
        num_unit_shards: int = 1,
        forget_bias: float = 1.0,
        feature_size: int | None = None,
        frequency_skip: int | None = None,
        num_frequency_blocks: Sequence[int] | None = None,
        start_freqindex_list: Sequence[int] | None = None,
        end_freqindex_list: Sequence[int] | None = None,
        couple_input_forget_gates: bool = False,
        backward_slice_offset: int = 0,
        reuse: bool | None = None,
    ) -> None:
        given = locals()
        del given["backward_slice_offset"]
        GridLSTMCell.__init__(**given)
        self._offset = int(backward_slice_offset)
        prefixes = ("fwd_state", "bwd_state")
        self._state_tuple_type = self._named("BidirectionalGridLSTMStateTuple", prefixes)

    def call(self, inputs: Any, state: Any) -> tuple:  # type: ignore[override]
        half, scope = len(state) // 2, find("variable_scope")
        with own_initializer(self._initializer):
            with scope("fwd"):
                up, after_up = self._over(self._inputs(inputs), list(state[:half]))
            with scope("bwd"):
                turned = [block[::-1] for block in self._inputs(inputs, self._offset)]
                down, after_down = self._over(turned, list(state[half:]))
        return find("concat")(up + down, 1), self._state_tuple_type(*after_up, *after_down)

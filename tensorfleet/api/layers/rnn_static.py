"""Recurrent networks whose steps are all written out: `tf.nn.static_rnn` and its relatives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tensorfleet.api.layers.rnn import _choose
from tensorfleet.api.layers.rnn_cells import starting_state, zero_state_tensors
from tensorfleet.api.layers.rnn_wrappers import CellLike, assert_like_rnncell
from tensorfleet.api.layers.specs import Nested, ScopeLike
from tensorfleet.api.variables.scope import variable_scope
from tensorfleet.base import dtypes, nest
from tensorfleet.base.naming import export
from tensorfleet.base.types import DTypeLike, TensorLike
from tensorfleet.graph.convert import convert_to_tensor, to_tensor
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import control_dependencies
from tensorfleet.ops.array.basic import identity
from tensorfleet.ops.array.concat import concat
from tensorfleet.ops.array.shape import shape
from tensorfleet.ops.array.stack import stack, unstack
from tensorfleet.ops.array.tile_roll_reverse import reverse_sequence
from tensorfleet.ops.control.cond import cond
from tensorfleet.ops.math.cast import cast
from tensorfleet.ops.math.compare import greater_equal, less
from tensorfleet.ops.math.reduce_functions import reduce_max, reduce_min


@export("nn.static_rnn", "contrib.rnn.static_rnn")
def static_rnn(
    cell: CellLike,
    inputs: Sequence[Any],
    initial_state: Nested = None,
    dtype: DTypeLike | None = None,
    sequence_length: TensorLike = None,
    scope: ScopeLike = None,
) -> tuple[list[Any], Any]:
    """Runs a cell over a list of inputs, one [batch, ...] per step: (list of outputs, the last state)."""
    assert_like_rnncell("cell", cell)
    if not nest.is_nested(inputs):
        raise TypeError("inputs must be a sequence")
    if not inputs:
        raise ValueError("inputs must not be empty")
    outputs = []
    with variable_scope(scope or "rnn") as entered:
        first = to_tensor(nest.flatten(inputs)[0])
        batch: int | Tensor | None = _known_batch(inputs)
        if batch is None:
            batch = shape(first)[0]
        state = initial_state
        if state is None:
            if not dtype:
                raise ValueError("If no initial_state is provided, dtype must be specified")
            state = starting_state(cell, batch, dtype)
        shared: tuple[Tensor, Tensor, Tensor, Any] | None = None
        if sequence_length is not None:
            lengths = to_tensor(sequence_length, name="sequence_length")
            if lengths.shape.rank not in (None, 1):
                raise ValueError("sequence_length must be a vector of length batch_size")
            lengths = cast(lengths, dtypes.int32)
            kind = nest.flatten(state)[0].dtype
            nothing = zero_state_tensors(cell.output_size, batch, kind)
            shared = lengths, reduce_min(lengths), reduce_max(lengths), nothing
        for time, now in enumerate(inputs):
            if time > 0:
                entered.reuse_variables()

            def call(now: Nested = now, state: Nested = state) -> tuple[Any, Any]:
                result: tuple[Any, Any] = cell(now, state)
                return result

            if shared is None:
                output, state = call()
            else:
                output, state = _step(time, *shared, state, call)
            outputs.append(output)
    return outputs, state


def _known_batch(inputs: Sequence[Any]) -> int | None:
    """The batch size that the inputs agree on, as far as it is known."""
    result = None
    for t in nest.flatten(inputs):
        dims = to_tensor(t).shape
        if dims.rank is None or dims.rank < 1:
            continue
        size = dims.as_list()[0]
        if size is not None and result is not None and size != result:
            raise ValueError(f"Dimensions {result} and {size} are not compatible")
        result = size if result is None else result
        if dims.rank > 1 and any(d is None for d in dims.as_list()[1:]):
            raise ValueError(
                f"Input size (dimension 1 of inputs) must be accessible via shape inference, but saw value None: {t}"
            )
    return result


def _step(
    time: int,
    lengths: Tensor,
    shortest: Tensor,
    longest: Tensor,
    nothing: Nested,
    state: Nested,
    call: Callable[[], tuple[Any, Any]],
) -> tuple[Any, Any]:
    """One step for sequences of different lengths: nothing is computed once all of them are over."""
    flat_state, zero = nest.flatten(state), nest.flatten(nothing)

    def through(output: list[Any], new: list[Any]) -> list[Any]:
        done = convert_to_tensor(time) >= lengths
        kept = [_choose(done, z, o) for z, o in zip(zero, output, strict=True)]
        return kept + [_choose(done, s, n) for s, n in zip(flat_state, new, strict=True)]

    def run() -> list[Any]:
        output, new = call()
        nest.assert_same_structure(state, new)
        outputs, states = nest.flatten(output), nest.flatten(new)
        result: list[Any] = cond(
            less(time, shortest), lambda: outputs + states, lambda: through(outputs, states)
        )
        return result

    # Two conditions: all sequences are over, or none is; between the two each row chooses.
    results = cond(greater_equal(time, longest), lambda: zero + flat_state, run)
    for t, s in zip(results, zero + flat_state, strict=True):
        t.set_shape(s.shape)
    outputs, states = results[: len(zero)], results[len(zero) :]
    return _like(nothing, outputs), nest.pack_sequence_as(state, states)


def _like(structure: Nested, flat: list[Any]) -> Any:
    return nest.pack_sequence_as(structure, flat) if nest.is_nested(structure) else flat[0]


@export("nn.static_state_saving_rnn", "contrib.rnn.static_state_saving_rnn")
def static_state_saving_rnn(
    cell: CellLike,
    inputs: Sequence[Any],
    state_saver: Any,
    state_name: Nested,
    sequence_length: TensorLike = None,
    scope: ScopeLike = None,
) -> tuple[list[Any], Any]:
    """`static_rnn` from a state that `state_saver` keeps: it has `state(name)` and `save_state(name, value)`."""
    nested, named = nest.is_nested(cell.state_size), nest.is_nested(state_name)
    if nested != named:
        raise ValueError(
            "state_name should be the same type as cell.state_size.  "
            f"state_name: {state_name}, cell.state_size: {cell.state_size}"
        )
    if named:
        names, sizes = nest.flatten(state_name), nest.flatten(cell.state_size)
        if len(names) != len(sizes):
            raise ValueError(f"#elems(state_name) != #elems(state_size): {len(names)} vs. {len(sizes)}")
        initial = nest.pack_sequence_as(cell.state_size, [state_saver.state(n) for n in names])
    else:
        initial = state_saver.state(state_name)
    outputs, state = static_rnn(
        cell, inputs, initial_state=initial, sequence_length=sequence_length, scope=scope
    )
    if named:
        flat = nest.flatten(state)
        saved = [state_saver.save_state(n, s) for n, s in zip(nest.flatten(state_name), flat, strict=True)]
    else:
        saved = [state_saver.save_state(state_name, state)]
    with control_dependencies(saved):
        last = outputs[-1]
        flat_output = [identity(t) for t in nest.flatten(last)]
        outputs[-1] = _like(last, flat_output)
        state = nest.map_structure(identity, state) if named else identity(state)
    return outputs, state


@export("nn.static_bidirectional_rnn", "contrib.rnn.static_bidirectional_rnn")
def static_bidirectional_rnn(
    cell_fw: CellLike,
    cell_bw: CellLike,
    inputs: Sequence[Any],
    initial_state_fw: Nested = None,
    initial_state_bw: Nested = None,
    dtype: DTypeLike | None = None,
    sequence_length: TensorLike = None,
    scope: ScopeLike = None,
) -> tuple[list[Any], Any, Any]:
    """One cell forwards and another backwards over a list of inputs: (joined outputs, last state fw, bw)."""
    assert_like_rnncell("cell_fw", cell_fw)
    assert_like_rnncell("cell_bw", cell_bw)
    if not nest.is_nested(inputs):
        raise TypeError("inputs must be a sequence")
    if not inputs:
        raise ValueError("inputs must not be empty")
    with variable_scope(scope or "bidirectional_rnn"):
        with variable_scope("fw") as forwards:
            output_fw, state_fw = static_rnn(
                cell_fw, inputs, initial_state_fw, dtype, sequence_length, scope=forwards
            )
        with variable_scope("bw") as backwards:
            turned = _reversed(inputs, sequence_length)
            reversed_bw, state_bw = static_rnn(
                cell_bw, turned, initial_state_bw, dtype, sequence_length, scope=backwards
            )
    output_bw = _reversed(reversed_bw, sequence_length)
    pairs = zip(output_fw, output_bw, strict=True)
    outputs = [
        nest.map_structure(lambda a, b: concat([a, b], 1), f, b) if nest.is_nested(f) else concat([f, b], 1)
        for f, b in pairs
    ]
    return outputs, state_fw, state_bw


def _reversed(steps: Sequence[Any], lengths: TensorLike) -> list[Any]:
    """The steps backwards, each sequence from its own end."""
    if lengths is None:
        return list(reversed(steps))
    flat = [nest.flatten(s) for s in steps]
    columns = []
    for column in zip(*flat, strict=True):
        stacked = stack(list(column))
        turned = reverse_sequence(stacked, lengths, seq_axis=0, batch_axis=1)
        pieces = unstack(turned, num=len(column))
        for piece, old in zip(pieces, column, strict=True):
            piece.set_shape(old.shape)
        columns.append(pieces)
    return [_like(s, list(row)) for s, row in zip(steps, zip(*columns, strict=True), strict=True)]

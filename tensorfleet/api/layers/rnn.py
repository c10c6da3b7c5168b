"""`tf.nn.dynamic_rnn` and the other recurrent networks whose number of steps is known when they run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tensorfleet.api.layers.rnn_cells import _concat, starting_state, zero_state_tensors
from tensorfleet.api.layers.rnn_wrappers import CellLike, assert_like_rnncell
from tensorfleet.api.layers.specs import Nested, ScopeLike
from tensorfleet.api.variables.scope import variable_scope
from tensorfleet.base import dtypes, nest
from tensorfleet.base.dtypes import DType
from tensorfleet.base.naming import export
from tensorfleet.base.shapes import TensorShape
from tensorfleet.base.types import DTypeLike, TensorLike
from tensorfleet.graph.apply import apply, constant
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.scopes import control_dependencies, name_scope
from tensorfleet.ops.array.basic import identity
from tensorfleet.ops.array.checks import Assert
from tensorfleet.ops.array.concat import concat
from tensorfleet.ops.array.constructors import range_, zeros
from tensorfleet.ops.array.shape import rank as tf_rank
from tensorfleet.ops.array.shape import shape
from tensorfleet.ops.array.stack import stack
from tensorfleet.ops.array.tile_roll_reverse import reverse, reverse_sequence
from tensorfleet.ops.array.transpose import transpose
from tensorfleet.ops.control.while_loop import while_loop
from tensorfleet.ops.math.binary import maximum, minimum
from tensorfleet.ops.math.cast import cast
from tensorfleet.ops.math.compare import equal, logical_not, logical_or, where
from tensorfleet.ops.math.reduce_functions import reduce_all, reduce_max, reduce_min
from tensorfleet.ops.state.tensor_array import TensorArray


def transpose_batch_time(x: Tensor) -> Tensor:
    """Swaps the first two dimensions."""
    rank = x.shape.rank
    if rank is not None and rank < 2:
        raise ValueError(f"Expected input tensor {x} to have rank at least 2, but saw shape: {x.shape}")
    order = concat(([1, 0], range_(2, tf_rank(x))), 0)
    turned = transpose(x, order)
    dims = x.shape.as_list() if rank is not None else None
    if dims is not None:
        turned.set_shape([dims[1], dims[0], *dims[2:]])
    return turned


def infer_state_dtype(explicit: DTypeLike | None, state: Any) -> DTypeLike:
    """The type of a state: the one given, or the one that all its tensors have."""
    if explicit is not None:
        return explicit
    if not nest.is_nested(state):
        state = [state]
    types: list[DType] = [t.dtype for t in nest.flatten(state)]
    if not types:
        raise ValueError("Unable to infer dtype from empty state.")
    if any(t != types[0] for t in types):
        raise ValueError(
            "State has tensors of different inferred_dtypes. Unable to infer a single representative dtype."
        )
    return types[0]


def _batch_size(flat_input: list[Tensor]) -> int | Tensor:
    for t in flat_input:
        if t.shape.rank is None:
            continue
        if t.shape.rank < 2:
            raise ValueError(f"Expected input tensor {t.name} to have rank at least 2")
        size: int | None = t.shape.as_list()[1]
        if size is not None:
            return size
    return shape(flat_input[0])[1]


@export("nn.dynamic_rnn", "contrib.rnn.dynamic_rnn")
def dynamic_rnn(
    cell: CellLike,
    inputs: Nested,
    sequence_length: TensorLike = None,
    initial_state: Nested = None,
    dtype: DTypeLike | None = None,
    parallel_iterations: int | None = None,
    swap_memory: bool = False,
    time_major: bool = False,
    scope: ScopeLike = None,
) -> tuple[Any, ...]:
    """Runs a cell over sequences: (all outputs, the last state).

    `inputs` is [batch, time, ...], or [time, batch, ...] if `time_major`; so are the outputs. Beyond a sequence's
    length its outputs are zeros and its state stays the same. Give an `initial_state` or a `dtype`.
    """
    assert_like_rnncell("cell", cell)
    with variable_scope(scope or "rnn") as entered:
        flat = [to_tensor(t) for t in nest.flatten(inputs)]
        if not time_major:
            flat = [transpose_batch_time(t) for t in flat]
        lengths = None if sequence_length is None else _lengths(sequence_length)
        batch = _batch_size(flat)
        state = initial_state
        if state is None:
            if not dtype:
                raise ValueError("If there is no initial_state, you must give a dtype.")
            state = starting_state(cell, batch, dtype)
        if lengths is not None:
            with control_dependencies([_assert_shape(lengths, [batch])]):
                lengths = identity(lengths, name="CheckSeqLen")
        turned = nest.pack_sequence_as(inputs, flat)
        outputs, last = _loop(
            cell, turned, state, parallel_iterations or 32, swap_memory, lengths, dtype, entered
        )
        if not time_major:
            outputs = nest.map_structure(transpose_batch_time, outputs)
        return outputs, last


def _lengths(given: TensorLike) -> Tensor:
    lengths = cast(given, dtypes.int32)
    if lengths.shape.rank not in (None, 1):
        raise ValueError(
            "sequence_length must be a vector of length batch_size, but saw shape: " + str(lengths.shape)
        )
    return apply("Identity", lengths, name="sequence_length")


def _assert_shape(x: Tensor, wanted: list[int | Tensor]) -> Operation:
    actual = shape(x)
    packed = stack(wanted)
    text = [f"Expected shape for Tensor {x.name} is ", packed, " but saw shape: ", actual]
    return Assert(reduce_all(equal(actual, packed)), text)


def _loop(
    cell: CellLike,
    inputs: Nested,
    state: Nested,
    parallel: int,
    swap: bool,
    lengths: Tensor | None,
    dtype: DTypeLike | None,
    scope: ScopeLike,
) -> tuple[Any, ...]:
    flat = nest.flatten(inputs)
    steps = shape(flat[0])[0]
    batch = _batch_size(flat)
    for t in flat:
        if t.shape.rank is not None and any(d is None for d in t.shape.as_list()[2:]):
            raise ValueError(
                "Input size (depth of inputs) must be accessible via shape inference, but saw value None."
            )
    known_batch = flat[0].shape.as_list()[1] if flat[0].shape.rank else None
    _same_steps(flat)
    kinds = [infer_state_dtype(dtype, state)] * len(_sizes(cell.output_size))
    nothing = nest.flatten(zero_state_tensors(cell.output_size, batch, kinds[0]))
    if lengths is not None:
        # TensorFlow's graph has the minimum too, although nothing takes it.
        _, longest = reduce_min(lengths), reduce_max(lengths)
    else:
        longest = steps
    time = constant(0, dtypes.int32, name="time")
    # Only the name is needed: TensorFlow's arrays are called so.
    with name_scope("dynamic_rnn") as base:
        pass
    element = [
        TensorShape([known_batch]).concatenate(TensorShape([s] if isinstance(s, int) else s))
        for s in _sizes(cell.output_size)
    ]
    written = [
        TensorArray(k, steps, element_shape=e, tensor_array_name=f"{base}output_{i}")
        for i, (k, e) in enumerate(zip(kinds, element, strict=True))
    ]
    given = [
        TensorArray(
            t.dtype.base_dtype, steps, element_shape=t.shape[1:], tensor_array_name=f"{base}input_{i}"
        ).unstack(t)
        for i, t in enumerate(flat)
    ]

    def step(time: Tensor, arrays: tuple[TensorArray, ...], state: Nested) -> tuple[Any, ...]:
        now = [a.read(time) for a in given]
        for t, whole in zip(now, flat, strict=True):
            t.set_shape(whole.shape[1:])
        packed = nest.pack_sequence_as(inputs, now)
        if lengths is None:
            output, new = cell(packed, state)
        else:
            done = time >= lengths
            output, new = cell(packed, state)
            nest.assert_same_structure(state, new)
            output, new = _held(done, nothing, output, state, new)
        nest.assert_same_structure(cell.output_size, output) if nest.is_nested(cell.output_size) else None
        arrays = tuple(a.write(time, o) for a, o in zip(arrays, nest.flatten(output), strict=True))
        return time + 1, arrays, new

    # At least one turn, so that the arrays learn the shape of their elements.
    bound = minimum(steps, maximum(1, longest))
    _, arrays, last = while_loop(
        lambda time, *_: time < bound,
        step,
        (time, tuple(written), state),
        parallel_iterations=parallel,
        maximum_iterations=steps,
        swap_memory=swap,
    )
    outputs = [a.stack() for a in arrays]
    for t, e in zip(outputs, element, strict=True):
        first = flat[0].shape.as_list()[0] if flat[0].shape.rank else None
        t.set_shape(TensorShape([first]).concatenate(e))
    sizes = cell.output_size
    return (nest.pack_sequence_as(sizes, outputs) if nest.is_nested(sizes) else outputs[0]), last


def _sizes(sizes: object) -> list[Any]:
    return [sizes] if isinstance(sizes, TensorShape) else nest.flatten(sizes)


def _same_steps(flat: list[Tensor]) -> None:
    first = flat[0].shape.as_list()[:2] if flat[0].shape.rank else [None, None]
    for i, t in enumerate(flat):
        got = t.shape.as_list()[:2] if t.shape.rank else [None, None]
        for name, a, b in (("Time steps", first[0], got[0]), ("Batch_size", first[1], got[1])):
            if a != b:
                raise ValueError(
                    f"{name} is not the same for all the elements in the input in a batch: {a} and {b} (element {i})"
                )


def _held(done: Tensor, nothing: list[Tensor], output: Nested, state: Nested, new: Nested) -> tuple[Any, ...]:
    """Outputs and states in which sequences that are over give zeros and keep their state."""
    flat = [_choose(done, z, o) for z, o in zip(nothing, nest.flatten(output), strict=True)]
    states = [_choose(done, s, n) for s, n in zip(nest.flatten(state), nest.flatten(new), strict=True)]
    return nest.pack_sequence_as(output, flat), nest.pack_sequence_as(new, states)


@export("nn.bidirectional_dynamic_rnn")
def bidirectional_dynamic_rnn(
    cell_fw: CellLike,
    cell_bw: CellLike,
    inputs: Nested,
    sequence_length: TensorLike = None,
    initial_state_fw: Nested = None,
    initial_state_bw: Nested = None,
    dtype: DTypeLike | None = None,
    parallel_iterations: int | None = None,
    swap_memory: bool = False,
    time_major: bool = False,
    scope: ScopeLike = None,
) -> tuple[Any, ...]:
    """Runs one cell forwards and another backwards: ((outputs forwards, backwards), (last states))."""
    assert_like_rnncell("cell_fw", cell_fw)
    assert_like_rnncell("cell_bw", cell_bw)
    options: dict[str, Any] = dict(
        dtype=dtype,
        parallel_iterations=parallel_iterations,
        swap_memory=swap_memory,
        time_major=time_major,
        sequence_length=sequence_length,
    )
    with variable_scope(scope or "bidirectional_rnn"):
        with variable_scope("fw") as forwards:
            output_fw, state_fw = dynamic_rnn(
                cell_fw, inputs, initial_state=initial_state_fw, scope=forwards, **options
            )
        time, batch = (0, 1) if time_major else (1, 0)

        def turned(t: TensorLike) -> Tensor:
            if sequence_length is not None:
                return reverse_sequence(input=t, seq_lengths=sequence_length, seq_axis=time, batch_axis=batch)
            return reverse(t, axis=[time])

        with variable_scope("bw") as backwards:
            reversed_inputs = nest.map_structure(turned, inputs)
            reversed_bw, state_bw = dynamic_rnn(
                cell_bw, reversed_inputs, initial_state=initial_state_bw, scope=backwards, **options
            )
        output_bw = nest.map_structure(turned, reversed_bw)
    return (output_fw, output_bw), (state_fw, state_bw)


@export("nn.raw_rnn")
def raw_rnn(
    cell: CellLike,
    loop_fn: Callable[..., tuple[Any, ...]],
    parallel_iterations: int | None = None,
    swap_memory: bool = False,
    scope: ScopeLike = None,
) -> tuple[Any, ...]:
    """A recurrent network whose inputs are decided step by step: (outputs, last state, last loop state).

    `loop_fn(time, output, state, loop_state)` gives (finished, next input, next state, what to emit, next loop
    state); at time 0 its first arguments are None, and it tells the first input and state and what an output
    looks like. The outputs are a TensorArray, or a structure of these.
    """
    assert_like_rnncell("cell", cell)
    if not callable(loop_fn):
        raise TypeError("loop_fn must be a callable")
    with variable_scope(scope or "rnn"):
        time = constant(0, dtypes.int32)
        finished, first, state, emitted, loop_state = loop_fn(time, None, None, None)
        flat = nest.flatten(first)
        # A loop cannot carry None: a zero stands for a loop state that is not used.
        carried = loop_state if loop_state is not None else constant(0, dtypes.int32)
        batch = next(
            (t.shape.as_list()[0] for t in flat if t.shape.rank and t.shape.as_list()[0] is not None), None
        )
        size = shape(flat[0])[0] if batch is None else batch
        nest.assert_same_structure(state, cell.state_size) if nest.is_nested(cell.state_size) else None
        looks = emitted if emitted is not None else cell.output_size
        shapes, kinds = _emitted(emitted, cell.output_size, state)
        arrays = [
            TensorArray(
                dtype=k,
                dynamic_size=True,
                element_shape=TensorShape([batch]).concatenate(s),
                size=0,
                name=f"rnn_output_{i}",
            )
            for i, (k, s) in enumerate(zip(kinds, shapes, strict=True))
        ]
        nothing = [
            zeros(_concat(size, t if isinstance(s, TensorShape) and not s.is_fully_defined() else s)[0], k)
            for s, t, k in zip(shapes, _dynamic(emitted, shapes), kinds, strict=True)
        ]

        def body(
            time: Tensor,
            finished: Tensor,
            now: Nested,
            arrays: list[TensorArray],
            state: Nested,
            carried: Nested,
        ) -> tuple[Any, ...]:
            output, cell_state = cell(now, state)
            given = carried if loop_state is not None else None
            following = time + 1
            done, upcoming, new_state, emit, new_loop = loop_fn(following, output, cell_state, given)
            nest.assert_same_structure(state, new_state)
            nest.assert_same_structure(now, upcoming)
            if new_loop is None:
                new_loop = carried
            held = [_choose(finished, z, e) for z, e in zip(nothing, nest.flatten(emit), strict=True)]
            kept = [
                _choose(finished, s, n)
                for s, n in zip(nest.flatten(state), nest.flatten(new_state), strict=True)
            ]
            arrays = [a.write(time, e) for a, e in zip(arrays, held, strict=True)]
            done = logical_or(finished, done)
            return following, done, upcoming, arrays, nest.pack_sequence_as(state, kept), new_loop

        _, _, _, arrays, state, carried = while_loop(
            lambda time, finished, *_: logical_not(reduce_all(finished)),
            body,
            [time, finished, first, arrays, state, carried],
            parallel_iterations=parallel_iterations or 32,
            swap_memory=swap_memory,
        )
        packed = nest.pack_sequence_as(looks, arrays) if nest.is_nested(looks) else arrays[0]
        return packed, state, carried if loop_state is not None else None


def _emitted(emitted: Nested, output_size: Nested, state: Nested) -> tuple[list[TensorShape], list[DType]]:
    if emitted is None:
        sizes = [TensorShape([s] if isinstance(s, int) else s) for s in _sizes(output_size)]
        return sizes, [nest.flatten(state)[0].dtype.base_dtype] * len(sizes)
    flat = nest.flatten(emitted)
    return [t.shape for t in flat], [t.dtype.base_dtype for t in flat]


def _dynamic(emitted: Nested, shapes: list[TensorShape]) -> Sequence[TensorShape | Tensor]:
    if emitted is None:
        return shapes
    return [
        s if s.is_fully_defined() else shape(t) for s, t in zip(shapes, nest.flatten(emitted), strict=True)
    ]


def _choose(done: Tensor, old: Tensor | TensorArray, new: Tensor | TensorArray) -> Tensor | TensorArray:
    if isinstance(old, TensorArray) or isinstance(new, TensorArray) or 0 in (old.shape.rank, new.shape.rank):
        return new  # a scalar, such as a counter, has no row per sequence
    result = where(done, old, new)
    result.set_shape(new.shape)
    return result

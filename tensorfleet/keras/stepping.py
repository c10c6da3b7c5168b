"""`tf.keras.backend.rnn`: a function of an input and states, applied along the time of a sequence."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from tensorfleet import dtypes
from tensorfleet.api import find
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Tensor
from tensorfleet.nest import flatten, map_structure, pack_sequence_as


class _Sequences(NamedTuple):
    """What is gone through: the inputs and the mask with time first, and how many steps they have."""

    inputs: Any
    mask: Tensor | None
    steps: Any

    def at(self, time: Any) -> tuple[Any, Tensor | None]:
        """The inputs and the mask of one step."""
        return map_structure(lambda x: x[time], self.inputs), None if self.mask is None else self.mask[time]


def rnn(
    step_function: Callable,
    inputs: Any,
    initial_states: Any,
    go_backwards: bool = False,
    mask: Any = None,
    constants: Any = None,
    unroll: bool = False,
    input_length: Any = None,
    time_major: bool = False,
    zero_output_for_mask: bool = False,
) -> tuple[Any, Any, list]:
    """The last output, all outputs and the last states of `step_function(input, states)` along time.

    A step that the mask leaves out keeps the states, and gives the output before it, or zeros.
    """
    given = _given(inputs, mask, go_backwards, time_major)
    fixed = tuple(constants or ())

    def step(time: Any, before: Any, states: Sequence) -> tuple[Any, list]:
        current, kept = given.at(time)
        output, new = step_function(current, (*states, *fixed))
        output = map_structure(to_tensor, output)
        if kept is not None:
            last = map_structure(_zeros, output) if before is None or zero_output_for_mask else before
            output = map_structure(lambda a, b: _chosen(kept, a, b), output, last)
            new = [_chosen(kept, a, b) for a, b in zip(new, states, strict=True)]
        return output, list(new)

    run = _unrolled if unroll else _looped
    last, outputs, states = run(step, given, list(initial_states))
    return last, outputs if time_major else map_structure(_turned, outputs), states


def _zeros(x: Tensor) -> Tensor:
    return find("zeros_like")(x)


def _turned(x: Any) -> Tensor:
    """The tensor with its first two dimensions in each other's place."""
    x = to_tensor(x)
    return find("transpose")(x, [1, 0, *range(2, x.shape.rank)])


def _given(inputs: Any, mask: Any, go_backwards: bool, time_major: bool) -> _Sequences:
    order = map_structure(to_tensor if time_major else _turned, inputs)
    for x in flatten(order):
        x.shape.with_rank_at_least(3)
    if mask is not None:
        mask = find("cast")(mask, dtypes.bool_)
        mask = find("expand_dims")(mask, -1) if mask.shape.rank == 2 else mask
        mask = mask if time_major else _turned(mask)
    if go_backwards:
        order = map_structure(lambda x: find("reverse")(x, [0]), order)
        mask = None if mask is None else find("reverse")(mask, [0])
    first = flatten(order)[0]
    known = first.shape.dims[0].value
    return _Sequences(order, mask, find("shape")(first)[0] if known is None else known)


def _chosen(kept: Tensor, new: Tensor, old: Tensor) -> Tensor:
    for _ in range((new.shape.rank or 2) - (kept.shape.rank or 2)):
        kept = find("expand_dims")(kept, -1)
    made = find("where_v2")(kept, new, old)
    made.set_shape(new.shape)
    return made


def _unrolled(step: Callable, given: _Sequences, states: list) -> tuple[Any, Any, list]:
    if isinstance(given.steps, Tensor):
        raise ValueError("Unrolling requires a fixed number of timesteps.")
    output, outputs = None, []
    for time in range(given.steps):
        output, states = step(time, output, states)
        outputs.append(output)
    return output, map_structure(lambda *all: find("stack")(all), *outputs), states


def _looped(step: Callable, given: _Sequences, states: list) -> tuple[Any, Any, list]:
    example, _ = step(0, None, states)  # only its types and shapes are used
    shapes = [o.shape for o in flatten(example)]
    arrays = [
        find("TensorArray")(o.dtype, size=given.steps, tensor_array_name=f"output_ta_{i}")
        for i, o in enumerate(flatten(example))
    ]
    states = [to_tensor(s) for s in states]
    known = [s.shape for s in states]

    def body(time: Any, arrays: list, before: Any, states: list) -> tuple:
        output, new = step(time, before, states)
        written = [a.write(time, o) for a, o in zip(arrays, flatten(output), strict=True)]
        for state, shape in zip(new, known, strict=True):
            state.set_shape(shape)
        return time + 1, written, output, new

    first = (to_tensor(0), arrays, map_structure(_zeros, example), states)
    _, arrays, _, states = find("while_loop")(lambda time, *_: time < given.steps, body, first)
    flat = [a.stack() for a in arrays]
    for output, shape in zip(flat, shapes, strict=True):
        output.set_shape([None if isinstance(given.steps, Tensor) else given.steps, *shape.as_list()])
    return (
        pack_sequence_as(example, [o[-1] for o in flat]),
        pack_sequence_as(example, flat),
        states,
    )

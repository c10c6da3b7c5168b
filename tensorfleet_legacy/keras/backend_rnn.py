"""`tf.keras.backend.rnn`: a function of one step, run through sequences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorfleet.api.layers.rnn import transpose_batch_time
from tensorfleet.base import nest
from tensorfleet.base.naming import find
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Tensor
from tensorfleet.ops.control.while_loop import while_loop
from tensorfleet.ops.state.tensor_array import TensorArray


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
) -> tuple:
    """Runs `step_function(inputs, states) -> (output, new states)` through sequences [batch, time, ...].

    Gives (the last output, all outputs, the last states). In steps that the mask leaves out, states stay as they were
    and the output is the one before, or zeros.
    """
    inputs = nest.map_structure(to_tensor, inputs)
    if not time_major:
        inputs = nest.map_structure(transpose_batch_time, inputs)
    if mask is not None:
        mask = find("cast")(mask, "bool")
        mask = mask if time_major else transpose_batch_time(mask)
    if go_backwards:
        inputs = nest.map_structure(lambda t: find("reverse")(t, [0]), inputs)
        mask = None if mask is None else find("reverse")(mask, [0])
    run = _Run(step_function, list(constants or []), zero_output_for_mask)
    states = tuple(initial_states)
    last, outputs, states = (run.unrolled if unroll else run.looped)(inputs, mask, states)
    if not time_major:
        outputs = nest.map_structure(transpose_batch_time, outputs)
    return last, outputs, list(states) if isinstance(initial_states, list) else states


class _Run:
    """One way through sequences whose first axis is time."""

    def __init__(self, step: Callable, constants: list, zeros: bool) -> None:
        self._step, self._constants, self._zeros = step, constants, zeros

    def _once(self, now: Any, counts: Any, last: Any, states: tuple) -> tuple:
        """One step: its output and the states after it, as they are where it does not count."""
        output, new = self._step(now, states + tuple(self._constants))
        flat = nest.flatten(new)
        if counts is not None:
            before = nest.map_structure(find("zeros_like"), output) if self._zeros or last is None else last
            output = nest.map_structure(lambda a, b: _chosen(counts, a, b), output, before)
            flat = [_chosen(counts, a, b) for a, b in zip(flat, nest.flatten(states), strict=True)]
        return output, nest.pack_sequence_as(states, flat)

    def unrolled(self, inputs: Any, mask: Any, states: tuple) -> tuple:
        """All steps one after the other in the graph."""
        flat = nest.flatten(inputs)
        steps = flat[0].shape.as_list()[0]
        if not steps:
            raise ValueError("Unrolling requires a fixed number of timesteps.")
        results: list = []
        for i in range(steps):
            now = nest.pack_sequence_as(inputs, [t[i] for t in flat])
            counts = None if mask is None else mask[i]
            output, states = self._once(now, counts, results[-1] if results else None, states)
            results.append(output)
        outputs = nest.map_structure(lambda *parts: find("stack")(parts), *results)
        return results[-1], outputs, states

    def looped(self, inputs: Any, mask: Any, states: tuple) -> tuple:
        """A loop of as many steps as the sequences have."""
        flat = nest.flatten(inputs)
        steps = find("shape")(flat[0])[0]
        # Once before the loop: for the shapes of the outputs, and for what a cell keeps for all steps.
        first = nest.pack_sequence_as(inputs, [t[0] for t in flat])
        like, _ = self._step(first, states + tuple(self._constants))
        kinds = nest.flatten(like)
        read = [_unstacked(t, steps) for t in flat]
        counted = None if mask is None else _unstacked(mask, steps)
        written = tuple(TensorArray(t.dtype, steps, element_shape=t.shape) for t in kinds)
        held = () if mask is None else tuple(find("zeros_like")(t) for t in kinds)

        def body(time: Tensor, arrays: tuple, last: tuple, states: tuple) -> tuple:
            now = nest.pack_sequence_as(inputs, [_read(a, time, t) for a, t in zip(read, flat, strict=True)])
            counts = None if counted is None else _read(counted, time, mask)
            before = nest.pack_sequence_as(like, list(last)) if last else None
            output, after = self._once(now, counts, before, states)
            for a, b in zip(nest.flatten(after), nest.flatten(states), strict=True):
                a.set_shape(b.shape)
            result = nest.flatten(output)
            for t, kind in zip(result, kinds, strict=True):
                t.set_shape(kind.shape)
            arrays = tuple(a.write(time, t) for a, t in zip(arrays, result, strict=True))
            return time + 1, arrays, tuple(result) if last else (), after

        start = (find("constant")(0, name="time"), written, held, states)
        _, arrays, _, states = while_loop(
            lambda time, *_: time < steps, body, start, parallel_iterations=32, maximum_iterations=steps
        )
        outputs = [a.stack() for a in arrays]
        count = flat[0].shape.as_list()[0]
        for t, kind in zip(outputs, kinds, strict=True):
            t.set_shape([count, *kind.shape.as_list()] if kind.shape.ndims is not None else None)
        last = nest.pack_sequence_as(like, [t[-1] for t in outputs])
        return last, nest.pack_sequence_as(like, outputs), states


def _unstacked(tensor: Tensor, steps: Any) -> TensorArray:
    return TensorArray(tensor.dtype.base_dtype, steps, element_shape=tensor.shape[1:]).unstack(tensor)


def _read(array: TensorArray, time: Tensor, whole: Tensor) -> Tensor:
    result = array.read(time)
    result.set_shape(whole.shape[1:])
    return result


def _chosen(counts: Tensor, new: Tensor, old: Tensor) -> Tensor:
    """The new values of the examples whose step counts, the old ones of others."""
    mask = counts
    for _ in range(len(new.shape.as_list()) - len(mask.shape.as_list())):
        mask = find("expand_dims")(mask, -1)
    shape = find("shape")(new)
    result = find("where")(find("broadcast_to")(mask, shape), new, old)
    result.set_shape(new.shape)
    return result

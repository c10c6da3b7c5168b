"""Running a decoder step by step until it has finished."""

from __future__ import annotations

from collections import namedtuple
from contextlib import suppress
from typing import Any

import numpy as np

from tensorfleet.api.layers.rnn import transpose_batch_time
from tensorfleet.api.layers.rnn_wrappers import assert_like_rnncell
from tensorfleet.base import nest
from tensorfleet.base.naming import find
from tensorfleet.base.properties import readonly
from tensorfleet.base.shapes import TensorShape
from tensorfleet.graph.apply import apply
from tensorfleet.graph.constant import constant_value
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import name_scope
from tensorfleet.ops.array.shape import shape as shape_of
from tensorfleet.ops.state.tensor_array import TensorArray


class Decoder:
    """The interface of decoders for `dynamic_decode`.

    A decoder of your own has the properties `batch_size`, `output_size` and `output_dtype`, `initialize()`,
    which gives (finished, inputs, state), and `step(time, inputs, state)`, which gives (outputs, state,
    inputs, finished).
    """

    @property
    def tracks_own_finished(self) -> bool:
        """Whether a sequence that has finished may go on: `step` says alone which have."""
        return False

    def initialize(self, name: str | None = None) -> tuple:
        """The state before the first step."""
        raise TypeError(f"{type(self).__name__} does not define initialize().")

    def step(self, time: Tensor, inputs: Any, state: Any, name: str | None = None) -> tuple:
        """One step of all sequences."""
        raise TypeError(f"{type(self).__name__} does not define step().")

    def finalize(self, outputs: Any, final_state: Any, sequence_lengths: Tensor) -> tuple:
        """Post-processes the outputs of all steps."""
        return outputs, final_state


class BasicDecoderOutput(namedtuple("BasicDecoderOutput", ("rnn_output", "sample_id"))):
    """The output of one step of a `BasicDecoder`."""


class BasicDecoder(Decoder):
    """A cell whose inputs a helper chooses; `output_layer` turns its outputs into logits."""

    def __init__(self, cell: Any, helper: Any, initial_state: Any, output_layer: Any = None) -> None:
        assert_like_rnncell("cell", cell)
        self._cell, self._helper = cell, helper
        self._initial_state, self._output_layer = initial_state, output_layer

    batch_size = readonly("_helper.batch_size", "How many sequences there are.")

    @property
    def output_size(self) -> BasicDecoderOutput:
        """The sizes of what a step gives for one sequence."""
        size = self._cell.output_size
        if self._output_layer is not None:
            batched = nest.map_structure(lambda s: TensorShape([None]).concatenate(TensorShape(s)), size)
            size = nest.map_structure(self._output_layer.compute_output_shape, batched)
            size = nest.map_structure(lambda s: s[1:], size)
        return BasicDecoderOutput(size, self._helper.sample_ids_shape)

    @property
    def output_dtype(self) -> BasicDecoderOutput:
        """The types of what a step gives."""
        dtype = nest.flatten(self._initial_state)[0].dtype
        size = self._cell.output_size
        kinds = dtype if not nest.is_nested(size) else nest.map_structure(lambda _: dtype, size)
        return BasicDecoderOutput(kinds, self._helper.sample_ids_dtype)

    def initialize(self, name: str | None = None) -> tuple:
        return (*self._helper.initialize(), self._initial_state)

    def step(self, time: Tensor, inputs: Any, state: Any, name: str | None = None) -> tuple:
        with name_scope(name, "BasicDecoderStep", [time]):
            outputs, cell_state = self._cell(inputs, state)
            if self._output_layer is not None:
                outputs = self._output_layer(outputs)
            sample_ids = self._helper.sample(time=time, outputs=outputs, state=cell_state)
            finished, next_inputs, next_state = self._helper.next_inputs(
                time=time, outputs=outputs, state=cell_state, sample_ids=sample_ids
            )
        return BasicDecoderOutput(outputs, sample_ids), next_state, next_inputs, finished


def _size(size: Any) -> list:
    return TensorShape(size).as_list()


def _zero_outputs(sizes: Any, kinds: Any, batch: Any) -> Any:
    """Zeros of the shape of what one step gives."""

    def zeros(size: Any, kind: Any) -> Tensor:
        dims = apply("ConcatV2", [apply("Reshape", batch, [1]), np.array(_size(size), np.int32)], 0)
        return find("zeros")(dims, kind)

    flat = [zeros(s, k) for s, k in zip(_flat_sizes(sizes, kinds), nest.flatten(kinds), strict=True)]
    return nest.pack_sequence_as(kinds, flat)


def _flat_sizes(sizes: Any, kinds: Any) -> list:
    """The sizes in the order of the types; a TensorShape is one size."""
    if isinstance(sizes, TensorShape) or not nest.is_nested(kinds):
        return [sizes]
    parts = [sizes[k] for k in sorted(sizes)] if isinstance(sizes, dict) else list(sizes)
    types = [kinds[k] for k in sorted(kinds)] if isinstance(kinds, dict) else list(kinds)
    return [s for part, kind in zip(parts, types, strict=True) for s in _flat_sizes(part, kind)]


def _is_store(value: Any) -> bool:
    return isinstance(value, TensorArray)


def _held(finished: Tensor, old: Any, new: Any) -> Any:
    """Old values for sequences that have finished, new ones for the others."""

    def choose(before: Any, after: Any) -> Any:
        if _is_store(before) or before.shape.rank == 0:
            return after
        after.set_shape(before.shape)
        return apply("Select", finished, before, after)

    return nest.map_structure(choose, old, new)


def dynamic_decode(
    decoder: Decoder,
    output_time_major: bool = False,
    impute_finished: bool = False,
    maximum_iterations: Any = None,
    parallel_iterations: int = 32,
    swap_memory: bool = False,
    scope: Any = None,
    **kwargs: Any,
) -> tuple:
    """Runs a decoder until all sequences have finished: (outputs, final state, lengths).

    With `impute_finished`, outputs beyond the end of a sequence are zeros and its state stays what it was.
    """
    if not hasattr(decoder, "step") or not hasattr(decoder, "initialize"):
        raise TypeError(f"Expected decoder to be type Decoder, but saw: {type(decoder)}")
    with find("variable_scope")(scope, "decoder"):
        limit = None
        if maximum_iterations is not None:
            limit = to_tensor(maximum_iterations, np.int32, name="maximum_iterations")
            if limit.shape.rank != 0:
                raise ValueError("maximum_iterations must be a scalar")
        loop = _Loop(decoder, impute_finished, limit)
        results = find("while_loop")(
            loop.goes_on,
            loop.step,
            loop.start(),
            parallel_iterations=parallel_iterations,
            swap_memory=swap_memory,
        )
        return loop.finish(results, output_time_major)


class _Loop:
    """The loop of `dynamic_decode`: what it carries, and what each round does."""

    def __init__(self, decoder: Any, impute: bool, limit: Tensor | None) -> None:
        self.decoder, self.impute, self.limit = decoder, impute, limit

    def start(self) -> tuple:
        finished, inputs, state = self.decoder.initialize()
        batch = to_tensor(self.decoder.batch_size, np.int32)
        sizes, kinds = self.decoder.output_size, self.decoder.output_dtype
        self.nothing = _zero_outputs(sizes, kinds, batch)
        if self.limit is not None:
            finished = apply("LogicalOr", finished, apply("GreaterEqual", np.int32(0), self.limit))
        lengths = find("zeros_like")(finished, dtype=np.int32)
        known = constant_value(batch)
        stores = [
            TensorArray(
                kind,
                size=0,
                dynamic_size=True,
                element_shape=[None if known is None else int(known), *_size(size)],
            )
            for size, kind in zip(_flat_sizes(sizes, kinds), nest.flatten(kinds), strict=True)
        ]
        outputs = nest.pack_sequence_as(kinds, stores)
        return to_tensor(0, np.int32, name="time"), outputs, state, inputs, finished, lengths

    def goes_on(
        self, time: Tensor, outputs: Any, state: Any, inputs: Any, finished: Tensor, _: Any
    ) -> Tensor:
        return apply("LogicalNot", find("reduce_all")(finished))

    def step(
        self, time: Tensor, outputs: Any, state: Any, inputs: Any, finished: Tensor, lengths: Tensor
    ) -> tuple:
        result, new_state, new_inputs, now_finished = self.decoder.step(time, inputs, state)
        if not self.decoder.tracks_own_finished:
            now_finished = apply("LogicalOr", now_finished, finished)
        if self.limit is not None:
            now_finished = apply("LogicalOr", now_finished, time + np.int32(1) >= self.limit)
        steps = apply("Fill", shape_of(lengths), time + np.int32(1))
        lengths = apply("Select", finished, lengths, steps)
        nest.assert_same_structure(state, new_state)
        nest.assert_same_structure(self.nothing, result)
        if self.impute:
            result = _held(finished, self.nothing, result)
            new_state = _held(finished, state, new_state)
        outputs = nest.map_structure(lambda store, value: store.write(time, value), outputs, result)
        return time + np.int32(1), outputs, new_state, new_inputs, now_finished, lengths

    def finish(self, results: tuple, time_major: bool) -> tuple:
        _, outputs, state, _, _, lengths = results
        whole = nest.map_structure(lambda store: store.stack(), outputs)
        with suppress(NotImplementedError):  # a decoder of the user's own that leaves things as they are
            whole, state = self.decoder.finalize(whole, state, lengths)
        if not time_major:
            whole = nest.map_structure(transpose_batch_time, whole)
        return whole, state, lengths

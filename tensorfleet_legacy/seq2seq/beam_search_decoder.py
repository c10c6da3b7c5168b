"""Beam search: the likeliest sequences found by following several at once."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import numpy as np

from tensorfleet.api.layers.rnn_wrappers import assert_like_rnncell
from tensorfleet.base import dtypes, nest
from tensorfleet.base.naming import find
from tensorfleet.base.properties import readonly
from tensorfleet.base.shapes import TensorShape
from tensorfleet.graph.apply import apply
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import name_scope
from tensorfleet.ops.array.shape import shape as shape_of
from tensorfleet.ops.control.cond import cond
from tensorfleet.ops.state.tensor_array import TensorArray
from tensorfleet_legacy.seq2seq.decoder import Decoder
from tensorfleet_legacy.seq2seq.helper import _embedding, first_and_last


class BeamSearchDecoderState(
    namedtuple(
        "BeamSearchDecoderState",
        ("cell_state", "log_probs", "finished", "lengths", "accumulated_attention_probs"),
    )
):
    """The state of a beam search."""


class BeamSearchDecoderOutput(
    namedtuple("BeamSearchDecoderOutput", ("scores", "predicted_ids", "parent_ids"))
):
    """The output of one step of a beam search."""


class FinalBeamSearchDecoderOutput(
    namedtuple("FinalBeamDecoderOutput", ("predicted_ids", "beam_search_decoder_output"))
):
    """The sequences that a beam search has found, the best first."""


def tile_batch(t: Any, multiplier: int, name: str | None = None) -> Any:
    """Each row of each tensor repeated `multiplier` times, for a decoder with so many beams."""

    def tiled(x: Any) -> Tensor:
        x = to_tensor(x, name="t")
        if x.shape.rank is None:
            raise ValueError("t must have statically known rank")
        repeats = np.array([1, multiplier] + [1] * (x.shape.rank - 1), np.int32)
        whole = apply("Tile", apply("ExpandDims", x, 1), repeats)
        outer = apply("Reshape", shape_of(x)[0] * np.int32(multiplier), [1])
        result = apply("Reshape", whole, apply("ConcatV2", [outer, shape_of(x)[1:]], 0))
        rows = x.shape.as_list()[0]
        result.set_shape([None if rows is None else rows * multiplier, *x.shape.as_list()[1:]])
        return result

    with name_scope(name, "tile_batch", [*nest.flatten(t)]):
        return nest.map_structure(tiled, t)


def gather_tree(
    step_ids: Any, parent_ids: Any, max_sequence_lengths: Any, end_token: Any, name: str | None = None
) -> Tensor:
    """Whole sequences [time, batch, beam] from the ids and parents of each step, followed from the end."""
    with name_scope(name, "GatherTree", [step_ids, parent_ids]):
        ids, parents = to_tensor(step_ids, dtypes.int32), to_tensor(parent_ids, dtypes.int32)
        lengths = to_tensor(max_sequence_lengths, dtypes.int32)
        steps, beams = shape_of(ids)[0], shape_of(ids)[2]
        own = find("broadcast_to")(find("range")(beams)[None, :], shape_of(ids)[1:])

        def back(beam: Tensor, row: Any) -> Tensor:
            step, parent, time = row
            # until its last step a sequence stays in the beam it ended in
            here = find("batch_gather")(parent, beam[0])
            inside = find("broadcast_to")(time < lengths[:, None], shape_of(here))
            return apply(
                "Pack", [apply("Select", inside, here, beam[0]), find("batch_gather")(step, beam[0])]
            )

        start = apply("Pack", [own, own])
        times = find("range")(steps)
        followed = find("scan")(back, (ids, parents, times), initializer=start, reverse=True)[:, 1]
        end = to_tensor(end_token, dtypes.int32)
        ended = find("cumsum")(
            find("cast")(apply("Equal", followed, end), dtypes.int32), axis=0, exclusive=True
        )
        beyond = apply(
            "LogicalOr",
            ended > np.int32(0),
            find("broadcast_to")(times[:, None, None] >= lengths[None, :, None], shape_of(followed)),
        )
        return apply("Select", beyond, apply("Fill", shape_of(followed), end), followed)


class BeamSearchDecoder(Decoder):
    """Follows the `beam_width` likeliest sequences of each example at once.

    The initial state is that of `tile_batch(state, multiplier=beam_width)`.
    """

    def __init__(
        self,
        cell: Any,
        embedding: Any,
        start_tokens: Any,
        end_token: Any,
        initial_state: Any,
        beam_width: int,
        output_layer: Any = None,
        length_penalty_weight: Any = 0.0,
        coverage_penalty_weight: Any = 0.0,
        reorder_tensor_arrays: bool = True,
    ) -> None:
        assert_like_rnncell("cell", cell)
        self._cell, self._output_layer = cell, output_layer
        self._embed, self._width = _embedding(embedding), beam_width
        self._start, self._end = first_and_last(start_tokens, end_token)
        self._penalty = length_penalty_weight
        self._batch_size = apply("Size", self._start)
        self._initial_state = nest.map_structure(self._split, initial_state)
        tokens = find("tile")(self._start[:, None], [1, beam_width])
        self._start_inputs = self._embed(tokens)
        self._finished = find("one_hot")(
            find("zeros")(apply("Reshape", self._batch_size, [1]), dtypes.int32),
            depth=beam_width,
            on_value=False,
            off_value=True,
            dtype=dtypes.bool_,
        )

    batch_size = readonly("_batch_size", "How many examples there are.")

    @property
    def tracks_own_finished(self) -> bool:
        return True  # beams change places

    @property
    def output_size(self) -> BeamSearchDecoderOutput:
        """The sizes of what a step gives for one example."""
        size = TensorShape([self._width])
        return BeamSearchDecoderOutput(size, size, size)

    @property
    def output_dtype(self) -> BeamSearchDecoderOutput:
        """The types of what a step gives."""
        kind = nest.flatten(self._initial_state)[0].dtype.base_dtype
        return BeamSearchDecoderOutput(kind, dtypes.int32, dtypes.int32)

    def _split(self, x: Any) -> Any:
        """[batch * beams, ...] as [batch, beams, ...]."""
        if isinstance(x, TensorArray) or x.shape.rank == 0:
            return x
        outer = apply("Pack", [self._batch_size, np.int32(self._width)])
        result = apply("Reshape", x, apply("ConcatV2", [outer, shape_of(x)[1:]], 0))
        result.set_shape([None, self._width, *x.shape.as_list()[1:]])
        return result

    def _merge(self, x: Any) -> Any:
        """[batch, beams, ...] as [batch * beams, ...]."""
        if isinstance(x, TensorArray) or x.shape.rank == 0:
            return x
        outer = apply("Reshape", self._batch_size * np.int32(self._width), [1])
        result = apply("Reshape", x, apply("ConcatV2", [outer, shape_of(x)[2:]], 0))
        result.set_shape([None, *x.shape.as_list()[2:]])
        return result

    def initialize(self, name: str | None = None) -> tuple:
        kind = nest.flatten(self._initial_state)[0].dtype.base_dtype
        batch = apply("Reshape", self._batch_size, [1])
        first = find("one_hot")(
            find("zeros")(batch, dtypes.int32),
            depth=self._width,
            on_value=to_tensor(0.0, kind),
            off_value=to_tensor(-np.inf, kind),
            dtype=kind,
        )
        size = apply("Pack", [self._batch_size, np.int32(self._width)])
        state = BeamSearchDecoderState(
            cell_state=self._initial_state,
            log_probs=first,
            finished=self._finished,
            lengths=find("zeros")(size, dtypes.int64),
            accumulated_attention_probs=(),
        )
        return self._finished, self._start_inputs, state

    def step(self, time: Tensor, inputs: Any, state: Any, name: str | None = None) -> tuple:
        with name_scope(name, "BeamSearchDecoderStep", [time]):
            cell_state = nest.map_structure(self._merge, state.cell_state)
            outputs, cell_state = self._cell(nest.map_structure(self._merge, inputs), cell_state)
            if self._output_layer is not None:
                outputs = self._output_layer(outputs)
            logits = self._split(outputs)
            cell_state = nest.map_structure(self._split, cell_state)
            result, new_state = self._search(logits, cell_state, state)
            following = cond(
                find("reduce_all")(new_state.finished),
                lambda: self._start_inputs,
                lambda: self._embed(result.predicted_ids),
            )
        return result, new_state, following, new_state.finished

    def _search(self, logits: Tensor, cell_state: Any, state: Any) -> tuple:
        """The best continuations of all beams together."""
        vocabulary = logits.shape.as_list()[-1]
        kind = logits.dtype.base_dtype
        step = self._masked(find("nn.log_softmax")(logits), state.finished, vocabulary)
        total = step + state.log_probs[..., None]
        not_end = find("one_hot")(self._end, vocabulary, on_value=0, off_value=1, dtype=dtypes.int64)
        unfinished = find("cast")(apply("LogicalNot", state.finished), dtypes.int64)
        lengths = state.lengths[..., None] + unfinished[..., None] * not_end[None, None, :]
        scores = total / self._length_penalty(lengths, kind)
        flat_size = apply("Pack", [self._batch_size, np.int32(self._width * vocabulary)])
        best, where = find("nn.top_k")(apply("Reshape", scores, flat_size), k=self._width)
        best.set_shape([None, self._width])
        where.set_shape([None, self._width])
        words = find("floormod")(where, np.int32(vocabulary))
        parents = find("floordiv")(where, np.int32(vocabulary))
        gather = find("batch_gather")
        before = gather(state.finished, parents)
        new = BeamSearchDecoderState(
            cell_state=nest.map_structure(lambda s: self._chosen(s, parents), cell_state),
            log_probs=gather(apply("Reshape", total, flat_size), where),
            lengths=gather(state.lengths, parents) + find("cast")(apply("LogicalNot", before), dtypes.int64),
            finished=apply("LogicalOr", before, apply("Equal", words, self._end)),
            accumulated_attention_probs=(),
        )
        return BeamSearchDecoderOutput(best, words, parents), new

    def _chosen(self, state: Any, parents: Tensor) -> Any:
        if isinstance(state, TensorArray) or state.shape.rank < 2:
            return state
        result = find("batch_gather")(state, parents)
        result.set_shape(state.shape)
        return result

    def _masked(self, log_probs: Tensor, finished: Tensor, vocabulary: int) -> Tensor:
        """A beam that has finished goes on with the end token, at no cost."""
        kind = log_probs.dtype.base_dtype
        lowest = to_tensor(kind.min, kind)
        only_end = find("one_hot")(self._end, vocabulary, to_tensor(0.0, kind), lowest, dtype=kind)
        whole = find("broadcast_to")(only_end[None, None, :], shape_of(log_probs))
        mask = find("broadcast_to")(finished[..., None], shape_of(log_probs))
        return apply("Select", mask, whole, log_probs)

    def _length_penalty(self, lengths: Tensor, kind: Any) -> Any:
        if isinstance(self._penalty, (int, float)) and self._penalty == 0:
            return to_tensor(1.0, kind)
        five, six = to_tensor(5.0, kind), to_tensor(6.0, kind)
        return apply("Pow", (five + find("cast")(lengths, kind)) / six, to_tensor(self._penalty, kind))

    def finalize(self, outputs: Any, final_state: Any, sequence_lengths: Tensor) -> tuple:
        """The sequences, followed back from the beams they ended in."""
        longest = find("cast")(find("reduce_max")(final_state.lengths, axis=1), dtypes.int32)
        ids = gather_tree(outputs.predicted_ids, outputs.parent_ids, longest, self._end)
        return FinalBeamSearchDecoderOutput(ids, outputs), final_state

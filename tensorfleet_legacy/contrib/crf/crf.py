"""`tf.contrib.crf`: linear chains of tags, their scores, likelihoods and best paths."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorfleet.api.layers.rnn_cells import RNNCell
from tensorfleet.base import dtypes
from tensorfleet.base.naming import find
from tensorfleet.base.properties import readonly
from tensorfleet.graph.apply import apply
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Tensor
from tensorfleet.ops.array.shape import shape as shape_of
from tensorfleet.ops.math.cast import cast

_ONE = np.array([1], np.int32)


def _mask(lengths: Tensor, steps: Any, like: Tensor) -> Tensor:
    return find("sequence_mask")(lengths, steps, dtype=like.dtype.base_dtype)


def crf_unary_score(tag_indices: Any, sequence_lengths: Any, inputs: Any) -> Tensor:
    """The sum of the potentials [batch, time, tags] of a path's tags."""
    inputs, tags = to_tensor(inputs), cast(to_tensor(tag_indices), dtypes.int32)
    chosen = apply(
        "Sum",
        inputs * find("one_hot")(tags, shape_of(inputs)[2], dtype=inputs.dtype),
        np.array([2], np.int32),
    )
    return apply("Sum", chosen * _mask(to_tensor(sequence_lengths), shape_of(inputs)[1], inputs), _ONE)


def crf_binary_score(tag_indices: Any, sequence_lengths: Any, transition_params: Any) -> Tensor:
    """The sum of the transitions along a path."""
    table, tags = to_tensor(transition_params), cast(to_tensor(tag_indices), dtypes.int32)
    count = shape_of(table)[0]
    flat = tags[:, :-1] * count + tags[:, 1:]
    moves = find("gather")(apply("Reshape", table, [-1]), flat)
    lengths = to_tensor(sequence_lengths)
    mask = _mask(lengths - to_tensor(1, lengths.dtype), shape_of(moves)[1], moves)
    return apply("Sum", moves * mask, _ONE)


def crf_sequence_score(
    inputs: Any, tag_indices: Any, sequence_lengths: Any, transition_params: Any
) -> Tensor:
    """The score of a path: its potentials and its transitions."""
    unary = crf_unary_score(tag_indices, sequence_lengths, inputs)
    return unary + crf_binary_score(tag_indices, sequence_lengths, transition_params)


def crf_multitag_sequence_score(
    inputs: Any, tag_bitmap: Any, sequence_lengths: Any, transition_params: Any
) -> Tensor:
    """The logarithm of the sum over all paths whose tags the bitmap [batch, time, tags] allows."""
    inputs = to_tensor(inputs)
    barred = to_tensor(-np.inf, inputs.dtype.base_dtype) * find("ones_like")(inputs)
    allowed = apply("Select", to_tensor(tag_bitmap, dtypes.bool_), inputs, barred)
    return crf_log_norm(allowed, sequence_lengths, transition_params)


class _OfTransitions(RNNCell):
    """A cell that goes from tag to tag."""

    def __init__(self, transition_params: Any) -> None:
        super().__init__()
        self._transition_params = apply("ExpandDims", to_tensor(transition_params), 0)
        self._num_tags = self._transition_params.shape.as_list()[1]

    state_size = readonly("_num_tags", "The number of tags.")
    output_size = readonly("_num_tags", "The number of tags.")


class CrfForwardRnnCell(_OfTransitions):
    """One step of the forward algorithm: state and inputs are [batch, tags]."""

    def __call__(self, inputs: Any, state: Any = None, scope: Any = None, *args: Any, **kwargs: Any) -> Any:
        """The logarithms of the sums over all paths to each tag."""
        moved = apply("ExpandDims", state, 2) + self._transition_params
        alphas = inputs + find("reduce_logsumexp")(moved, [1])
        return alphas, alphas


class CrfDecodeForwardRnnCell(_OfTransitions):
    """One step of Viterbi's algorithm: gives the best tag before each tag, and the scores of the best paths."""

    def __call__(self, inputs: Any, state: Any = None, scope: Any = None, *args: Any, **kwargs: Any) -> Any:
        """The tags to go back to, and the new scores."""
        moved = apply("ExpandDims", state, 2) + self._transition_params
        pointers = find("argmax")(moved, 1, output_type=dtypes.int32)
        return pointers, inputs + apply("Max", moved, _ONE)


class CrfDecodeBackwardRnnCell(RNNCell):
    """One step back along the best path: the inputs are the tags to go back to, the state is the tag, [batch, 1]."""

    def __init__(self, num_tags: int) -> None:
        super().__init__()
        self._num_tags = num_tags

    state_size = 1
    output_size = 1

    def __call__(self, inputs: Any, state: Any = None, scope: Any = None, *args: Any, **kwargs: Any) -> Any:
        """The tag before."""
        before = find("batch_gather")(inputs, state)
        return before, before


def crf_log_norm(inputs: Any, sequence_lengths: Any, transition_params: Any) -> Tensor:
    """The logarithm of the sum of the scores of all paths."""
    inputs, lengths = to_tensor(inputs), to_tensor(sequence_lengths)
    one, zero = to_tensor(1, lengths.dtype), to_tensor(0, lengths.dtype)
    _, alphas = find("nn.dynamic_rnn")(
        cell=CrfForwardRnnCell(transition_params),
        inputs=inputs[:, 1:, :],
        sequence_length=apply("Maximum", lengths - one, zero),
        initial_state=inputs[:, 0, :],
        dtype=inputs.dtype.base_dtype,
    )
    norm = find("reduce_logsumexp")(alphas, [1])
    return apply("Select", lengths <= zero, find("zeros_like")(norm), norm)


def crf_log_likelihood(
    inputs: Any, tag_indices: Any, sequence_lengths: Any, transition_params: Any = None
) -> tuple[Tensor, Any]:
    """The log-likelihood of paths, and the transitions, a variable named "transitions" unless they are given."""
    inputs = to_tensor(inputs)
    count = inputs.shape.as_list()[2]
    if transition_params is None:
        transition_params = find("get_variable")("transitions", [count, count])
    score = crf_sequence_score(inputs, tag_indices, sequence_lengths, transition_params)
    return score - crf_log_norm(inputs, sequence_lengths, transition_params), transition_params


def viterbi_decode(score: Any, transition_params: Any) -> tuple[list[int], float]:
    """The best path through numpy potentials [time, tags], and its score."""
    score, table = np.asarray(score), np.asarray(transition_params)
    trellis, back = np.zeros_like(score), np.zeros_like(score, dtype=np.int32)
    trellis[0] = score[0]
    for t in range(1, score.shape[0]):
        moved = trellis[t - 1][:, None] + table
        trellis[t] = score[t] + moved.max(0)
        back[t] = moved.argmax(0)
    path = [int(trellis[-1].argmax())]
    for pointers in back[:0:-1]:
        path.append(int(pointers[path[-1]]))
    return path[::-1], trellis[-1].max()


def crf_decode(potentials: Any, transition_params: Any, sequence_length: Any) -> tuple[Tensor, Tensor]:
    """The best paths [batch, time] through potentials [batch, time, tags], and their scores."""
    potentials, table = to_tensor(potentials), to_tensor(transition_params)
    lengths = cast(to_tensor(sequence_length), dtypes.int32)
    steps, count = shape_of(potentials)[1], shape_of(potentials)[2]
    by_time = find("transpose")(potentials, [1, 0, 2])
    own = find("broadcast_to")(find("range")(count)[None, :], shape_of(by_time)[1:])

    def forward(carry: Any, row: Any) -> Any:
        state, _ = carry
        unary, time = row
        moved = apply("ExpandDims", state, 2) + table
        inside = find("broadcast_to")(time < lengths[:, None], shape_of(state))
        new = apply("Select", inside, unary + apply("Max", moved, _ONE), state)
        pointers = find("argmax")(moved, 1, output_type=dtypes.int32)
        return new, apply("Select", inside, pointers, own)

    times = find("range")(steps)
    states, pointers = find("scan")(forward, (by_time[1:], times[1:]), initializer=(by_time[0], own))
    last = find("concat")([by_time[:1], states], 0)[-1]
    best = find("argmax")(last, 1, output_type=dtypes.int32)

    def backward(tag: Tensor, step: Tensor) -> Tensor:
        return apply("Reshape", find("batch_gather")(step, tag[:, None]), [-1])

    path = find("scan")(backward, pointers, initializer=best, reverse=True)
    path = find("transpose")(find("concat")([path, best[None]], 0), [1, 0])
    mask = find("sequence_mask")(lengths, steps, dtype=dtypes.int32)
    path.set_shape(potentials.shape[:2])
    return path * mask, apply("Max", last, _ONE)

"""`tf.contrib.legacy_seq2seq`: sequences as lists of tensors, one for each time; decoders and their losses."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

from tensorfleet.api.variables.scope import get_variable, get_variable_scope, variable_scope
from tensorfleet.base import dtypes, nest
from tensorfleet.base.naming import export, find
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import name_scope
from tensorfleet.ops.argument_order import loss_of
from tensorfleet_legacy.contrib.rnn.lstm_ops import linear


def _embed_last(embedding: Any, projection: Any, update_embedding: bool) -> Callable:
    """A loop function that feeds the embedding of the most likely symbol of the output before."""

    def feed(previous: Tensor, _: int) -> Tensor:
        if projection is not None:
            previous = find("nn.xw_plus_b")(previous, projection[0], projection[1])
        chosen = find("nn.embedding_lookup")(embedding, find("argmax")(previous, 1))
        return chosen if update_embedding else find("stop_gradient")(chosen)

    return feed


def _linear(inputs: Sequence[Tensor], size: int, scope: str | None = None) -> Tensor:
    """The inputs side by side times a matrix, plus a bias, in `scope` or right here."""
    if scope is None:
        return linear(list(inputs), size, True)
    with variable_scope(scope):
        return linear(list(inputs), size, True)


@export("contrib.legacy_seq2seq.rnn_decoder")
def rnn_decoder(
    decoder_inputs: Sequence[Tensor],
    initial_state: Any,
    cell: Any,
    loop_function: Callable | None = None,
    scope: Any = None,
) -> tuple[list[Tensor], Any]:
    """Runs `cell` over the inputs; after the first, `loop_function(output before, time)` replaces them."""
    with variable_scope(scope or "rnn_decoder"):
        state, outputs, previous = initial_state, [], None
        for time, value in enumerate(decoder_inputs):
            if loop_function is not None and previous is not None:
                with variable_scope("loop_function", reuse=True):
                    value = loop_function(previous, time)
            if time:
                get_variable_scope().reuse_variables()
            output, state = cell(value, state)
            outputs.append(output)
            previous = output if loop_function is not None else None
    return outputs, state


@export("contrib.legacy_seq2seq.basic_rnn_seq2seq")
def basic_rnn_seq2seq(
    encoder_inputs: Sequence[Tensor],
    decoder_inputs: Sequence[Tensor],
    cell: Any,
    dtype: Any = dtypes.float32,
    scope: Any = None,
) -> tuple[list[Tensor], Any]:
    """An encoder whose last state a decoder of the same kind starts from; their weights are two sets."""
    with variable_scope(scope or "basic_rnn_seq2seq"):
        _, state = find("nn.static_rnn")(copy.deepcopy(cell), encoder_inputs, dtype=dtype)
        return rnn_decoder(decoder_inputs, state, cell)


@export("contrib.legacy_seq2seq.tied_rnn_seq2seq")
def tied_rnn_seq2seq(
    encoder_inputs: Sequence[Tensor],
    decoder_inputs: Sequence[Tensor],
    cell: Any,
    loop_function: Callable | None = None,
    dtype: Any = dtypes.float32,
    scope: Any = None,
) -> tuple[list[Tensor], Any]:
    """An encoder whose last state a decoder starts from; they share their weights."""
    with variable_scope("combined_tied_rnn_seq2seq"):
        scope = scope or "tied_rnn_seq2seq"
        _, state = find("nn.static_rnn")(cell, encoder_inputs, dtype=dtype, scope=scope)
        get_variable_scope().reuse_variables()
        return rnn_decoder(decoder_inputs, state, cell, loop_function=loop_function, scope=scope)


@export("contrib.legacy_seq2seq.embedding_rnn_decoder")
def embedding_rnn_decoder(
    decoder_inputs: Sequence[Tensor],
    initial_state: Any,
    cell: Any,
    num_symbols: int,
    embedding_size: int,
    output_projection: Any = None,
    feed_previous: bool = False,
    update_embedding_for_previous: bool = True,
    scope: Any = None,
) -> tuple[list[Tensor], Any]:
    """`rnn_decoder` over symbols, which are embedded; with `feed_previous` over those it has put out."""
    with variable_scope(scope or "embedding_rnn_decoder"):
        embedding = get_variable("embedding", [num_symbols, embedding_size])
        loop = _embed_last(embedding, output_projection, update_embedding_for_previous)
        inputs = [find("nn.embedding_lookup")(embedding, symbols) for symbols in decoder_inputs]
        return rnn_decoder(inputs, initial_state, cell, loop_function=loop if feed_previous else None)


def _fed_or_given(decode: Callable, feed_previous: Any) -> tuple[list[Tensor], Any]:
    """`decode(feed_previous)`; both in one graph with shared variables where that is a tensor."""
    if isinstance(feed_previous, bool):
        return decode(feed_previous)
    structures = []

    def branch(fed: bool) -> list[Tensor]:
        with variable_scope(get_variable_scope(), reuse=None if fed else True):
            outputs, state = decode(fed)
        structures.append((len(outputs), state))
        return [*outputs, *nest.flatten(state)]

    results = find("cond")(feed_previous, lambda: branch(True), lambda: branch(False))
    count, state = structures[0]
    return list(results[:count]), nest.pack_sequence_as(state, list(results[count:]))


@export("contrib.legacy_seq2seq.embedding_rnn_seq2seq")
def embedding_rnn_seq2seq(
    encoder_inputs: Sequence[Tensor],
    decoder_inputs: Sequence[Tensor],
    cell: Any,
    num_encoder_symbols: int,
    num_decoder_symbols: int,
    embedding_size: int,
    output_projection: Any = None,
    feed_previous: Any = False,
    dtype: Any = None,
    scope: Any = None,
) -> tuple[list[Tensor], Any]:
    """From lists of symbols to outputs over symbols, without attention."""
    with variable_scope(scope or "embedding_rnn_seq2seq") as here:
        if dtype is not None:
            here.set_dtype(dtype)
        wrap = find("contrib.rnn.EmbeddingWrapper")
        encoder = wrap(copy.deepcopy(cell), num_encoder_symbols, embedding_size)
        _, state = find("nn.static_rnn")(encoder, encoder_inputs, dtype=here.dtype)
        if output_projection is None:
            cell = find("contrib.rnn.OutputProjectionWrapper")(cell, num_decoder_symbols)

        def decode(fed: bool) -> tuple[list[Tensor], Any]:
            return embedding_rnn_decoder(
                decoder_inputs, state, cell, num_decoder_symbols, embedding_size, output_projection, fed
            )

        return _fed_or_given(decode, feed_previous)


@export("contrib.legacy_seq2seq.sequence_loss_by_example")
def sequence_loss_by_example(
    logits: Sequence[Tensor],
    targets: Sequence[Tensor],
    weights: Sequence[Tensor],
    average_across_timesteps: bool = True,
    softmax_loss_function: Callable | None = None,
    name: str | None = None,
) -> Tensor:
    """The weighted cross entropy of each sequence of the batch."""
    if len(targets) != len(logits) or len(weights) != len(logits):
        raise ValueError(
            "Lengths of logits, weights, and targets must be the same "
            f"{len(logits)}, {len(weights)}, {len(targets)}."
        )
    with name_scope(name, "sequence_loss_by_example", [*logits, *targets, *weights]):
        costs = []
        for logit, target, weight in zip(logits, targets, weights, strict=True):
            if softmax_loss_function is None:
                loss = find("nn.sparse_softmax_cross_entropy_with_logits")
                cost = loss(labels=find("reshape")(target, [-1]), logits=logit)
            else:
                cost = loss_of(softmax_loss_function, target, logit)
            costs.append(cost * weight)
        total = find("add_n")(costs)
        return total / (find("add_n")(list(weights)) + 1e-12) if average_across_timesteps else total


@export("contrib.legacy_seq2seq.sequence_loss")
def sequence_loss(
    logits: Sequence[Tensor],
    targets: Sequence[Tensor],
    weights: Sequence[Tensor],
    average_across_timesteps: bool = True,
    average_across_batch: bool = True,
    softmax_loss_function: Callable | None = None,
    name: str | None = None,
) -> Tensor:
    """The weighted cross entropy of all sequences, one number: their sum, or their mean."""
    with name_scope(name, "sequence_loss", [*logits, *targets, *weights]):
        each = sequence_loss_by_example(
            logits, targets, weights, average_across_timesteps, softmax_loss_function
        )
        total = find("reduce_sum")(each)
        if not average_across_batch:
            return total
        return total / find("cast")(find("shape")(targets[0])[0], total.dtype)


@export("contrib.legacy_seq2seq.model_with_buckets")
def model_with_buckets(
    encoder_inputs: Sequence[Tensor],
    decoder_inputs: Sequence[Tensor],
    targets: Sequence[Tensor],
    weights: Sequence[Tensor],
    buckets: Sequence[tuple[int, int]],
    seq2seq: Callable,
    softmax_loss_function: Callable | None = None,
    per_example_loss: bool = False,
    name: str | None = None,
) -> tuple[list, list]:
    """One model for each bucket (source length, target length), all with the same variables."""
    for what, values, needed in (
        ("encoder_inputs", encoder_inputs, buckets[-1][0]),
        ("targets", targets, buckets[-1][1]),
        ("weights", weights, buckets[-1][1]),
    ):
        if len(values) < needed:
            raise ValueError(
                f"Length of {what} ({len(values)}) must be at least that of last bucket ({needed})."
            )
    loss = sequence_loss_by_example if per_example_loss else sequence_loss
    losses, outputs = [], []
    with name_scope(name, "model_with_buckets", [*encoder_inputs, *decoder_inputs, *targets, *weights]):
        for i, (source, target) in enumerate(buckets):
            with variable_scope(get_variable_scope(), reuse=True if i else None):
                result, _ = seq2seq(encoder_inputs[:source], decoder_inputs[:target])
                outputs.append(result)
                function = softmax_loss_function
                cost = loss(result, targets[:target], weights[:target], softmax_loss_function=function)
                losses.append(cost)
    return outputs, losses

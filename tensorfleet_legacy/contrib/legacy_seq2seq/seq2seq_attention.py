"""Decoders of `tf.contrib.legacy_seq2seq` that attend to the states of an encoder."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

from tensorfleet.api.variables.scope import get_variable, get_variable_scope, variable_scope
from tensorfleet.base import nest
from tensorfleet.base.naming import export, find
from tensorfleet.graph.operation import Tensor
from tensorfleet_legacy.contrib.legacy_seq2seq.seq2seq import _embed_last, _fed_or_given, _linear


class _Attention:
    """Heads that weigh the encoder's states by how well they fit the decoder's state."""

    def __init__(self, states: Tensor, heads: int) -> None:
        self.length, self.size = states.shape[1].value, states.shape[2].value
        if self.length is None:
            self.length = find("shape")(states)[1]
        self.hidden = find("reshape")(states, [-1, self.length, 1, self.size])
        self.features, self.vectors = [], []
        for head in range(heads):
            kernel = get_variable(f"AttnW_{head}", [1, 1, self.size, self.size], dtype=states.dtype)
            self.features.append(find("nn.conv2d")(self.hidden, kernel, [1, 1, 1, 1], "SAME"))
            self.vectors.append(get_variable(f"AttnV_{head}", [self.size], dtype=states.dtype))

    def __call__(self, query: Any) -> list[Tensor]:
        """The vector that each head reads for this state of the decoder."""
        parts = nest.flatten(query)
        reads = []
        for head, (features, vector) in enumerate(zip(self.features, self.vectors, strict=True)):
            with variable_scope(f"Attention_{head}"):
                wanted = find("reshape")(_linear(parts, self.size), [-1, 1, 1, self.size])
                fit = find("reduce_sum")(vector * find("tanh")(features + wanted), [2, 3])
                share = find("reshape")(find("nn.softmax")(fit), [-1, self.length, 1, 1])
                reads.append(
                    find("reshape")(find("reduce_sum")(share * self.hidden, [1, 2]), [-1, self.size])
                )
        return reads


@export("contrib.legacy_seq2seq.attention_decoder")
def attention_decoder(
    decoder_inputs: Sequence[Tensor],
    initial_state: Any,
    attention_states: Tensor,
    cell: Any,
    output_size: int | None = None,
    num_heads: int = 1,
    loop_function: Callable | None = None,
    dtype: Any = None,
    scope: Any = None,
    initial_state_attention: bool = False,
) -> tuple[list[Tensor], Any]:
    """`rnn_decoder` whose cell also gets what it reads from `attention_states` (batch, length, size)."""
    if not decoder_inputs:
        raise ValueError("Must provide at least 1 input to attention decoder.")
    if num_heads < 1:
        raise ValueError("With less than 1 heads, use a non-attention decoder.")
    if attention_states.shape[2].value is None:
        raise ValueError(f"Shape[2] of attention_states must be known: {attention_states.shape}")
    with variable_scope(scope or "attention_decoder", dtype=dtype):
        attend = _Attention(attention_states, num_heads)
        batch = find("shape")(decoder_inputs[0])[0]
        reads = [find("zeros")([batch, attend.size], attention_states.dtype) for _ in range(num_heads)]
        for read in reads:
            read.set_shape([None, attend.size])
        if initial_state_attention:
            reads = attend(initial_state)
        state, outputs, previous = initial_state, [], None
        for time, value in enumerate(decoder_inputs):
            if time:
                get_variable_scope().reuse_variables()
            if loop_function is not None and previous is not None:
                with variable_scope("loop_function", reuse=True):
                    value = loop_function(previous, time)
            if value.shape[1].value is None:
                raise ValueError(f"Could not infer input size from input: {value.name}")
            result, state = cell(_linear([value, *reads], value.shape[1].value), state)
            with variable_scope(
                get_variable_scope(), reuse=True if not time and initial_state_attention else None
            ):
                reads = attend(state)
            output = _linear([result, *reads], output_size or cell.output_size, "AttnOutputProjection")
            outputs.append(output)
            previous = output
    return outputs, state


@export("contrib.legacy_seq2seq.embedding_attention_decoder")
def embedding_attention_decoder(
    decoder_inputs: Sequence[Tensor],
    initial_state: Any,
    attention_states: Tensor,
    cell: Any,
    num_symbols: int,
    embedding_size: int,
    num_heads: int = 1,
    output_size: int | None = None,
    output_projection: Any = None,
    feed_previous: bool = False,
    update_embedding_for_previous: bool = True,
    dtype: Any = None,
    scope: Any = None,
    initial_state_attention: bool = False,
) -> tuple[list[Tensor], Any]:
    """`attention_decoder` over symbols, which are embedded."""
    with variable_scope(scope or "embedding_attention_decoder", dtype=dtype):
        embedding = get_variable("embedding", [num_symbols, embedding_size])
        loop = _embed_last(embedding, output_projection, update_embedding_for_previous)
        return attention_decoder(
            [find("nn.embedding_lookup")(embedding, symbols) for symbols in decoder_inputs],
            initial_state,
            attention_states,
            cell,
            output_size=output_size or cell.output_size,
            num_heads=num_heads,
            loop_function=loop if feed_previous else None,
            initial_state_attention=initial_state_attention,
        )


@export("contrib.legacy_seq2seq.embedding_attention_seq2seq")
def embedding_attention_seq2seq(
    encoder_inputs: Sequence[Tensor],
    decoder_inputs: Sequence[Tensor],
    cell: Any,
    num_encoder_symbols: int,
    num_decoder_symbols: int,
    embedding_size: int,
    num_heads: int = 1,
    output_projection: Any = None,
    feed_previous: Any = False,
    dtype: Any = None,
    scope: Any = None,
    initial_state_attention: bool = False,
) -> tuple[list[Tensor], Any]:
    """From lists of symbols to outputs over symbols, with attention to the encoder's outputs."""
    with variable_scope(scope or "embedding_attention_seq2seq", dtype=dtype) as here:
        wrap = find("contrib.rnn.EmbeddingWrapper")
        encoder = wrap(copy.deepcopy(cell), num_encoder_symbols, embedding_size)
        seen, state = find("nn.static_rnn")(encoder, encoder_inputs, dtype=here.dtype)
        attention_states = find("stack")(seen, axis=1)
        size = None
        if output_projection is None:
            cell = find("contrib.rnn.OutputProjectionWrapper")(cell, num_decoder_symbols)
            size = num_decoder_symbols

        def decode(fed: bool) -> tuple[list[Tensor], Any]:
            return embedding_attention_decoder(
                decoder_inputs,
                state,
                attention_states,
                cell,
                num_decoder_symbols,
                embedding_size,
                num_heads=num_heads,
                output_size=size,
                output_projection=output_projection,
                feed_previous=fed,
                initial_state_attention=initial_state_attention,
            )

        return _fed_or_given(decode, feed_previous)

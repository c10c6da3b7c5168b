"""The names under `tf.contrib.seq2seq` and `tf.contrib.crf`, loaded when first used."""

from __future__ import annotations

import importlib
from typing import Any

from tensorfleet.base.naming import publish_lazily

_MODULES = {
    "decoder": ("BasicDecoder", "BasicDecoderOutput", "Decoder", "dynamic_decode"),
    "helper": (
        "CustomHelper",
        "GreedyEmbeddingHelper",
        "Helper",
        "InferenceHelper",
        "SampleEmbeddingHelper",
        "ScheduledEmbeddingTrainingHelper",
        "ScheduledOutputTrainingHelper",
        "TrainingHelper",
    ),
    "attention_wrapper": ("AttentionWrapper", "AttentionWrapperState"),
    "attention_wrapper_mechanisms": (
        "AttentionMechanism",
        "BahdanauAttention",
        "BahdanauMonotonicAttention",
        "LuongAttention",
        "LuongMonotonicAttention",
        "hardmax",
    ),
    "attention_wrapper_monotonic": ("monotonic_attention", "safe_cumprod"),
    "beam_search_decoder": (
        "BeamSearchDecoder",
        "BeamSearchDecoderOutput",
        "BeamSearchDecoderState",
        "FinalBeamSearchDecoderOutput",
        "gather_tree",
        "tile_batch",
    ),
}

_CRF = (
    "CrfDecodeBackwardRnnCell",
    "CrfDecodeForwardRnnCell",
    "CrfForwardRnnCell",
    "crf_binary_score",
    "crf_decode",
    "crf_log_likelihood",
    "crf_log_norm",
    "crf_multitag_sequence_score",
    "crf_sequence_score",
    "crf_unary_score",
    "viterbi_decode",
)


def _load(full: str) -> Any:
    name = full.rpartition(".")[2]
    module = next(m for m, names in _MODULES.items() if name in names)
    return getattr(importlib.import_module(f"tensorfleet_legacy.seq2seq.{module}"), name)


for _names in _MODULES.values():
    publish_lazily(_load, *(f"contrib.seq2seq.{n}" for n in _names))


def _load_crf(full: str) -> Any:
    return getattr(importlib.import_module("tensorfleet_legacy.contrib.crf.crf"), full.rpartition(".")[2])


publish_lazily(_load_crf, *(f"contrib.crf.{n}" for n in _CRF))


# What mechanisms of one's own are made of, under the names that TensorFlow has for it inside.
_INNER = {
    "_BaseAttentionMechanism": "attention_wrapper_mechanisms.BaseAttentionMechanism",
    "_BaseMonotonicAttentionMechanism": "attention_wrapper_mechanisms.BaseMonotonicAttentionMechanism",
    "_bahdanau_score": "attention_wrapper_mechanisms.bahdanau_score",
    "_luong_score": "attention_wrapper_mechanisms.luong_score",
    "_maybe_mask_score": "attention_wrapper_mechanisms.maybe_mask_score",
    "_prepare_memory": "attention_wrapper_mechanisms.prepare_memory",
    "_compute_attention": "attention_wrapper.compute_attention",
    "_monotonic_probability_fn": "attention_wrapper_monotonic.monotonic_probabilities",
}


def _load_inner(full: str) -> Any:
    module, name = _INNER[full.rpartition(".")[2]].split(".")
    return getattr(importlib.import_module(f"tensorfleet_legacy.seq2seq.{module}"), name)


publish_lazily(_load_inner, *(f"contrib.seq2seq.python.ops.attention_wrapper.{n}" for n in _INNER))

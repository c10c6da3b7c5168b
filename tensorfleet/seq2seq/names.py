"""The names under `tf.contrib.seq2seq` and `tf.contrib.crf`, loaded when first used."""

from __future__ import annotations

import importlib
from typing import Any

from tensorfleet.api import publish_lazily

_MODULES = {
    "decoding": ("BasicDecoder", "BasicDecoderOutput", "Decoder", "dynamic_decode"),
    "helpers": (
        "CustomHelper",
        "GreedyEmbeddingHelper",
        "Helper",
        "InferenceHelper",
        "SampleEmbeddingHelper",
        "ScheduledEmbeddingTrainingHelper",
        "ScheduledOutputTrainingHelper",
        "TrainingHelper",
    ),
    "attention": (
        "AttentionMechanism",
        "AttentionWrapper",
        "AttentionWrapperState",
        "BahdanauAttention",
        "LuongAttention",
        "hardmax",
    ),
    "beams": (
        "BeamSearchDecoder",
        "BeamSearchDecoderOutput",
        "BeamSearchDecoderState",
        "FinalBeamSearchDecoderOutput",
        "gather_tree",
        "tile_batch",
    ),
}

_CRF = (
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
    return getattr(importlib.import_module(f"tensorfleet.seq2seq.{module}"), name)


for _names in _MODULES.values():
    publish_lazily(_load, *(f"contrib.seq2seq.{n}" for n in _names))


def _load_crf(full: str) -> Any:
    return getattr(importlib.import_module("tensorfleet.seq2seq.crf"), full.rpartition(".")[2])


publish_lazily(_load_crf, *(f"contrib.crf.{n}" for n in _CRF))

"""The names under `tf.contrib.seq2seq`, loaded when first used."""

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


def _load(full: str) -> Any:
    name = full.rpartition(".")[2]
    module = next(m for m, names in _MODULES.items() if name in names)
    return getattr(importlib.import_module(f"tensorfleet.seq2seq.{module}"), name)


for _names in _MODULES.values():
    publish_lazily(_load, *(f"contrib.seq2seq.{n}" for n in _names))

"""The names under `tf.contrib.seq2seq` and `tf.contrib.crf`, loaded when first used."""

from __future__ import annotations

from tensorfleet_legacy.lazy_names import publish_from

_MODULES = {
    "decoder": "BasicDecoder BasicDecoderOutput Decoder dynamic_decode",
    "helper": """
        CustomHelper GreedyEmbeddingHelper Helper InferenceHelper SampleEmbeddingHelper ScheduledEmbeddingTrainingHelper
        ScheduledOutputTrainingHelper TrainingHelper
    """,
    "attention_wrapper": "AttentionWrapper AttentionWrapperState",
    "attention_wrapper_mechanisms": """
        AttentionMechanism BahdanauAttention BahdanauMonotonicAttention LuongAttention LuongMonotonicAttention hardmax
    """,
    "attention_wrapper_monotonic": "monotonic_attention safe_cumprod",
    "beam_search_decoder": """
        BeamSearchDecoder BeamSearchDecoderOutput BeamSearchDecoderState FinalBeamSearchDecoderOutput gather_tree
        tile_batch
    """,
}
_CRF = """
    CrfDecodeBackwardRnnCell CrfDecodeForwardRnnCell CrfForwardRnnCell crf_binary_score crf_decode
    crf_log_likelihood crf_log_norm crf_multitag_sequence_score crf_sequence_score crf_unary_score viterbi_decode
"""
# What mechanisms of one's own are made of, under the names that TensorFlow has for it inside.
_INNER = {
    "attention_wrapper_mechanisms": """
        _BaseAttentionMechanism=BaseAttentionMechanism _BaseMonotonicAttentionMechanism=BaseMonotonicAttentionMechanism
        _bahdanau_score=bahdanau_score _luong_score=luong_score _maybe_mask_score=maybe_mask_score
        _prepare_memory=prepare_memory
    """,
    "attention_wrapper": "_compute_attention=compute_attention",
    "attention_wrapper_monotonic": "_monotonic_probability_fn=monotonic_probabilities",
}

for _module, _names in _MODULES.items():
    publish_from(f"seq2seq.{_module}", _names, "contrib.seq2seq")
for _module, _names in _INNER.items():
    publish_from(f"seq2seq.{_module}", _names, "contrib.seq2seq.python.ops.attention_wrapper")
publish_from("contrib.crf.crf", _CRF, "contrib.crf")

"""`tf.contrib.model_pruning`: small weights are masked while a model is trained. Read when a name is first used."""

from __future__ import annotations

from tensorfleet.base.naming import publish_module
from tensorfleet_legacy.lazy_names import publish_from

_MODULES = {
    "pruning": """
        Pruning apply_mask get_masked_weights get_masks get_pruning_hparams get_thresholds get_weight_sparsity
        get_weights
    """,
    "layers": "MaskedBasicLSTMCell MaskedLSTMCell masked_conv2d masked_convolution masked_fully_connected",
    "learning": "graph_def_from_checkpoint strip_pruning_vars_fn train",
}
for _module, _names in _MODULES.items():
    publish_from(f"contrib.model_pruning.{_module}", _names, "contrib.model_pruning")
for _place in ("pruning", "layers.layers", "layers.rnn_cells", "learning", "strip_pruning_vars_lib"):
    publish_module(f"contrib.model_pruning.python.{_place}", "contrib.model_pruning")

"""`tf.contrib.model_pruning`: small weights are masked while a model is trained. Read when a name is first used."""

from __future__ import annotations

import importlib
from typing import Any

from tensorfleet.base.naming import homes, publish_lazily, publish_module

_MODULES = {
    "pruning": """
        Pruning apply_mask get_masked_weights get_masks get_pruning_hparams get_thresholds get_weight_sparsity
        get_weights
    """,
    "layers": "MaskedBasicLSTMCell MaskedLSTMCell masked_conv2d masked_convolution masked_fully_connected",
    "learning": "graph_def_from_checkpoint strip_pruning_vars_fn train",
}
_HOMES = homes(
    (f"contrib.model_pruning.{name}", module) for module, names in _MODULES.items() for name in names.split()
)


def _load(full: str) -> Any:
    module = importlib.import_module(f"tensorfleet_legacy.contrib.model_pruning.{_HOMES[full]}")
    return getattr(module, full.rpartition(".")[2])


publish_lazily(_load, *_HOMES)
for _place in ("pruning", "layers.layers", "layers.rnn_cells", "learning", "strip_pruning_vars_lib"):
    publish_module(f"contrib.model_pruning.python.{_place}", "contrib.model_pruning")

"""`tf.contrib.slim.nets`: well-known networks for images. Each file is read when one of its names is used."""

from __future__ import annotations

import importlib
from typing import Any

from tensorfleet.base.naming import publish_lazily

_RESNET = "{0} {0}_50 {0}_101 {0}_152 {0}_200 {0}_block bottleneck resnet_arg_scope"
_NETS = {
    "alexnet": "alexnet_v2 alexnet_v2_arg_scope",
    "overfeat": "overfeat overfeat_arg_scope",
    "vgg": "vgg_a vgg_16 vgg_19 vgg_d vgg_e vgg_arg_scope",
    "resnet_utils": "Block conv2d_same resnet_arg_scope stack_blocks_dense subsample",
    "resnet_v1": _RESNET.format("resnet_v1"),
    "resnet_v2": _RESNET.format("resnet_v2"),
    "inception_v1": "inception_v1 inception_v1_arg_scope inception_v1_base",
    "inception_v2": "inception_v2 inception_v2_arg_scope inception_v2_base",
    "inception_v3": "inception_v3 inception_v3_arg_scope inception_v3_base",
}
# `nets.inception` has the names of all of them.
_NETS["inception"] = " ".join(_NETS[f"inception_v{n}"] for n in (1, 2, 3))
_PLACES = ("contrib.slim.nets", "contrib.slim.python.slim.nets")


def _load(name: str) -> Any:
    *_, module, leaf = name.split(".")
    if module == "inception":
        module = "_".join(leaf.split("_")[:2])
    imported = importlib.import_module(f"tensorfleet_legacy.contrib.slim.nets.{module}")
    return getattr(imported, leaf)


for _module, _names in _NETS.items():
    publish_lazily(_load, *(f"{place}.{_module}.{name}" for place in _PLACES for name in _names.split()))

"""The networks of Simonyan and Zisserman (2014): `vgg_a`, `vgg_16`, `vgg_19`."""

from __future__ import annotations

from collections.abc import Callable

from tensorfleet.api.variables.initializers import Zeros
from tensorfleet_legacy.contrib.framework.arg_scope import Scope
from tensorfleet_legacy.contrib.slim.nets.plain_network import network, plain_scope


def vgg_arg_scope(weight_decay: float = 0.0005) -> Scope:
    """The arguments for the layers of these networks: enter it with `slim.arg_scope`."""
    return plain_scope(weight_decay, Zeros())


def _vgg(name: str, counts: tuple[int, ...], does: str) -> Callable:
    def body() -> list[tuple]:
        rows: list[tuple] = []
        for i, (count, depth) in enumerate(zip(counts, (64, 128, 256, 512, 512), strict=True), 1):
            rows.append((f"conv{i}", "repeat", count, depth))
            rows.append((f"pool{i}", "max_pool2d", [2, 2], {}))
        return rows

    return network(name, body, (4096, 4096, 7), lambda: ({}, {}), does)


vgg_a = _vgg("vgg_a", (1, 1, 2, 2, 2), "Eleven layers; the logits and the end points.")
vgg_16 = _vgg("vgg_16", (2, 2, 3, 3, 3), "Sixteen layers; the logits and the end points.")
vgg_19 = _vgg("vgg_19", (2, 2, 4, 4, 4), "Nineteen layers; the logits and the end points.")
vgg_d, vgg_e = vgg_16, vgg_19

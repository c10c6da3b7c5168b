"""`tf.strings.unicode_script`: which script a character belongs to.

`unicode_scripts.txt` holds, in hexadecimal, the first of each run of characters of one script, and the script's number.
"""

from __future__ import annotations

import functools
from pathlib import Path

import numpy as np

from tensorfleet.base.naming import export
from tensorfleet.base.types import Array, ArrayModule, TensorLike
from tensorfleet.graph.apply import apply
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.registry import not_differentiable, op
from tensorfleet.ops.common import same_as_input
from tensorfleet.ops.samples import case

_LAST_CHARACTER = 0x10FFFF


@functools.cache
def _runs() -> tuple[Array, Array]:
    """(the first character, the script) of each run."""
    lines = (Path(__file__).parent / "unicode_scripts.txt").read_text().split()
    return np.array([int(f, 16) for f in lines[::2]], np.int32), np.array(lines[1::2], np.int32)


@op(
    "UnicodeScript",
    "input: int32 -> output: int32",
    shape=same_as_input,
    examples=[
        case(np.array([[65, 0x3B1], [0x416, 0x65E5]], np.int32)),
        case(np.array([-1, 0x110000, 33], np.int32)),
        case(np.array(0x5D0, np.int32)),
    ],
)
def _unicode_script(xp: ArrayModule, characters: Array) -> Array:
    firsts, scripts = _runs()
    known = (characters >= 0) & (characters <= _LAST_CHARACTER)
    run = xp.searchsorted(firsts, xp.clip(characters, 0, _LAST_CHARACTER), side="right") - 1
    return xp.where(known, xp.asarray(scripts)[run], np.int32(-1)).astype(np.int32)


not_differentiable("UnicodeScript")


@export("strings.unicode_script")
def unicode_script(input: TensorLike, name: str | None = None) -> Tensor:
    """The number of the script (as in ICU: 25 is Latin) of each character; -1 where there is no such character."""
    return apply("UnicodeScript", input, name=name)

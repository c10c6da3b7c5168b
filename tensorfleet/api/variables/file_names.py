"""Names of files kept in a variable, so that a pattern is matched once."""

from __future__ import annotations

from tensorfleet.api.variables.variable import Variable
from tensorfleet.base.naming import export
from tensorfleet.base.types import TensorLike
from tensorfleet.graph.scopes import GraphKeys, name_scope
from tensorfleet.ops.input.files import matching_files


@export("train.match_filenames_once", "io.match_filenames_once")
def match_filenames_once(pattern: TensorLike, name: str | None = None) -> Variable:
    """A local variable with the names that match a pattern when it is initialized."""
    with name_scope(name, "matching_filenames", [pattern]) as scope:
        return Variable(
            name=scope,
            initial_value=matching_files(pattern),
            trainable=False,
            validate_shape=False,
            collections=[GraphKeys.LOCAL_VARIABLES],
        )

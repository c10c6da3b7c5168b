"""`tf.contrib.input_pipeline`: the elements of a list one after the other, counted by a variable."""

from __future__ import annotations

import random
from typing import Any

from tensorfleet.api.variables.scope import get_variable, variable_scope
from tensorfleet.base import dtypes
from tensorfleet.base.naming import find
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import colocate_with, control_dependencies


def obtain_next(string_list_tensor: Any, counter: Any) -> Tensor:
    """The element behind the one that `counter` says, the first behind the last; `counter` moves with it."""
    size = find("size")(string_list_tensor, out_type=dtypes.int64)
    place = find("assign")(counter, find("floormod")(counter + 1, size))
    return find("gather")(string_list_tensor, place)


def seek_next(
    string_list: list, shuffle: bool = False, seed: Any = None, num_epochs: int | None = None
) -> Tensor:
    """The elements of a list, again and again, or `num_epochs` times: OutOfRangeError behind that.

    With `shuffle` each time in another order.
    """
    drawn = random.Random(seed) if seed else random.Random()

    def once() -> list:
        return drawn.sample(string_list, len(string_list)) if shuffle else list(string_list)

    elements = [element for _ in range(num_epochs or 1) for element in once()]
    with variable_scope("obtain_next"):
        counter = _kept("obtain_next_counter", -1, dtypes.int64)
        with colocate_with(counter):
            kept = _kept("obtain_next_expanded_list", elements, dtypes.string)
        if not num_epochs:
            return obtain_next(kept, counter)
        used = _kept("obtain_next_filename_counter", 0, dtypes.int64)
        with control_dependencies([find("count_up_to")(used, len(elements))]):
            return obtain_next(kept, counter)


def _kept(name: str, start: Any, dtype: Any) -> Any:
    first = find("constant")(start, dtype)
    return get_variable(name, dtype=dtype, initializer=first, trainable=False)

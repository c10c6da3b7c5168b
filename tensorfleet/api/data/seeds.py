"""The two seeds of a dataset: numbers, or tensors that are known when an iterator is initialized."""

from __future__ import annotations

from tensorfleet.base import dtypes
from tensorfleet.base.naming import export
from tensorfleet.graph.apply import apply
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Tensor
from tensorfleet.ops.random.ops import MAX_SEED, get_seed


@export("python.data.util.random_seed.get_seed")
def dataset_seeds(seed: Tensor | int | None) -> tuple[Tensor, Tensor]:
    """The two seeds of a dataset as int64 tensors: zeros when there is none, and never both of a given one."""
    # A tensor takes the place of the op's own seed; the graph's seed is found as for a number.
    first, second = get_seed(1 if isinstance(seed, Tensor) else seed)
    one = to_tensor(first or 0, dtypes.int64, name="seed")
    if not isinstance(seed, Tensor):
        return one, to_tensor(second or 0, dtypes.int64, name="seed2")
    tensor = to_tensor(seed, dtypes.int64)
    zero = to_tensor(0, dtypes.int64)
    most = to_tensor(MAX_SEED, dtypes.int64)
    # Both zero would ask for a random start.
    both = apply("LogicalAnd", apply("Equal", one, zero), apply("Equal", tensor, zero))
    return one, apply("Select", both, most, tensor, name="seed2")

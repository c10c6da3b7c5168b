"""The parts of TensorFlow's CTC loss (connectionist temporal classification), for tests of these parts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorfleet.base import dtypes, nest
from tensorfleet.base.naming import export, find
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.sparse_tensor import SparseTensor

_IMPOSSIBLE = float("-inf")


@export("python.ops.ctc_ops.dense_labels_to_sparse")
def dense_labels_to_sparse(dense: Any, length: Any) -> SparseTensor:
    """Rows of labels, each up to its length, as a sparse tensor as wide as the longest."""
    dense, length = to_tensor(dense), to_tensor(length)
    places = find("where")(find("sequence_mask")(length, find("shape")(dense)[1]))
    cast = find("cast")
    shape = [find("shape")(dense, out_type=dtypes.int64)[0], cast(find("reduce_max")(length), dtypes.int64)]
    return SparseTensor(places, cast(find("gather_nd")(dense, places), dtypes.int32), shape)


@export("python.ops.ctc_ops._sum_states")
def sum_states(idx: Any, states: Any) -> Tensor:
    """Logarithms of sums: of the states [frames, batch, n] that share an index [batch, n]."""
    states = to_tensor(states)
    chosen = find("one_hot")(idx, find("shape")(states)[2], 0.0, _IMPOSSIBLE)
    return find("reduce_logsumexp")(find("expand_dims")(states, 3) + chosen[None], axis=2)


@export("python.ops.ctc_ops._state_to_olabel")
def state_to_olabel(labels: Any, num_labels: int, states: Any) -> Tensor:
    """Logarithms of sums: of the states of each label; those of blanks come first."""
    length = labels.shape.as_list()[1] + 1
    of_labels, of_blanks = states[:, :, 1:length], states[:, :, length:]
    chosen = find("one_hot")(labels - 1, num_labels - 1, 0.0, _IMPOSSIBLE)
    summed = find("reduce_logsumexp")
    rest = summed(find("expand_dims")(of_labels, 3) + chosen[None], axis=2)
    return find("concat")([summed(of_blanks, axis=2, keepdims=True), rest], 2)


@export("python.ops.ctc_ops._state_to_olabel_unique")
def state_to_olabel_unique(labels: Any, num_labels: int, states: Any, unique: Any) -> Tensor:
    """The same, for labels of which the distinct ones are known already."""
    return state_to_olabel(labels, num_labels, states)


@export("python.ops.ctc_ops._scan")
def scan(
    fn: Callable,
    elems: Any,
    initial: Any,
    reverse: bool = False,
    inclusive: bool = False,
    final_only: bool = False,
) -> Any:
    """The results of a function of a state and each element in turn; `inclusive` begins with the first state."""
    elems = nest.map_structure(to_tensor, elems)
    first = nest.map_structure(to_tensor, initial)
    states = find("scan")(fn, elems, first, reverse=reverse)
    if final_only:
        return nest.map_structure(lambda s: s[0 if reverse else -1], states)
    if not inclusive:
        return states

    def with_first(state: Tensor, start: Tensor) -> Tensor:
        parts = [state, start[None]] if reverse else [start[None], state]
        return find("concat")(parts, 0)

    return nest.map_structure(with_first, states, first)

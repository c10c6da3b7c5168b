"""`tf.edit_distance`: how many insertions, deletions and replacements lie between two sequences."""

from __future__ import annotations

import math

import numpy as np

from tensorfleet.base import errors
from tensorfleet.base.naming import export
from tensorfleet.base.shapes import TensorShape
from tensorfleet.base.types import Array
from tensorfleet.graph.apply import apply
from tensorfleet.graph.kernel_types import HostContext
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.registry import not_differentiable, op
from tensorfleet.graph.sparse_tensor import SparseTensor, SparseTensorValue
from tensorfleet.ops.common import static_value
from tensorfleet.ops.samples import case
from tensorfleet.ops.sparse.arrange import sparse_rank

_PLACES = np.array([[0, 0], [0, 1], [1, 0]])
_SHAPE = np.array([2, 3])
_WORDS = np.array([b"a", b"b", b"c"], object)
# Elements of tables that are filled in at a time.
_MAX_TABLE_ELEMENTS = 1 << 17
# Pairs for which a call per column costs less than a running minimum.
_MIN_PARALLEL_PAIRS = 256


def _shape(op: Operation) -> TensorShape:
    for first in (0, 3):
        sparse_rank(op, first)
    left, right = static_value(op, 2), static_value(op, 5)
    if left is None or right is None:
        return TensorShape(None)
    if len(left) != len(right):
        raise ValueError(
            f"Num elements of hypothesis_shape does not match truth_shape: {len(left)} vs. {len(right)}"
        )
    if len(left) < 2:
        raise ValueError(
            f"Input Hypothesis SparseTensors must have rank at least 2, but hypothesis_shape rank is: {len(left)}"
        )
    return TensorShape([int(d) for d in np.maximum(left, right)[:-1]])


@op(
    "EditDistance",
    "hypothesis_indices: int64[2], hypothesis_values: T[1], hypothesis_shape: int64[1], "
    "truth_indices: int64[2], truth_values: T[1], truth_shape: int64[1] -> output: float",
    "normalize: bool = true; T: type",
    shape=_shape,
    host=True,
    examples=[
        case(_PLACES, np.array([1, 2, 3]), _SHAPE, _PLACES[1:], np.array([2, 4]), _SHAPE),
        case(_PLACES, _WORDS, _SHAPE, _PLACES[:1], _WORDS[1:2], _SHAPE + 1, normalize=False),
    ],
)
def _edit_distance(
    ctx: HostContext,
    places: Array,
    values: Array,
    shape: Array,
    t_places: Array,
    t_values: Array,
    t_shape: Array,
    *,
    normalize: bool,
) -> Array:
    outer = tuple(np.maximum(shape, t_shape)[:-1].tolist())
    if values.dtype == object:
        _, codes = np.unique(np.concatenate([values, t_values]), return_inverse=True)
        values, t_values = np.split(codes, [len(values)])
    mine, truth = _SparseSequences(places, values, outer), _SparseSequences(t_places, t_values, outer)
    steps, lengths = _distances(mine, truth), truth.lengths
    if normalize:
        with np.errstate(divide="ignore", invalid="ignore"):
            steps = np.where((lengths == 0) & (steps == 0), 0, steps / lengths)
    return steps.astype(np.float32).reshape(outer)


class _SparseSequences:
    """Sequences of values, by all but the last of their coordinates."""

    def __init__(self, places: Array, values: Array, outer: tuple[int, ...]) -> None:
        outside = ((places[:, :-1] < 0) | (places[:, :-1] >= np.array(outer, np.int64))).any(1)
        if outside.any():
            first = places[np.argmax(outside), :-1].tolist()
            raise errors.invalid(f"indices {first} are out of bounds of shape {outer}")
        total = math.prod(outer)
        owner = np.ravel_multi_index(tuple(places[:, :-1].T), outer) if len(places) else np.zeros(0, np.int64)
        self.values = values[np.argsort(owner, kind="stable")]
        self.lengths = np.bincount(owner, minlength=total)
        self.starts = np.cumsum(self.lengths) - self.lengths

    def rows(self, which: Array) -> Array:
        """Some of the sequences as a matrix; what is behind the end of one does not matter."""
        columns = np.arange(self.lengths[which].max(initial=0))
        places = np.minimum(self.starts[which, None] + columns, len(self.values) - 1)
        result: Array = self.values[places]
        return result


def _distances(mine: _SparseSequences, truth: _SparseSequences) -> Array:
    """Levenshtein's distance of each pair: of many pairs of about the same length at a time."""
    result = (mine.lengths + truth.lengths).astype(np.int64)  # when one of the two is empty
    both = np.flatnonzero((mine.lengths > 0) & (truth.lengths > 0))
    order = both[np.argsort(-truth.lengths[both], kind="stable")]
    while len(order):
        count = max(1, _MAX_TABLE_ELEMENTS // int(truth.lengths[order[0]]))
        some, order = order[:count], order[count:]
        result[some] = _table(mine.rows(some), truth.rows(some), mine.lengths[some], truth.lengths[some])
    return result


def _table(a: Array, b: Array, a_lengths: Array, b_lengths: Array) -> Array:
    """The distances of the rows of two matrices: a row of all tables at a time, their columns one behind the other."""
    a, b = a.T.copy(), b.T.copy()
    columns, pairs = np.arange(len(b) + 1, dtype=np.int32)[:, None], np.arange(a.shape[1])
    row = np.repeat(columns, len(pairs), 1)
    result = np.zeros(len(pairs), np.int64)
    for i, letters in enumerate(a):
        above = row
        row = above + 1
        np.minimum(row[1:], above[:-1] + (letters != b), row[1:])
        # An insertion costs one more than the place to the left: the lowest of all to the left, by distance.
        if len(pairs) >= _MIN_PARALLEL_PAIRS:
            for j in range(len(b)):
                np.minimum(row[j + 1], row[j] + 1, row[j + 1])
        else:
            row -= columns
            np.minimum.accumulate(row, 0, out=row)
            row += columns
        ended = a_lengths == i + 1
        result[ended] = row[b_lengths[ended], pairs[ended]]
    return result


not_differentiable("EditDistance")


@export("edit_distance")
def edit_distance(
    hypothesis: SparseTensor, truth: SparseTensor, normalize: bool = True, name: str | None = "edit_distance"
) -> Tensor:
    """The insertions, deletions and replacements from each sequence to its truth; over the truth's length if `normalize`.

    Sequences run along the last dimension of sparse tensors, as the CTC decoders give them.
    """
    given = []
    for label, sequence in (("Hypothesis", hypothesis), ("Truth", truth)):
        if not isinstance(sequence, (SparseTensor, SparseTensorValue)):
            raise TypeError(f"{label} must be a SparseTensor.")
        sparse = SparseTensor.from_value(sequence)
        given += [sparse.indices, sparse.values, sparse.dense_shape]
    return apply("EditDistance", *given, normalize=normalize, name=name)

"""`tf.edit_distance`: how many insertions, deletions and replacements lie between two sequences."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorfleet import errors
from tensorfleet.api import export
from tensorfleet.graph.apply import apply
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.registry import not_differentiable, op
from tensorfleet.graph.sparse_tensor import SparseTensor, SparseTensorValue
from tensorfleet.ops.common import static_value
from tensorfleet.ops.examples import case
from tensorfleet.shapes import TensorShape

_PLACES = np.array([[0, 0], [0, 1], [1, 0]])
_SHAPE = np.array([2, 3])
_WORDS = np.array([b"a", b"b", b"c"], object)


def _shape(op: Operation) -> TensorShape:
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
    "hypothesis_indices: int64, hypothesis_values: T, hypothesis_shape: int64, "
    "truth_indices: int64, truth_values: T, truth_shape: int64 -> output: float",
    "normalize: bool = true; T: type",
    shape=_shape,
    host=True,
    examples=[
        case(_PLACES, np.array([1, 2, 3]), _SHAPE, _PLACES[1:], np.array([2, 4]), _SHAPE),
        case(_PLACES, _WORDS, _SHAPE, _PLACES[:1], _WORDS[1:2], _SHAPE + 1, normalize=False),
    ],
)
def _edit_distance(
    ctx: Any,
    places: Any,
    values: Any,
    shape: Any,
    t_places: Any,
    t_values: Any,
    t_shape: Any,
    *,
    normalize: bool,
) -> Any:
    result = np.zeros(np.maximum(shape, t_shape)[:-1], np.float32)
    mine, truth = _sequences(places, values, result.shape), _sequences(t_places, t_values, result.shape)
    for where in mine.keys() | truth.keys():
        a, b = mine.get(where, []), truth.get(where, [])
        steps = _distance(a, b)
        result[where] = steps if not normalize else steps / len(b) if b else np.inf
    return result


def _sequences(places: Any, values: Any, shape: tuple) -> dict[tuple, list]:
    """The values by all but the last of their coordinates."""
    found: dict[tuple, list] = {}
    for place, value in zip(places[:, :-1].tolist(), values.tolist(), strict=True):
        if not all(0 <= i < size for i, size in zip(place, shape, strict=True)):
            raise errors.InvalidArgumentError(
                None, None, f"indices {place} are out of bounds of shape {shape}"
            )
        found.setdefault(tuple(place), []).append(value)
    return found


def _distance(a: list, b: list) -> int:
    """Levenshtein's: a row of the table at a time."""
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        above, row = row, [i]
        for j, y in enumerate(b, 1):
            row.append(min(above[j] + 1, row[-1] + 1, above[j - 1] + (x != y)))
    return row[-1]


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

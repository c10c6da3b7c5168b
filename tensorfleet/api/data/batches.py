"""Several elements as one, and one as several: batches and windows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorfleet.api.data.blocks import Block, Column, Element, column_of, joined, row
from tensorfleet.api.data.nodes import ColumnSlices, DatasetRun, DerivedRun
from tensorfleet.api.data.ragged import ragged_rows, stacked_ragged
from tensorfleet.base import errors
from tensorfleet.base.dtypes import DType
from tensorfleet.base.types import Array
from tensorfleet.graph.sparse_tensor import SparseTensorValue
from tensorfleet.ops.ragged.value import RaggedTensorValue

if TYPE_CHECKING:
    from tensorfleet.runtime.scheduling.step import ExecutionContext


def gathered(source: DatasetRun, n: int, step: ExecutionContext) -> Block | None:
    """Exactly `n` elements, fewer only at the end."""
    # Most sources give all that is asked for: then no list is made and nothing is joined.
    block = source.next(n, step)
    if block is None or block.size == n:
        return block
    parts, have = [block], block.size
    while have < n:
        more = source.next(n - have, step)
        if more is None:
            break
        parts.append(more)
        have += more.size
    return joined(parts)


def gathered_or_failed(source: DatasetRun, n: int, step: ExecutionContext) -> Block | None:
    """As `gathered`, but when one of the `n` elements fails, the others go with it. None of them is the end."""
    parts: list[Block] = []
    have = 0
    failure: errors.OpError | None = None
    while have < n:
        try:
            more = source.next(n - have, step)
        except (errors.CancelledError, errors.DeadlineExceededError):
            raise
        # The end of a sequence is told by None. A function that raises its error has failed, as in TensorFlow.
        except errors.OutOfRangeError as e:
            text = f"Function invocation produced OutOfRangeError: {e.message}"
            failure, have = failure or errors.invalid(text), have + 1
            continue
        except errors.OpError as e:
            # TensorFlow drops the whole batch of a failed element, and reports the first failure of it.
            failure, have = failure or e, have + 1
            continue
        if more is None:
            break
        parts.append(more)
        have += more.size
    if failure is not None:
        raise failure
    return joined(parts) if parts else None


class BatchRun(DerivedRun):
    """So many elements as one."""

    place = ("_failure",)
    pure = True

    def __init__(
        self,
        source: DatasetRun,
        size: int,
        drop: bool,
        stack: Callable[[Block], Element],
        gather: Callable[[DatasetRun, int, ExecutionContext], Block | None] = gathered,
    ) -> None:
        super().__init__(source)
        self._gather = gather
        self._size = size
        self._drop = drop
        self._stack = stack
        self._failure: errors.OpError | None = None

    def one(self, step: ExecutionContext) -> Element | None:
        """The components of the next batch."""
        self._raise_failure()
        block = self._gather(self.source, self._size, step)
        return None if block is None or (self._drop and block.size < self._size) else self._stack(block)

    def _raise_failure(self) -> None:
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure

    def next(self, n: int, step: ExecutionContext) -> Block | None:
        """The next batches."""
        elements: list[Element] = []
        places: list[Array] = []
        self._raise_failure()
        while len(elements) < n:
            try:
                block = self._gather(self.source, self._size, step)
                if block is None or (self._drop and block.size < self._size):
                    break
                elements.append(self._stack(block))
                if block.places is not None:
                    places.append(_all_places(block.places))
            except errors.OpError as e:
                if not elements:
                    raise
                self._failure = e
                break
        if len(elements) == 1:
            # One batch is the usual case: its arrays become rows of a view, without a copy.
            columns = [c[None] if isinstance(c, np.ndarray) else [c] for c in elements[0]]
            return Block(1, columns, places or None)
        if not elements:
            return None
        columns = [column_of(c) for c in zip(*elements, strict=True)]
        return Block(len(elements), columns, places if len(places) == len(elements) else None)


def _all_places(places: Column) -> Array:
    """The places of several elements as those of one."""
    return places if isinstance(places, np.ndarray) else np.concatenate([np.ravel(p) for p in places])


def stacked(block: Block) -> Element:
    """The components of a batch; InvalidArgumentError when the elements differ in shape."""
    return [_stacked(i, c) for i, c in enumerate(block.columns)]


def added(block: Block) -> Element:
    """As `stacked`, in the words of `map_and_batch`, which copies elements into the batch one after the other."""
    for column in block.columns:
        if isinstance(column, list) and not isinstance(column[0], (SparseTensorValue, RaggedTensorValue)):
            first = np.shape(column[0])
            for shape in map(np.shape, column):
                if shape != first:
                    raise errors.invalid(
                        "Cannot add tensor to the batch: number of elements does not match. Shapes are: [tensor]: "
                        f"{_dims(shape)}, [batch]: {_dims(first)}"
                    )
    return stacked(block)


def _stacked(i: int, column: Column) -> Any:
    if not isinstance(column, list):
        return column
    if isinstance(column[0], SparseTensorValue):
        return _stacked_sparse(column)
    if isinstance(column[0], RaggedTensorValue):
        return stacked_ragged(column)
    first = np.shape(column[0])
    for k, value in enumerate(column):
        if np.shape(value) != first:
            raise errors.invalid(
                f"Cannot batch tensors with different shapes in component {i}. First element had shape "
                f"{_dims(first)} and element {k} had shape {_dims(np.shape(value))}."
            )
    return column_of(column)


def _dims(shape: Sequence[int]) -> str:
    return "[" + ",".join(map(str, shape)) + "]"


def _stacked_sparse(values: list[SparseTensorValue]) -> SparseTensorValue:
    counts = [len(v.indices) for v in values]
    rows = np.repeat(np.arange(len(values)), counts)[:, None]
    indices = np.concatenate([np.asarray(v.indices, np.int64) for v in values])
    shapes = np.array([v.dense_shape for v in values], np.int64)
    return SparseTensorValue(
        np.concatenate([rows, indices], axis=1),
        np.concatenate([np.asarray(v.values) for v in values]),
        np.concatenate([[len(values)], shapes.max(axis=0)]),
    )


def padder(
    shapes: Sequence[Sequence[int]], fills: Sequence[Any], types: Sequence[DType]
) -> Callable[[Block], Element]:
    """Stacks elements after filling them up: to `shapes`, or where these say -1 to the largest of the batch."""

    def stack(block: Block) -> Element:
        columns = zip(block.columns, shapes, fills, types, strict=True)
        return [_padded(i, *each) for i, each in enumerate(columns)]

    return stack


def _padded(i: int, column: Column, wanted: Sequence[int], fill: Any, dtype: DType) -> Any:
    if isinstance(column, list) and isinstance(column[0], (SparseTensorValue, RaggedTensorValue)):
        return _stacked(i, column)
    given = [np.shape(v) for v in column]
    for shape in given:
        if len(shape) != len(wanted):
            raise errors.invalid(
                f"All elements in a batch must have the same rank as the padded shape for component{i}: expected rank "
                f"{len(wanted)} but got element with rank {len(shape)}"
            )
    target = [max(s[k] for s in given) if d < 0 else d for k, d in enumerate(wanted)]
    for shape in given:
        over = [k for k, d in enumerate(target) if shape[k] > d]
        if over:
            raise errors.DataLossError(
                None,
                None,
                f"Attempted to pad to a smaller size than the input element: component {i} has shape {_dims(shape)}, "
                f"the padded shape is {_dims(target)}.",
            )
    # All elements have the size already: nothing is copied.
    if not isinstance(column, list) and list(column.shape[1:]) == target:
        return column
    out = np.full((len(given), *target), fill, dtype.np_dtype)
    for k, (value, shape) in enumerate(zip(column, given, strict=True)):
        place: tuple[int | slice, ...] = (k, *(slice(d) for d in shape))
        out[place] = value
    return out


class UnbatchRun(DerivedRun):
    """The rows of elements, as elements."""

    place = ("_block",)
    pure = True

    def __init__(self, source: DatasetRun) -> None:
        super().__init__(source)
        self._block: Block | None = None

    def next(self, n: int, step: ExecutionContext) -> Block | None:
        """The next rows."""
        while self._block is None or not self._block.size:
            block = self.source.next(1, step)
            if block is None:
                return None
            columns = [rows_of(row(c, 0)) for c in block.columns]
            sizes = {len(c) for c in columns}
            if len(sizes) > 1:
                raise errors.invalid("Input element must have the same batch size in each component.")
            size = sizes.pop()
            places = None if block.places is None else np.ravel(block.places[0])
            if places is not None and len(places) != size:
                # A batch that was read as one record: each of its rows comes from it.
                places = np.resize(places, size) if len(places) == 1 else None
            self._block = Block(size, columns, places)
        block, rest = self._block, None
        if block.size > n:
            block, rest = block.part(0, n), block.part(n, block.size)
        self._block = rest
        return block


def rows_of(value: Any) -> Column:
    """The rows of a component."""
    if isinstance(value, RaggedTensorValue):
        return ragged_rows(value)
    if not isinstance(value, SparseTensorValue):
        rows: Column = value
        return rows
    indices, shape = np.asarray(value.indices), np.asarray(value.dense_shape)
    result = []
    for i in range(int(shape[0])):
        mine = indices[:, 0] == i
        result.append(SparseTensorValue(indices[mine][:, 1:], np.asarray(value.values)[mine], shape[1:]))
    return result


class WindowRun(DerivedRun):
    """Neighbouring elements as datasets, one per component."""

    place = ("_block", "_ended", "_gap")

    def __init__(self, source: DatasetRun, size: int, shift: int, stride: int, drop: bool) -> None:
        super().__init__(source)
        self._size, self._shift, self._stride, self._drop = size, shift, stride, drop
        self._block: Block | None = None
        self._ended = False
        self._gap = 0

    def next(self, n: int, step: ExecutionContext) -> Block | None:
        """The next window."""
        reach = (self._size - 1) * self._stride + 1
        # Windows may be further apart than they are long: the elements between them are passed over.
        while self._gap and not self._ended:
            passed = self.source.next(self._gap, step)
            self._ended = passed is None
            self._gap -= passed.size if passed is not None else 0
        have = 0 if self._block is None else self._block.size
        if not self._ended and have < reach:
            more = gathered(self.source, reach - have, step)
            if more is None:
                self._ended = True
            else:
                self._block = more if not have or self._block is None else joined([self._block, more])
        block = self._block
        if block is None or not block.size or (self._drop and block.size < reach):
            return None
        window = block.pick(np.arange(0, min(block.size, reach), self._stride))
        self._gap = max(0, self._shift - block.size)
        self._block = block.part(self._shift, block.size) if self._shift < block.size else None
        return Block(1, [[ColumnSlices([c], window.size, window.places)] for c in window.columns])

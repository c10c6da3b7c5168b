"""Accumulators as the runtime keeps them: sums of gradients that are not stale, taken once there are enough.

A gradient carries the step it was computed for. One from before the accumulator's own step is dropped, and counted
in `dropped` under its worker. Taking needs a number of gradients; it gives their mean or sum and advances the step by one.
"""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tensorfleet.base import errors
from tensorfleet.base.shapes import TensorShape, shape_text
from tensorfleet.kernels.aligned_memory import is_fixed
from tensorfleet.state.long_waits import Awaited
from tensorfleet.state.queues import COMPLETE, STUCK, Attempt, Signal


def maximums(counts: Sequence[Mapping[str, int]]) -> dict[str, int]:
    """The largest count of each owner. The gradients of one step go to one accumulator for each variable."""
    result: dict[str, int] = {}
    for one in counts:
        for owner, count in one.items():
            result[owner] = max(result.get(owner, 0), count)
    return result


class TakeGradientAttempt(Attempt):
    """Takes the accumulated gradient, once it consists of enough gradients."""

    __slots__ = ("required", "result")
    verb = "TakeGrad"

    def __init__(self, required: int) -> None:
        super().__init__()
        self.required = required
        self.result: Any = None

    def advance(self, queue: Accumulator) -> int:
        """Takes the average once enough gradients have come."""
        if queue.count < self.required:
            return STUCK
        self.result = queue.finish()
        return COMPLETE


class Accumulator(Awaited):
    """The sum of dense gradients."""

    def __init__(self, name: str, shape: TensorShape, reduction: str) -> None:
        super().__init__()
        self.name = name
        self.shape = shape
        self.reduction = reduction
        self.count = 0
        self.step = 0
        self.dropped: Counter[str] = Counter()
        #: gradients added and means taken so far
        self.applied = self.taken = 0
        self._sum: Any = None
        self._lock = threading.Lock()
        self._taking: deque[Attempt] = deque()

    def apply(self, local_step: int, *gradient: np.ndarray | None, owner: str = "") -> bool:
        """Adds a gradient; False when it is stale."""
        with self._lock:
            if self.recorder is not None:
                self.recorder.changed(self)
            if local_step < self.step:
                self.dropped[owner] += 1
                return False
            self._add(*gradient)
            self.count += 1
            self.applied += 1
            # Whoever takes goes on when this thread waits: for a token, say, in the line of those that the update brings.
            self._serve()
        return True

    def fullness(self) -> str:
        """How many gradients there are, in words."""
        return f"{self.count} gradients for step {self.step}"

    def set_step(self, step: int) -> None:
        """Gradients computed for earlier steps are stale from now on."""
        with self._lock:
            self.step = step
            if self.recorder is not None:
                self.recorder.changed(self)

    def try_now(self, attempt: Attempt) -> bool:
        """Takes if that is possible now, with a recorder. If not, the event of the attempt tells when to try again."""
        with self._lock:
            if attempt.done:
                return True
            if attempt not in self._taking:
                self._taking.append(attempt)
            if self._taking[0] is attempt and attempt.advance(self) == COMPLETE:
                self._taking.popleft()
                attempt.done = True
                if self.recorder is not None:
                    self.recorder.changed(self)
                self._serve()
            attempt.event = Signal()
            return attempt.done

    def submit(self, attempt: Attempt) -> bool:
        """Starts taking. True when that is complete at once; otherwise its event tells."""
        with self._lock:
            self._taking.append(attempt)
            self._serve()
            if not attempt.done:
                attempt.event = Signal()
            return attempt.done

    def withdraw(self, attempt: Attempt) -> bool:
        """Takes an attempt back; False when it is complete already."""
        with self._lock:
            if attempt.done:
                return False
            self._taking.remove(attempt)
            self._serve()
            return True

    def clear(self) -> None:
        """Drops everything: the container that held the accumulator is gone."""
        with self._lock:
            self.count, self._sum = 0, None
            while self._taking:
                attempt = self._taking.popleft()
                attempt.error = errors.CancelledError(None, None, f"{attempt.verb} operation was cancelled")
                attempt.finish()

    def content(self) -> tuple[dict[str, Any], list[Any]]:
        """Its state for a copy: numbers, and arrays."""
        numbers = {
            "count": self.count,
            "step": self.step,
            "applied": self.applied,
            "taken": self.taken,
            "dropped": dict(self.dropped),
        }
        return numbers, self._arrays()

    def restore(self, numbers: dict[str, Any], arrays: Sequence[Any]) -> None:
        """Takes over the state of a copy."""
        self.count, self.step = numbers["count"], numbers["step"]
        self.applied, self.taken = numbers["applied"], numbers["taken"]
        self.dropped = Counter(numbers["dropped"])
        self._set_arrays(arrays)

    def _arrays(self) -> list[Any]:
        return [] if self._sum is None else [self._sum]

    def _set_arrays(self, arrays: Sequence[Any]) -> None:
        self._sum = np.array(arrays[0]) if arrays else None

    def _serve(self) -> None:
        if self.recorder is not None:
            if self._taking and self._taking[0].event is not None:
                self._taking[0].event.set()
            return
        while self._taking and self._taking[0].advance(self) == COMPLETE:
            self._taking.popleft().finish()

    def finish(self) -> Any:
        """The accumulated gradient; the accumulator starts again for the next step."""
        total, self._sum = self._reduced(), None
        self.count = 0
        self.taken += 1
        self.step += 1
        return total

    def _add(self, *gradients: Any) -> None:
        (gradient,) = gradients
        if not self.shape.is_compatible_with(gradient.shape):
            raise errors.invalid(
                f"Shape mismatch: expected {shape_text(self.shape._d)}, got {shape_text(gradient.shape)}"
            )
        if not self.count:
            # An array that nobody can change is kept as it is; the second gradient makes the sum a new array.
            self._sum = gradient if is_fixed(gradient) else np.array(gradient)
        elif self._sum.shape != gradient.shape:
            raise errors.invalid(
                f"Shape mismatch: expected {shape_text(self._sum.shape)}, got {shape_text(gradient.shape)}"
            )
        elif self._sum.flags.writeable:
            self._sum += gradient
        else:
            self._sum = np.add(self._sum, gradient)

    def _reduced(self) -> Any:
        # The division below is in place, and a single gradient may be an array that others hold.
        total = self._sum if self._sum.flags.writeable else np.array(self._sum)
        if self.reduction == "MEAN" and self.count > 1:
            total = np.divide(total, total.dtype.type(self.count), out=total, casting="unsafe")
        return total


class SparseAccumulator(Accumulator):
    """The sum of gradients that are given for some rows.

    The mean of a row is over those that had it or, with `over_all`, over all of them: then it is what one
    gradient of all their data would be.
    """

    def __init__(self, name: str, shape: TensorShape, reduction: str, over_all: bool = False) -> None:
        super().__init__(name, shape, reduction)
        self._over_all = over_all

    def _arrays(self) -> list[Any]:
        return [] if self._sum is None else list(self._sum)

    def _set_arrays(self, arrays: Sequence[Any]) -> None:
        self._sum = tuple(np.array(array) for array in arrays) if arrays else None

    def _add(self, *gradients: Any) -> None:
        indices, values, dims = gradients
        self._check(indices, values, dims)
        rows, where = np.unique(indices, return_inverse=True)
        if len(rows) == len(indices):
            part = values[np.argsort(indices)]
        else:
            part = np.zeros((len(rows), *values.shape[1:]), values.dtype)
            # `part[where] += values` would count only one of several equal rows.
            np.add.at(part, where.reshape(-1), values)
        seen = np.ones(len(rows), np.int64)
        if not self.count:
            self._sum = rows, np.array(part), seen
            return
        old_rows, old_values, old_seen = self._sum
        # Rows stay sorted and distinct, so that each side below is added without repeated indices.
        merged = np.union1d(old_rows, rows)
        total = np.zeros((len(merged), *values.shape[1:]), values.dtype)
        counts = np.zeros(len(merged), np.int64)
        for r, v, n in ((old_rows, old_values, old_seen), (rows, part, seen)):
            at = np.searchsorted(merged, r)
            total[at] += v
            counts[at] += n
        self._sum = merged, total, counts

    def _check(self, indices: np.ndarray, values: np.ndarray, dims: np.ndarray | None) -> None:
        if indices.ndim != 1:
            raise errors.invalid(
                f"Input indices should be vector but received shape: {shape_text(indices.shape)}"
            )
        if values.ndim == 0:
            raise errors.invalid("Values cannot be 0-dimensional.")
        if len(indices) != len(values):
            raise errors.invalid(f"Expected {len(indices)} non-empty input values, got {len(values)}")
        for limits in (() if dims is None else dims.tolist(), self.shape._d or ()):
            if limits and limits[0] is not None and len(indices):
                _check_rows(indices, int(limits[0]))
        if self.shape._d is not None:
            if dims is not None:
                _same_dims(self.shape._d, dims.tolist(), "shape", 0)
            _same_dims(self.shape._d, values.shape, "values", 1)
        if self.count:
            if values.ndim != self._sum[1].ndim:
                raise errors.invalid(
                    f"Shape mismatch: expected values rank {self._sum[1].ndim}, got {values.ndim}"
                )
            _same_dims((None, *self._sum[1].shape[1:]), values.shape, "values", 1)

    def _reduced(self) -> Any:
        rows, values, seen = self._sum
        if self.reduction == "MEAN" and self._over_all:
            values = np.divide(values, values.dtype.type(self.count), out=values, casting="unsafe")
        elif self.reduction == "MEAN":
            column = seen.reshape(-1, *[1] * (values.ndim - 1)).astype(values.dtype)
            values = (values / column).astype(values.dtype, copy=False)
        # The number of rows is the accumulator's, as far as it is known; the rest is that of the gradients.
        dims = [(self.shape._d or [None])[0], *values.shape[1:]]
        dims[0] = -1 if dims[0] is None else dims[0]
        return rows, values, np.array(dims, np.int64)


def _check_rows(indices: np.ndarray, rows: int) -> None:
    where = int(np.argmax(indices))
    if 0 <= rows <= indices[where]:
        raise errors.invalid(
            f"Shape mismatch: index of slice {where} exceeded limits of shape; index is {int(indices[where])} "
            f"exceeded {rows}"
        )


def _same_dims(want: Sequence[int | None], got: Sequence[int], what: str, start: int) -> None:
    if len(got) < len(want):
        raise errors.invalid(f"Shape mismatch: expected {what} rank at least {len(want)}, got {len(got)}")
    for i in range(start, len(want)):
        expected = want[i]
        if expected is not None and got[i] >= 0 and expected != got[i]:
            raise errors.invalid(f"Shape mismatch: expected {what} dim {i} to be {expected}, got {got[i]}")

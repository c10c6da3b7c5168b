"""From a dataset to the elements of each replica."""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, cast

import numpy as np

from tensorfleet.api.data.iterator import make_initializable, make_one_shot
from tensorfleet.api.data.structure import flatten, pack_like
from tensorfleet.api.distribute.reducing import placed
from tensorfleet.api.distribute.values import regroup
from tensorfleet.base import dtypes
from tensorfleet.base.nest import flatten as flat_nest
from tensorfleet.base.nest import pack_sequence_as
from tensorfleet.base.properties import readonly
from tensorfleet.graph.apply import apply
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.scopes import control_dependencies
from tensorfleet.graph.sparse_tensor import SparseTensor

if TYPE_CHECKING:
    from tensorfleet.api.data.dataset import Dataset
    from tensorfleet.api.distribute.extended import StrategyExtended


class InputReplicationMode(enum.Enum):
    """How often an input function is called: once per worker."""

    PER_WORKER = "PER_WORKER"


class InputContext:
    """The argument of an input function: which of how many pipelines it makes, for how many replicas."""

    def __init__(
        self, num_input_pipelines: int = 1, input_pipeline_id: int = 0, num_replicas_in_sync: int = 1
    ) -> None:
        self._num_input_pipelines = num_input_pipelines
        self._input_pipeline_id = input_pipeline_id
        self._num_replicas_in_sync = num_replicas_in_sync

    num_input_pipelines: int = readonly(
        "_num_input_pipelines", "How many pipelines there are: one per worker."
    )
    input_pipeline_id: int = readonly("_input_pipeline_id", "The number of this pipeline.")
    num_replicas_in_sync: int = readonly(
        "_num_replicas_in_sync", "How many replicas there are, on all workers."
    )

    def get_per_replica_batch_size(self, global_batch_size: int) -> int:
        """A replica's part of a batch; ValueError when it cannot be divided equally."""
        if global_batch_size % self._num_replicas_in_sync:
            raise ValueError(
                f"The `global_batch_size` {global_batch_size} is not divisible by `num_replicas_in_sync` "
                f"{self._num_replicas_in_sync}"
            )
        return global_batch_size // self._num_replicas_in_sync


class InputIterator:
    """An iterator whose elements are one value per replica."""

    def __init__(self, extended: StrategyExtended, iterator: Any, divided: bool) -> None:
        self._extended, self._iterator, self._divided = extended, iterator, divided

    @property
    def initializer(self) -> Operation:
        """The operation that starts the iterator."""
        initializer: Operation = self._iterator.initializer
        return initializer

    def initialize(self) -> list[Operation] | Operation:
        """The operation that starts the iterator; nothing to do for one that starts itself."""
        return self._iterator.initializer if self._iterator._initializer is not None else []

    def get_next(self, name: str | None = None) -> Any:
        """The next element of each replica: a part of one batch, or each its own."""
        devices = self._extended.worker_devices
        if self._divided:
            return self._parts(self._next(name), devices)
        elements: list[Any] = []
        for where in devices:
            with placed(where), control_dependencies([] if not elements else _first_tensor(elements[-1])):
                elements.append(self._next(name))
        return regroup(elements)

    def _next(self, name: str | None) -> Any:
        return self._iterator.get_next(name)

    def _parts(self, element: object, devices: Sequence[str]) -> Any:
        total, first = self._extended._num_replicas_in_sync, self._extended._first_replica
        if total == 1:
            return element
        structure = self._iterator._structure
        leaves = flatten(element)
        elements = []
        for i, where in enumerate(devices):
            with placed(where):
                parts = [divided(leaf, first + i, total) for leaf in leaves]
            elements.append(pack_like(structure, parts))
        return regroup(elements)


def _first_tensor(element: object) -> list[Tensor]:
    first = flat_nest(element)[0]
    return [first.values if isinstance(first, SparseTensor) else first]


def divided(batch: Tensor | SparseTensor, index: int, total: int) -> Tensor | SparseTensor:
    """Part number `index` of a batch in `total` parts: equal ones, but for the last when they do not come out even."""
    if isinstance(batch, SparseTensor):
        return _divided_sparse(batch, index, total)
    if not isinstance(batch, Tensor) or batch.shape.rank == 0:
        raise ValueError(
            f"A dataset whose elements are divided among replicas must be batched: {batch} has no first dimension. "
            "Call dataset.batch(...) with the batch size of all replicas together."
        )
    known = None if batch.shape.rank is None else batch.shape.as_list()[0]
    if known and known % total == 0:
        part = known // total
        return batch[index * part : (index + 1) * part]
    begin, end = _bounds(apply("Shape", batch, out_type=dtypes.int32)[0], index, total)
    rows = batch[begin:end]
    if batch.shape.rank is not None:
        rows.set_shape([None, *batch.shape.as_list()[1:]])
    return rows


def _bounds(size: Tensor, index: int, total: int) -> tuple[Any, Any]:
    part = apply("FloorDiv", size + (total - 1), total)
    return apply("Minimum", part * index, size), apply("Minimum", part * (index + 1), size)


def _divided_sparse(batch: SparseTensor, index: int, total: int) -> SparseTensor:
    from tensorfleet.ops.sparse.arrange import sparse_slice

    shape = batch.dense_shape
    begin, end = _bounds(apply("Cast", shape[0], DstT=dtypes.int32), index, total)
    rest = apply("Cast", shape[1:], DstT=dtypes.int32)
    start = apply("ConcatV2", [begin[None], rest * 0], 0)
    size = apply("ConcatV2", [(end - begin)[None], rest], 0)
    start, size = (apply("Cast", t, DstT=dtypes.int64) for t in (start, size))
    return sparse_slice(batch, start, size)


class DistributedDataset:
    """A dataset whose batches are divided among replicas; `tf.data.make_initializable_iterator` takes it."""

    def __init__(self, extended: StrategyExtended, dataset: Dataset, divided: bool) -> None:
        self._extended, self._dataset, self._divided = extended, dataset, divided
        self._structure = dataset._structure

    def make_initializable_iterator(self, shared_name: str | None = None) -> InputIterator:
        """An iterator whose `initializer` must be run first."""
        return InputIterator(self._extended, make_initializable(self._dataset, shared_name), self._divided)

    def make_one_shot_iterator(self) -> InputIterator:
        """An iterator that needs no initializer."""
        return InputIterator(self._extended, make_one_shot(self._dataset), self._divided)

    def __iter__(self) -> NoReturn:
        raise RuntimeError(
            "A dataset is run through in Python only with eager execution: use tf.data.make_initializable_iterator."
        )


class FunctionIterator(InputIterator):
    """An iterator over the result of an input function: a dataset, or a function that makes the tensors of an element."""

    def __init__(self, extended: Any, given: Dataset | Callable[[], Any]) -> None:
        self._function: Callable[[], Any] | None = None
        if callable(given) and not hasattr(given, "_variant_tensor"):
            self._function = given
            super().__init__(extended, None, False)
        else:
            super().__init__(extended, make_initializable(cast("Dataset", given), None), False)

    def initialize(self) -> list[Operation] | Operation:
        """The operation that starts the dataset's iterator; a function needs none."""
        return [] if self._function is not None else super().initialize()

    def _next(self, name: str | None) -> Any:
        return super()._next(name) if self._function is None else self._function()


def numpy_dataset(numpy_input: object) -> Dataset:
    """A dataset of the rows of a nest of arrays."""
    from tensorfleet.api.data.dataset import Dataset

    flat = [np.asarray(a) for a in flat_nest(numpy_input)]
    packed = pack_sequence_as(numpy_input, flat)
    return Dataset.from_tensor_slices(tuple(packed) if isinstance(packed, list) else packed)

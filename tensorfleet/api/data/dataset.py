"""`tf.data.Dataset`: sequences of elements, made step by step from others."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NoReturn

from tensorfleet.api.autograph.iterables import Sequenced, register
from tensorfleet.api.data import structure as structures
from tensorfleet.api.data.functions import Traced, as_in_contrib, traced
from tensorfleet.api.data.iterator import Iterator, make_initializable, make_one_shot
from tensorfleet.api.data.legacy_methods import LegacyMethods
from tensorfleet.api.data.options import Options
from tensorfleet.api.data.padding import padded_shape, padding, static_shape
from tensorfleet.api.data.seeds import dataset_seeds
from tensorfleet.api.data.specs import DatasetSpec, Described
from tensorfleet.api.data.structure import Leaf, Nested, Structure, flatten, map_leaves, pack_like
from tensorfleet.base import dtypes
from tensorfleet.base.naming import export
from tensorfleet.base.shapes import TensorShape
from tensorfleet.base.types import TensorLike
from tensorfleet.graph.apply import apply, apply_list
from tensorfleet.graph.constant import constant_value
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.sparse_tensor import SparseTensor
from tensorfleet.graph.subgraph import extract_sub_graph


def _int64(value: TensorLike, name: str) -> Tensor:
    return to_tensor(value, dtypes.int64, name=name)


@export("data.Dataset", "contrib.data.Dataset")
class Dataset(LegacyMethods, Described):
    """A sequence of elements, each of the same structure. Every method returns a new dataset."""

    _called: tuple[Traced, ...] = ()

    def __init__(self) -> None:
        self._variant_tensor: Any = None
        self._structure = None  # type: ignore[assignment]  # subclasses set it
        self._sources: tuple[Dataset, ...] = ()

    @staticmethod
    def _make(
        op_type: str, structure: Structure, *inputs: Any, sources: Iterable[Dataset] = (), **attrs: Any
    ) -> Dataset:
        """The dataset that an operation makes."""
        result: Dataset = Dataset.__new__(Dataset)
        result._set(op_type, structure, *inputs, sources=sources, **attrs)
        return result

    def _set(
        self, op_type: str, structure: Structure, *inputs: Any, sources: Iterable[Dataset] = (), **attrs: Any
    ) -> None:
        if op_type not in _UNDECLARED:
            attrs |= structures.declared(structure)
            if op_type in _TYPED_BY_INPUTS:
                del attrs["output_types"]
        self._variant_tensor = apply(op_type, *inputs, **attrs)
        self._structure = structure
        self._sources = tuple(sources)

    def _transformed(self, op_type: str, structure: Structure, *inputs: Any, **attrs: Any) -> Dataset:
        return Dataset._make(op_type, structure, self._variant_tensor, *inputs, sources=(self,), **attrs)

    def _transformed_by(
        self, op_type: str, structure: Structure, function: Traced, *inputs: Any, **attrs: Any
    ) -> Dataset:
        attrs.setdefault("f", function.name)
        result: Dataset = self._transformed(op_type, structure, function.captured, *inputs, **attrs)
        result._called = (function,)
        return result

    def _inputs(self) -> list[Dataset]:
        """The datasets that this one is made from."""
        return list(self._sources)

    def _functions(self) -> list[Traced]:
        """The functions that are called with its elements."""
        return list(self._called)

    def _as_serialized_graph(self) -> Tensor:
        """The graph that makes this dataset, as a serialized GraphDef."""
        whole = self._variant_tensor.graph.as_graph_def()
        return to_tensor(extract_sub_graph(whole, [self._variant_tensor.op.name]).SerializeToString())

    @property
    def _type_spec(self) -> DatasetSpec:
        return DatasetSpec(self.element_spec)

    def __repr__(self) -> str:
        types = str(map_leaves(lambda leaf: repr(leaf.dtype), self._structure)).replace("'", "")
        shapes = str(map_leaves(lambda leaf: str(leaf.shape), self._structure)).replace("'", "")
        # The class that TensorFlow 1.15 shows for every transformation.
        name = "DatasetV1Adapter" if type(self) is Dataset else type(self).__name__
        return f"<{name} shapes: {shapes}, types: {types}>"

    def __iter__(self) -> NoReturn:
        raise RuntimeError("dataset.__iter__() is only supported when eager execution is enabled.")

    def options(self) -> Options:
        """The options of this dataset and those it is made from."""
        merged = Options()
        for source in self._sources:
            merged = merged.merge(source.options())
        own = getattr(self, "_options", None)
        return merged.merge(own) if own is not None else merged

    def with_options(self, options: Options) -> Dataset:
        """The same dataset with options set."""
        # Raises where the new options contradict those of the datasets before.
        self.options().merge(options)
        result: Dataset = Dataset.__new__(Dataset)
        result._variant_tensor, result._structure, result._sources = (
            self._variant_tensor,
            self._structure,
            (self,),
        )
        result._options = options  # type: ignore[attr-defined]
        return result

    # -- iterators --

    def make_one_shot_iterator(self) -> Iterator:
        """An iterator over this dataset that needs no initializer."""
        return make_one_shot(self)

    def make_initializable_iterator(self, shared_name: str | None = None) -> Iterator:
        """An iterator whose `initializer` must be run first."""
        return make_initializable(self, shared_name)

    # -- sources --

    @staticmethod
    def from_tensors(tensors: Nested) -> Dataset:
        """A dataset of one element."""
        value = structures.converted(tensors)
        structure = map_leaves(structures.leaf_of, value)
        return Dataset._make("TensorDataset", structure, structures.carried(value))

    @staticmethod
    def from_tensor_slices(tensors: Nested) -> Dataset:
        """A dataset of the rows of tensors."""
        value = structures.converted(tensors)
        leaves = []
        size = TensorShape([None])
        for leaf in map(structures.leaf_of, flatten(value)):
            if leaf.shape.rank == 0:
                raise ValueError("Unbatching a tensor is only supported for rank >= 1")
            if leaf.shape.rank is not None:
                size = size.merge_with(TensorShape(leaf.shape.as_list()[:1]))
            leaves.append(leaf.row())
        return Dataset._make("TensorSliceDataset", pack_like(value, leaves), structures.carried(value))

    @staticmethod
    def from_sparse_tensor_slices(sparse_tensor: SparseTensor) -> Dataset:
        """A dataset of the rows of a sparse tensor, as (indices, values, dense_shape)."""
        if not isinstance(sparse_tensor, SparseTensor):
            raise TypeError(f"`sparse_tensor` must be a `tf.SparseTensor` object. Was {sparse_tensor}.")
        rank = sparse_tensor.get_shape().rank
        inner = None if rank is None else rank - 1
        structure = (
            Leaf(dtypes.int64, TensorShape([None, inner])),
            Leaf(sparse_tensor.dtype, TensorShape([None])),
            Leaf(dtypes.int64, TensorShape([inner])),
        )
        parts = sparse_tensor.indices, sparse_tensor.values, sparse_tensor.dense_shape
        return Dataset._make("SparseTensorSliceDataset", structure, *parts)

    @staticmethod
    def from_generator(
        generator: Callable[..., Any],
        output_types: Nested,
        output_shapes: Nested = None,
        args: Iterable[TensorLike] | None = None,
    ) -> Dataset:
        """A dataset of the elements of a Python generator, which is called anew for every run through the dataset."""
        from tensorfleet.api.data.generators import from_generator

        return from_generator(generator, output_types, output_shapes, args)

    @staticmethod
    def range(*args: TensorLike) -> Dataset:
        """Numbers, as Python's `range` gives them."""
        if not 1 <= len(args) <= 3:
            raise ValueError(f"Invalid arguments to RangeDataset: {args}")
        start, stop, step = (0, args[0], 1) if len(args) == 1 else (*args, 1)[:3]
        given = _int64(start, "start"), _int64(stop, "stop"), _int64(step, "step")
        return Dataset._make("RangeDataset", Leaf(dtypes.int64, TensorShape([])), *given)

    @staticmethod
    def zip(datasets: Nested) -> Dataset:
        """Elements of several datasets side by side, in the structure that the datasets are given in."""
        sources = flatten(datasets)
        for source in sources:
            if not isinstance(source, Dataset):
                raise TypeError(
                    f"The argument to `Dataset.zip()` must be a nested structure of `Dataset` objects, not {source!r}."
                    if not isinstance(datasets, list)
                    else "The argument to `Dataset.zip()` must be a nested structure of `Dataset` objects. Nested "
                    "structures do not support Python lists; please use a tuple instead."
                )
        structure = pack_like(datasets, [s._structure for s in sources])
        return Dataset._make("ZipDataset", structure, [s._variant_tensor for s in sources], sources=sources)

    @staticmethod
    def list_files(file_pattern: TensorLike, shuffle: bool | None = None, seed: int | None = None) -> Dataset:
        """The names of the files that match patterns, shuffled unless told otherwise."""
        from tensorfleet.api.data.readers import list_files

        return list_files(file_pattern, shuffle, seed)

    # -- choosing and ordering --

    def take(self, count: TensorLike) -> Dataset:
        """The first `count` elements, all of them for -1."""
        return self._transformed("TakeDataset", self._structure, _int64(count, "count"))

    def skip(self, count: TensorLike) -> Dataset:
        """All but the first `count` elements, none of them for -1."""
        return self._transformed("SkipDataset", self._structure, _int64(count, "count"))

    def shard(self, num_shards: TensorLike, index: TensorLike) -> Dataset:
        """Every `num_shards`-th element, beginning with the `index`-th."""
        return self._transformed(
            "ShardDataset", self._structure, _int64(num_shards, "num_shards"), _int64(index, "index")
        )

    def repeat(self, count: TensorLike = None) -> Dataset:
        """The dataset `count` times; for ever when None or -1."""
        return self._transformed(
            "RepeatDataset", self._structure, _int64(-1 if count is None else count, "count")
        )

    def shuffle(
        self, buffer_size: TensorLike, seed: int | None = None, reshuffle_each_iteration: bool | None = None
    ) -> Dataset:
        """Elements in random order, each drawn from a buffer of the next `buffer_size` ones."""
        return self._transformed(
            "ShuffleDataset",
            self._structure,
            _int64(buffer_size, "buffer_size"),
            *dataset_seeds(seed),
            reshuffle_each_iteration=True if reshuffle_each_iteration is None else reshuffle_each_iteration,
        )

    def concatenate(self, dataset: Dataset) -> Dataset:
        """Elements of this dataset, then of another of the same structure."""
        mine, theirs = self._structure, dataset._structure
        if not structures.same_form(mine, theirs):
            raise TypeError(
                f"Two datasets to concatenate have different types {structures.types_of(mine)} and "
                f"{structures.types_of(theirs)}"
            )
        both = zip(flatten(mine), flatten(theirs), strict=True)
        leaves = [a.with_shape(_in_common(a.shape, b.shape)) for a, b in both]
        structure = pack_like(mine, leaves)
        inputs = self._variant_tensor, dataset._variant_tensor
        return Dataset._make("ConcatenateDataset", structure, *inputs, sources=(self, dataset))

    def enumerate(self, start: TensorLike = 0) -> Dataset:
        """Pairs of a number, counted from `start`, and an element."""
        return Dataset.zip((Dataset.range(start, 2**63 - 1), self))

    def cache(self, filename: TensorLike = "") -> Dataset:
        """The same elements, computed once and then kept in memory, or in a file."""
        return self._transformed(
            "CacheDataset", self._structure, to_tensor(filename, dtypes.string, name="filename")
        )

    def prefetch(self, buffer_size: TensorLike) -> Dataset:
        """The same elements, fetched ahead by a thread; `tf.data.experimental.AUTOTUNE` chooses how many."""
        size = -1 if buffer_size is None else buffer_size
        return self._transformed("PrefetchDataset", self._structure, _int64(size, "buffer_size"))

    # -- batches --

    def batch(self, batch_size: TensorLike, drop_remainder: TensorLike = False) -> Dataset:
        """So many elements as one, stacked along a new first dimension."""
        size = _int64(batch_size, "batch_size")
        drop = to_tensor(drop_remainder, dtypes.bool_, name="drop_remainder")
        known = _batch_length(size, drop)
        structure = map_leaves(lambda leaf: leaf.batched(known), self._structure)
        return self._transformed("BatchDatasetV2", structure, size, drop)

    def padded_batch(
        self,
        batch_size: TensorLike,
        padded_shapes: Nested,
        padding_values: Nested = None,
        drop_remainder: TensorLike = False,
    ) -> Dataset:
        """Batches of elements that are first filled up to `padded_shapes`; None and -1 mean the longest of a batch."""
        size = _int64(batch_size, "batch_size")
        drop = to_tensor(drop_remainder, dtypes.bool_, name="drop_remainder")
        leaves = flatten(self._structure)
        asked = structures.match(self._structure, padded_shapes, structures.is_shape, "padded_shapes")
        shapes = [padded_shape(s, leaf) for s, leaf in zip(asked, leaves, strict=True)]
        fills = padding(self._structure, padding_values)
        known = _batch_length(size, drop)
        padded = [
            leaf.with_shape(TensorShape([known]).concatenate(static_shape(shape)))
            for leaf, shape in zip(leaves, shapes, strict=True)
        ]
        structure = pack_like(self._structure, padded)
        return self._transformed("PaddedBatchDatasetV2", structure, size, shapes, fills, drop)

    def unbatch(self) -> Dataset:
        """The rows of elements, as elements."""
        if any(leaf.shape.rank == 0 for leaf in flatten(self._structure)):
            raise ValueError("Cannot unbatch an input with scalar components.")
        sizes = {leaf.shape.as_list()[0] for leaf in flatten(self._structure) if leaf.shape.rank}
        if len(sizes - {None}) > 1:
            raise ValueError("Cannot unbatch an input whose components have different batch sizes.")
        leaves = [leaf.row() for leaf in flatten(self._structure)]
        return self._transformed("UnbatchDataset", pack_like(self._structure, leaves))

    def window(
        self,
        size: TensorLike,
        shift: TensorLike = None,
        stride: TensorLike = 1,
        drop_remainder: TensorLike = False,
    ) -> Dataset:
        """Neighbouring elements as datasets of up to `size` elements, one dataset per component."""
        given = [_int64(v, n) for v, n in ((size, "size"), (size if shift is None else shift, "shift"))]
        given.append(_int64(stride, "stride"))
        given.append(to_tensor(drop_remainder, dtypes.bool_, name="drop_remainder"))
        structure = map_leaves(lambda leaf: Leaf(dtypes.variant, TensorShape([]), leaf), self._structure)
        return self._transformed("WindowDataset", structure, *given)

    # -- functions --

    @as_in_contrib
    def map(self, map_func: Callable[..., Any], num_parallel_calls: TensorLike = None) -> Dataset:
        """`map_func` of every element. The components of a tuple are its arguments."""
        function = traced(map_func, "map", self._structure)
        if num_parallel_calls is None:
            return self._transformed_by("MapDataset", function.structure, function)
        calls = to_tensor(num_parallel_calls, dtypes.int32, name="num_parallel_calls")
        return self._transformed_by("ParallelMapDataset", function.structure, function, calls)

    map_with_legacy_function = map

    def filter(self, predicate: Callable[..., Any]) -> Dataset:
        """The elements for which `predicate` gives True."""
        function = traced(predicate, "filter", self._structure)
        _check_predicate(function, predicate)
        return self._transformed("FilterDataset", self._structure, function.captured, predicate=function.name)

    filter_with_legacy_function = filter

    def flat_map(self, map_func: Callable[..., Any]) -> Dataset:
        """The elements of the datasets that `map_func` makes of the elements, one dataset after the other."""
        function = traced(map_func, "flat_map", self._structure)
        return self._transformed_by("FlatMapDataset", _inner(function, "map_func"), function)

    def interleave(
        self,
        map_func: Callable[..., Any],
        cycle_length: TensorLike = -1,
        block_length: TensorLike = 1,
        num_parallel_calls: TensorLike = None,
    ) -> Dataset:
        """The elements of the datasets that `map_func` makes, `cycle_length` of them at a time, in turn."""
        function = traced(map_func, "interleave", self._structure)
        given = [_int64(cycle_length, "cycle_length"), _int64(block_length, "block_length")]
        kind = "InterleaveDataset"
        if num_parallel_calls is not None:
            kind = "ParallelInterleaveDatasetV2"
            given.append(_int64(num_parallel_calls, "num_parallel_calls"))
        return self._transformed_by(kind, _inner(function, "map_func"), function, *given)

    def reduce(self, initial_state: Nested, reduce_func: Callable[..., Any]) -> Any:
        """The last state after `state = reduce_func(state, element)` for every element, as tensors."""
        state = structures.converted(initial_state, "initial_state")
        function, structure = _stateful(reduce_func, state, self._structure, "reduce", with_output=False)
        outputs = apply_list(
            "ReduceDataset",
            self._variant_tensor,
            structures.carried(state),
            function.captured,
            f=function.name,
            **structures.declared(structure),
        )
        return structures.unpacked(structure, outputs)

    def apply(self, transformation_func: Callable[[Dataset], Dataset]) -> Dataset:
        """`transformation_func(self)`, which must be a dataset."""
        result = transformation_func(self)
        if not isinstance(result, Dataset):
            raise TypeError(f"`transformation_func` must return a Dataset. Got {result!r}.")
        return result


# These ops have neither attribute in TensorFlow: their elements are always strings, or given by their inputs.
_UNDECLARED = {"TextLineDataset", "TFRecordDataset", "FixedLengthRecordDatasetV2", "SparseTensorSliceDataset"}
# These have no `output_types`: the attribute for the types of their inputs says it.
_TYPED_BY_INPUTS = {"TensorDataset", "TensorSliceDataset", "PaddedBatchDatasetV2"}


class VariantDataset(Dataset):
    """A dataset that is an element of another."""

    def __init__(self, variant: Tensor, structure: Structure) -> None:
        super().__init__()
        self._variant_tensor = variant
        self._structure = structure


def _in_common(a: TensorShape, b: TensorShape) -> TensorShape:
    """The dimensions that two shapes agree on."""
    if a.rank is None or a.rank != b.rank:
        return TensorShape(None)
    return TensorShape([x if x == y else None for x, y in zip(a.as_list(), b.as_list(), strict=True)])


def _batch_length(size: Tensor, drop: Tensor) -> int | None:
    """The first dimension of batches, when it is always the same."""
    known, dropped = constant_value(size), constant_value(drop)
    return int(known) if known is not None and dropped is not None and bool(dropped) else None


def _check_predicate(function: Traced, predicate: Callable[..., Any]) -> None:
    leaf = function.structure
    fits = isinstance(leaf, Leaf) and leaf.kind is Tensor and leaf.dtype == dtypes.bool_
    if not fits or leaf.shape.rank not in (None, 0):
        raise ValueError(f"`predicate` must return a scalar boolean tensor, but {predicate} returns {leaf}.")


def _inner(function: Traced, what: str) -> Any:
    leaf = function.structure
    if not isinstance(function.result, Dataset):
        raise TypeError(f"`{what}` must return a `Dataset` object. Got {type(function.result)}.")
    return leaf.kind


def _stateful(
    call: Callable[..., Any], state: Nested, structure: Structure, what: str, with_output: bool
) -> tuple[Traced, Any]:
    """Traces a function of a state and an element; shapes of the state that change are given up."""
    kept = map_leaves(structures.leaf_of, state)
    # Each round gives up the dimensions that changed; a shape has finitely many, so this ends.
    while True:
        function = traced(_spread(call, kept, structure), what, kept, structure)
        new = function.structure
        if with_output:
            if type(new) is not tuple or len(new) != 2:
                text = "pair comprising the new state and the output value."
                raise TypeError(f"The {what} function must return a {text}")
            new = new[0]
        if not structures.same_form(kept, new):
            raise TypeError(
                f"The element types for the new state must match the initial state. Expected "
                f"{structures.types_of(kept)}; got {structures.types_of(new)}."
            )
        pairs = list(zip(flatten(kept), flatten(new), strict=True))
        relaxed = [a.with_shape(_in_common(a.shape, b.shape)) for a, b in pairs]
        if all(
            r.shape == a.shape or str(r.shape) == str(a.shape)
            for r, (a, _) in zip(relaxed, pairs, strict=True)
        ):
            return function, kept
        kept = pack_like(kept, relaxed)


def _spread(call: Callable[..., Any], kept: Structure, structure: Structure) -> Callable[[Any, Any], Any]:
    def run(state: Any, element: Any) -> Any:
        return call(state, element)

    # The name becomes part of the name of the function in the graph.
    run.__name__ = getattr(call, "__name__", "function")
    return run


# AutoGraph cannot import datasets, which are built on it.
register(Sequenced(Dataset, lambda items, start: items.enumerate(start), Dataset.zip))

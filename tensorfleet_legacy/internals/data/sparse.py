"""Small parts of `tensorflow.python.data.util`, and names of version 2 that tests of datasets use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorfleet.base import dtypes
from tensorfleet.base.naming import export, find, publish
from tensorfleet.base.shapes import TensorShape, as_shape
from tensorfleet.graph.apply import apply, apply_list
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.sparse_tensor import SparseTensor
from tensorfleet_legacy.internals.data import nest

_UTIL, _OPS = "python.data.util.", "python.data.ops."
_EXPERIMENTAL = "python.data.experimental.ops."


@export(_UTIL + "convert.optional_param_to_tensor")
def optional_param_to_tensor(
    argument_name: str, argument_value: Any, argument_default: Any = 0, argument_dtype: Any = dtypes.int64
) -> Tensor:
    """An argument as a tensor; the default in place of None."""
    value = argument_default if argument_value is None else argument_value
    return to_tensor(value, argument_dtype, name=argument_name)


@export(_UTIL + "convert.partial_shape_to_tensor")
def partial_shape_to_tensor(shape_like: Any) -> Tensor:
    """A shape as int64 numbers, -1 for what is not known; a tensor must be such a vector already."""
    try:
        known = as_shape(shape_like).as_list()
        return to_tensor([-1 if d is None else d for d in known], dtypes.int64)
    except (TypeError, ValueError):
        result = to_tensor(shape_like, preferred=dtypes.int64)
    what = f"The given shape {shape_like} must be a 1-D tensor of tf.int64 values, but the"
    if result.shape.rank is not None and result.shape.rank != 1:
        raise ValueError(f"{what} shape was {result.shape}.")
    if result.dtype != dtypes.int64:
        raise TypeError(f"{what} element type was {result.dtype.name}.")
    return result


# -- sparse components -----------------------------------------------------------------------------------


def _each(of_sparse: Callable, of_others: Callable, values: Any, classes: Any) -> Any:
    flat = [
        of_sparse(v) if c is SparseTensor else of_others(v)
        for v, c in zip(nest.flatten(values), nest.flatten(classes), strict=True)
    ]
    return nest.pack_sequence_as(classes, flat)


@export(_UTIL + "sparse.any_sparse")
def any_sparse(classes: Any) -> bool:
    """Whether one of some classes is that of sparse tensors."""
    return any(c is SparseTensor for c in nest.flatten(classes))


@export(_UTIL + "sparse.get_classes")
def get_classes(tensors: Any) -> Any:
    """The class of each component."""
    flat = [SparseTensor if isinstance(t, SparseTensor) else Tensor for t in nest.flatten(tensors)]
    return nest.pack_sequence_as(tensors, flat)


@export(_UTIL + "sparse.as_dense_types")
def as_dense_types(types: Any, classes: Any) -> Any:
    """Types, with variant for what is sparse."""
    return _each(lambda _: dtypes.variant, lambda t: t, types, classes)


@export(_UTIL + "sparse.as_dense_shapes")
def as_dense_shapes(shapes: Any, classes: Any) -> Any:
    """Shapes, unknown for what is sparse."""
    flat = [s if isinstance(s, TensorShape) else as_shape(s) for s in nest._up_to(classes, shapes)]
    items = [
        TensorShape(None) if c is SparseTensor else s
        for s, c in zip(flat, nest.flatten(classes), strict=True)
    ]
    return nest.pack_sequence_as(classes, items)


@export(_UTIL + "sparse.serialize_sparse_tensors", _UTIL + "sparse.serialize_many_sparse_tensors")
def serialize_sparse_tensors(tensors: Any) -> Any:
    """The components of an element, with variants for what is sparse."""

    def carried(tensor: Any) -> Any:
        if not isinstance(tensor, SparseTensor):
            return tensor
        return apply("FleetSparseToVariant", tensor.indices, tensor.values, tensor.dense_shape)

    return nest.map_structure(carried, tensors)


@export(_UTIL + "sparse.deserialize_sparse_tensors")
def deserialize_sparse_tensors(tensors: Any, types: Any, shapes: Any, classes: Any) -> Any:
    """The components of an element from what `serialize_sparse_tensors` made of them."""
    flat = []
    rows = zip(*map(nest.flatten, (tensors, types, classes)), nest._up_to(classes, shapes), strict=True)
    for tensor, kind, of, shape in rows:
        if of is SparseTensor:
            tensor = SparseTensor(
                *apply_list("FleetVariantToSparse", tensor, Tvalues=kind, shape=as_shape(shape))
            )
        flat.append(tensor)
    return nest.pack_sequence_as(types, flat)


@export(_UTIL + "traverse.obtain_all_variant_tensor_ops")
def obtain_all_variant_tensor_ops(dataset: Any) -> list:
    """The operations that made a dataset and those it is made from."""
    result: list = []
    queue = [dataset._variant_tensor.op]
    seen = set(queue)
    while queue:
        op = queue.pop(0)
        if op.outputs[0].dtype == dtypes.variant:
            result.append(op)
        before = [t.op for t in op.inputs if t.op not in seen]
        seen.update(before)
        queue += dict.fromkeys(before)
    return result


# -- options ---------------------------------------------------------------------------------------------


@export(_UTIL + "options.OptionsBase")
class OptionsBase:
    """Settings that `create_option` declares; no others can be set."""

    _options: dict[str, Any]

    def __init__(self) -> None:
        object.__setattr__(self, "_options", {})

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, type(self)):
            return NotImplemented
        return all(getattr(self, n) == getattr(other, n) for n in {*self._options, *other._options})

    __hash__ = None  # type: ignore[assignment]

    def __setattr__(self, name: str, value: Any) -> None:
        if not hasattr(type(self), name):
            raise AttributeError(f"Cannot set the property {name} on {type(self).__name__}.")
        object.__setattr__(self, name, value)


@export(_UTIL + "options.create_option")
def create_option(name: str, ty: Any, docstring: str, default_factory: Callable = lambda: None) -> property:
    """A property of `OptionsBase` that takes values of one type."""

    def read(option: Any) -> Any:
        return option._options.setdefault(name, default_factory())

    def write(option: Any, value: Any) -> None:
        if not isinstance(value, ty):
            raise TypeError(f'Property "{name}" must be of type {ty}, got: {value!r} (type: {type(value)!r})')
        option._options[name] = value

    return property(read, write, None, docstring)


@export(_UTIL + "options.merge_options")
def merge_options(*options_list: Any) -> Any:
    """The merged options; ValueError where two set different values."""
    if not options_list:
        raise ValueError("At least one options should be provided")
    kind = type(options_list[0])
    for options in options_list:
        if not isinstance(options, kind):
            raise TypeError(f"Incompatible options type: {type(options)!r} vs {kind!r}")
    if not isinstance(options_list[0], OptionsBase):
        raise TypeError("The inputs should inherit from `OptionsBase`")
    result, default = kind(), kind()
    for options in options_list:
        for name in options._options:
            mine, theirs = getattr(result, name), getattr(options, name)
            if mine == theirs or theirs == getattr(default, name):
                continue
            if mine == getattr(default, name):
                setattr(result, name, theirs)
            elif isinstance(mine, OptionsBase):
                setattr(result, name, merge_options(mine, theirs))
            else:
                raise ValueError(
                    f"Cannot merge incompatible values ({mine!r} and {theirs!r}) of option: {name}"
                )
    return result


# -- datasets --------------------------------------------------------------------------------------------


@export(_EXPERIMENTAL + "readers.make_tf_record_dataset")
def make_tf_record_dataset(
    file_pattern: Any,
    batch_size: int,
    parser_fn: Callable | None = None,
    num_epochs: int | None = None,
    shuffle: bool = True,
    shuffle_buffer_size: int | None = None,
    shuffle_seed: int | None = None,
    prefetch_buffer_size: int | None = None,
    num_parallel_reads: int | None = None,
    num_parallel_parser_calls: int | None = None,
    drop_final_batch: bool = False,
) -> Any:
    """Batches of the records of some files, parsed if there is a parser, for so many rounds."""
    files = find("data.Dataset").list_files(file_pattern, shuffle=shuffle, seed=shuffle_seed)
    records = find("data.TFRecordDataset")
    if num_parallel_reads is None or num_parallel_reads > 1:
        cycle = 24 if num_parallel_reads is None else num_parallel_reads
        dataset = files.interleave(records, cycle_length=cycle)
    else:
        dataset = files.flat_map(records)
    if shuffle:
        dataset = dataset.shuffle(shuffle_buffer_size or 10000, shuffle_seed)
    if num_epochs != 1:
        dataset = dataset.repeat(num_epochs)
    if parser_fn is not None:
        dataset = dataset.map(parser_fn, num_parallel_parser_calls or batch_size)
    # Without an end there is no last batch either: all have one size, which is then known.
    dataset = dataset.batch(batch_size, drop_remainder=drop_final_batch or num_epochs is None)
    ahead = find("data.experimental.AUTOTUNE") if prefetch_buffer_size is None else prefetch_buffer_size
    return dataset if ahead == 0 else dataset.prefetch(ahead)


def _as_it_is(*_: Any, **__: Any) -> Callable[[Any], Any]:
    """A transformation that changes nothing: how elements are made is decided here without being asked."""
    return lambda dataset: dataset


for _name in ("model", "optimize"):
    publish(_as_it_is, f"{_EXPERIMENTAL}optimization.{_name}")
publish(find("data.experimental.AUTOTUNE"), _OPS + "dataset_ops.AUTOTUNE")
publish(-1, _EXPERIMENTAL + "cardinality.INFINITE")
publish(-2, _EXPERIMENTAL + "cardinality.UNKNOWN")
for _name, _same in {
    "counter.CounterV2": "Counter",
    "interleave_ops.choose_from_datasets_v2": "choose_from_datasets",
    "interleave_ops.sample_from_datasets_v2": "sample_from_datasets",
    "random_ops.RandomDatasetV2": "RandomDataset",
    "readers.CsvDatasetV2": "CsvDataset",
    "readers.SqlDatasetV2": "SqlDataset",
    "readers.make_batched_features_dataset_v2": "make_batched_features_dataset",
    "readers.make_csv_dataset_v2": "make_csv_dataset",
}.items():
    publish(find(f"data.experimental.{_same}"), _EXPERIMENTAL + _name)
for _name in ("FixedLengthRecordDataset", "TFRecordDataset", "TextLineDataset"):
    publish(find(f"data.{_name}"), f"{_OPS}readers.{_name}V2")
for _name in ("TensorStructure", "SparseTensorStructure", "TensorArrayStructure", "RaggedTensorStructure"):
    publish(find(f"data.experimental.{_name}"), f"{_UTIL}structure._{_name}")

"""`tf.lookup`: tables that are filled once, from tensors or text files, and vocabularies with spare buckets."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np

from tensorfleet.base import dtypes
from tensorfleet.base.dtypes import DType
from tensorfleet.base.naming import export
from tensorfleet.base.properties import readonly
from tensorfleet.base.types import DTypeLike, TensorLike
from tensorfleet.graph.apply import apply, apply_list, apply_op
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.scopes import (
    GraphKeys,
    add_to_collection,
    control_dependencies,
    get_collection,
    get_default_graph,
    name_scope,
)
from tensorfleet.graph.sparse_tensor import SparseTensor, is_sparse, to_sparse
from tensorfleet.ops.array.basic import group, no_op
from tensorfleet.ops.state.lookup_ops import LINE_NUMBER, WHOLE_LINE
from tensorfleet.ops.string.elements import as_string
from tensorfleet.ops.string.hash import string_to_hash_bucket_fast, string_to_hash_bucket_strong


@export("initialize_all_tables")
def initialize_all_tables(name: str = "init_all_tables") -> Operation:
    """The old name of `tf.tables_initializer`."""
    return tables_initializer(name)


@export("tables_initializer", "initializers.tables_initializer")
def tables_initializer(name: str = "init_all_tables") -> Operation:
    """An operation that fills all tables of the graph."""
    fillers = get_collection(GraphKeys.TABLE_INITIALIZERS)
    return group(*fillers, name=name) if fillers else no_op(name=name)


class _Typed:
    """The types of keys and values."""

    def __init__(self, key_dtype: DTypeLike, value_dtype: DTypeLike) -> None:
        self._key_dtype = dtypes.as_dtype(key_dtype)
        self._value_dtype = dtypes.as_dtype(value_dtype)

    key_dtype = readonly("_key_dtype", "The type of the keys.")
    value_dtype = readonly("_value_dtype", "The type of the values.")


@export("contrib.lookup.LookupInterface", "python.ops.lookup_ops.LookupInterface")
class LookupInterface(_Typed):
    """The base of all tables: types, a name, `size` and `lookup`."""

    @property
    def name(self) -> str:
        """The name of the table."""
        raise TypeError(f"{type(self).__name__} has no name.")

    resource_handle = readonly("_resource_handle", "The handle of the table.")

    _resource_handle: Any = None

    def size(self, name: str | None = None) -> Tensor:
        """How many keys the table has."""
        with name_scope(name, f"{self.name}_Size", [self.resource_handle]):
            return apply("LookupTableSizeV2", self.resource_handle)

    def _keys(self, keys: TensorLike) -> Tensor:
        """Keys as a tensor; TypeError when they are of another type."""
        tensor = to_sparse(keys).values if is_sparse(keys) else to_tensor(keys)
        if tensor.dtype.base_dtype != self._key_dtype:
            raise TypeError(f"Signature mismatch. Keys must be dtype {self._key_dtype}, got {tensor.dtype}.")
        return tensor

    def _found(self, keys: TensorLike, values: Tensor) -> Tensor | SparseTensor:
        """Values in the form of the keys."""
        if is_sparse(keys):
            sparse = to_sparse(keys)
            return SparseTensor(sparse.indices, values, sparse.dense_shape)
        return values


@export("contrib.lookup.InitializableLookupTableBase", "python.ops.lookup_ops.InitializableLookupTableBase")
class InitializableLookupTableBase(LookupInterface):
    """A table that an initializer fills."""

    def __init__(self, default_value: TensorLike, initializer: TableInitializerBase) -> None:
        super().__init__(initializer.key_dtype, initializer.value_dtype)
        self._default_value = to_tensor(default_value, self._value_dtype)
        self._default_value.shape.assert_is_compatible_with(())
        self._initializer = initializer
        inside = get_default_graph()._get_control_flow_context() is not None
        # One table, whatever branch or loop is around.
        with control_dependencies(None) if inside else nullcontext():
            self._resource_handle = self._create_resource()
            self._init_op = initializer.initialize(self)

    def _create_resource(self) -> Tensor:
        raise TypeError("A table of your own defines _create_resource().")

    default_value = readonly("_default_value", "The value of keys that are not in the table.")
    initializer = readonly("_init_op", "The operation that fills the table.")
    init = readonly("_init_op", "The old name of `initializer`.")

    @property
    def name(self) -> str:
        """The name of the table's operation."""
        name: str = self._resource_handle.op.name
        return name.rpartition("/")[2]

    def lookup(self, keys: TensorLike, name: str | None = None) -> Any:
        """The values of keys (a tensor, or a sparse one), the default for those that are not there."""
        tensor = self._keys(keys)
        with name_scope(name, f"{self.name}_Lookup", [self._resource_handle, tensor]):
            values = apply("LookupTableFindV2", self._resource_handle, tensor, self._default_value)
        values.set_shape(tensor.shape)
        return self._found(keys, values)


def _own_name() -> str:
    """A name no other table has: tables of different graphs on one server must not be taken for one."""
    return f"hash_table_{uuid.uuid4()}"


@export("lookup.StaticHashTable")
class StaticHashTable(InitializableLookupTableBase):
    """A table that is filled once, by `tf.tables_initializer()` or its own `initializer`."""

    def __init__(
        self, initializer: TableInitializerBase, default_value: TensorLike, name: str | None = None
    ) -> None:
        self._name = name or "hash_table"
        self._shared_name = getattr(initializer, "_shared_name", "") or _own_name()
        super().__init__(default_value, initializer)

    def _create_resource(self) -> Tensor:
        return apply(
            "HashTableV2",
            shared_name=self._shared_name,
            key_dtype=self._initializer.key_dtype,
            value_dtype=self._initializer.value_dtype,
            use_node_name_sharing=True,
            name=self._name,
        )

    def export(self, name: str | None = None) -> tuple[Tensor, Tensor]:
        """All keys and all values."""
        with name_scope(name, f"{self.name}_Export", [self._resource_handle]):
            keys, values = apply_list(
                "LookupTableExportV2",
                self._resource_handle,
                Tkeys=self._key_dtype,
                Tvalues=self._value_dtype,
            )
        keys.set_shape([None])
        values.set_shape([None])
        return keys, values


# -- what fills them ---------------------------------------------------------------------------------


@export("contrib.lookup.TableInitializerBase", "python.ops.lookup_ops.TableInitializerBase")
class TableInitializerBase(_Typed):
    """The base of the initializers, which fill a table."""

    @property
    def _shared_name(self) -> str:
        """A name under which equal tables may be shared; none by default."""
        return ""

    def initialize(self, table: LookupInterface) -> Operation:
        """The operation that fills `table`."""
        raise TypeError("An initializer of your own defines initialize(table).")

    def _check(self, table: LookupInterface) -> None:
        for what in ("key", "value"):
            own, other = getattr(self, f"{what}_dtype"), getattr(table, f"{what}_dtype")
            if own.base_dtype != other.base_dtype:
                raise TypeError(f"Invalid {what} dtype: expected {own} but got {other}.")


@export(
    "lookup.KeyValueTensorInitializer",
    "contrib.lookup.KeyValueTensorInitializer",
    "python.ops.lookup_ops.KeyValueTensorInitializer",
)
class KeyValueTensorInitializer(TableInitializerBase):
    """Fills a table with the elements of two tensors."""

    def __init__(
        self,
        keys: TensorLike,
        values: TensorLike,
        key_dtype: DTypeLike | None = None,
        value_dtype: DTypeLike | None = None,
        name: str | None = None,
    ) -> None:
        self._keys = to_tensor(keys, key_dtype, name="keys")
        self._values = to_tensor(values, value_dtype, name="values")
        self._name = name or "key_value_init"
        super().__init__(self._keys.dtype.base_dtype, self._values.dtype.base_dtype)

    def initialize(self, table: LookupInterface) -> Operation:
        """The operation that fills `table` with the keys and values."""
        self._check(table)
        with name_scope(self._name, None, [table.resource_handle, self._keys, self._values]):
            filler = apply_op("LookupTableImportV2", table.resource_handle, self._keys, self._values)
        add_to_collection(GraphKeys.TABLE_INITIALIZERS, filler)
        return filler


@export("lookup.TextFileIndex", "contrib.lookup.TextFileIndex", "python.ops.lookup_ops.TextFileIndex")
class TextFileIndex:
    """The indices for a key or value that is no column: the whole line, and its number."""

    WHOLE_LINE = WHOLE_LINE
    LINE_NUMBER = LINE_NUMBER


@export(
    "lookup.TextFileInitializer",
    "contrib.lookup.TextFileInitializer",
    "python.ops.lookup_ops.TextFileInitializer",
)
class TextFileInitializer(TableInitializerBase):
    """Fills a table from a file: each line is an entry, its key and value columns of that line."""

    def __init__(
        self,
        filename: TensorLike,
        key_dtype: DTypeLike,
        key_index: int,
        value_dtype: DTypeLike,
        value_index: int,
        vocab_size: int | None = None,
        delimiter: str = "\t",
        name: str | None = None,
    ) -> None:
        if not isinstance(filename, Tensor) and not filename:
            raise ValueError("Filename required for text_file_initializer: `filename` argument required.")
        kinds = dtypes.as_dtype(key_dtype), dtypes.as_dtype(value_dtype)
        for what, index, kind in zip(("key", "value"), (key_index, value_index), kinds, strict=True):
            _check_column(what, index, kind)
        if vocab_size is not None and vocab_size <= 0:
            raise ValueError(f"`vocab_size` should be > 0, received: {vocab_size}")
        self._filename = to_tensor(filename, dtypes.string, name="asset_path")
        self._columns = key_index, value_index
        self._vocab_size = vocab_size
        self._delimiter = delimiter
        self._name = name or "text_file_init"
        self._path = "" if isinstance(filename, Tensor) else filename
        super().__init__(*kinds)

    @property
    def _shared_name(self) -> str:
        """The same for tables of the same columns of the same file."""
        if not self._path:
            return ""
        size = () if self._vocab_size is None else (self._vocab_size,)
        return "_".join(str(part) for part in ("hash_table", self._path, *size, *self._columns))

    def initialize(self, table: LookupInterface) -> Operation:
        """The operation that fills `table` from the lines of the file."""
        self._check(table)
        with name_scope(self._name, "text_file_init", [table.resource_handle]):
            filler = apply_op(
                "InitializeTableFromTextFileV2",
                table.resource_handle,
                self._filename,
                key_index=self._columns[0],
                value_index=self._columns[1],
                vocab_size=-1 if self._vocab_size is None else self._vocab_size,
                delimiter=self._delimiter,
            )
        add_to_collection(GraphKeys.TABLE_INITIALIZERS, filler)
        if self._filename.op.type == "Const":
            add_to_collection(GraphKeys.ASSET_FILEPATHS, self._filename)
        return filler


def _check_column(what: str, index: int, dtype: DType) -> None:
    if index < -2:
        raise ValueError(f"`{what}_index` should be >= -2, received: {index}.")
    if index == LINE_NUMBER and dtype != dtypes.int64:
        raise ValueError(f"`{what}_dtype` must be int64 if `{what}_index` is {index}, received: {dtype}")
    if index == WHOLE_LINE and not (dtype == dtypes.string or dtype.is_integer):
        raise ValueError(
            f"`{what}_dtype` should be either integer or string for `{what}_index` {index}, received: {dtype}"
        )


# -- vocabularies ------------------------------------------------------------------------------------


class _WithBuckets(LookupInterface):
    """A table, or none, and buckets behind it."""

    _table: Any
    _table_name: str
    _num_oov_buckets: int

    name = readonly("_table_name")

    @property
    def resource_handle(self) -> Tensor | None:
        """The handle of the table, if there is one beside the buckets."""
        return None if self._table is None else self._table.resource_handle

    @property
    def initializer(self) -> Operation:
        """The operation that fills the table."""
        if self._table is not None:
            filler: Operation = self._table.initializer
            return filler
        with name_scope(None, "init", None):
            return no_op()

    def size(self, name: str | None = None) -> Tensor:
        """How many ids there are, buckets included."""
        with name_scope(name, f"{self.name}_Size"):
            own: Tensor = to_tensor(np.int64(0)) if self._table is None else self._table.size()
            return own + np.int64(self._num_oov_buckets)


@export("lookup.StaticVocabularyTable")
class StaticVocabularyTable(_WithBuckets):
    """Ids of words: the table's own, and for other words one of `num_oov_buckets` behind them."""

    def __init__(
        self,
        initializer: TableInitializerBase | None,
        num_oov_buckets: int,
        lookup_key_dtype: DTypeLike | None = None,
        name: str | None = None,
    ) -> None:
        if num_oov_buckets <= 0:
            raise ValueError("`num_oov_buckets` must be > 0; use StaticHashTable.")
        if initializer is not None and initializer.value_dtype != dtypes.int64:
            raise TypeError(
                f"Invalid `value_dtype`, expected {dtypes.int64} but got {initializer.value_dtype}."
            )
        self._num_oov_buckets = num_oov_buckets
        self._table = None
        if initializer is not None:
            if not (initializer.key_dtype.is_integer or initializer.key_dtype == dtypes.string):
                raise TypeError(
                    f"Invalid `key_dtype`, expected integer or string, but got {initializer.key_dtype}."
                )
            self._table = StaticHashTable(initializer, default_value=-1)
            name = name or self._table.name
        self._table_name = name or "hash_bucket"
        kind = lookup_key_dtype or (dtypes.string if initializer is None else initializer.key_dtype)
        super().__init__(kind, dtypes.int64)

    def lookup(self, keys: TensorLike, name: str | None = None) -> Any:
        """The ids of words (a tensor, or a sparse one)."""
        tensor = self._keys(keys)
        with name_scope(name, f"{self.name}_Lookup"):
            return self._found(keys, self._ids(tensor))

    def _ids(self, keys: Tensor) -> Tensor:
        words = keys if keys.dtype == dtypes.string else as_string(keys)
        buckets = string_to_hash_bucket_fast(words, self._num_oov_buckets, name="hash_bucket")
        return _own_or_bucket(self._table, keys, buckets)


def _own_or_bucket(table: Any, keys: Tensor, buckets: Tensor) -> Tensor:
    """The table's ids; for keys it does not have, their bucket behind all of them."""
    if table is None:
        return buckets
    ids = table.lookup(keys if keys.dtype == table.key_dtype else apply("Cast", keys, DstT=table.key_dtype))
    shifted = apply("AddV2", buckets, table.size(), name="Add")
    return apply("SelectV2", apply("NotEqual", ids, table.default_value), ids, shifted)


class HasherSpec:
    """The hash that sends unknown words to buckets, and its key."""

    def __init__(self, hasher: str, key: list[int] | None) -> None:
        self.hasher = hasher
        self.key = key


FastHashSpec = HasherSpec("fasthash", None)


class StrongHashSpec(HasherSpec):
    """A hash that cannot be predicted without its key: two unsigned integers."""

    def __init__(self, key: Sequence[int]) -> None:
        if len(key) != 2:
            raise ValueError(f"key must have size 2, received {key}")
        if not all(isinstance(k, (int, np.integer)) and k >= 0 for k in key):
            raise TypeError(f"Invalid key {key}. Must be unsigned integer values.")
        super().__init__("stronghash", list(key))


class IdTableWithHashBuckets(_WithBuckets):
    """Ids of keys: the table's own, and for other keys one of `num_oov_buckets` behind them."""

    def __init__(
        self,
        table: Any,
        num_oov_buckets: int,
        hasher_spec: HasherSpec = FastHashSpec,
        name: str | None = None,
        key_dtype: DTypeLike | None = None,
    ) -> None:
        self._table_name = (name or "hash_bucket").rstrip("/")
        kind = dtypes.as_dtype(key_dtype) if key_dtype is not None else None
        if table is not None:
            kind = kind or table.key_dtype
            if table.key_dtype not in (dtypes.int64, dtypes.string):
                wanted = (dtypes.int64, dtypes.string)
                raise TypeError(f"Invalid key dtype, expected one of {wanted}, but got {table.key_dtype}.")
            if table.key_dtype.is_integer != kind.is_integer:
                wanted_kind = "integer" if kind.is_integer else "non-integer"
                raise TypeError(f"Invalid key dtype, expected {wanted_kind} but got {table.key_dtype}.")
            if table.value_dtype != dtypes.int64:
                raise TypeError(f"Invalid value dtype, expected {dtypes.int64} but got {table.value_dtype}.")
            self._table_name = table.name.partition("/")[0] if name is None else self._table_name
        elif num_oov_buckets <= 0:
            raise ValueError("oov_buckets must be > 0 if no table is supplied.")
        if kind is not None and not (kind.is_integer or kind == dtypes.string):
            raise TypeError(f"Invalid key_dtype, expected integer or string, got {kind}.")
        if not isinstance(hasher_spec, HasherSpec):
            raise TypeError(f"hasher_spec must be of type HasherSpec, got {hasher_spec}")
        self._table, self._num_oov_buckets, self._hasher_spec = table, num_oov_buckets, hasher_spec
        super().__init__(kind or dtypes.string, dtypes.int64)

    init = readonly("initializer", "The old name of `initializer`.")

    def lookup(self, keys: TensorLike, name: str | None = None) -> Any:
        """The ids of keys (a tensor, or a sparse one)."""
        tensor = self._keys(keys)
        with name_scope(name, f"{self.name}_Lookup"):
            if not self._num_oov_buckets:
                return self._found(keys, self._table.lookup(tensor))
            words = tensor if tensor.dtype == dtypes.string else as_string(tensor)
            return self._found(keys, _own_or_bucket(self._table, tensor, self._buckets(words)))

    def _buckets(self, words: Tensor) -> Tensor:
        if self._hasher_spec.hasher == "stronghash":
            key: Any = self._hasher_spec.key
            return string_to_hash_bucket_strong(words, self._num_oov_buckets, key, name="hash_bucket")
        if self._hasher_spec.hasher != "fasthash":
            raise ValueError(f"Unknown hasher {self._hasher_spec.hasher}")
        return string_to_hash_bucket_fast(words, self._num_oov_buckets, name="hash_bucket")

"""`tf.contrib.lookup`: words to ids and back."""

from __future__ import annotations

from typing import Any

from tensorfleet.base import dtypes
from tensorfleet.base.naming import export, publish
from tensorfleet.graph.apply import apply
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import name_scope
from tensorfleet.ops.array.shape import size
from tensorfleet.ops.math.cast import cast
from tensorfleet.ops.state import lookup
from tensorfleet.ops.state.lookup import FastHashSpec, StaticHashTable, TextFileIndex, TextFileInitializer

for _thing in (lookup.HasherSpec, lookup.StrongHashSpec, lookup.IdTableWithHashBuckets):
    publish(_thing, f"contrib.lookup.{_thing.__name__}", f"python.ops.lookup_ops.{_thing.__name__}")
publish(FastHashSpec, "contrib.lookup.FastHashSpec", "python.ops.lookup_ops.FastHashSpec")
publish(lookup.tables_initializer, "python.ops.lookup_ops.tables_initializer")
publish(lookup.initialize_all_tables, "python.ops.lookup_ops.initialize_all_tables")
publish(StaticHashTable, "python.ops.lookup_ops.StaticHashTable")


@export("contrib.lookup.HashTable", "python.ops.lookup_ops.HashTable")
class HashTable(StaticHashTable):
    """A table that is filled once; sessions share it under `shared_name`."""

    def __init__(
        self, initializer: Any, default_value: Any, shared_name: str | None = None, name: str | None = None
    ) -> None:
        self._name = name or "hash_table"
        self._shared_name = shared_name or lookup._own_name()
        lookup.InitializableLookupTableBase.__init__(self, default_value, initializer)


@export(
    "contrib.lookup.TextFileStringTableInitializer", "python.ops.lookup_ops.TextFileStringTableInitializer"
)
class TextFileStringTableInitializer(TextFileInitializer):
    """Fills a table from line numbers to lines, or from one column to another."""

    def __init__(
        self,
        filename: Any,
        key_column_index: int = TextFileIndex.LINE_NUMBER,
        value_column_index: int = TextFileIndex.WHOLE_LINE,
        vocab_size: int | None = None,
        delimiter: str = "\t",
        name: str = "text_file_string_table_init",
    ) -> None:
        columns = (dtypes.int64, key_column_index, dtypes.string, value_column_index)
        super().__init__(filename, *columns, vocab_size=vocab_size, delimiter=delimiter, name=name)


@export("contrib.lookup.TextFileIdTableInitializer", "python.ops.lookup_ops.TextFileIdTableInitializer")
class TextFileIdTableInitializer(TextFileInitializer):
    """Fills a table from lines to line numbers, or from one column to another."""

    def __init__(
        self,
        filename: Any,
        key_column_index: int = TextFileIndex.WHOLE_LINE,
        value_column_index: int = TextFileIndex.LINE_NUMBER,
        vocab_size: int | None = None,
        delimiter: str = "\t",
        name: str = "text_file_id_table_init",
        key_dtype: Any = dtypes.string,
    ) -> None:
        columns = (key_dtype, key_column_index, dtypes.int64, value_column_index)
        super().__init__(filename, *columns, vocab_size=vocab_size, delimiter=delimiter, name=name)


def _check_file(vocabulary_file: Any, vocab_size: int | None) -> None:
    if vocabulary_file is None or (isinstance(vocabulary_file, str) and not vocabulary_file):
        raise ValueError("vocabulary_file must be specified and must not be empty.")
    if vocab_size is not None and vocab_size < 1:
        raise ValueError(f"vocab_size must be greater than 0, got {vocab_size}.")


def _checked_kind(key_dtype: Any, num_oov_buckets: int) -> dtypes.DType:
    """The type of the keys of a table, which may be followed by so many buckets."""
    if num_oov_buckets < 0:
        raise ValueError(f"num_oov_buckets must be greater or equal than 0, got {num_oov_buckets}.")
    kind = dtypes.as_dtype(key_dtype)
    if not (kind.is_integer or kind == dtypes.string):
        raise TypeError("Only integer and string keys are supported.")
    return kind


def _with_buckets(table: HashTable, count: int, hasher_spec: Any, kind: dtypes.DType) -> Any:
    """A table, with so many ids for other keys."""
    if not count:
        return table
    return lookup.IdTableWithHashBuckets(
        table, count, hasher_spec=hasher_spec, key_dtype=kind, name="hash_bucket"
    )


@export("contrib.lookup.index_table_from_file", "python.ops.lookup_ops.index_table_from_file")
def index_table_from_file(
    vocabulary_file: Any = None,
    num_oov_buckets: int = 0,
    vocab_size: int | None = None,
    default_value: int = -1,
    hasher_spec: Any = FastHashSpec,
    key_dtype: Any = dtypes.string,
    name: str | None = None,
    key_column_index: int = TextFileIndex.WHOLE_LINE,
    value_column_index: int = TextFileIndex.LINE_NUMBER,
    delimiter: str = "\t",
) -> Any:
    """A table from the words of a file, one in each line, to their line numbers.

    Other words give `default_value`, or with `num_oov_buckets` one of as many further ids.
    """
    _check_file(vocabulary_file, vocab_size)
    kind = _checked_kind(key_dtype, num_oov_buckets)
    with name_scope(name, "string_to_index"):
        with name_scope(None, "hash_table"):
            # The values of integers read from a file are kept in 64 bits.
            init = TextFileIdTableInitializer(
                vocabulary_file,
                key_column_index,
                value_column_index,
                vocab_size,
                delimiter,
                key_dtype=dtypes.int64 if kind.is_integer else kind,
                name="table_init",
            )
            table = HashTable(init, default_value, shared_name=init._shared_name)
        return _with_buckets(table, num_oov_buckets, hasher_spec, kind)


@export("contrib.lookup.index_table_from_tensor")
def index_table_from_tensor(
    mapping: Any,
    num_oov_buckets: int = 0,
    default_value: int = -1,
    hasher_spec: Any = FastHashSpec,
    dtype: Any = dtypes.string,
    name: str | None = None,
) -> Any:
    """A table from the elements of `mapping` to their positions.

    Other keys give `default_value`, or with `num_oov_buckets` one of as many further ids.
    """
    if mapping is None:
        raise ValueError("mapping must be specified.")
    return _index_table(mapping, num_oov_buckets, default_value, hasher_spec, dtype, name)


@export("python.ops.lookup_ops.index_table_from_tensor")
def _index_table_of_list(
    vocabulary_list: Any,
    num_oov_buckets: int = 0,
    default_value: int = -1,
    hasher_spec: Any = FastHashSpec,
    dtype: Any = dtypes.string,
    name: str | None = None,
) -> Any:
    """A table from the elements of `vocabulary_list` to their positions."""
    if vocabulary_list is None:
        raise ValueError("vocabulary_list must be specified.")
    return _index_table(vocabulary_list, num_oov_buckets, default_value, hasher_spec, dtype, name)


def _index_table(
    mapping: Any, num_oov_buckets: int, default_value: int, hasher_spec: Any, dtype: Any, name: str | None
) -> Any:
    kind = _checked_kind(dtype, num_oov_buckets)
    with name_scope(name, "string_to_index"):
        keys = to_tensor(mapping)
        if keys.dtype.is_integer != kind.is_integer:
            wanted = "integer" if kind.is_integer else "non-integer"
            raise ValueError(f"Expected {wanted}, got {keys.dtype}.")
        if not kind.is_integer and keys.dtype.base_dtype != kind:
            raise ValueError(f"Expected {kind}, got {keys.dtype}.")
        values = _positions(keys)
        with name_scope(None, "hash_table"):
            wide = cast(keys, dtypes.int64) if keys.dtype.is_integer else keys
            init = lookup.KeyValueTensorInitializer(wide, values, name="table_init")
            table = HashTable(init, default_value)
        return _with_buckets(table, num_oov_buckets, hasher_spec, kind)


def _positions(keys: Tensor) -> Tensor:
    return cast(apply("Range", 0, size(keys), 1), dtypes.int64)


@export(
    "contrib.lookup.index_to_string_table_from_file",
    "python.ops.lookup_ops.index_to_string_table_from_file",
)
def index_to_string_table_from_file(
    vocabulary_file: Any,
    vocab_size: int | None = None,
    default_value: Any = "UNK",
    name: str | None = None,
    key_column_index: int = TextFileIndex.LINE_NUMBER,
    value_column_index: int = TextFileIndex.WHOLE_LINE,
    delimiter: str = "\t",
) -> HashTable:
    """A table from line numbers of a file to the words there."""
    _check_file(vocabulary_file, vocab_size)
    with name_scope(name, "index_to_string"):
        init = TextFileStringTableInitializer(
            vocabulary_file, key_column_index, value_column_index, vocab_size, delimiter, name="table_init"
        )
        return HashTable(init, default_value, shared_name=init._shared_name)


@export("contrib.lookup.index_to_string_table_from_tensor")
def index_to_string_table_from_tensor(
    mapping: Any, default_value: Any = "UNK", name: str | None = None
) -> HashTable:
    """A table from positions in `mapping` to the strings there."""
    if mapping is None:
        raise ValueError("mapping must be specified.")
    return _string_table(mapping, default_value, name)


@export("python.ops.lookup_ops.index_to_string_table_from_tensor")
def _string_table_of_list(
    vocabulary_list: Any, default_value: Any = "UNK", name: str | None = None
) -> HashTable:
    """A table from positions in `vocabulary_list` to the strings there."""
    if vocabulary_list is None:
        raise ValueError("vocabulary_list must be specified.")
    return _string_table(vocabulary_list, default_value, name)


def _string_table(mapping: Any, default_value: Any, name: str | None) -> HashTable:
    with name_scope(name, "index_to_string"):
        words = to_tensor(mapping, dtypes.string)
        init = lookup.KeyValueTensorInitializer(_positions(words), words, name="table_init")
        return HashTable(init, default_value)


@export("contrib.lookup.string_to_index")
def string_to_index(tensor: Any, mapping: Any, default_value: int = -1, name: str | None = None) -> Any:
    """The positions of strings in `mapping`; `tf.tables_initializer()` must have run."""
    table = index_table_from_tensor(mapping, default_value=default_value)
    return table.lookup(tensor, name=name)


@export("contrib.lookup.index_to_string")
def index_to_string(tensor: Any, mapping: Any, default_value: Any = "UNK", name: str | None = None) -> Any:
    """The strings at positions of `mapping`; `tf.tables_initializer()` must have run."""
    table = index_to_string_table_from_tensor(mapping, default_value)
    return table.lookup(tensor, name=name)


@export("contrib.lookup.string_to_index_table_from_tensor")
def string_to_index_table_from_tensor(
    mapping: Any,
    num_oov_buckets: int = 0,
    default_value: int = -1,
    hasher_spec: Any = FastHashSpec,
    name: str | None = None,
) -> Any:
    """`index_table_from_tensor` of strings."""
    return index_table_from_tensor(mapping, num_oov_buckets, default_value, hasher_spec, name=name)


@export("contrib.lookup.string_to_index_table_from_file")
def string_to_index_table_from_file(
    vocabulary_file: Any = None,
    num_oov_buckets: int = 0,
    vocab_size: int | None = None,
    default_value: int = -1,
    hasher_spec: Any = FastHashSpec,
    name: str | None = None,
) -> Any:
    """`index_table_from_file` of strings."""
    return index_table_from_file(
        vocabulary_file, num_oov_buckets, vocab_size, default_value, hasher_spec, name=name
    )

# Written by tools/make_stubs.py.
from tensorfleet.api.train.mutable_tables import DenseHashTable as _MutableDenseHashTable
from tensorfleet.api.train.mutable_tables import MutableHashTable as MutableHashTable
from tensorfleet.contrib.lookup import lookup_ops as lookup_ops
from tensorfleet.ops.state.lookup import HasherSpec as HasherSpec
from tensorfleet.ops.state.lookup import HasherSpec as _HasherSpec
from tensorfleet.ops.state.lookup import IdTableWithHashBuckets as IdTableWithHashBuckets
from tensorfleet.ops.state.lookup import InitializableLookupTableBase as InitializableLookupTableBase
from tensorfleet.ops.state.lookup import KeyValueTensorInitializer as KeyValueTensorInitializer
from tensorfleet.ops.state.lookup import LookupInterface as LookupInterface
from tensorfleet.ops.state.lookup import StrongHashSpec as StrongHashSpec
from tensorfleet.ops.state.lookup import TableInitializerBase as TableInitializerBase
from tensorfleet.ops.state.lookup import TextFileIndex as TextFileIndex
from tensorfleet.ops.state.lookup import TextFileInitializer as TextFileInitializer
from tensorfleet_legacy.contrib.lookup.lookup_ops import HashTable as HashTable
from tensorfleet_legacy.contrib.lookup.lookup_ops import TextFileIdTableInitializer as TextFileIdTableInitializer
from tensorfleet_legacy.contrib.lookup.lookup_ops import TextFileStringTableInitializer as TextFileStringTableInitializer
from tensorfleet_legacy.contrib.lookup.lookup_ops import index_table_from_file as index_table_from_file
from tensorfleet_legacy.contrib.lookup.lookup_ops import index_table_from_tensor as index_table_from_tensor
from tensorfleet_legacy.contrib.lookup.lookup_ops import index_to_string as index_to_string
from tensorfleet_legacy.contrib.lookup.lookup_ops import index_to_string_table_from_file as index_to_string_table_from_file
from tensorfleet_legacy.contrib.lookup.lookup_ops import index_to_string_table_from_tensor as index_to_string_table_from_tensor
from tensorfleet_legacy.contrib.lookup.lookup_ops import string_to_index as string_to_index
from tensorfleet_legacy.contrib.lookup.lookup_ops import string_to_index_table_from_file as string_to_index_table_from_file
from tensorfleet_legacy.contrib.lookup.lookup_ops import string_to_index_table_from_tensor as string_to_index_table_from_tensor
import typing
FastHashSpec: _HasherSpec
MutableDenseHashTable = _MutableDenseHashTable
def __getattr__(name: str) -> typing.Any: ...

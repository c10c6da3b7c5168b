"""Tables whose entries come and go, and which savers save with the variables."""

from __future__ import annotations

from typing import Any

from tensorfleet.api.train.saveables import SaveableObject, SaveSpec
from tensorfleet.base.naming import export
from tensorfleet.base.properties import readonly
from tensorfleet.base.shapes import TensorShape
from tensorfleet.base.types import DTypeLike, TensorLike
from tensorfleet.graph.apply import apply, apply_list, apply_op
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.scopes import GraphKeys, add_to_collection, colocate_with, name_scope
from tensorfleet.ops.state.lookup import LookupInterface


class _TableSaveable(SaveableObject):
    """A table's keys and values, as two tensors of a checkpoint."""

    def __init__(self, table: _MutableTable, name: str) -> None:
        keys, values = table.export()
        specs = [SaveSpec(keys, "", f"{name}-keys"), SaveSpec(values, "", f"{name}-values")]
        super().__init__(table, specs, name)

    def restore(self, restored_tensors: list[Tensor], restored_shapes: list[Any] | None) -> Operation:
        """Makes the restored entries the table's only ones."""
        handle = self.op.resource_handle
        with colocate_with(handle):
            return apply_op("LookupTableImportV2", handle, restored_tensors[0], restored_tensors[1])


class _MutableTable(LookupInterface):
    """The base of both kinds of mutable tables."""

    _name: str
    _default_value: Tensor
    _value_shape: TensorShape
    _key_rank: int | None = 0

    def _finish(self, handle: Tensor, name: str, checkpoint: bool) -> None:
        self._resource_handle = handle
        self._name = handle.op.name.rpartition("/")[2]
        if checkpoint:
            add_to_collection(GraphKeys.SAVEABLE_OBJECTS, _TableSaveable(self, name))

    def _gather_saveables_for_checkpoint(self) -> dict[str, Any]:
        return {"table": lambda name=self._name: _TableSaveable(self, name)}

    name: str = readonly("_name", "The name of the table's operation.")

    def lookup(self, keys: TensorLike, name: str | None = None) -> Any:
        """The values of keys, the default for those that are not there."""
        tensor = self._keys(keys)
        with name_scope(name, f"{self.name}_lookup_table_find", [self.resource_handle, tensor]):
            values = apply("LookupTableFindV2", self.resource_handle, tensor, self._default_value)
        if tensor.shape.rank is not None and self._key_rank is not None:
            outer = TensorShape(tensor.shape.as_list()[: tensor.shape.rank - self._key_rank])
            values.set_shape(outer.concatenate(self._value_shape))
        return self._found(keys, values)

    def insert(self, keys: TensorLike, values: TensorLike, name: str | None = None) -> Operation:
        """Adds entries, or gives keys new values."""
        with name_scope(name, f"{self.name}_lookup_table_insert", [self.resource_handle, keys, values]):
            key, value = to_tensor(keys, self._key_dtype), to_tensor(values, self._value_dtype)
            return apply_op("LookupTableInsertV2", self.resource_handle, key, value)

    def remove(self, keys: TensorLike, name: str | None = None) -> Operation:
        """Forgets keys; those that are not there do not matter."""
        tensor = self._keys(keys)
        with name_scope(name, f"{self.name}_lookup_table_remove", [self.resource_handle, tensor]):
            return apply_op("LookupTableRemoveV2", self.resource_handle, tensor)

    def export(self, name: str | None = None) -> tuple[Tensor, Tensor]:
        """All keys and all values."""
        with name_scope(name, f"{self.name}_lookup_table_export_values", [self.resource_handle]):
            keys, values = apply_list(
                "LookupTableExportV2", self.resource_handle, Tkeys=self._key_dtype, Tvalues=self._value_dtype
            )
        return keys, values


@export("contrib.lookup.MutableHashTable", "python.ops.lookup_ops.MutableHashTable")
class MutableHashTable(_MutableTable):
    """A table that grows and shrinks while the graph runs; its values may be rows."""

    def __init__(
        self,
        key_dtype: DTypeLike,
        value_dtype: DTypeLike,
        default_value: TensorLike,
        name: str = "MutableHashTable",
        checkpoint: bool = True,
    ) -> None:
        super().__init__(key_dtype, value_dtype)
        self._default_value = to_tensor(default_value, self._value_dtype)
        self._value_shape = self._default_value.shape
        attrs: dict[str, Any] = dict(
            key_dtype=self._key_dtype, value_dtype=self._value_dtype, use_node_name_sharing=checkpoint
        )
        if self._value_shape.rank == 0:
            handle = apply("MutableHashTableV2", name=name, **attrs)
        else:
            handle = apply("MutableHashTableOfTensorsV2", value_shape=self._value_shape, name=name, **attrs)
        self._finish(handle, name, checkpoint)


@export(
    "lookup.experimental.DenseHashTable",
    "contrib.lookup.MutableDenseHashTable",
    "python.ops.lookup_ops.DenseHashTable",
)
class DenseHashTable(_MutableTable):
    """A mutable table in buckets: `empty_key` and `deleted_key` mark free ones and can be no keys.

    Keys may be rows too, of the shape of `empty_key`.
    """

    def __init__(
        self,
        key_dtype: DTypeLike,
        value_dtype: DTypeLike,
        default_value: TensorLike,
        empty_key: TensorLike,
        deleted_key: TensorLike,
        initial_num_buckets: int | None = None,
        name: str = "MutableDenseHashTable",
        checkpoint: bool = True,
    ) -> None:
        super().__init__(key_dtype, value_dtype)
        self._default_value = to_tensor(default_value, self._value_dtype, name="default_value")
        self._value_shape = self._default_value.shape
        empty = to_tensor(empty_key, self._key_dtype, name="empty_key")
        deleted = to_tensor(deleted_key, self._key_dtype, name="deleted_key")
        self._key_rank = empty.shape.rank
        handle = apply(
            "MutableDenseHashTableV2",
            empty,
            deleted,
            use_node_name_sharing=checkpoint,
            value_dtype=self._value_dtype,
            value_shape=self._value_shape,
            initial_num_buckets=initial_num_buckets,
            name=name,
        )
        self._finish(handle, name, checkpoint)

    def insert_or_assign(self, keys: TensorLike, values: TensorLike, name: str | None = None) -> Operation:
        """Another name of `insert`."""
        return self.insert(keys, values, name)

    def erase(self, keys: TensorLike, name: str | None = None) -> Operation:
        """Another name of `remove`."""
        return self.remove(keys, name)

"""Builders of a `Saver`'s operations: a subclass may write and read tensors in a way of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorfleet.api.train import saveables as kinds
from tensorfleet.api.train import saver_graph
from tensorfleet.api.train.saveables import by_name, saveables_of
from tensorfleet.base import logging
from tensorfleet.base.naming import export
from tensorfleet.graph.apply import apply
from tensorfleet.graph.operation import Operation, Tensor

if TYPE_CHECKING:
    from tensorfleet.api.variables.variable import Variable
    from tensorfleet.base.protos import SaverDef

_V2 = 2  # SaverDef.V2, without loading the messages at import


class VariableSaveable(kinds.RefSaveable):
    """A variable by reference, or a part of one."""

    def __init__(self, var: Variable | Tensor, slice_spec: str, name: str) -> None:
        ref: Any = getattr(var, "_variable", var)
        super().__init__(var, ref, slice_spec, name)


def warn_unless_v2(version: int) -> None:
    """Logs that a request for the V1 format is not followed."""
    if version != _V2:
        logging.warning(
            "TensorFlow's V1 checkpoint format has been deprecated: checkpoints are written in the V2 format "
            "instead (an .index file and .data files). Use write_version=tf.train.SaverDef.V2, the default."
        )


@export("python.training.saver.BaseSaverBuilder")
class BaseSaverBuilder:
    """Builds the operations of a `Saver`. Override `save_op` and `restore_op` (or `bulk_restore`) to change them."""

    SaveSpec = kinds.SaveSpec
    SaveableObject = kinds.SaveableObject
    VariableSaveable = VariableSaveable
    ResourceVariableSaveable = kinds.ResourceSaveable
    OpListToDict = staticmethod(by_name)

    def __init__(self, write_version: int = _V2, full_every: int | None = None) -> None:
        """With `full_every`, only each so many saves are full, and the others have what changed."""
        self._write_version = write_version
        self._full_every = full_every
        warn_unless_v2(write_version)

    def save_op(self, filename_tensor: Tensor, saveables: list[kinds.SaveableObject]) -> Operation:
        """The operation that writes `saveables`."""
        return saver_graph.save_op(filename_tensor, saveables, self._full_every)

    def restore_op(
        self, filename_tensor: Tensor, saveable: kinds.SaveableObject, preferred_shard: int
    ) -> list[Tensor]:
        """The tensors of one saveable, as they were written."""
        return saver_graph.restored(filename_tensor, [saveable])

    def bulk_restore(
        self,
        filename_tensor: Tensor,
        saveables: list[kinds.SaveableObject],
        preferred_shard: int,
        restore_sequentially: bool,
    ) -> list[Tensor]:
        """The tensors of all saveables, one after the other."""
        return [t for s in saveables for t in self.restore_op(filename_tensor, s, preferred_shard)]

    def sharded_filename(self, filename_tensor: Tensor, shard: int, num_shards: Tensor) -> Tensor:
        """The name of one of several files."""
        return apply("ShardedFilename", filename_tensor, shard, num_shards)

    def build(
        self,
        names_to_saveables: Any,
        reshape: bool = False,
        sharded: bool = False,
        max_to_keep: int = 5,
        keep_checkpoint_every_n_hours: float = 10000.0,
        name: str | None = None,
        restore_sequentially: bool = False,
        filename: str | None = "model",
    ) -> SaverDef:
        """Adds the operations to the graph; gives the `SaverDef` that names them."""
        from tensorfleet.base.protos import SaverDef

        saveables = saveables_of(names_to_saveables)
        path, save, restore = saver_graph.build(saveables, name, filename, sharded, reshape, self)
        return SaverDef(
            filename_tensor_name=path.name,
            save_tensor_name=save.name,
            restore_op_name=restore.name,
            max_to_keep=max_to_keep,
            sharded=sharded,
            keep_checkpoint_every_n_hours=keep_checkpoint_every_n_hours,
            version=SaverDef.V2,
        )


@export("python.training.saver.BulkSaverBuilder")
class BulkSaverBuilder(BaseSaverBuilder):
    """Reads everything by one operation."""

    def bulk_restore(
        self,
        filename_tensor: Tensor,
        saveables: list[kinds.SaveableObject],
        preferred_shard: int,
        restore_sequentially: bool,
    ) -> list[Tensor]:
        """The tensors of all saveables, one after the other."""
        return saver_graph.restored(filename_tensor, saveables)

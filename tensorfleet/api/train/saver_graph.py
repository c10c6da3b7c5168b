"""The operations of a `Saver`, under the names and in the structure TensorFlow gives them."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

from tensorfleet.api.train.saveables import SaveableObject
from tensorfleet.base import dtypes
from tensorfleet.base.devices import DeviceSpec
from tensorfleet.graph.apply import apply, apply_list, apply_op, constant
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.scopes import colocate_with, control_dependencies, device, name_scope
from tensorfleet.ops.array.basic import group, placeholder_with_default
from tensorfleet.ops.state.checkpoint_ops import FULL_EVERY

if TYPE_CHECKING:
    from tensorfleet.api.train.saver_builder import BaseSaverBuilder

_Shards = list[tuple[str, list[SaveableObject]]]


def build(
    saveables: list[SaveableObject],
    name: str | None = None,
    filename: str | None = None,
    sharded: bool = False,
    reshape: bool = False,
    builder: BaseSaverBuilder | None = None,
) -> tuple[Tensor, Tensor, Operation]:
    """Adds the operations; gives the tensor to feed the path to, the one to run to save, the op to restore.

    A `builder` writes and reads the tensors in its own way, by its `save_op` and `bulk_restore`.
    """
    with name_scope(name, "save", [s.op for s in saveables]):
        # Both are in TensorFlow's graph. The SaverDef names the second, `save/Const`, which programs feed;
        # the first is its default.
        default = placeholder_with_default(filename or "model", [], name="filename")
        path = placeholder_with_default(default, [], name="Const")
        if not sharded:
            save = _save(path, saveables, builder)
            restore = _restore(path, saveables, reshape, "restore_all", builder)
            return path, save, restore
        shards = _by_device(saveables)
        save = _save_shards(path, shards, builder)
        parts = []
        for place, some in shards:
            with device(place):
                parts.append(_restore(path, some, reshape, "restore_shard", builder))
        return path, save, group(*parts, name="restore_all")


def save_op(path: Tensor, saveables: list[SaveableObject], full_every: int | None = None) -> Operation:
    """The operation that writes tensors: all of them, or but in each `full_every`th save those that changed."""
    specs = [spec for s in saveables for spec in s.specs]
    names = [spec.name for spec in specs]
    op = apply_op("SaveV2", path, names, [spec.slice_spec for spec in specs], [spec.tensor for spec in specs])
    if full_every is not None:
        op._set_attr(FULL_EVERY, full_every)
    return op


def restored(path: Tensor, saveables: list[SaveableObject]) -> list[Tensor]:
    """The tensors as they were written."""
    specs = [spec for s in saveables for spec in s.specs]
    return apply_list(
        "RestoreV2",
        path,
        [spec.name for spec in specs],
        [spec.slice_spec for spec in specs],
        dtypes=[spec.dtype for spec in specs],
    )


def _save(path: Tensor, saveables: list[SaveableObject], builder: BaseSaverBuilder | None) -> Tensor:
    """Gives the path, available once the tensors are written."""
    written = save_op(path, saveables) if builder is None else builder.save_op(path, saveables)
    with colocate_with(path.op), control_dependencies([written]):
        return apply("Identity", path, name="control_dependency")


def _save_shards(path: Tensor, shards: _Shards, builder: BaseSaverBuilder | None) -> Tensor:
    """Every device writes its own files into a temporary directory; then they become one checkpoint."""
    with device("CPU"):
        # As in TensorFlow's graph: on S3, where a rename is a copy, the parts get no temporary folder.
        remote = apply("StaticRegexFullMatch", path, pattern="^s3://.*")
        suffix = apply(
            "Select", remote, constant(".part"), constant(f"_temp_{uuid.uuid4().hex}/part"), name="Select"
        )
        temporary = apply("StringJoin", [path, suffix])
    count = constant(len(shards), dtypes.int32, name="num_shards")
    files, saved = [], []
    for i, (place, saveables) in enumerate(shards):
        with device(on_cpu(place)):
            files.append(apply("ShardedFilename", temporary, i, count))
            saved.append(_save(files[-1], saveables, builder))
    # Merging renames the parts of all tasks, so all must have been written; the last task's CPU does it.
    with control_dependencies([s.op for s in saved]), device(on_cpu(shards[-1][0])):
        merged = apply_op("MergeV2Checkpoints", files, path)
        with control_dependencies([merged]):
            return apply("Identity", path)


def _restore(
    path: Tensor, saveables: list[SaveableObject], reshape: bool, name: str, builder: BaseSaverBuilder | None
) -> Operation:
    # Files are read by a CPU also when the variables are on other devices.
    with device("CPU:0"):
        if builder is None:
            tensors = restored(path, saveables)
        else:
            tensors = builder.bulk_restore(path, saveables, -1, False)
    assigned = []
    start = 0
    for saveable in saveables:
        end = start + len(saveable.specs)
        shapes = [_shape(spec.tensor) for spec in saveable.specs] if reshape else None
        assigned.append(saveable.restore(tensors[start:end], shapes))
        start = end
    return group(*assigned, name=name)


def _shape(tensor: Tensor) -> list[int | None] | Tensor:
    return tensor.shape.as_list() if tensor.shape.is_fully_defined() else apply("Shape", tensor)


def _by_device(saveables: list[SaveableObject]) -> _Shards:
    shards: dict[str, list[SaveableObject]] = {}
    for saveable in saveables:
        places = {DeviceSpec.from_string(spec.device or "").to_string() for spec in saveable.specs}
        if len(places) != 1:
            raise ValueError(
                f"All tensors of a saveable object must be on the same device: {saveable.name} has "
                f"{', '.join(sorted(places))}"
            )
        shards.setdefault(places.pop(), []).append(saveable)
    return sorted(shards.items())


def on_cpu(place: str) -> str:
    """The CPU of the task that a device belongs to: files are written there."""
    spec = DeviceSpec.from_string(place or "")
    return DeviceSpec(
        job=spec.job, replica=spec.replica, task=spec.task, device_type="CPU", device_index=0
    ).to_string()

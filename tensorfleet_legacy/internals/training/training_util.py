"""Parts of TensorFlow's packages for training and summaries that have no public name."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import Any, NamedTuple

from tensorfleet.api.summary.events import EventFile, EventFileWriter
from tensorfleet.api.train import (
    checkpoint_manager,
    checkpoint_state,
    coordinator,
    device_setter,
    evaluation,
    hooks,
    monitored_session,
    optimizer,
    saveables,
    saver,
    saver_builder,
    scaffold,
    session_manager,
    supervisor_threads,
    sync_replicas,
)
from tensorfleet.api.train.moving_averages import assign_moving_average
from tensorfleet.base import dtypes
from tensorfleet.base.naming import export, find, publish, publish_replaceable
from tensorfleet.base.platform.compat import as_text
from tensorfleet.cluster.membership import server_def
from tensorfleet.graph.apply import apply, apply_list, apply_op
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.scopes import (
    GraphKeys,
    add_to_collection,
)

_TRAINING = "python.training"

# Tests put clocks of their own here.
publish_replaceable(f"{_TRAINING}.saver.time", saver)
publish_replaceable(f"{_TRAINING}.checkpoint_management.time", checkpoint_manager)
publish_replaceable(f"{_TRAINING}.basic_session_run_hooks.time", hooks)
publish_replaceable(f"{_TRAINING}.coordinator.time", coordinator)
publish_replaceable(f"{_TRAINING}.evaluation.time", evaluation)
publish_replaceable(f"{_TRAINING}.session_manager.time", session_manager)
publish_replaceable(f"{_TRAINING}.supervisor.time", supervisor_threads)

# What is public, or elsewhere, here.
_SAME: dict[str, Any] = {
    "checkpoint_management.meta_graph_filename": checkpoint_state.meta_graph_filename,
    "checkpoint_management._GetCheckpointFilename": checkpoint_state._state_path,
    "checkpoint_management.checkpoint_exists_internal": checkpoint_state.checkpoint_exists,
    "saver._get_saver_or_default": scaffold.default_saver,
    "monitored_session.USE_DEFAULT": monitored_session.USE_DEFAULT,
    "monitored_session._MonitoredSession": monitored_session._MonitoredSession,
    "session_manager._maybe_name": session_manager._name,
    "server_lib._make_server_def": server_def.server_def_of,
    "device_setter.STANDARD_PS_OPS": device_setter.STANDARD_PS_OPS,
    "device_setter._RoundRobinStrategy": device_setter.RoundRobinStrategy,
    "basic_session_run_hooks._as_graph_element": hooks.graph_element,
    "optimizer._deduplicate_indexed_slices": optimizer._deduplicate_indexed_slices,
    "optimizer._var_key": optimizer._var_key,
    "training_util.GLOBAL_STEP_READ_KEY": hooks.STEP_READ,
    "sync_replicas_optimizer._SyncReplicasOptimizerHook": sync_replicas._SyncReplicasOptimizerHook,
    "saving.saveable_object.SaveableObject": saveables.SaveableObject,
    "saving.saveable_object.SaveSpec": saveables.SaveSpec,
    "saving.saveable_object_util.op_list_to_dict": saveables.by_name,
    "saving.saveable_object_util.validate_and_slice_inputs": saveables.saveables_of,
    "saving.saveable_object_util.ReferenceVariableSaveable": saver_builder.VariableSaveable,
    "saving.saveable_object_util.ResourceVariableSaveable": saveables.ResourceSaveable,
    "tracking.base.VARIABLE_VALUE_KEY": saveables.VARIABLE_VALUE_KEY,
    "checkpointable.base.VARIABLE_VALUE_KEY": saveables.VARIABLE_VALUE_KEY,
}
for _name, _value in _SAME.items():
    publish(_value, f"{_TRAINING}.{_name}")
for _place in ("event_file_writer", "writer"):
    publish(EventFileWriter, f"python.summary.writer.{_place}.EventFileWriter")


@export(f"{_TRAINING}.checkpoint_management.update_checkpoint_state_internal")
def update_checkpoint_state_internal(
    save_dir: str,
    model_checkpoint_path: str,
    all_model_checkpoint_paths: Any = None,
    latest_filename: str | None = None,
    save_relative_paths: bool = False,
    all_model_checkpoint_timestamps: Any = None,
    last_preserved_timestamp: float | None = None,
) -> None:
    """Writes the file that names the latest checkpoint; with relative paths, so that the folder can be moved."""
    checkpoint_state.write_state(
        save_dir,
        model_checkpoint_path,
        all_model_checkpoint_paths,
        latest_filename,
        save_relative_paths,
        all_model_checkpoint_timestamps,
        last_preserved_timestamp,
    )


@export(
    f"{_TRAINING}.tracking.base.Trackable",
    f"{_TRAINING}.tracking.tracking.AutoTrackable",
    f"{_TRAINING}.checkpointable.base.CheckpointableBase",
    f"{_TRAINING}.checkpointable.base.Checkpointable",
    f"{_TRAINING}.checkpointable.tracking.Checkpointable",
)
class Trackable:
    """Something that a `tf.train.Saver` may save: it says what of it by `_gather_saveables_for_checkpoint`."""

    def _no_dependency(self, value: Any) -> Any:
        """A value that is given to the object and is not saved with it."""
        return value

    def _gather_saveables_for_checkpoint(self) -> dict[str, Any]:
        """The saved state, by names inside this object: variables, saveables, or functions that make them."""
        return {}


@export(f"{_TRAINING}.basic_session_run_hooks.NeverTriggerTimer")
class NeverTriggerTimer:
    """A timer of hooks that is never due."""

    def should_trigger_for_step(self, step: int) -> bool:
        """False."""
        return False

    def update_last_triggered_step(self, step: int) -> tuple[None, None]:
        """Nothing: it was never due."""
        return None, None

    def last_triggered_step(self) -> None:
        """None."""

    def reset(self) -> None:
        """Does nothing."""


@export(f"{_TRAINING}.saver_test_utils.CheckpointedOp")
class CheckpointedOp:
    """A table from texts to numbers that a `tf.train.Saver` saves; for tests of savers."""

    def __init__(self, name: str, table_ref: Any = None) -> None:
        if table_ref is None:
            table_ref = apply(
                "MutableHashTableV2",
                key_dtype=dtypes.string,
                value_dtype=dtypes.float32,
                name=name,
            )
        self.table_ref = table_ref
        self._name = name
        self._saveable = _TableSaveable(self, name)
        add_to_collection(GraphKeys.SAVEABLE_OBJECTS, self._saveable)

    @property
    def name(self) -> str:
        """The name it is saved under."""
        return self._name

    @property
    def saveable(self) -> saveables.SaveableObject:
        """The variables to pass to a Saver."""
        return self._saveable

    def insert(self, keys: Any, values: Any) -> Any:
        """An operation that adds keys with their values."""
        return apply_op("LookupTableInsertV2", self.table_ref, keys, values)

    def lookup(self, keys: Any, default: Any) -> Any:
        """The values of keys."""
        return apply("LookupTableFindV2", self.table_ref, keys, default)

    def keys(self) -> Any:
        """All keys."""
        return self._export()[0]

    def values(self) -> Any:
        """All values."""
        return self._export()[1]

    def _export(self) -> Any:
        return apply_list("LookupTableExportV2", self.table_ref, Tkeys=dtypes.string, Tvalues=dtypes.float32)


class _TableSaveable(saveables.SaveableObject):
    """A table as its keys and its values."""

    def __init__(self, table: CheckpointedOp, name: str) -> None:
        parts = zip(table._export(), ("-keys", "-values"), strict=True)
        specs = [saveables.SaveSpec(tensor, "", name + part) for tensor, part in parts]
        super().__init__(table.table_ref, specs, name)

    def restore(self, restored_tensors: list, restored_shapes: list | None) -> Any:
        """Replaces what is in the table."""
        return apply_op("LookupTableImportV2", self.op, *restored_tensors)


@export(f"{_TRAINING}.moving_averages.weighted_moving_average")
def weighted_moving_average(
    value: Any,
    decay: Any,
    weight: Any,
    truediv: bool = True,
    collections: Any = None,
    name: str | None = None,
) -> Any:
    """The moving average of `value` where each one counts by its `weight`."""
    if collections is None:
        collections = [GraphKeys.GLOBAL_VARIABLES]
    get, zeros = find("get_variable"), find("zeros_initializer")()
    kept = {"trainable": False, "collections": collections, "initializer": zeros}
    with find("variable_scope")(name, "WeightedMovingAvg", [value, weight, decay]) as scope:
        value, weight = to_tensor(value), to_tensor(weight)
        parts = []
        for part, now in (("value_x_weight", value * weight), ("weight", weight)):
            average = get(part, shape=now.shape, dtype=now.dtype, **kept)
            parts.append(assign_moving_average(average, now, decay, zero_debias=False))
        return find("truediv" if truediv else "div")(*parts, name=scope.name)


@export("python.training.training_util._get_global_step_read")
def global_step_read(graph: Any = None) -> Any:
    """The copy of the global step that hooks use, or None when there is none yet."""
    graph = graph or find("get_default_graph")()
    collected = graph.get_collection(hooks.STEP_READ)
    if len(collected) > 1:
        raise RuntimeError(
            f"There are multiple items in collection {hooks.STEP_READ}. There should be only one."
        )
    return collected[0] if collected else None


@export("python.training.training_util._get_or_create_global_step_read")
def get_or_create_global_step_read(graph: Any = None) -> Any:
    """The copy of the global step that hooks use, made when there is a step and no copy; None without a step."""
    graph = graph or find("get_default_graph")()
    with graph.as_default():
        if find("train.get_global_step")() is None:
            return None
        return hooks.step_for("this")


@export("python.pywrap_tensorflow.EventsWriter")
class EventsWriter:
    """Writes `Event` messages to `<prefix>.out.tfevents.<time>.<host>`."""

    def __init__(self, file_prefix: Any) -> None:
        folder, name = os.path.split(as_text(file_prefix))
        self._file = EventFile(folder or ".", prefix=name)

    def WriteEvent(self, event: Any) -> None:
        """Appends an event."""
        if not hasattr(event, "SerializeToString"):
            raise TypeError(f"Expected an Event message, got {event}")
        self._file.write([event.SerializeToString()])

    def FileName(self) -> bytes:
        """The file's name; from here on there is one."""
        self._file.write([])
        return self._file.name.encode()

    def Flush(self) -> bool:
        """Hands what was written to the operating system."""
        self._file.flush()
        return True

    def Close(self) -> bool:
        """Closes the file."""
        self._file.close()
        return True


@export("python.training.training_util._increment_global_step")
def increment_global_step(increment: Any, graph: Any = None) -> Any:
    """Adds to the global step; ValueError when there is none."""
    step = find("train.get_global_step")(graph)
    if step is None:
        raise ValueError("Global step tensor should be created by tf.train.get_or_create_global_step first.")
    with step.graph.as_default():
        return find("assign_add")(step, increment)


@export("python.tools.inspect_checkpoint.print_tensors_in_checkpoint_file")
def print_tensors_in_checkpoint_file(
    file_name: str,
    tensor_name: str | None,
    all_tensors: bool,
    all_tensor_names: bool = False,
    count_exclude_pattern: str = "",
) -> None:
    """Prints what a checkpoint holds: one tensor, all of them, or their names with shapes."""
    reader = find("train.NewCheckpointReader")(file_name)
    if all_tensors or all_tensor_names:
        for name in sorted(reader.get_variable_to_shape_map()):
            print("tensor_name: ", name)
            if all_tensors:
                print(reader.get_tensor(name))
    elif tensor_name:
        print("tensor_name: ", tensor_name)
        print(reader.get_tensor(tensor_name))
    else:
        print(reader.debug_string().decode())


@export(f"{_TRAINING}.tracking.base.TrackableReference")
class TrackableReference(NamedTuple):
    """Something that is saved with an object, and its name there."""

    name: str
    ref: Any


@export(f"{_TRAINING}.tracking.base.no_automatic_dependency_tracking_scope")
@contextlib.contextmanager
def no_automatic_dependency_tracking_scope(obj: Any) -> Iterator[None]:
    """A block in which what an object is given is not saved with it; nothing is here that was not asked for."""
    yield


@export(f"{_TRAINING}.tracking.data_structures.NoDependency")
def no_dependency(value: Any) -> Any:
    """A value that an object is given and that is not saved with it: the value itself."""
    return value

"""`tf.train.Saver`: variables to checkpoints and back."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorfleet.api.train import checkpoint_state
from tensorfleet.api.train.checkpoint_reader import object_keys
from tensorfleet.api.train.global_step import global_step as value_of_step
from tensorfleet.api.train.saveables import by_name
from tensorfleet.api.train.saver_builder import BaseSaverBuilder, BulkSaverBuilder, warn_unless_v2
from tensorfleet.base import errors, logging
from tensorfleet.base.files import isdir, rmtree
from tensorfleet.base.formats.atomic_files import wait_for_disk
from tensorfleet.base.formats.checkpoint_changes import needed_by
from tensorfleet.base.naming import export
from tensorfleet.base.platform.compat import as_text
from tensorfleet.graph.constant import constant_value
from tensorfleet.graph.graph import Graph
from tensorfleet.graph.graphdef import prepend_scope, strip_scope
from tensorfleet.graph.meta_graph import (
    add_collection_def,
    export_meta_graph,
    import_meta_graph_def,
    register_proto_function,
)
from tensorfleet.graph.scopes import GraphKeys, get_collection, get_default_graph
from tensorfleet.session.session import BaseSession

if TYPE_CHECKING:
    from tensorfleet.api.train.types import GlobalStep, PathLike
    from tensorfleet.base.protos import MetaGraphDef, SaverDef

_V2 = 2  # SaverDef.V2, without loading the messages at import
_RESTORE_FAILED = (
    "Restoring from checkpoint failed. This is most likely due to a {reason}. Please ensure that you have not "
    "altered the graph expected based on the checkpoint. Original error:\n\n{error}"
)


@export("python.ops.variables._all_saveable_objects")
def all_saveable_objects(scope: str | None = None) -> list[Any]:
    """The default of a Saver: the global variables, and other objects with state."""
    return get_collection(GraphKeys.GLOBAL_VARIABLES, scope) + get_collection(
        GraphKeys.SAVEABLE_OBJECTS, scope
    )


def _checked_incremental(full_every: int | None, has_operations: bool) -> int | None:
    """The number of the saves of which one is full. Raises ValueError when it makes no sense."""
    if full_every is None:
        return None
    if isinstance(full_every, bool) or not isinstance(full_every, int) or full_every < 1:
        raise ValueError(
            f"incremental={full_every!r}: give a number from 1 on. With 10, each tenth checkpoint is full."
        )
    if has_operations:
        raise ValueError(
            "incremental needs the Saver's own operations: leave out saver_def and builder, or leave out incremental."
        )
    return full_every


@export("train.Saver", "python.training.saver.Saver")
class Saver:
    """Saves variables to checkpoint files and restores them.

    `var_list` is a list of variables, or a dictionary from names in the checkpoint to variables; all global
    variables by default. The last `max_to_keep` checkpoints are kept (0 or None: all of them), and besides
    one for every `keep_checkpoint_every_n_hours` hours. With `sharded`, every device writes files of its own.
    `reshape` lets a restored value take the variable's shape when only the number of elements is the same.
    With `incremental=10` each tenth checkpoint is full, and the others have only the variables and rows that
    changed since the one before. The tasks that save remember the last values, which takes memory for them.
    """

    def __init__(
        self,
        var_list: Any = None,
        reshape: bool = False,
        sharded: bool = False,
        max_to_keep: int | None = 5,
        keep_checkpoint_every_n_hours: float = 10000.0,
        name: str | None = None,
        restore_sequentially: bool = False,
        saver_def: SaverDef | None = None,
        builder: BaseSaverBuilder | None = None,
        defer_build: bool = False,
        allow_empty: bool = False,
        write_version: int = _V2,
        pad_step_number: bool = False,
        save_relative_paths: bool = False,
        filename: str | None = None,
        *,
        incremental: int | None = None,
    ) -> None:
        self._incremental = _checked_incremental(incremental, saver_def is not None or builder is not None)
        if defer_build and var_list:
            raise ValueError(
                "If `var_list` is provided then build cannot be deferred. Either set defer_build=False or "
                "var_list=None."
            )
        self._var_list = var_list
        self._reshape = reshape
        self._sharded = sharded
        self._max_to_keep = max_to_keep
        self._keep_checkpoint_every_n_hours = keep_checkpoint_every_n_hours
        self._name = name
        self._allow_empty = allow_empty
        self._pad_step_number = pad_step_number
        self._save_relative_paths = save_relative_paths
        self._filename = filename
        self._is_built = self._is_empty = False
        self._last_checkpoints: list[tuple[str, float]] = []
        self._checkpoints_to_be_deleted: list[tuple[str, float]] = []
        self.saver_def: Any = None
        self._builder = builder
        self._by_objects: Saver | None = None
        self._write_version = write_version
        if saver_def is not None:
            self._take(saver_def)
        elif not defer_build:
            self.build()

    # -- building --

    def build(self) -> None:
        """Adds the operations to the graph, if the constructor was called with `defer_build`."""
        if self._is_built:
            return
        self._is_built = True
        variables = all_saveable_objects() if self._var_list is None else self._var_list
        # A number is no list of variables: `by_name` says so with TensorFlow's message.
        if not variables and not isinstance(variables, (int, float)):
            if not self._allow_empty:
                raise ValueError("No variables to save")
            self._is_empty = True
            return
        self.saver_def = (self._builder or BulkSaverBuilder(self._write_version, self._incremental)).build(
            variables,
            reshape=self._reshape,
            sharded=self._sharded,
            max_to_keep=self._max_to_keep or 0,
            keep_checkpoint_every_n_hours=self._keep_checkpoint_every_n_hours,
            name=self._name,
            filename=self._filename,
        )
        self._start()

    def _take(self, saver_def: SaverDef) -> None:
        """Uses operations that are in the graph already, under the scope `name`."""
        from tensorfleet.base.protos import SaverDef

        self.saver_def = SaverDef.FromString(saver_def.SerializeToString())
        self._check()
        for field in ("filename_tensor_name", "save_tensor_name", "restore_op_name"):
            setattr(self.saver_def, field, prepend_scope(getattr(self.saver_def, field), self._name))
        self._sharded = self.saver_def.sharded
        self._write_version = self.saver_def.version
        warn_unless_v2(self._write_version)
        self._is_built = True
        self._start()

    def _check(self) -> None:
        for field in ("filename_tensor_name", "save_tensor_name", "restore_op_name"):
            if not getattr(self.saver_def, field):
                raise ValueError(f"saver_def must specify the {field}: {self.saver_def}")

    def _start(self) -> None:
        self._next_checkpoint_time = time.time() + self.saver_def.keep_checkpoint_every_n_hours * 3600

    # -- saving and restoring --

    def save(
        self,
        sess: BaseSession,
        save_path: PathLike,
        global_step: int | GlobalStep | None = None,
        latest_filename: str | None = None,
        meta_graph_suffix: str = "meta",
        write_meta_graph: bool = True,
        write_state: bool = True,
        strip_default_attrs: bool = False,
        save_debug_info: bool = False,
    ) -> str | None:
        """Saves the variables; returns the checkpoint's path, which `restore` takes.

        `global_step` (a number, tensor or variable) is appended to the path.
        """
        self._need_built("save")
        latest_filename = checkpoint_state.STATE_FILE if latest_filename is None else latest_filename
        if os.path.split(latest_filename)[0]:
            raise ValueError("'latest_filename' must not contain path components")
        if not isinstance(sess, BaseSession):
            raise TypeError(f"'sess' must be a Session; {sess}")
        save_path = as_text(os.fspath(save_path))
        path = self._path(sess, save_path, global_step, latest_filename)
        saved = None
        if not self._is_empty:
            saved = self._write(sess, save_path, path)
            if write_state:
                self._record(saved, os.path.dirname(save_path), latest_filename)
        if write_meta_graph:
            with sess.graph.as_default():
                self.export_meta_graph(
                    checkpoint_state.meta_graph_filename(path, meta_graph_suffix),
                    strip_default_attrs=strip_default_attrs,
                    save_debug_info=save_debug_info,
                )
        if saved is not None:
            # Behind the caller's back, and before anything is deleted: docs/decisions/0012.
            checkpoint_state.start_sync(saved, meta_graph_suffix)
            if write_state:
                for checkpoint in self._no_longer_needed():
                    self._delete(checkpoint, meta_graph_suffix)
        return saved

    def _path(
        self, sess: BaseSession, save_path: str, step: int | GlobalStep | None, latest_filename: str
    ) -> str:
        if step is None:
            if os.path.basename(save_path) == latest_filename and not self._sharded:
                raise ValueError(
                    f"'latest_filename' collides with 'save_path': '{latest_filename}' and '{save_path}'"
                )
            return save_path
        if not isinstance(step, (int, np.integer)):
            step = value_of_step(sess, step)
        return f"{save_path}-{step:08d}" if self._pad_step_number else f"{save_path}-{step:d}"

    def _write(self, sess: BaseSession, save_path: str, path: str) -> str:
        try:
            return as_text(
                sess.run(self.saver_def.save_tensor_name, {self.saver_def.filename_tensor_name: path})
            )
        except (errors.FailedPreconditionError, errors.NotFoundError) as e:
            folder = os.path.dirname(save_path)
            if folder and not isdir(folder):
                raise ValueError(f"Parent directory of {save_path} doesn't exist, can't save.") from e
            raise
        except errors.OpError:
            with contextlib.suppress(errors.OpError):
                self._remove_parts(sess.graph, path)
            raise

    def _remove_parts(self, graph: Graph, path: str) -> None:
        """Removes the files that tasks wrote for a sharded checkpoint that failed."""
        # The parts' folder has a random name, which only the graph knows: it is made in `saver_graph`.
        for op in graph.get_tensor_by_name(self.saver_def.filename_tensor_name).consumers():
            if op.type == "StringJoin" and op.inputs[1].op.type == "Select":
                parts: Any = constant_value(op.inputs[1].op.inputs[2])
                rmtree(os.path.dirname(path + as_text(parts.item())))

    def _record(self, path: str, folder: str, latest_filename: str) -> None:
        """Adds a checkpoint to the list and writes the list; the oldest falls off and is deleted later."""
        keep = self.saver_def.max_to_keep
        if keep > 0:
            self._last_checkpoints = [c for c in self._last_checkpoints if c[0] != path]
            self._last_checkpoints.append((path, time.time()))
            if len(self._last_checkpoints) > keep:
                self._checkpoints_to_be_deleted.append(self._last_checkpoints.pop(0))
        checkpoint_state.write_state(
            folder, path, self.last_checkpoints, latest_filename, self._save_relative_paths
        )

    def _no_longer_needed(self) -> list[tuple[str, float]]:
        """Takes those off the list to be deleted that are to be deleted now."""
        waiting = self._checkpoints_to_be_deleted
        if self._incremental is None:
            return [waiting.pop(0)] if waiting else []
        kept = {path for latest in self.last_checkpoints for path in needed_by(latest)} if waiting else set()
        self._checkpoints_to_be_deleted = [c for c in waiting if c[0] in kept]
        return [c for c in waiting if c[0] not in kept]

    def _delete(self, checkpoint: tuple[str, float], suffix: str) -> None:
        path, written = checkpoint
        hours = self.saver_def.keep_checkpoint_every_n_hours
        # Kept for good, one for each period: it is no longer in the list and is never looked at again.
        if hours and written > self._next_checkpoint_time:
            self._next_checkpoint_time += hours * 3600
            return
        if len(self._last_checkpoints) == 1:
            wait_for_disk()  # with more, the one before the latest is on disk
        try:
            checkpoint_state.remove_checkpoint(path, _V2, suffix)
        except (errors.OpError, OSError) as e:
            logging.warning("Ignoring: %s", e)

    def restore(self, sess: BaseSession, save_path: PathLike | None) -> None:
        """Gives the variables the values they have in a checkpoint; they need no initialization."""
        if self._is_empty:
            return
        if save_path is None:
            raise ValueError("Can't load save_path when it is None.")
        self._need_built("restore")
        path = as_text(os.fspath(save_path))
        if not checkpoint_state.checkpoint_exists(path):
            raise ValueError(f"The passed save_path is not a valid checkpoint: {path}")
        logging.info("Restoring parameters from %s", path)
        try:
            sess.run(self.saver_def.restore_op_name, {self.saver_def.filename_tensor_name: path})
        except errors.NotFoundError as e:
            # Names that are missing may be those of a `tf.train.Checkpoint`, which saves by attributes.
            if keys := object_keys(path):
                self._restore_objects(sess, path, keys)
                return
            reason = "Variable name or other graph key that is missing from the checkpoint"
            raise errors.NotFoundError(
                None, e.op, _RESTORE_FAILED.format(reason=reason, error=e.message)
            ) from e
        except errors.InvalidArgumentError as e:
            reason = "mismatch between the current graph and the graph from the checkpoint"
            raise errors.InvalidArgumentError(
                None, e.op, _RESTORE_FAILED.format(reason=reason, error=e.message)
            ) from e

    def _restore_objects(self, sess: BaseSession, path: str, keys: dict[str, str]) -> None:
        """Restores a checkpoint of `tf.train.Checkpoint` by the names of variables."""
        logging.warning(
            "Restoring an object-based checkpoint using a name-based saver. This may be somewhat fragile, and will "
            "re-build the Saver. Instead, consider loading object-based checkpoints using tf.train.Checkpoint()."
        )
        variables = by_name(all_saveable_objects() if self._var_list is None else self._var_list)
        if missing := sorted(set(variables) - set(keys)):
            raise errors.NotFoundError(
                None,
                None,
                f"Existing variables not in the checkpoint: {', '.join(missing)}\n\nVariable names when this checkpoint "
                f"was written which don't exist now: {', '.join(sorted(set(keys) - set(variables)))}\n",
            )
        if self._by_objects is None:
            with sess.graph.as_default():
                self._by_objects = Saver({keys[name]: v for name, v in variables.items()})
        self._by_objects.restore(sess, path)

    def _need_built(self, what: str) -> None:
        if not self._is_built:
            raise RuntimeError(f"`build()` should be called before {what} if defer_build==True")

    # -- the checkpoints it knows --

    @property
    def last_checkpoints(self) -> list[str]:
        """The paths of the checkpoints kept, the oldest first."""
        return [path for path, _ in self._last_checkpoints]

    def set_last_checkpoints(self, last_checkpoints: list[str]) -> None:
        """Replaces the list of checkpoints kept; their ages are unknown."""
        assert isinstance(last_checkpoints, list)
        # An unknown age counts as new: such a checkpoint is kept once for its period, as in TensorFlow.
        self._last_checkpoints = [(path, np.inf) for path in last_checkpoints]

    def set_last_checkpoints_with_time(self, last_checkpoints_with_time: list[tuple[str, float]]) -> None:
        """Replaces the list of checkpoints kept, each with the time it was written."""
        assert isinstance(last_checkpoints_with_time, list)
        self._last_checkpoints = last_checkpoints_with_time

    def recover_last_checkpoints(self, checkpoint_paths: Sequence[str]) -> None:
        """After a restart: takes over those of the checkpoints that still exist."""
        checkpoints = []
        for path in checkpoint_paths:
            written = checkpoint_state.get_checkpoint_mtimes([path])
            checkpoints += [(path, written[0])] if written else []
        self.set_last_checkpoints_with_time(checkpoints)

    # -- as messages --

    def as_saver_def(self) -> Any:
        """The saver as a `SaverDef`."""
        return self.saver_def

    def to_proto(self, export_scope: str | None = None) -> SaverDef | None:
        """The saver as a `SaverDef`, or None when its operations are outside `export_scope`."""
        from tensorfleet.base.protos import SaverDef

        proto: SaverDef = self.saver_def
        if export_scope is None:
            return proto

        fields = ("filename_tensor_name", "save_tensor_name", "restore_op_name")
        if not all(getattr(self.saver_def, f).startswith(export_scope) for f in fields):
            return None
        proto = SaverDef.FromString(self.saver_def.SerializeToString())
        for field in fields:
            setattr(proto, field, strip_scope(getattr(proto, field), export_scope))
        return proto

    @staticmethod
    def from_proto(saver_def: SaverDef, import_scope: str | None = None) -> Saver:
        """The Saver of operations in the graph that a `SaverDef` names."""
        return Saver(saver_def=saver_def, name=import_scope)

    def _add_collection_def(
        self, meta_graph_def: MetaGraphDef, key: str, export_scope: str | None = None
    ) -> None:
        """Writes a collection into a `MetaGraphDef`, when its items have a written form."""
        add_collection_def(meta_graph_def, key, export_scope=export_scope)

    def export_meta_graph(
        self,
        filename: str | None = None,
        collection_list: Sequence[str] | None = None,
        as_text: bool = False,
        export_scope: str | None = None,
        clear_devices: bool = False,
        clear_extraneous_savers: bool = False,
        strip_default_attrs: bool = False,
        save_debug_info: bool = False,
    ) -> MetaGraphDef:
        """The default graph with this Saver as a `MetaGraphDef`, also written to `filename` when given."""
        return export_meta_graph(
            filename,
            graph_def=get_default_graph().as_graph_def(add_shapes=True),
            saver_def=self.saver_def,
            collection_list=collection_list,
            as_text=as_text,
            export_scope=export_scope,
            clear_devices=clear_devices,
            clear_extraneous_savers=clear_extraneous_savers,
            strip_default_attrs=strip_default_attrs,
            save_debug_info=save_debug_info,
        )


register_proto_function(GraphKeys.SAVERS, "SaverDef", Saver.to_proto, Saver.from_proto)


@export("train.import_meta_graph", "python.training.saver.import_meta_graph")
def import_meta_graph(
    meta_graph_or_file: MetaGraphDef | PathLike,
    clear_devices: bool = False,
    import_scope: str | None = None,
    **kwargs: Any,
) -> Saver | None:
    """Adds a MetaGraph's nodes and collections to the default graph; returns a Saver of its variables.

    None when there are no variables.
    """
    return import_with_elements(meta_graph_or_file, clear_devices, import_scope, **kwargs)[0]


@export("python.training.saver._import_meta_graph_with_return_elements")
def import_with_elements(
    meta_graph_or_file: MetaGraphDef | PathLike,
    clear_devices: bool = False,
    import_scope: str | None = None,
    **kwargs: Any,
) -> tuple[Saver | None, Any]:
    """As `import_meta_graph`; gives the Saver, and the elements that `return_elements` names."""
    graph = kwargs.get("graph") or get_default_graph()
    meta, scope, elements = import_meta_graph_def(
        meta_graph_or_file, clear_devices, import_scope=import_scope, **kwargs
    )
    with graph.as_default():
        if meta.HasField("saver_def") and meta.saver_def.filename_tensor_name:
            return Saver(saver_def=meta.saver_def, name=scope), elements
        if all_saveable_objects(import_scope):
            return Saver(), elements
    logging.info("Saver not created because there are no variables in the graph to restore")
    return None, elements

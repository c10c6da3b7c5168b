"""`tf.train.Checkpoint`: objects with their variables to checkpoints and back, by attributes, not by name."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from tensorfleet.api.train.checkpoint_reader import GRAPH_KEY
from tensorfleet.api.train.checkpoint_state import write_state
from tensorfleet.api.train.object_graph import Objects, attributes
from tensorfleet.api.train.saveables import SaveableObject, SaveSpec
from tensorfleet.api.train.saver import Saver
from tensorfleet.api.variables.variable import ResourceVariable, Variable
from tensorfleet.base import dtypes
from tensorfleet.base.files import file_path, makedirs
from tensorfleet.base.naming import export
from tensorfleet.graph.apply import constant
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.scopes import get_default_graph, session_for
from tensorfleet.ops.array.basic import no_op

if TYPE_CHECKING:
    from tensorfleet.api.train.checkpoint_loading import RestoreStatus
    from tensorfleet.api.train.types import PathLike
    from tensorfleet.session.session import BaseSession


class _GraphSaveable(SaveableObject):
    """The description of the objects, saved as a string."""

    def __init__(self, text: bytes) -> None:
        tensor = constant(text, dtypes.string, name="ObjectGraph")
        super().__init__(tensor, [SaveSpec(tensor, "", GRAPH_KEY)], GRAPH_KEY)

    def restore(self, restored_tensors: list[Tensor], restored_shapes: list[Any] | None) -> Operation:
        """There is nothing to do with it."""
        return no_op()


def checkpoint_session(given: BaseSession | None, what: str) -> Any:
    """The given session, or the default one; raises when there is neither."""
    return session_for(given, get_default_graph(), "execute operation", what)


@export("train.Checkpoint")
class Checkpoint:
    """Saves and restores the objects given by keyword, and everything they hold.

    Variables, optimizers, layers, `tf.Module`s, and lists and dictionaries of these are saved; their names in the
    checkpoint are the attributes that lead to them, so that renaming a variable changes nothing. In a graph, call
    `restore(path).initialize_or_restore(session)` once everything has been made.
    """

    _is_tracked = True
    _untracked = frozenset({"_save_counter", "_counted"})

    def __init__(self, **kwargs: object) -> None:
        for name, value in sorted(kwargs.items()):
            if not hasattr(value, "__dict__") and not isinstance(value, (list, tuple, dict, Variable)):
                raise ValueError(
                    f"`Checkpoint` was expecting a trackable object (an object derived from `TrackableBase`), got "
                    f"{value} for {name!r}. If you believe this object should be trackable, make it a variable."
                )
            setattr(self, name, value)
        self._save_counter: ResourceVariable | None = None
        self._savers: dict[Any, Saver] = {}

    def _checkpoint_dependencies(self) -> Iterator[tuple[str, Any]]:
        yield from attributes(self)
        if self._save_counter is not None:
            yield "save_counter", self._save_counter

    @property
    def save_counter(self) -> ResourceVariable:
        """How often it was saved: a variable of its own, which is restored too."""
        if self._save_counter is None:
            self._save_counter = ResourceVariable(0, trainable=False, dtype=dtypes.int64, name="save_counter")
            self._counted = self._save_counter.assign_add(1)
            self._needs_start = True
        return self._save_counter

    def write(self, file_prefix: str, session: BaseSession | None = None) -> str:
        """Writes a checkpoint at exactly this path; without a count, and without a mark as the latest."""
        return self._write(str(file_prefix), checkpoint_session(session, "write"))

    def _write(self, path: str, session: BaseSession) -> str:
        objects = Objects(self)
        text = objects.message().SerializeToString(deterministic=True)
        saver = self._savers.get(text)
        if saver is None:
            held: dict[str, Any] = {**objects.variables(), GRAPH_KEY: _GraphSaveable(text)}
            saver = self._savers[text] = Saver(held, max_to_keep=0)
        makedirs(os.path.dirname(file_path(path)) or ".")
        saver.save(session, path, write_meta_graph=False, write_state=False)
        return path

    def save(self, file_prefix: str, session: BaseSession | None = None) -> str:
        """Writes the next checkpoint, "prefix-1", "prefix-2", ...; the directory names it as the latest."""
        session = checkpoint_session(session, "save")
        path = self._write(f"{file_prefix}-{self._next_number(session)}", session)
        write_state(os.path.dirname(path), path, [path], relative=True)
        return path

    def _next_number(self, session: BaseSession) -> int:
        """Counts one more checkpoint; the counter starts in the first session that needs it."""
        counter = self.save_counter
        if self._needs_start and not session.run(counter.is_initialized()):
            session.run(counter.initializer)
        self._needs_start = False
        return int(session.run(self._counted))

    def restore(self, save_path: PathLike | None) -> RestoreStatus:
        """The status of a restore from a path: call its `initialize_or_restore` or `run_restore_ops`."""
        from tensorfleet.api.train.checkpoint_loading import status_for

        self.save_counter  # noqa: B018 - it is restored with the rest
        return status_for(self, save_path)

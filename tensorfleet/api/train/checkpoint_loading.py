"""Restoring object-based checkpoints: the objects of the program matched with those of the file."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, NoReturn

from tensorfleet.api.train.checkpoint import checkpoint_session
from tensorfleet.api.train.checkpoint_reader import GRAPH_KEY, CheckpointReader, NewCheckpointReader
from tensorfleet.api.train.object_graph import Objects
from tensorfleet.api.train.saver import Saver
from tensorfleet.api.variables.variable import Variable
from tensorfleet.base.platform.compat import as_text
from tensorfleet.ops.array.basic import group

if TYPE_CHECKING:
    from tensorfleet.api.train.types import PathLike
    from tensorfleet.base.protos import TrackableObjectGraph
    from tensorfleet.session.session import BaseSession


def status_for(root: object, save_path: PathLike | None) -> RestoreStatus:
    """The status of a restore: from nothing, from a checkpoint of objects, or from one of names."""
    if save_path is None:
        return InitializationOnlyStatus(root)
    path = as_text(os.fspath(save_path))
    reader = NewCheckpointReader(path)
    if not reader.has_tensor(GRAPH_KEY):
        return NameBasedSaverStatus(root, path, reader)
    from tensorfleet.base.protos import TrackableObjectGraph

    status = CheckpointLoadStatus(root, path, TrackableObjectGraph.FromString(reader.get_tensor(GRAPH_KEY)))
    status.restore_at_once(reader)
    return status


def _start(variables: list[Variable], session: BaseSession) -> None:
    if variables:
        session.run(group(*(v.initializer for v in variables)))


class RestoreStatus:
    """The status of a restore. Its methods return itself, so that they can be chained."""

    def __init__(self, root: object) -> None:
        self._root = root

    def _variables(self) -> list[Variable]:
        return [v for v in Objects(self._root).variables().values() if isinstance(v, Variable)]

    def expect_partial(self) -> RestoreStatus:
        """Says that not everything in the checkpoint will be used; nothing complains about that here anyway."""
        return self


class InitializationOnlyStatus(RestoreStatus):
    """There was no checkpoint: variables start by their initializers."""

    def assert_consumed(self) -> NoReturn:
        """Nothing was restored, which is an error."""
        raise AssertionError("No checkpoint specified (save_path=None); nothing is being restored.")

    assert_existing_objects_matched = assert_nontrivial_match = assert_consumed

    def run_restore_ops(self, session: BaseSession | None = None) -> None:
        """Nothing can be restored, which is an error."""
        raise AssertionError(
            "No checkpoint specified, so no restore ops are available (save_path=None to Saver.restore)."
        )

    def initialize_or_restore(self, session: BaseSession | None = None) -> None:
        """Runs the initializers of all variables."""
        _start(self._variables(), checkpoint_session(session, "initialize_or_restore"))


class _FromFile(RestoreStatus):
    def __init__(self, root: object, path: str) -> None:
        super().__init__(root)
        self._path = path
        self._savers: dict[tuple[str, ...], Saver] = {}

    def _found(self) -> dict[str, Any]:
        """The variables to restore, by key in the checkpoint."""
        raise AssertionError

    def run_restore_ops(self, session: BaseSession | None = None) -> None:
        """Gives all variables that are in the checkpoint their values."""
        variables = self._found()
        if not variables:
            return
        keys = tuple(sorted(variables))
        if keys not in self._savers:
            self._savers[keys] = Saver(variables, max_to_keep=0)
        self._savers[keys].restore(checkpoint_session(session, "run_restore_ops"), self._path)

    def initialize_or_restore(self, session: BaseSession | None = None) -> None:
        """Runs the initializers of variables that are not in the checkpoint, and restores the others."""
        session = checkpoint_session(session, "initialize_or_restore")
        restored = {id(v) for v in self._found().values()}
        _start([v for v in self._variables() if id(v) not in restored], session)
        self.run_restore_ops(session)


class CheckpointLoadStatus(_FromFile):
    """A checkpoint of objects. They are matched at each call: objects made since `restore` count too."""

    def __init__(self, root: object, path: str, graph: TrackableObjectGraph) -> None:
        super().__init__(root, path)
        self._graph = graph

    def restore_at_once(self, reader: CheckpointReader) -> None:
        """Restores objects outside the graph that ask for it."""
        objects, pairs = self._match()
        for saved, ours in pairs.items():
            take: Any = getattr(objects.nodes[ours], "_restored_at_once", None)
            for child in self._graph.nodes[saved].children if take else ():
                for attribute in self._graph.nodes[child.node_id].attributes:
                    take(child.local_name, reader.get_tensor(attribute.checkpoint_key))

    def _match(self) -> tuple[Objects, dict[int, int]]:
        """The program's objects, and for each number in the file the program's number."""
        objects = Objects(self._root)
        pairs = {0: 0}
        left = [(0, 0)]
        while left:
            saved, ours = left.pop()
            here = dict(objects.children[ours])
            for child in self._graph.nodes[saved].children:
                if child.local_name in here and child.node_id not in pairs:
                    pairs[child.node_id] = here[child.local_name]
                    left.append((child.node_id, here[child.local_name]))
        # Slots are matched after the objects: by optimizer, variable and name, since nothing holds them.
        first = len(objects.nodes) - len(objects.slots)
        slots = {(s.optimizer, s.original, s.name): first + i for i, s in enumerate(objects.slots)}
        for saved, ours in list(pairs.items()):
            for slot in self._graph.nodes[saved].slot_variables:
                place = (ours, pairs.get(slot.original_variable_node_id, -1), slot.slot_name)
                if place in slots:
                    pairs[slot.slot_variable_node_id] = slots[place]
        return objects, pairs

    def _shared(self) -> tuple[dict[str, Any], dict[str, str]]:
        """The program's values by their keys, and of those in the file the key there."""
        objects, pairs = self._match()
        values = objects.variables()
        shared = {
            objects.key(ours, attribute.name): attribute.checkpoint_key
            for saved, ours in pairs.items()
            for attribute in self._graph.nodes[saved].attributes
        }
        return values, {ours: saved for ours, saved in shared.items() if ours in values}

    def _found(self) -> dict[str, Any]:
        values, shared = self._shared()
        return {saved: values[ours] for ours, saved in shared.items()}

    def assert_consumed(self) -> CheckpointLoadStatus:
        """Everything in the checkpoint has its object, and every object a value."""
        self.assert_existing_objects_matched()
        _, pairs = self._match()
        for number, node in enumerate(self._graph.nodes):
            if number not in pairs and (node.attributes or node.children):
                where = node.attributes[0].checkpoint_key if node.attributes else f"object {number}"
                raise AssertionError(f"Unresolved object in checkpoint: {where}")
        return self

    def assert_existing_objects_matched(self) -> CheckpointLoadStatus:
        """Every variable of the program is in the checkpoint."""
        values, shared = self._shared()
        for key, variable in values.items():
            if key not in shared and not _is_counter(key):
                raise AssertionError(f"Object not assigned a value from checkpoint: {variable} ({key})")
        return self

    def assert_nontrivial_match(self) -> CheckpointLoadStatus:
        """Something of the program is in the checkpoint."""
        if len(self._match()[1]) == 1:
            raise AssertionError("Nothing except the root object matched a checkpointed value.")
        return self


def _is_counter(key: str) -> bool:
    """A checkpoint that was written without a count has no counter, which is no loss."""
    return key.startswith("save_counter/")


class NameBasedSaverStatus(_FromFile):
    """A checkpoint of `tf.train.Saver`: variables are matched by their names."""

    def __init__(self, root: object, path: str, reader: CheckpointReader) -> None:
        super().__init__(root, path)
        self._names = set(reader.get_variable_to_shape_map())

    def _found(self) -> dict[str, Any]:
        return {v.op.name: v for v in self._variables() if v.op.name in self._names}

    def assert_consumed(self) -> NameBasedSaverStatus:
        """Every variable of the program is in the checkpoint, and no others are."""
        self.assert_existing_objects_matched()
        left = self._names - set(self._found())
        if left:
            raise AssertionError(f"Unused attributes in the checkpoint: {sorted(left)}")
        return self

    def assert_existing_objects_matched(self) -> NameBasedSaverStatus:
        """Every variable of the program is in the checkpoint."""
        matched = set(self._found())
        missing = [v for v in self._variables() if v.op.name not in matched and v.op.name != "save_counter"]
        if missing:
            raise AssertionError(f"Object not assigned a value from checkpoint: {missing[0]}")
        return self

    def assert_nontrivial_match(self) -> NameBasedSaverStatus:
        """Something of the program is in the checkpoint."""
        if not self._found():
            raise AssertionError("Nothing except the root object matched a checkpointed value.")
        return self

"""The state that servers still have when a session begins: it is kept if it is newer than the checkpoint.

A task that was stopped for a while, or a network that was down, ends the chief's session. The variables are where they
were, with the steps since the last checkpoint. To restore that checkpoint would undo those steps, other workers' too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorfleet.api.train.checkpoint_reader import CheckpointReader
from tensorfleet.api.train.global_step import get_global_step
from tensorfleet.base import errors, logging
from tensorfleet.cluster.targets import incarnations
from tensorfleet.graph.graph import Graph
from tensorfleet.graph.scopes import GraphKeys

if TYPE_CHECKING:
    from tensorfleet.api.train.types import Fetches, PathLike
    from tensorfleet.session.session import BaseSession


class LiveState:
    """The servers of one SessionManager's sessions, and the state they have."""

    def __init__(self, graph: Graph, ready_op: Fetches) -> None:
        self._graph = graph
        self._ready_op = ready_op  # gives the names of variables without a value
        self._servers: dict[
            str, int
        ] = {}  # of the last session that was ready: which life of each task it used
        self._restored: PathLike | None = None

    def note(self, sess: BaseSession) -> None:
        """A session is ready: its servers now have the state of this training."""
        self._servers = incarnations(sess._engine)

    def survives(self, sess: BaseSession) -> bool:
        """Whether the servers of a new session are those of the last, with a value for each variable."""
        known = self._servers
        if not known or not self._is_complete(sess):
            return False
        # A server that restarted has another incarnation; its variables may have been initialized by somebody
        # else.
        return all(known.get(task) == life for task, life in incarnations(sess._engine).items())

    def replaces(self, sess: BaseSession, path: str) -> bool:
        """Whether to keep the state that the servers have instead of the latest checkpoint, which is at `path`."""
        if not incarnations(sess._engine) or not self._is_complete(sess):
            return False
        saved, step = self._step_in(path), self._step(sess)
        # Without a step there is no order: only servers of this very training are trusted.
        if saved is None or step is None:
            return self.survives(sess)
        # The checkpoint is newer: these servers have the state of an earlier training.
        if step < saved:
            return False
        logging.warning(
            "The servers have the variables at step %d; the checkpoint %s is of step %d. Training goes on from step %d. "
            "To go back to the checkpoint, call tf.Session.reset(%r) first, or start the parameter servers again.",
            step,
            path,
            saved,
            step,
            sess.sess_str,
        )
        return True

    def replaces_file(self, sess: BaseSession, path: PathLike) -> bool:
        """Whether to keep the state that the servers have instead of the file that was asked for: it began with that file."""
        again = path == self._restored
        self._restored = path
        return again and self.survives(sess)

    def _is_complete(self, sess: BaseSession) -> bool:
        """Whether every variable has a value, but for local ones: those are new with each session."""
        if self._ready_op is None:
            return False
        try:
            missing = sess.run(self._ready_op)
        except errors.FailedPreconditionError:  # old programs have operations that fail
            return False
        if missing is None or missing.dtype.kind not in "OSU":
            return True
        local = {v.op.name for v in self._graph.get_collection(GraphKeys.LOCAL_VARIABLES)}
        return all(name.decode() in local for name in missing.ravel())

    def _step(self, sess: BaseSession) -> int | None:
        step = get_global_step(self._graph)
        return None if step is None else int(sess.run(step))

    def _step_in(self, path: str) -> int | None:
        step = get_global_step(self._graph)
        reader = CheckpointReader(path)
        if step is None or not reader.has_tensor(step.op.name):
            return None
        return int(reader.get_tensor(step.op.name))

"""`tf.fleet.stale_reads`: reads variables from the standbys of durable parameter servers."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tensorfleet.base import errors
from tensorfleet.base.naming import export
from tensorfleet.cluster.master.master import ClusterEngine, task_parts
from tensorfleet.cluster.master.stage_contents import READS
from tensorfleet.cluster.messages import ReadVariables, VariablesRead
from tensorfleet.cluster.transport.peers import Peer
from tensorfleet.passes.partition import standing, task_of
from tensorfleet.session.feeds import feed_plan
from tensorfleet.session.fetches import fetch_plan

if TYPE_CHECKING:
    from tensorfleet.cluster.transport import wire
    from tensorfleet.graph.operation import Operation, Tensor
    from tensorfleet.runtime.values import Values
    from tensorfleet.session.session import BaseSession

_ANSWER_SECONDS = 5.0  # of a standby; then the server that leads is asked
#: as it is after these: the last is that of a variable that has no value yet
_ASK_THE_LEADER = (
    errors.UnavailableError,
    errors.DeadlineExceededError,
    errors.AbortedError,
    errors.FailedPreconditionError,
)


@export("fleet.stale_reads")
def stale_reads(session: BaseSession) -> StaleReads:
    """Returns a reader that takes the values of variables from standbys, so that the parameter servers have less to do.

    `reader.run(fetches, feed_dict)` is `session.run` for fetches that change nothing on durable parameter servers: an
    evaluation, for example. What it reads may be up to one second old. It never goes back: a later run of the same reader
    reads the same values or newer ones, also when another server has taken over. A standby that may be older is not used;
    then the server that leads is read.

    Variables of tasks without a standby are read as always. One thread at a time may use a reader. It is a context manager
    that closes its own connections; the session stays open.
    """
    engine = getattr(session, "_engine", None)
    if engine is None:
        raise TypeError(f"session must be a tf.Session, but got {session!r}")
    return StaleReads(session, engine if isinstance(engine, ClusterEngine) else None)


class StaleReads:
    """Runs fetches with variables from standbys. `tf.fleet.stale_reads` makes it."""

    def __init__(self, session: BaseSession, engine: ClusterEngine | None) -> None:
        self._session = session
        self._engine = engine
        self._standbys: dict[str, Peer] = {}  # by address
        self._seen: dict[str, tuple[int, int]] = {}  # by task: the state and the commit that was read last
        #: how many reads went to standbys, and to servers that lead
        self.from_standbys = self.from_leaders = 0

    def run(self, fetches: object, feed_dict: Mapping[Any, Any] | None = None) -> Any:
        """Runs the operations that `fetches` need and returns their values in the same structure.

        Raises `InvalidArgumentError` if one of them changes something on a durable parameter server, or needs more of a
        variable there than its value.
        """
        given = dict(feed_dict or {})
        if self._engine is not None:
            graph = self._session.graph
            feeds, _ = feed_plan(graph, list(given))
            tensors, targets, _ = fetch_plan(graph, fetches, feeds, self._session)
            for task, reads in self._needed(self._engine, tensors, targets, set(feeds)).items():
                values = self._read(self._engine, task, [name for _, name in reads])
                given.update(zip((tensor for tensor, _ in reads), values, strict=True))
        return self._session.run(fetches, given)

    def _needed(
        self,
        engine: ClusterEngine,
        tensors: Sequence[Tensor],
        targets: Sequence[Operation],
        fed: set[Tensor],
    ) -> dict[str, list[tuple[Tensor, tuple[str, str]]]]:
        """By durable task: the tensors that are the values of variables, with their names there."""
        result: dict[str, list[tuple[Tensor, tuple[str, str]]]] = {}
        waiting = [*(t._op for t in tensors if t not in fed), *targets]
        seen = set(waiting)
        while waiting:
            op = waiting.pop()
            task = task_of(engine.placer.device_of(op))
            inputs = [t._op for t in op._inputs if t not in fed]
            if self._is_durable(engine, task):
                variable = op if op.spec.variable and op.type != "VarHandleOp" else None
                if op.type == "ReadVariableOp" and op._inputs[0]._op.type == "VarHandleOp":
                    variable = op._inputs[0]._op
                if variable is not None:
                    result.setdefault(task, []).append((op._outputs[0], _name(variable)))
                    continue
                _check(op, task)
            more = [o for o in (*inputs, *op._control_inputs) if o not in seen]
            seen.update(more)
            waiting += more
        return result

    def _is_durable(self, engine: ClusterEngine, task: str) -> bool:
        if task == engine.own:
            return False
        at = engine.peer_of(*task_parts(task))
        if at.welcome is None:
            at.release(at.acquire(waits=True))
        return bool(at.places)

    def _read(self, engine: ClusterEngine, task: str, names: list[tuple[str, str]]) -> Values:
        lineage, number = self._seen.get(task, (0, 0))
        message = ReadVariables(task, names, lineage, number)
        at = engine.peer_of(*task_parts(task))
        for place in at.other_places:
            standby = self._standbys.get(place)
            if standby is None:
                standby = self._standbys[place] = Peer(f"the standby of {task}", place, watched=False)
            try:
                answer, values = standby.call_for(message, _taken, time.monotonic() + _ANSWER_SECONDS)
            except _ASK_THE_LEADER:
                continue
            break
        else:
            answer, values = at.call_for(message, _taken)
        self.from_standbys += answer.stands_by
        self.from_leaders += not answer.stands_by
        self._seen[task] = answer.lineage, answer.number
        return values

    def close(self) -> None:
        """Closes the connections to standbys; the next run opens them again."""
        for standby in self._standbys.values():
            standby.forget()

    def __enter__(self) -> StaleReads:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()


def _taken(channel: wire.Channel, frame: wire.Frame) -> tuple[VariablesRead, Values]:
    return frame.read(VariablesRead), list(frame.tensors)


def _name(variable: Operation) -> tuple[str, str]:
    attrs = variable._attrs
    name = (attrs.get("shared_name") or b"").decode() or variable.name
    return (attrs.get("container") or b"").decode(), name


def _check(op: Operation, task: str) -> None:
    """Raises for an operation on a durable task that changes something, or takes a variable itself."""
    if (op.spec.stateful or op.spec.updates) and not standing(op) and op.type not in READS:
        raise errors.InvalidArgumentError(
            None,
            op,
            f"'{op.name}' ({op.type}) changes something on {task}, and stale reads only read. Run it with the session.",
        )
    if any(t._op.type == "VarHandleOp" for t in op._inputs):
        raise errors.InvalidArgumentError(
            None,
            op,
            f"'{op.name}' ({op.type}) needs more of the variable '{op._inputs[0]._op.name}' than its value, which a standby does "
            "not have. Run it with the session.",
        )

"""`tf.fleet.stats`: the load of the tasks of a cluster, as plain data."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from tensorfleet.base import errors
from tensorfleet.base.naming import export
from tensorfleet.cluster import targets
from tensorfleet.cluster.inspection.ask import ask
from tensorfleet.cluster.inspection.own_task import label_of

if TYPE_CHECKING:
    from tensorfleet.session.session import BaseSession

_ASK_SECONDS = 10.0


@export("fleet.stats")
def stats(session_or_target: BaseSession | str, task: str | None = None) -> dict[str, Any]:
    """What tasks have done so far: steps and their parts, traffic, variables, queues, staleness, errors.

    `session_or_target` is a session or its target (`grpc://host:port`, `server.target`); `task` is one task, such as
    `"worker/1"` or `"/job:worker/task:1"`. Returns what that task tells, or with `task` None a dict of all tasks by
    name; a task that does not answer has `{"error": sentence}` there. docs/statistics.md lists the fields.

    For a session without a cluster the only task is `main/0`, this process.
    Raises `InvalidArgumentError` for a task that the cluster does not have, and `UnavailableError` or
    `DeadlineExceededError` when the target, or the one task asked for, does not answer.
    """
    target = getattr(session_or_target, "sess_str", session_or_target)
    if not isinstance(target, str):
        raise TypeError(
            f"session_or_target must be a session or a string such as grpc://host:port, but got {target!r}"
        )
    if task is not None and not isinstance(task, str):
        raise TypeError(f"task must be a name such as worker/1, but got {task!r}")
    addresses = targets.task_addresses(target)
    if task is None:
        return _of_all(addresses)
    label = label_of(task)
    if label not in addresses:
        raise errors.InvalidArgumentError(
            None, None, f"There is no task {task!r}. The tasks are {', '.join(sorted(addresses))}."
        )
    return _of(label, addresses[label])


def _of(label: str, address: str | None) -> dict[str, Any]:
    if address is None:
        from tensorfleet.cluster.inspection import topics

        return topics.answer(None, "this process", "stats", "").content
    return ask(label, address, "stats", seconds=_ASK_SECONDS).content


def _of_all(addresses: dict[str, str | None]) -> dict[str, Any]:
    """All tasks, asked at the same time: one that is dead holds up nobody."""
    answers: dict[str, Any] = {}

    def look(label: str, address: str | None) -> None:
        try:
            answers[label] = _of(label, address)
        except errors.OpError as error:
            answers[label] = {"error": error.message}

    threads = [
        threading.Thread(target=look, args=one, name=f"tensorfleet-stats-{one[0]}", daemon=True)
        for one in addresses.items()
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(_ASK_SECONDS + 5.0)
    late = {"error": f"No answer in {_ASK_SECONDS + 5.0:.0f} s."}
    return {label: answers.get(label, late) for label in sorted(addresses)}

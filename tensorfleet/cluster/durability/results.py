"""What requests have come to, kept until their client has ended the step: a request that comes again must change nothing.

A stage that waits is committed in parts. It has the results of its items that are done, until all of it is done.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tensorfleet.base import errors
from tensorfleet.cluster.durability.changes import RESULT, Change, Changes, can_be_sent

#: stands for the whole stage in place of the number of an item
STAGE = -1


class RequestName(NamedTuple):
    """Names a request: a stage of a step of a session."""

    session: str
    step: int
    stage: int


@dataclass
class Result:
    """What a stage, or an item of it, has come to."""

    #: the name of the item, to make sure that it is the same one in another server's program
    name: str = ""
    #: where in the values of the step the results belong, for an item
    slots: list[int] = field(default_factory=list)
    values: list[Any] = field(default_factory=list)
    #: code, message and operation of the error that it ended with
    error: tuple[int, str, str | None] | None = None
    #: of an item that waits in the middle: how many elements each of its attempts has put in
    progress: list[int] = field(default_factory=list)
    #: why it cannot be given again: it made something that cannot leave its process
    unrepeatable: str = ""

    def sendable(self) -> Result:
        """The same, as another server can have it."""
        if all(can_be_sent(value) for value in self.values):
            return self
        return Result(self.name, error=self.error, unrepeatable=self.name or "the stage")

    def add_to(self, changes: Changes, request: RequestName, item: int) -> None:
        """Adds it to the changes of a commit."""
        details = {
            "name": self.name,
            "slots": self.slots,
            "error": self.error,
            "progress": self.progress,
            "unrepeatable": self.unrepeatable,
        }
        changes.add(RESULT, (*request, item), details, self.values)

    def raise_if_failed(self) -> None:
        """Raises the error that it ended with."""
        if self.unrepeatable:
            text = (
                f"The parameter server was lost in the middle of {self.unrepeatable}, which cannot be repeated: some of its "
                "changes were made. Run the step again."
            )
            raise errors.AbortedError(None, None, text)
        if self.error is not None:
            code, message, op = self.error
            error: errors.OpError = errors.exception_type_from_error_code(code)(None, None, message)
            error.remote_op = op
            raise error


def read_result(change: Change) -> tuple[RequestName, int, Result]:
    """The result in a change that another server has sent."""
    session, step, stage, item = change.about
    details = change.details
    error = details.get("error")
    result = Result(
        str(details.get("name", "")),
        list(details.get("slots", ())),
        list(change.arrays),
        None if error is None else (int(error[0]), str(error[1]), error[2]),
        list(details.get("progress", ())),
        str(details.get("unrepeatable", "")),
    )
    return RequestName(str(session), int(step), int(stage)), int(item), result


class Results:
    """The results of all requests whose steps are under way."""

    def __init__(self) -> None:
        #: by session and step; then by stage and item
        self._of: dict[str, dict[int, dict[tuple[int, int], Result]]] = {}

    def note(self, request: RequestName, item: int, result: Result) -> None:
        """Keeps a result. That of a stage replaces those of its items."""
        of_step = self._of.setdefault(request.session, {}).setdefault(request.step, {})
        if item == STAGE:
            for known in [k for k in of_step if k[0] == request.stage]:
                del of_step[known]
        of_step[request.stage, item] = result

    def of_stage(self, request: RequestName) -> Result | None:
        """What a stage has come to, None while it has not ended."""
        return self._of.get(request.session, {}).get(request.step, {}).get((request.stage, STAGE))

    def of_items(self, request: RequestName) -> dict[int, Result]:
        """What items of a stage have come to, by their numbers."""
        of_step = self._of.get(request.session, {}).get(request.step, {})
        return {item: result for (stage, item), result in of_step.items() if stage == request.stage}

    def over(self, session: str, oldest: int) -> None:
        """Forgets the steps of a session before one."""
        steps = self._of.get(session)
        if steps:
            for step in [s for s in steps if whole_step(s) < oldest]:
                del steps[step]

    def forget_session(self, session: str) -> None:
        """Forgets a session."""
        self._of.pop(session, None)

    def send(self, changes: Changes) -> None:
        """Adds all results to the changes for a new standby."""
        for session, steps in self._of.items():
            for step, of_step in steps.items():
                for (stage, item), result in of_step.items():
                    result.add_to(changes, RequestName(session, step, stage), item)

    def __len__(self) -> int:
        return sum(len(of_step) for steps in self._of.values() for of_step in steps.values())


def whole_step(step: int) -> int:
    """The number of the step that an iteration of a loop is part of."""
    from tensorfleet.cluster.messages import WHOLE_STEP

    return step & WHOLE_STEP


def failure_of(error: BaseException) -> Result:
    """The result of a stage that ended with an error."""
    known = error if isinstance(error, errors.OpError) else errors.about(None, error)
    op = known.op.name if known.op is not None else None
    return Result(error=(known.error_code, known.message, op))


def values_of(values: Sequence[Any]) -> Result:
    """The result of a stage that ended well."""
    return Result(values=list(values)).sendable()

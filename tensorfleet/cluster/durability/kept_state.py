"""The state of a durable task as its standby has it."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tensorfleet.base import errors
from tensorfleet.cluster.durability.changes import DROP, OVER, RESULT, Change, Key
from tensorfleet.cluster.durability.contents import Content, Contents
from tensorfleet.cluster.durability.results import Results, read_result

if TYPE_CHECKING:
    from tensorfleet.runtime.values import Values


def not_initialized(name: str) -> errors.OpError:
    """The error for a read of a variable that has no value."""
    return errors.FailedPreconditionError(None, None, f"Attempting to use uninitialized value {name}")


class KeptState:
    """The contents of resources, and the results of requests."""

    def __init__(self, contents: Contents | None = None, results: Results | None = None) -> None:
        self.contents = Contents() if contents is None else contents
        self.results = Results() if results is None else results

    def variables(self, names: Sequence[tuple[str, str]]) -> Values:
        """Copies of the values of variables, by container and name. Raises NotFoundError."""
        return [self._variable(container, name) for container, name in names]

    def _variable(self, container: str, name: str) -> Any:
        content = self.contents.of.get(Key("", container, "variable", name))
        if not isinstance(content, Content) or not content.arrays:
            raise not_initialized(name)
        return copy.copy(content.arrays[0])

    def apply(self, change: Change) -> None:
        """Takes a change in."""
        if change.what == RESULT:
            self.results.note(*read_result(change))
        elif change.what == OVER:
            session, oldest = change.about
            self.results.over(str(session), int(oldest))
        elif change.what == DROP and change.about[0] == "session":
            self.contents.drop_session(change.details["session"])
            self.results.forget_session(change.details["session"])
        elif change.what == DROP:
            self.contents.drop(change.details["containers"])
        else:
            self.contents.take(change)

"""The state of a durable task as its standby has it."""

from __future__ import annotations

from tensorfleet.cluster.durability.changes import DROP, OVER, RESULT, Change
from tensorfleet.cluster.durability.contents import Contents
from tensorfleet.cluster.durability.results import Results, read_result


class KeptState:
    """The contents of resources, and the results of requests."""

    def __init__(self, contents: Contents | None = None, results: Results | None = None) -> None:
        self.contents = Contents() if contents is None else contents
        self.results = Results() if results is None else results

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

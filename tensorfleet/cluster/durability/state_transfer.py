"""How a primary sends all of its state to a standby, while it goes on to commit."""

from __future__ import annotations

from dataclasses import dataclass, field

from tensorfleet.base import errors
from tensorfleet.cluster.durability import changes as kinds
from tensorfleet.cluster.durability.changes import Changes, Key
from tensorfleet.cluster.durability.journal import Journal
from tensorfleet.cluster.durability.standby_link import StandbyLink
from tensorfleet.cluster.messages import BEGINS, ENDS


@dataclass
class StateTransfer:
    """One copy of the state to one standby. The caller of each method holds the journal's lock.

    Methods raise OSError or OpError when the standby cannot be reached or refuses.
    """

    link: StandbyLink
    journal: Journal
    epoch: int
    #: what the standby has already, so that it needs the commits that change it
    copied: set[Key] = field(default_factory=set)
    is_lost: bool = False

    def begin(self, lineage: int) -> None:
        """Tells the standby to drop what it has."""
        first = Changes()
        first.add(kinds.LINEAGE, [lineage])
        self.link.send(self.epoch, self.journal.number, BEGINS, first)

    def add(self, key: Key) -> None:
        """Sends one resource, unless it was sent."""
        if key in self.copied:
            return
        if self.is_lost:
            raise ConnectionError("the connection was lost")
        content = self.journal.content(key)
        if content:
            self.link.send(self.epoch, self.journal.number, 0, content)
        self.copied.add(key)

    def end(self) -> None:
        """Sends what is left, and the results of steps that are not over."""
        for key in self.journal.all_keys():
            self.add(key)
        rest = Changes()
        self.journal.results.send(rest)
        self.link.send(self.epoch, self.journal.number, ENDS, rest)

    def pass_on(self, number: int, changes: Changes) -> None:
        """Sends of a commit what changes resources that were sent. Raises nothing: `add` does when the standby is lost."""
        if self.is_lost:
            return
        try:
            self.link.send(self.epoch, number, 0, changes.about(self.copied))
        except (OSError, errors.OpError):
            self.is_lost = True

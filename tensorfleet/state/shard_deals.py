"""Which reader of a dataset has which shard: shards are dealt to those that ask, and again when a reader has died.

A shard is dealt to one reader at a time, and is finished when that reader asks for the next. One that is given back goes
on where its reader was. No clocks here: the times come with the events.
"""

from __future__ import annotations

import random
import threading
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from tensorfleet.base import logging

if TYPE_CHECKING:
    from tensorfleet.graph.kernel_types import Resources
    from tensorfleet.state.recording import ChangeRecorder

#: what a reader gets that asks: a shard; none for now, because others may die; none any more
DEALT, WAIT, OVER = range(3)
_CLAIM_SECONDS = 60.0  # for the readers of a server that was lost to ask its successor


class Shard(NamedTuple):
    """A part of the input: of which pass through it, its number, and how many of its elements were read already."""

    epoch: int
    number: int
    position: int = 0


class ShardDeals:
    """The state of one input that several readers share."""

    def __init__(self, shards: int, epochs: int, seed: int, again: bool) -> None:
        """`epochs` 0: without end. With a `seed` of 0 or more the order is another one in each epoch.

        Without `again`, what is left of the shard of a reader that died is skipped in that epoch.
        """
        self.shards, self.epochs, self.seed, self.again = shards, epochs, seed, again
        self.held: dict[str, Shard] = {}
        self.finished = self.dealt_again = 0
        self._epoch = self._dealt = 0
        self._returned: deque[Shard] = deque()
        self._unclaimed: dict[str, float | None] = {}  # readers of a lost server, and until when they may ask
        self._order = self._drawn(0)

    def next(self, reader: str, now: float) -> tuple[int, Shard | None]:
        """A reader has finished its shard, if it had one, and asks for another."""
        self._claim(reader, now)
        if self.held.pop(reader, None) is not None:
            self.finished += 1
        shard = self._returned.popleft() if self._returned else self._fresh()
        if shard is not None:
            self.held[reader] = shard
            return DEALT, shard
        return (WAIT if self.held else OVER), None

    def give_back(self, reader: str, position: int) -> None:
        """A reader leaves its shard to others, after so many of its elements."""
        shard = self.held.pop(reader, None)
        if shard is not None:
            self._returned.append(shard._replace(position=position))

    def lost(self, reader: str) -> Shard | None:
        """A reader has died. Gives the shard that it had."""
        shard = self.held.pop(reader, None)
        self._unclaimed.pop(reader, None)
        if shard is not None and self.again:
            self._returned.append(shard)
            self.dealt_again += 1
        return shard

    def _claim(self, reader: str, now: float) -> None:
        self._unclaimed.pop(reader, None)
        for other, limit in list(self._unclaimed.items()):
            if limit is None:
                self._unclaimed[other] = now + _CLAIM_SECONDS
            elif now >= limit:
                self.lost(other)

    def _fresh(self) -> Shard | None:
        if self._dealt == self.shards and (self.epochs == 0 or self._epoch + 1 < self.epochs):
            self._epoch, self._dealt = self._epoch + 1, 0
            self._order = self._drawn(self._epoch)
        if self._dealt == self.shards:
            return None
        self._dealt += 1
        return Shard(self._epoch, self._order[self._dealt - 1])

    def _drawn(self, epoch: int) -> Sequence[int]:
        order = list(range(self.shards))
        if self.seed >= 0:
            random.Random(f"{self.seed}/{epoch}").shuffle(order)
        return order

    # -- copies on a standby --------------------------------------------------------------------------

    def content(self) -> dict[str, Any]:
        """Its state, in plain values."""
        return {
            "epoch": self._epoch,
            "dealt": self._dealt,
            "finished": self.finished,
            "dealt_again": self.dealt_again,
            "returned": [list(shard) for shard in self._returned],
            "held": {reader: list(shard) for reader, shard in self.held.items()},
        }

    def restore(self, content: dict[str, Any]) -> None:
        """Takes over the state of a server that was lost. Its readers may be alive."""
        self._epoch, self._dealt = content["epoch"], content["dealt"]
        self.finished, self.dealt_again = content["finished"], content["dealt_again"]
        self._returned = deque(Shard(*shard) for shard in content["returned"])
        self.held = {reader: Shard(*shard) for reader, shard in content["held"].items()}
        self._unclaimed = dict.fromkeys(self.held)
        self._order = self._drawn(self._epoch)


class ReaderMark:
    """The session of one reader. Its end clears it."""

    def __init__(self, dealer: ShardDealer, reader: str, owner: str) -> None:
        self._dealer = dealer
        self._reader, self._owner = reader, owner

    def clear(self) -> None:
        """The session has ended."""
        self._dealer.gone(self._reader, self._owner)


class ShardDealer:
    """The deals of one input, on the server that keeps them."""

    recorder: ChangeRecorder | None = None

    def __init__(self, name: str, deals: ShardDeals) -> None:
        self.name = name
        self._deals = deals
        self._lock = threading.Lock()
        self._gone: list[tuple[str, str]] = []

    def matches(self, shards: int, epochs: int, seed: int, again: bool) -> bool:
        """Whether these are its numbers."""
        deals = self._deals
        return (deals.shards, deals.epochs, deals.seed, deals.again) == (shards, epochs, seed, again)

    def next(self, reader: str, session: Resources, now: float) -> tuple[int, Shard, int]:
        """Deals a shard to a reader, whose session's end ends the deal. Also how many shards are finished."""
        session.get("", "replica", f"reader {reader}", lambda: ReaderMark(self, reader, session.owner))
        with self._lock:
            self._bury()
            outcome, shard = self._deals.next(reader, now)
            self._changed()
            return outcome, shard or Shard(0, 0), self._deals.finished

    def give_back(self, reader: str, position: int) -> None:
        """A reader leaves its shard to others."""
        with self._lock:
            self._deals.give_back(reader, position)
            self._changed()

    def gone(self, reader: str, owner: str) -> None:
        """A session has ended. Noted only: this is not a step, and a copy of the state learns of steps."""
        with self._lock:
            if self.recorder is None:
                self._lost(reader, owner)
            else:
                self._gone.append((reader, owner))

    def counts(self) -> tuple[int, int, int]:
        """How many shards are held, were finished, and were dealt again."""
        with self._lock:
            return len(self._deals.held), self._deals.finished, self._deals.dealt_again

    def content(self) -> tuple[dict[str, Any], list[Any]]:
        """Its state for a copy."""
        return self._deals.content(), []

    def restore(self, numbers: dict[str, Any], arrays: Sequence[Any]) -> None:
        """Takes over the state of a copy."""
        self._deals.restore(numbers)

    def _bury(self) -> None:
        gone, self._gone = self._gone, []
        for reader, owner in gone:
            self._lost(reader, owner)

    def _lost(self, reader: str, owner: str) -> None:
        shard = self._deals.lost(reader)
        if shard is not None:
            then = "is dealt again" if self._deals.again else "is not finished in this epoch"
            logging.warning(
                "Shard %d of '%s' (epoch %d) %s: %s has gone.",
                shard.number,
                self.name,
                shard.epoch,
                then,
                owner or "its reader",
            )

    def _changed(self) -> None:
        if self.recorder is not None:
            self.recorder.changed(self)

"""Watches on lease: one that nobody asks about any more is withdrawn, also when the asker was killed."""

from __future__ import annotations

import secrets
import threading
import time
from dataclasses import dataclass

from tensorfleet.base import errors
from tensorfleet.base.platform.exit_threads import started
from tensorfleet.cluster.inspection.topics import Options, Report, chosen
from tensorfleet.runtime import observing

LEASE_SECONDS = 10.0
_MAX_WATCHES = 16  # each may hold 256 MB of values
_SHORTEST_WAIT_SECONDS = 0.05
_changed = threading.Condition()
_watches: dict[str, observing.StepsWatch] = {}


@dataclass(frozen=True, slots=True)
class _Withdrawn:
    id: str = ""


def begin(watch: observing.StepsWatch) -> str:
    """Has a watch look at steps; the id it is asked about by."""
    number = secrets.token_hex(8)
    watch.expires = time.monotonic() + LEASE_SECONDS
    with _changed:
        _forget_expired()
        if len(_watches) >= _MAX_WATCHES:
            text = f"{_MAX_WATCHES} watches are under way in this task. End some of them first."
            raise errors.ResourceExhaustedError(None, None, text)
        _watches[number] = watch
        observing.add(watch)
    # The steps may have ended, and nobody may ask again: then nobody else would free the values.
    started(threading.Thread(target=_expire, args=(number,), name="tensorfleet-watch-lease", daemon=True))
    return number


def _expire(number: str) -> None:
    """Ends a watch when nobody has asked about it for a while."""
    with _changed:
        while number in _watches:
            _changed.wait(max(_watches[number].expires - time.monotonic(), _SHORTEST_WAIT_SECONDS))
            _forget_expired()


def renewed(number: str) -> observing.StepsWatch:
    """The watch of an id, for another while. Raises NotFoundError for one that has ended."""
    with _changed:
        watch = _watches.get(number)
        if watch is None or watch.expires < time.monotonic():
            raise errors.NotFoundError(
                None,
                None,
                f"No watch {number[:40]!r}: nobody asked about it for {LEASE_SECONDS:.0f} s. Start another.",
            )
        watch.expires = time.monotonic() + LEASE_SECONDS
        return watch


def withdraw(number: str) -> None:
    """Ends a watch, if it has not ended."""
    with _changed:
        watch = _watches.pop(number, None)
        if watch is not None:
            observing.remove(watch)
            _changed.notify_all()


def _forget_expired() -> None:
    now = time.monotonic()
    for number in [n for n, watch in _watches.items() if watch.expires < now]:
        observing.remove(_watches.pop(number))


def report(server: object, options: Options) -> Report:
    """Topic `withdraw`: ends a watch."""
    wanted: _Withdrawn = chosen(_Withdrawn, options)
    withdraw(wanted.id)
    return Report()

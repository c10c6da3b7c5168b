"""Changes of state as a primary sends them to its standby: a list that says what they are, and their arrays."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from tensorfleet.cluster.transport.tensor_bytes import malformed
from tensorfleet.kernels.packed_strings import Strings


class Key(NamedTuple):
    """Names a resource. `scope` is the session that it belongs to, if it belongs to one alone."""

    scope: str
    container: str
    kind: str
    name: str


class Change(NamedTuple):
    """One change."""

    #: WHOLE, ROWS, PUT, TOOK, CALL, DROP, RESULT, OVER, LINEAGE
    what: str
    #: what it is about: a resource, or a request (session, step, stage)
    about: tuple[Any, ...]
    details: dict[str, Any]
    arrays: Sequence[Any]


#: a resource has this state; some rows of a variable have; an element was put into a queue; elements were taken; a
#: method of a table was called
WHOLE, ROWS, PUT, TOOK, CALL = "whole", "rows", "put", "took", "call"
#: containers were dropped, or what belongs to a session; a request has this result; a session's steps are over
DROP, RESULT, OVER = "drop", "result", "over"
#: the number of the state that is copied
LINEAGE = "lineage"
_KINDS = {LINEAGE: 1, WHOLE: 4, ROWS: 4, PUT: 4, TOOK: 4, CALL: 4, DROP: 1, RESULT: 4, OVER: 2}


class Changes:
    """Changes that are sent together."""

    def __init__(self) -> None:
        self._said: list[list[Any]] = []
        self.arrays: list[Any] = []

    def __bool__(self) -> bool:
        return bool(self._said)

    def add(
        self,
        what: str,
        about: Sequence[Any],
        details: Mapping[str, Any] | None = None,
        arrays: Sequence[Any] = (),
    ) -> None:
        """Adds a change."""
        self._said.append([what, list(about), details or {}, len(arrays)])
        self.arrays += [np.asarray(a) if type(a) is not np.ndarray else a for a in arrays]

    def about(self, keys: Container[Key]) -> Changes:
        """Those of them that are about some resources, or about dropping any."""
        result, at = Changes(), 0
        for what, about, details, count in self._said:
            arrays, at = self.arrays[at : at + count], at + count
            if what == DROP or (len(about) == 4 and what != RESULT and Key(*about) in keys):
                result.add(what, about, details, arrays)
        return result

    def described(self) -> list[Any]:
        """What the changes are, without their arrays."""
        return self._said


def decode(said: Sequence[Any], arrays: Sequence[Any]) -> Iterator[Change]:
    """The changes that were sent. Raises InvalidArgumentError when they make no sense."""
    at = 0
    result = []
    for entry in said:
        if not (
            isinstance(entry, list)
            and len(entry) == 4
            and isinstance(entry[1], list)
            and _KINDS.get(entry[0] if isinstance(entry[0], str) else "") == len(entry[1])
            and isinstance(entry[2], dict)
            and type(entry[3]) is int
            and 0 <= entry[3] <= len(arrays) - at
        ):
            raise malformed("a change is not one")
        what, about, details, count = entry
        result.append(Change(what, tuple(about), details, arrays[at : at + count]))
        at += count
    if at != len(arrays):
        raise malformed("the changes do not use all arrays that came along")
    return iter(result)


def can_be_sent(value: Any) -> bool:
    """Whether a value is an array, and not a handle of something that lives in this process."""
    if isinstance(value, (np.generic, Strings)):
        return True
    if not isinstance(value, np.ndarray):
        return hasattr(value, "__array__") and hasattr(value, "dtype")
    if not value.dtype.hasobject:
        return True
    return all(isinstance(one, bytes) for one in value.ravel().tolist())

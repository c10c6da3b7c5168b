"""Keys of tables: their type, and the server that has the row of each."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorfleet.base.types import Array
from tensorfleet.fleet.library.arrays import to_numpy
from tensorfleet.kernels.key_index import places_of

_BITS = 62  # of the hash that chooses a server; the servers' own index uses the highest few


def to_keys(keys: object, table: str) -> Array:
    """Keys as an array of int64; TypeError or ValueError for anything that is none."""
    array = (
        to_numpy(keys, f"keys of table '{table}'")
        if not isinstance(keys, (list, tuple))
        else np.asarray(keys)
    )
    if not array.size:
        array = array.astype(np.int64)
    if array.dtype.kind not in "iu":
        raise TypeError(f"keys of table '{table}' must be whole numbers (int64), not {array.dtype.name}.")
    if array.ndim != 1:
        raise ValueError(f"keys of table '{table}' must be a vector, not of shape {list(array.shape)}.")
    if array.size and (int(array.min()) < 0 or int(array.max()) > 2**63 - 1):
        raise ValueError(
            f"keys of table '{table}' must be between 0 and 2**63 - 1, not {int(array.min())} to {int(array.max())}."
        )
    return np.ascontiguousarray(array, np.int64)


class KeyDivision:
    """Which of the servers has a key: by a hash, so that keys that follow one another are spread."""

    def __init__(self, servers: int) -> None:
        self.servers = servers

    def owners(self, keys: Array) -> Array:
        """The server of each key."""
        return places_of(keys, _BITS) % self.servers

    def parts(self, keys: Array) -> list[Any]:
        """The positions of the keys of each server, in their order."""
        if self.servers == 1:
            return [slice(None)]
        owners = self.owners(keys)
        return [np.flatnonzero(owners == server) for server in range(self.servers)]

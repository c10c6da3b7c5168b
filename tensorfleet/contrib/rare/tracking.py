"""`tf.contrib.checkpoint`: objects that are saved under names of their own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tensorfleet.train.object_graph import is_held


class UniqueNameTracker:
    """Holds objects for a checkpoint by names that are made different by numbers."""

    _is_tracked = True

    def __init__(self) -> None:
        self._held: dict[str, Any] = {}

    def track(self, trackable: Any, base_name: str) -> Any:
        """Adds an object under a name, or the name and the next number; gives the object back."""
        if not is_held(trackable):
            raise ValueError(
                f"Expected a trackable value, got {trackable} which does not inherit from tf.track.Trackable."
            )
        name, number = base_name, 0
        while name in self._held:
            number += 1
            name = f"{base_name}_{number}"
        self._held[name] = trackable
        return trackable

    def _checkpoint_dependencies(self) -> Iterator[tuple[str, Any]]:
        yield from self._held.items()

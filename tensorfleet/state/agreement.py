"""A text that all programs which use something by name must have in common."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tensorfleet.state.recording import ChangeRecorder


class Agreement:
    """A text that the first one to come has set, and all others must have too."""

    #: who keeps a copy of it, on a durable server
    recorder: ChangeRecorder | None = None

    def __init__(self) -> None:
        self._text: bytes | None = None
        self._lock = threading.Lock()

    def settle(self, text: bytes) -> bytes:
        """The text that holds."""
        with self._lock:
            if self._text is None:
                self._text = text
                if self.recorder is not None:
                    self.recorder.changed(self)
            return self._text

    def size(self) -> int:
        """How many texts it has."""
        return int(self._text is not None)

    def content(self) -> tuple[dict[str, Any], list[Any]]:
        """Its state for a copy."""
        return {"text": None if self._text is None else self._text.decode()}, []

    def restore(self, numbers: dict[str, Any], arrays: Sequence[Any]) -> None:
        """Takes over the state of a copy."""
        text = numbers["text"]
        self._text = None if text is None else text.encode()

"""`tf.train.CheckpointManager`: which checkpoints of a directory are kept."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any

from tensorfleet.api.train.checkpoint import Checkpoint
from tensorfleet.api.train.checkpoint_state import get_checkpoint_state, remove_checkpoint, write_state
from tensorfleet.base import logging
from tensorfleet.base.formats.atomic_files import wait_for_disk
from tensorfleet.base.naming import export
from tensorfleet.base.properties import readonly
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import get_default_graph, session_for

if TYPE_CHECKING:
    from tensorfleet.api.variables.variable import Variable
    from tensorfleet.base.protos import CheckpointState


@export("train.CheckpointManager")
class CheckpointManager:
    """Saves a `tf.train.Checkpoint` in a directory and deletes old ones.

    The last `max_to_keep` are kept (None: all), and besides one for every `keep_checkpoint_every_n_hours`. What the
    directory holds already is taken over.
    """

    def __init__(
        self,
        checkpoint: Checkpoint,
        directory: str,
        max_to_keep: int | None,
        keep_checkpoint_every_n_hours: float | None = None,
        checkpoint_name: str = "ckpt",
    ) -> None:
        if max_to_keep is not None and max_to_keep <= 0:
            raise ValueError(f"Expected a positive integer or `None` for `max_to_keep`, got {max_to_keep}.")
        self._checkpoint = checkpoint
        self._directory = str(directory)
        self._max_to_keep = max_to_keep
        self._hours = keep_checkpoint_every_n_hours
        self._prefix = os.path.join(self._directory, checkpoint_name)
        self._kept: dict[str, float] = {}
        self._latest: str | None = None
        # A little earlier, for a manager that is made again at once.
        self._preserved = time.time() - 1.0
        state = get_checkpoint_state(self._directory)
        if state is not None:
            self._take_over(state)

    def _take_over(self, state: CheckpointState) -> None:
        """Goes on with the checkpoints of another manager; those that none has written are left alone."""
        now = time.time()
        self._latest = state.model_checkpoint_path
        self._preserved = state.last_preserved_timestamp
        if now < self._preserved:
            logging.warning(
                "time.time() returned a value %f seconds behind the last preserved checkpoint timestamp.",
                self._preserved - now,
            )
            self._preserved = now
        written = zip(state.all_model_checkpoint_paths, state.all_model_checkpoint_timestamps, strict=False)
        for path, stamp in written:
            if min(stamp, now) > self._preserved:
                self._kept[path] = min(stamp, now)

    latest_checkpoint: str | None = readonly(
        "_latest", "The path of the latest checkpoint, for `Checkpoint.restore`; None when there is none."
    )

    @property
    def checkpoints(self) -> list[str]:
        """The paths that are kept track of, the oldest first; those kept for the hours are not among them."""
        return list(self._kept)

    def save(self, checkpoint_number: int | Tensor | Variable | None = None) -> str:
        """Writes a checkpoint, numbered by its counter or as given, and deletes old ones; gives its path."""
        session: Any = session_for(None, get_default_graph(), "execute operation", "save")
        if checkpoint_number is None:
            number = self._checkpoint._next_number(session)
        else:
            wanted = checkpoint_number
            number = int(session.run(wanted) if hasattr(wanted, "op") else wanted)
        path = self._checkpoint.write(f"{self._prefix}-{number}", session)
        self._latest = path
        # A checkpoint of the same number is written over: it is the newest now.
        self._kept.pop(path, None)
        self._kept[path] = time.time()
        # First with all of them: should we be stopped in between, nothing is named that is not there.
        self._write_state(list(self._kept))
        self._sweep()
        self._write_state(list(self._kept))
        return path

    def _write_state(self, paths: list[str]) -> None:
        write_state(
            self._directory,
            self._latest or "",
            paths,
            relative=True,
            stamps=[self._kept[p] for p in paths],
            preserved=self._preserved,
        )

    def _sweep(self) -> None:
        while self._max_to_keep is not None and len(self._kept) > self._max_to_keep:
            path, stamp = next(iter(self._kept.items()))
            del self._kept[path]
            # Preserved: it leaves the list and stays on disk.
            if self._hours is not None and stamp - self._hours * 3600.0 >= self._preserved:
                self._preserved = stamp
                continue
            if len(self._kept) == 1:
                wait_for_disk()  # with more, the one before the latest is on disk
            remove_checkpoint(path)

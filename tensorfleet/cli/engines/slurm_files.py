"""The script and the files beside it: whether a node has them, and a copy for one that has not."""

from __future__ import annotations

import hashlib
import io
import os
import tarfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from tensorfleet.cli.engines.base import EngineError
from tensorfleet.cli.scripts.packages import home_of

_MAX_BYTES = 64 << 20
_SKIPPED_FOLDERS = {"__pycache__", "node_modules", "venv"}
_SKIPPED_ENDINGS = (".pyc", ".log")


@dataclass(frozen=True)
class Project:
    """What a script needs: its folder, or the one that its package is in."""

    script: Path
    directory: Path
    log_dir: Path | None = None

    @cached_property
    def root(self) -> Path:
        """The folder."""
        return home_of(self.script)[1]

    @cached_property
    def base(self) -> Path:
        """What stands for the working directory in a copy: it is kept if the script is below it."""
        directory = self.directory.resolve()
        return directory if self.root.is_relative_to(directory) else self.root

    @cached_property
    def digests(self) -> dict[str, str]:
        """The contents of the modules, by their path below the root."""
        modules = [path for path in self._files() if path.suffix == ".py"]
        own = self.script.resolve()
        paths = modules if own in modules else [*modules, own]
        return {os.path.relpath(path, self.root): _digest(path) for path in paths}

    @cached_property
    def archive(self) -> bytes:
        """All files but hidden ones, logs and compiled ones. Raises `EngineError` if they are too many to send."""
        files = list(self._files())
        size = sum(path.stat().st_size for path in files)
        if size > _MAX_BYTES:
            raise EngineError(
                f"{self.root} is not on all nodes, and with {size >> 20} MB it is too large to be copied (the limit is "
                f"{_MAX_BYTES >> 20} MB). Put the project into a shared folder, and its data elsewhere."
            )
        stream = io.BytesIO()
        with tarfile.open(fileobj=stream, mode="w:gz") as archive:
            for path in files:
                archive.add(path, arcname=os.path.relpath(path, self.base), recursive=False)
        return stream.getvalue()

    def command_in(self, folder: str, command: Sequence[str]) -> list[str]:
        """A task's command where the project is in another folder."""
        place = os.path.join(folder, os.path.relpath(self.script.resolve(), self.base))
        at = next((i for i, word in enumerate(command) if Path(word) == self.script), None)
        return list(command) if at is None else [*command[:at], place, *command[at + 1 :]]

    def _files(self) -> Iterator[Path]:
        logs = self.log_dir.resolve() if self.log_dir else None
        for folder, folders, names in os.walk(self.root):
            here = Path(folder)
            folders[:] = sorted(name for name in folders if not _is_skipped(here / name, logs))
            for name in sorted(names):
                path = here / name
                if not name.startswith(".") and not name.endswith(_SKIPPED_ENDINGS) and path.is_file():
                    yield path


def _is_skipped(folder: Path, logs: Path | None) -> bool:
    is_environment = (folder / "pyvenv.cfg").exists()
    holds_logs = logs is not None and folder in (logs, logs.parent)
    return folder.name.startswith(".") or folder.name in _SKIPPED_FOLDERS or is_environment or holds_logs


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()

"""The page beside a run, as the launcher sees it: a process of its own, which it tells what becomes of the tasks.

The launcher opens the socket, so that it knows at once whether the port is free, and can print the address before that
process is up. It never waits for the page while the run goes on: the pipe does not block, and a page that does not read
it any more is given up.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tensorfleet.base import settings
from tensorfleet.cli.dashboard.server import ListenPlace, PageRefused, PageSocket, listen, place_of

OFF = "off"
_END_SECONDS = 5.0  # for a browser to see the end, and for the process to end
_MAX_NOTES = 20
_MIN_KEY_CHARACTERS = 16


class LaunchedPage:
    """The page's process. No method of it raises or waits, but for `close`."""

    def __init__(self, page: PageSocket, name: str, script: str, logs: Path | None) -> None:
        self.address = page.address
        #: prints a line of the page's process; the launcher replaces it by its own way to print
        self.note: Callable[[str], None] = _print
        self._is_closing = False
        page.socket.set_inheritable(True)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tensorfleet.cli.dashboard"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            pass_fds=(page.socket.fileno(),),
            start_new_session=True,  # Ctrl-C is for the launcher, which tells it the end
        )
        os.set_blocking(self._input.fileno(), False)
        self._reader = threading.Thread(target=self._read, name="output of the page", daemon=True)
        self._reader.start()
        self._tell(
            name=name,
            script=script,
            logs=str(logs.absolute()) if logs else None,
            started=time.time(),
            fd=page.socket.fileno(),
            host=page.host,
            port=page.access.port,
            key=page.access.key,
            is_secure=page.access.is_secure,
        )
        page.socket.close()  # the process has it

    def begin(self, token: str) -> None:
        """Tasks follow, whose cluster has this token; those of before do not count any more."""
        self._tell(token=token)

    def task(
        self,
        label: str,
        pid: int,
        address: str | None,
        state: str,
        code: int | None = None,
        host: str | None = None,
    ) -> None:
        """What became of a task."""
        self._tell(task=label, pid=pid, address=address, state=state, code=code, host=host)

    def decision(self, task: str, text: str) -> None:
        """Which process leads a durable task has been decided."""
        self._tell(decision=text, about=task)

    def change(self, change: str, task: str | None, text: str) -> None:
        """A worker has joined or left, or the run was scaled."""
        self._tell(change=change, of=task, text=text)

    def close(self, code: int | None) -> None:
        """The run is over. A browser that shows the page is given a moment to see that."""
        if self._is_closing:
            return
        self._is_closing, self.note = True, _print
        self._tell(ended=code)
        with contextlib.suppress(OSError):
            self._input.close()
        try:
            self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(_END_SECONDS)
        self._reader.join(_END_SECONDS)
        if self._process.stdout is not None and not self._reader.is_alive():
            self._process.stdout.close()

    @property
    def _input(self) -> Any:
        return self._process.stdin

    def _tell(self, **message: object) -> None:
        with contextlib.suppress(OSError, ValueError):  # it has ended, or does not read: the run goes on
            os.write(self._input.fileno(), (json.dumps(message) + "\n").encode())

    def _read(self) -> None:
        assert self._process.stdout is not None
        for number, line in enumerate(self._process.stdout):
            if number < _MAX_NOTES:
                self.note(line.decode(errors="replace").rstrip())
        if not self._is_closing:
            self.note("the page has ended unexpectedly. The run continues without it.")


@contextlib.contextmanager
def launched_page(
    wanted: ListenPlace | None, name: str, script: str, logs: Path | None
) -> Iterator[LaunchedPage | None]:
    """The page of a run while the block runs; None when it is off, or cannot be there."""
    page = _opened(wanted, name, script, logs) if wanted is not None else None
    try:
        yield page
    finally:
        if page is not None:
            page.close(None)


def wanted_place(option: str | None) -> ListenPlace | None:
    """Where the page is to be: by `--dashboard`, else by the setting; None when it is off. Raises ValueError."""
    text = (option if option is not None else settings.DASHBOARD()) or "0"
    return None if text == OFF else place_of(text)


def wanted_key() -> str | None:
    """The key that the user has chosen. Raises ValueError for one that can be guessed."""
    key = settings.DASHBOARD_KEY()
    if key and (
        len(key) < _MIN_KEY_CHARACTERS
        or not key.isascii()
        or not key.replace("-", "").replace("_", "").isalnum()
    ):
        raise ValueError(
            f"{settings.DASHBOARD_KEY.name} must have {_MIN_KEY_CHARACTERS} characters or more: letters, digits, - and _. "
            "For example what `openssl rand -hex 16` prints."
        )
    return key or None


def _opened(wanted: ListenPlace, name: str, script: str, logs: Path | None) -> LaunchedPage | None:
    try:
        page = LaunchedPage(listen(wanted, wanted_key()), name, script, logs)
    except (PageRefused, ValueError, OSError) as error:
        _print(f"{error} The run continues without the page.")
        return None
    _print(f"page at {page.address}")
    return page


def _print(text: str) -> None:
    with contextlib.suppress(OSError):  # the run is worth more
        print(f"tensorfleet: {text}", file=sys.stderr, flush=True)

"""How other commands ask a running launcher for something: `tensorfleet move` and its like.

The launcher listens at a Unix socket in the folder of the runs. A command connects and writes one line, a JSON object:
the run's secret, which is checked first, what it asks for, and its fields. Each line of the answer is a JSON object too.
The last one is `{"done": true}` or `{"error": "..."}`, and `{}` says that the launcher is still at it.

What can be asked is a table: a name, a dataclass whose types are the checks of its fields, and a function that gives
the lines of the answer.
"""

from __future__ import annotations

import contextlib
import hmac
import json
import os
import secrets
import shutil
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeAlias, TypeVar

from tensorfleet.base import errors
from tensorfleet.cli.known_run import find_entry
from tensorfleet.cli.registry import Entry
from tensorfleet.cluster.transport import json_fields

#: one line of an answer
Answer: TypeAlias = dict[str, object]
_Request = TypeVar("_Request")

_MAX_LINE_BYTES = 1 << 16
_MAX_ASKED_AT_ONCE = 8
_ASK_SECONDS = 5.0  # for the line that asks, and for each line of the answer to be taken
_LOOK_SECONDS = 0.2
_CLOSE_SECONDS = 1.0
#: a handler gives a line at least this often, if only an empty one
STILL_AT_IT_SECONDS = 5.0
_SILENT_SECONDS = 6 * STILL_AT_IT_SECONDS
_MAX_PATH_BYTES = 100  # of a socket; the system allows for 107


class ControlError(Exception):
    """A launcher cannot be asked, or does not do what it is asked for. The text is for the user."""


@dataclass(frozen=True)
class Handler(Generic[_Request]):
    """What a launcher does when it is asked for something."""

    #: a dataclass
    request: type[_Request]
    #: Gives the lines of the answer, one at least every STILL_AT_IT_SECONDS; raises ControlError when it cannot be done.
    #: It runs in a thread of its own, and is closed when whoever asks has gone or the run is over.
    answer: Callable[[_Request], Generator[Answer, None, None]]


class ControlServer:
    """Answers other commands of this user about one run."""

    def __init__(self, entry: Entry, handlers: Mapping[str, Handler[Any]]) -> None:
        """`handlers` by the name of what is asked for. Raises OSError if there can be no socket."""
        self._handlers = handlers
        self._secret = entry.token or secrets.token_hex(32)
        self._own_folder: Path | None = None
        path = entry.path.with_suffix(".sock")
        if len(os.fsencode(path)) > _MAX_PATH_BYTES:
            self._own_folder = Path(tempfile.mkdtemp(prefix="tensorfleet-"))
            path = self._own_folder / "control.sock"
        self._path = path
        self._closing = threading.Event()
        self._lock = threading.Lock()
        self._asking: dict[threading.Thread, socket.socket] = {}
        self._socket = _listen(path)
        entry.controlled_at(path, self._secret)
        self._thread = threading.Thread(target=self._run, name="control", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """The run is over."""
        self._closing.set()
        with self._lock:
            asking = dict(self._asking)
        for channel in asking.values():
            with contextlib.suppress(OSError):
                channel.shutdown(socket.SHUT_RDWR)
        limit = time.monotonic() + _CLOSE_SECONDS
        for thread in (self._thread, *asking):
            thread.join(max(limit - time.monotonic(), 0.0))
        self._socket.close()
        self._path.unlink(missing_ok=True)
        if self._own_folder is not None:
            shutil.rmtree(self._own_folder, ignore_errors=True)

    def _run(self) -> None:
        self._socket.settimeout(_LOOK_SECONDS)
        while not self._closing.is_set():
            try:
                channel, _ = self._socket.accept()
            except OSError:  # nobody has come, or there are no descriptors left for now
                self._closing.wait(0.01)
                continue
            thread = threading.Thread(
                target=self._serve, args=(channel,), name="control request", daemon=True
            )
            with self._lock:
                is_full = len(self._asking) >= _MAX_ASKED_AT_ONCE
                if not is_full:
                    self._asking[thread] = channel
            if is_full:
                channel.close()
            else:
                thread.start()

    def _serve(self, channel: socket.socket) -> None:
        try:
            with channel, contextlib.suppress(OSError):
                channel.settimeout(_ASK_SECONDS)
                with channel.makefile("rb") as file:
                    asked = file.readline(_MAX_LINE_BYTES)
                for line in self._answers(asked):
                    channel.sendall(json.dumps(line).encode() + b"\n")
        finally:
            with self._lock:
                self._asking.pop(threading.current_thread(), None)

    def _answers(self, asked: bytes) -> Iterator[Answer]:
        try:
            handler, request = self._read(asked)
            with contextlib.closing(handler.answer(request)) as lines:
                for line in lines:
                    if self._closing.is_set():
                        raise ControlError("The run is over.")
                    yield line
        except ControlError as error:
            yield {"error": str(error)}
        except Exception as error:  # it must not look as if the launcher had ended
            yield {"error": f"The launcher failed: {type(error).__name__}: {error}"}
        else:
            yield {"done": True}

    def _read(self, asked: bytes) -> tuple[Handler[Any], object]:
        """Who answers a line, and the request in it. Raises ControlError."""
        try:
            fields = json.loads(asked)
        except (ValueError, RecursionError):
            fields = None
        if not isinstance(fields, dict):
            raise ControlError("The request is not a JSON object.")
        token = fields.pop("token", "")
        if not isinstance(token, str) or not hmac.compare_digest(token.encode(), self._secret.encode()):
            raise ControlError("The request does not have the token of the run.")
        name = fields.pop("do", None)
        handler = self._handlers.get(name) if isinstance(name, str) else None
        if handler is None:
            known = ", ".join(sorted(self._handlers))
            raise ControlError(f"This launcher cannot be asked for {name!r}. It knows: {known}.")
        try:
            return handler, json_fields.read(handler.request, fields)
        except errors.InvalidArgumentError as error:
            raise ControlError(error.message) from None


def ask(run_name: str | None, request: Answer) -> Iterator[Answer]:
    """Asks the launcher of a run, of the only one without a name, and gives the lines of its answer as they come.

    `request` says in "do" what is asked for; the rest are its fields. Raises ControlError when the launcher refuses or is
    gone, `typer.BadParameter` when there is no such run.
    """
    entry = find_entry(run_name)
    control = entry.get("control")
    if not control:
        raise ControlError(
            f"The launcher of {entry['name']} cannot be asked: it has no control socket. Was it started by an older version, "
            "or is its folder not writable (TENSORFLEET_STATE)?"
        )
    return _asked(str(entry["name"]), control["socket"], {**request, "token": control["token"]})


def _asked(name: str, path: str, request: Answer) -> Iterator[Answer]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as channel:
        channel.settimeout(_SILENT_SECONDS)
        try:
            channel.connect(path)
            channel.sendall(json.dumps(request).encode() + b"\n")
            with channel.makefile("rb") as file:
                while text := file.readline(_MAX_LINE_BYTES):
                    line: Answer = json.loads(text)
                    if "error" in line:
                        raise ControlError(str(line["error"]))
                    if line.get("done") is True:
                        return
                    if line:
                        yield line
        except TimeoutError:
            raise ControlError(
                f"The launcher of {name} did not answer for {_SILENT_SECONDS:.0f} s. Is it stopped (Ctrl-Z)?"
            ) from None
        except (OSError, ValueError) as error:
            raise ControlError(f"The launcher of {name} cannot be asked: {error}.") from None
    raise ControlError(f"The launcher of {name} ended before it had answered.")


def _listen(path: Path) -> socket.socket:
    """A socket of ours alone."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    path.unlink(missing_ok=True)
    result = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        result.bind(str(path))
        path.chmod(0o600)
        result.listen(_MAX_ASKED_AT_ONCE)
    except BaseException:
        result.close()
        raise
    return result

"""Topics `attach`, `pdb` and `pdb_talk`: a debugger in this task, for an editor or for a terminal."""

from __future__ import annotations

import contextlib
import io
import os
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tensorfleet.base import errors
from tensorfleet.cluster.inspection.terminal_debugger import TerminalDebugger
from tensorfleet.cluster.inspection.topics import NoOptions, Options, Report, chosen

if TYPE_CHECKING:
    from tensorfleet.cluster.server import Server

_LOOPBACK = "127.0.0.1"
_MAX_POLL_SECONDS = 5.0
_MAX_PORT = 65_535
_lock = threading.Lock()
_listening: tuple[str, int] | None = None
_terminal: TerminalDebugger | None = None


@dataclass
class _Wanted:
    port: int = 0


@dataclass
class _Talk:
    id: str = ""
    text: str | None = None
    seconds: float = 1.0


def report(server: Server | None, options: Options) -> Report:
    """Opens debugpy on the loopback of this machine, or tells of the one that is open."""
    wanted: _Wanted = chosen(_Wanted, options)
    if not 0 <= wanted.port <= _MAX_PORT:
        raise errors.invalid(f"port must be a number from 0 to {_MAX_PORT}, not {wanted.port}.")
    with _lock:
        return Report(_open_debugpy(wanted.port))


def open_terminal(server: Server | None, options: Options) -> Report:
    """Topic `pdb`: stops the main thread for a terminal debugger."""
    chosen(NoOptions, options)
    with _lock:
        return Report(_open_terminal())


def _open_debugpy(port: int) -> dict[str, Any]:
    global _listening
    is_open = _listening is not None
    if _listening is None:
        if _terminal is not None and not _terminal.ended:
            text = "A terminal debugger is open in this task. Leave it with `quit` there first."
            raise errors.FailedPreconditionError(None, None, text)
        debugpy = _debugpy()
        try:
            # Its messages would go into the middle of the script's own.
            with contextlib.redirect_stderr(io.StringIO()):
                host, at = debugpy.listen((_LOOPBACK, port))
        except (RuntimeError, OSError) as error:
            text = f"debugpy cannot listen: {error}. Give another port, or 0 for a free one."
            raise errors.UnavailableError(None, None, text) from None
        _listening = str(host), int(at)
    return {
        "host": _listening[0],
        "port": _listening[1],
        "was_open": is_open,
        "pid": os.getpid(),
        "folder": os.getcwd(),
    }


def _debugpy() -> Any:
    # It would warn in the log of the task that Python's own frozen modules cannot be debugged.
    os.environ.setdefault("PYDEVD_DISABLE_FILE_VALIDATION", "1")
    try:
        import debugpy
    except ImportError:
        text = "debugpy is not installed in this task: pip install 'tensorfleet[debug]' there, or use attach --pdb."
        raise errors.FailedPreconditionError(None, None, text) from None
    debugpy.configure(subProcess=False)
    return debugpy


def _open_terminal() -> dict[str, Any]:
    global _terminal
    if _listening is not None:
        text = f"debugpy is open in this task, at {_listening[0]}:{_listening[1]}: two debuggers cannot share a thread."
        raise errors.FailedPreconditionError(None, None, text)
    if _terminal is not None and not _terminal.ended:
        text = "A terminal debugger is open in this task already. Leave it with `quit` there first."
        raise errors.FailedPreconditionError(None, None, text)
    _terminal = TerminalDebugger()
    _terminal.interrupt()
    return {"id": _terminal.id, "pid": os.getpid()}


def talk(server: Server | None, options: Options) -> Report:
    """Topic `pdb_talk`: a line for the terminal debugger, and what it says."""
    wanted: _Talk = chosen(_Talk, options)
    terminal = _terminal
    if terminal is None or terminal.id != wanted.id:
        raise errors.NotFoundError(None, None, "This terminal debugger has ended. Attach again.")
    if wanted.text is not None:
        terminal.say(str(wanted.text))
    return Report(terminal.hear(min(float(wanted.seconds), _MAX_POLL_SECONDS)))

"""What a launched task does before its script: it makes sure not to outlive who launched it."""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import signal
import socket
import sys
import threading

from tensorfleet.base import settings

# Set for launched tasks: the launcher's process id, or "stdin" where the launcher is at the end of an ssh.
LAUNCHER = settings.LAUNCHER.name
CLUSTER_FILE = "{cluster_file}"  # in a task's arguments: a file with the addresses of all tasks, in JSON
_TOKEN = settings.TOKEN.name
_ORPHAN = settings.ORPHAN_SECONDS.name
_PR_SET_PDEATHSIG = 1


def tie_to_launcher() -> None:
    """Ends this process when its launcher is gone, however that went. Does nothing for other processes."""
    launcher = os.environ.pop(LAUNCHER, None)
    if launcher is not None:
        os.environ.setdefault(_ORPHAN, "0")  # the launcher knows better who is still to come
    if launcher == "stdin":
        _follow_stdin()
    elif launcher is not None:
        _follow_process(int(launcher))


def answer_questions() -> None:
    """Lets others ask this task about itself, where the launcher has given it an address for that.

    Until somebody does, this is a socket and a sleeping thread.
    """
    host, _, port = settings.INSPECT().rpartition("@")[2].rpartition(":")
    if not port.isdecimal():
        return
    try:
        sock = socket.create_server((host, int(port)))
    except OSError:  # the address of the task that has started this one, perhaps
        return
    os.register_at_fork(after_in_child=sock.close)
    threading.Thread(target=_answer_when_asked, args=(sock,), name="tensorfleet-inspect", daemon=True).start()


def _answer_when_asked(sock: socket.socket) -> None:
    select.select([sock], [], [])
    from tensorfleet.cluster.inspection.listener import serve

    serve(sock)


def _follow_process(pid: int) -> None:
    if sys.platform.startswith("linux"):
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    # The launcher may have ended before the kernel was asked to signal its death.
    if os.getppid() != pid:
        os._exit(128 + signal.SIGKILL)


def _follow_stdin() -> None:
    """The launcher sends the token's line and keeps our stdin open; the connection's end closes it."""
    lifeline = os.dup(0)
    token = b""
    while not token.endswith(b"\n"):
        byte = os.read(lifeline, 1)
        if not byte:
            os._exit(128 + signal.SIGKILL)
        token += byte
    if token.strip():
        os.environ[_TOKEN] = token.strip().decode()
    empty = os.open(os.devnull, os.O_RDONLY)
    os.dup2(empty, 0)
    os.close(empty)
    with contextlib.suppress(OSError):
        os.setpgid(0, 0)  # a group of our own, so that what the script starts ends with it

    def watch() -> None:
        while os.read(lifeline, 4096):
            pass
        os.killpg(0, signal.SIGKILL)

    threading.Thread(target=watch, name="tensorfleet-lifeline", daemon=True).start()

"""Whether the folders that a script's arguments name are the same on all hosts of a cluster file."""

from __future__ import annotations

import contextlib
import functools
import importlib.resources
import json
import select
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from tensorfleet.cli.engines import probe
from tensorfleet.cli.engines.shared_folders import Unseen, named_folders, not_shared, warning
from tensorfleet.cli.hosts import Host

_ANSWER_SECONDS = 30.0
_END_SECONDS = 5.0
_LOADER = "import sys; exec(compile(sys.stdin.buffer.read(int(sys.argv[1])), 'probe', 'exec'))"


def warn_of_folders(hosts: Sequence[Host], command: Sequence[str], on_note: Callable[[str], None]) -> None:
    """Has one host write a file to each folder, and asks the others for it. Never raises.

    Relative folders begin where the tasks do, in the `directory` of their host.
    """
    folders = named_folders(command, "")
    if not folders or len(hosts) < 2:
        return
    with contextlib.suppress(OSError, ValueError), contextlib.ExitStack() as probes:
        # A host that cannot be reached is told of by its tasks.
        first, *others = [probes.enter_context(_probe_on(host)) for host in hosts]

        def mark(name: str, paths: Sequence[str]) -> Mapping[str, str]:
            return dict(_ask(first, ask="mark", name=name, folders=list(paths))["paths"])

        asks: dict[str, Unseen] = {
            host.name: functools.partial(_unseen_by, other)
            for host, other in zip(hosts[1:], others, strict=True)
        }
        for flag, names in not_shared(folders, mark, asks).items():
            on_note(warning(flag, folders[flag], hosts[0].name, names))


def _unseen_by(process: subprocess.Popen[bytes], marks: Mapping[str, str]) -> Sequence[str]:
    return [str(folder) for folder in _ask(process, ask="sees", paths=dict(marks))["unseen"]]


@contextlib.contextmanager
def _probe_on(host: Host) -> Iterator[subprocess.Popen[bytes]]:
    """The program of `probe`, on a host. At the end of the block it removes what it has written, and ends."""
    program = importlib.resources.files("tensorfleet.cli.engines").joinpath("probe.py").read_bytes()
    process = subprocess.Popen(
        host.reached([host.python, "-u", "-c", _LOADER, str(len(program))], {}),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        bufsize=0,
        start_new_session=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(program)
        yield process
    finally:
        with contextlib.suppress(OSError):
            process.stdin.close()
        try:
            process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(_END_SECONDS)
        process.stdout.close()


def _ask(process: subprocess.Popen[bytes], **request: Any) -> dict[str, Any]:
    """What a host answers. Raises OSError or ValueError if it does not."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps({"id": 1, **request}).encode() + b"\n")
    limit = time.monotonic() + _ANSWER_SECONDS
    while (left := limit - time.monotonic()) > 0 and select.select([process.stdout], [], [], left)[0]:
        line = process.stdout.readline().decode(errors="replace")
        if not line:
            raise ConnectionResetError("The host has hung up.")
        if line.startswith(probe.MARK) and (answer := json.loads(line.removeprefix(probe.MARK)))["id"]:
            if "error" in answer:
                raise ValueError(answer["error"])
            return dict(answer)
    raise TimeoutError(f"The host has not answered for {_ANSWER_SECONDS:g} s.")

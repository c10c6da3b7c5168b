"""TensorBoard beside a run."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

_KILL_SECONDS = 10.0  # for a killed process to be gone


@contextlib.contextmanager
def tensorboard(log_dir: Path | None) -> Iterator[None]:
    """Shows a directory's event files while the block runs; says so when TensorBoard is not installed."""
    if log_dir is None:
        yield
        return
    if importlib.util.find_spec("tensorboard") is None:
        print("tensorfleet: TensorBoard is not installed. Run pip install tensorboard.", file=sys.stderr)
        yield
        return
    from tensorfleet.cli.engines.child import Guardian, free_ports

    (port,) = free_ports(1)
    command = [sys.executable, "-m", "tensorboard.main", "--logdir", str(log_dir), "--port", str(port)]
    board = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    guardian = Guardian()  # ends it also when this process is killed
    guardian.watch(board.pid)
    print(f"tensorfleet: TensorBoard at http://localhost:{port}", file=sys.stderr)
    try:
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(board.pid, signal.SIGKILL)  # it only shows what others have written
        board.wait(_KILL_SECONDS)
        guardian.close()

"""Examples run as their docstrings say: by the real command, in processes of their own."""

import re
from pathlib import Path

from tests.support.launching import Launch, launched

SECONDS = 300
EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def run_example(directory: Path, name: str, *flags: str, **tasks: int) -> Launch:
    """The program run to its end, which must be a good one; on a cluster when it has workers."""
    done = try_example(directory, name, *flags, **tasks)
    assert done.code == 0, done.stdout + done.stderr
    return done


def try_example(
    directory: Path, name: str, *flags: str, ps: int = 0, workers: int = 0, chief: bool = False
) -> Launch:
    """The program run to its end, whatever that is."""
    tasks = ["--ps", str(ps), "--workers", str(workers), *["--chief"] * chief] if workers else []
    with launched(directory, "run", *tasks, str(EXAMPLES / f"{name}.py"), "--", *flags) as launch:
        return launch.end(SECONDS)


def number_after(words: str, output: str) -> float:
    """The number that follows these words where the output has them last."""
    result = re.findall(rf"{re.escape(words)} +(-?\d+(?:\.\d+)?)", output)
    assert result, output
    return float(result[-1])

"""Build the wheel, install it in an empty environment, and run the README's first program there.

    python tools/check_wheel.py

Shows that the wheel has everything that it needs: both packages, their indexes and data, and its dependencies.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def main() -> None:
    """Exits with 1 and the difference when the program prints something else than the README says."""
    text = (ROOT / "README.md").read_text()
    program = re.search(r"```python\n(.*?)```", text, re.S)
    printed = re.search(r"<!-- prints -->\n```text\n(.*?)```", text, re.S)
    if program is None or printed is None:
        sys.exit("README.md has no first program with its output.")
    with tempfile.TemporaryDirectory() as folder:
        run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, str(ROOT))
        [wheel] = Path(folder).glob("*.whl")
        python = Path(folder) / "venv" / "bin" / "python"
        venv.create(Path(folder) / "venv", with_pip=True)
        run(str(python), "-m", "pip", "install", "--quiet", str(wheel))
        # Away from the repository, so that only the installed packages can be imported.
        found = run(str(python), "-c", program[1], cwd=folder)
        run(
            str(python),
            "-c",
            "import tensorfleet as tf; tf.keras.layers.Dense, tf.contrib.layers",
            cwd=folder,
        )
    if found != printed[1]:
        sys.exit(f"The README's first program printed:\n{found}instead of:\n{printed[1]}")
    print(f"{wheel.name}: installs, and the README's first program prints what the README says.")


def run(*command: str, cwd: str | None = None) -> str:
    """What a command prints."""
    return subprocess.run(command, check=True, cwd=cwd, stdout=subprocess.PIPE, text=True, timeout=900).stdout


if __name__ == "__main__":
    main()

"""Makes the pictures of the documentation: the terminal during `make run`, and a chart of the measured tables.

python tools/make_pictures.py            both, into docs/pictures
python tools/make_pictures.py chart      from the tables in benchmarks/README.md; benchmarks/*.py --write does it too
python tools/make_pictures.py terminal   runs examples/mnist_replica.py and draws what it prints
"""

from __future__ import annotations

import fcntl
import io
import math
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PICTURES = ROOT / "docs" / "pictures"
COLUMNS, ROWS = 118, 26
COMMAND = ["run", "--ps", "1", "--workers", "2", "examples/mnist_replica.py"]


# -- the chart -------------------------------------------------------------------------------------------

TABLES = (("table", "one process"), ("cluster table", "cluster"), ("input table", "input"))
BAR, GAP, TOP = 14, 8, 40
OCTAVE = 76  # from one power of two to the next
EQUAL, ABOUT, WIDTH = 196, 560, 1060  # where a ratio of 1 is, where the words begin, and end


def ratios(page: str, marker: str) -> list[tuple[str, float, str]]:
    """The works of a table with the ratio of TensorFlow's time to ours, and what a step of them is."""
    between = page.partition(f"<!-- {marker} -->")[2].partition(f"<!-- /{marker} -->")[0]
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in between.splitlines() if "|" in line]
    times = [row for row in rows if len(row) >= 6 and not row[1].endswith("MB")]
    return [(row[0], float(row[3]), row[-1]) for row in times if re.fullmatch(r"[\d.]+", row[3])]


def place(ratio: float) -> float:
    """Where a ratio is, on a scale in which twice as fast is always as far."""
    return EQUAL + OCTAVE * math.log2(min(max(ratio, 0.5), 16))


def bar(name: str, ratio: float, about: str, y: int) -> list[str]:
    """From the line of equal speed to the right if we are faster, to the left if TensorFlow is."""
    left, right = sorted((place(1), place(ratio)))
    return [
        f'<text x="108" y="{y + 11}" class="name">{escape(name)}</text>',
        f'<rect x="{left:.1f}" y="{y}" width="{right - left:.1f}" height="{BAR}" class="{"faster" if ratio >= 1 else "slower"}"/>',
        f'<text x="{right + 6:.1f}" y="{y + 11}">{ratio:.{1 if ratio >= 10 else 2}f}</text>',
        f'<text x="{ABOUT}" y="{y + 11}" class="about">{escape(about.replace("`", ""))}</text>',
    ]


def chart() -> str:
    """Horizontal bars, a group for each table that has been filled."""
    page = (ROOT / "benchmarks" / "README.md").read_text()
    parts, y = [], TOP
    for marker, title in TABLES:
        rows = ratios(page, marker)
        if rows:
            parts.append(f'<text x="16" y="{y + 10}" class="title">{title}</text>')
            y += 22
            for row in rows:
                parts += bar(*row, y)
                y += BAR + GAP
            y += 10
    lines = []
    for ratio, words in ((0.5, "half"), (1, "as fast"), (2, "2x"), (4, "4x"), (8, "8x"), (16, "16x")):
        lines.append(f'<text x="{place(ratio)}" y="22" class="scale">{words}</text>')
        lines.append(f'<line x1="{place(ratio)}" x2="{place(ratio)}" y1="30" y2="{y - 8}" class="scale"/>')
    parts = lines + parts
    width, height = WIDTH, y
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">
<title>TensorFlow's time over TensorFleet's, work by work</title>
<style>
text {{ font: 12px sans-serif; fill: #333 }}
.title {{ font-weight: bold }} .name {{ text-anchor: end }} .about {{ fill: #777 }}
.scale {{ text-anchor: middle; fill: #777; stroke-width: 0 }} line.scale {{ stroke: #ddd; stroke-width: 1 }}
.faster {{ fill: #2a7ab8 }} .slower {{ fill: #c77f2a }}
</style>
<rect width="100%" height="100%" fill="#fff"/>
{chr(10).join(parts)}
</svg>
"""


# -- the terminal ----------------------------------------------------------------------------------------


def recorded() -> str:
    """What `make run` writes to a terminal."""
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    process = subprocess.Popen(
        [sys.executable, "-m", "tensorfleet", *COMMAND],
        cwd=ROOT,
        stdin=follower,
        stdout=follower,
        stderr=follower,
        env={**os.environ, "PYTHONPATH": str(ROOT), "TERM": "xterm-256color"},
    )
    os.close(follower)
    output = io.BytesIO()
    while True:
        try:
            piece = os.read(leader, 1 << 16)
        except OSError:  # the last process has closed the terminal
            break
        if not piece:
            break
        output.write(piece)
    if process.wait():
        raise SystemExit(output.getvalue().decode())
    return output.getvalue().decode()


def screen(output: str) -> list[str]:
    """What is on the screen when the last task has spoken: its lines, without those of the log, above the status line."""
    shown, status = [], ""
    for line in re.split(r"\r?\n", output):
        pieces = line.split("\r\x1b[2K")  # the status line is written over
        status = next((piece for piece in reversed(pieces[:-1]) if "step" in piece), status)
        if pieces[-1].startswith("\x1b[") and not re.search(r"\x1b\[0m[IW]\d{4} ", pieces[-1]):
            shown.append(pieces[-1])
    return [*shown, "", status]


def terminal(output: str) -> str:
    """The run as a picture."""
    from rich.console import Console
    from rich.text import Text

    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True)
    console.print(Text("$ make run", style="bold"))
    for line in screen(output):
        console.print(Text.from_ansi(line, end=""), no_wrap=True, crop=True)
    picture = console.export_svg(title="make run", unique_id="run")
    return re.sub(r"@font-face \{.*?\}\s*", "", picture, flags=re.S)  # nothing is loaded from elsewhere


def write(name: str, picture: str) -> None:
    PICTURES.mkdir(exist_ok=True)
    (PICTURES / name).write_text("\n".join(line.rstrip() for line in picture.splitlines()) + "\n")


def main() -> None:
    wanted = sys.argv[1:] or ["chart", "terminal"]
    if "chart" in wanted:
        write("speed.svg", chart())
    if "terminal" in wanted:
        write("make-run.svg", terminal(recorded()))


if __name__ == "__main__":
    main()

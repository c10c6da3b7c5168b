"""Measure TensorFleet side by side with TensorFlow and print the ratio of their times.

    make bench
    .venv-peers/bin/python benchmarks/run.py --rounds 5 mlp100 lstm

Every measurement runs in a process of its own. The libraries take turns, work by work, so that both
see the same machine; a ratio above 1 means that TensorFleet is faster.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import importlib.util
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from works import LIBRARIES, WORKS

HERE = Path(__file__).resolve().parent
TABLES = (HERE / "README.md", HERE.parent / "README.md")
BEGIN, END = "<!-- table -->", "<!-- /table -->"
MEMORY_CEILING = 0.65
_LONGEST = 900.0  # seconds one process may take
# Both libraries on the CPU, and nothing but the result on the output.
ENVIRONMENT = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""}


@dataclass
class Row:
    """What was found for one work: a value per round and library, and what is asked of their ratio."""

    name: str
    about: str
    floor: float | None = None
    ceiling: float | None = None
    seen: dict[str, list[float]] = field(default_factory=lambda: {name: [] for name in LIBRARIES})
    #: processor time, where it was measured
    busy: dict[str, list[float]] = field(default_factory=lambda: {name: [] for name in LIBRARIES})

    def median(self, library: str) -> float:
        return statistics.median(self.seen[library])

    @property
    def complete(self) -> bool:
        return all(self.seen.values())

    def ratios(self) -> list[float]:
        """Round by round TensorFlow's over ours for time, ours over TensorFlow's for memory."""
        pairs = zip(self.seen["tensorflow"], self.seen["tensorfleet"], strict=False)
        return [ours / theirs if self.ceiling is not None else theirs / ours for theirs, ours in pairs]

    @property
    def ratio(self) -> float:
        """The median of the rounds, in each of which both met the same machine."""
        return statistics.median(self.ratios())

    def spread(self) -> str:
        """The quartiles of the ratio, round by round: how far it moves with the machine."""
        rounds = [
            theirs / ours for theirs, ours in zip(*(self.seen[name] for name in LIBRARIES), strict=True)
        ]
        if len(rounds) < 3 or self.ceiling is not None:
            return ""
        low, _, high = statistics.quantiles(rounds, n=4, method="inclusive")
        return f"{low:.2f}-{high:.2f}"

    def by_processors(self) -> str:
        """The ratio of processor times: below the other one, more of ours is done on several cores."""
        if not all(self.busy.values()):
            return ""
        theirs, ours = (statistics.median(self.busy[name]) for name in LIBRARIES)
        return f"{theirs / ours:.2f}"

    @property
    def is_lost(self) -> bool:
        """Whether TensorFlow is better."""
        return self.complete and (self.ratio > 1 if self.ceiling is not None else self.ratio < 1)

    @property
    def wanted(self) -> str:
        if self.ceiling is not None:
            return f"<= {self.ceiling:g}"
        return f">= {self.floor:g}" if self.floor is not None else ""

    @property
    def met(self) -> bool:
        if not self.complete:
            return False
        if self.ceiling is not None:
            return self.ratio <= self.ceiling
        return self.floor is None or self.ratio >= self.floor

    def cells(self) -> list[str]:
        show = megabytes if self.ceiling is not None else duration
        if not self.complete:
            return [self.name, "", "", "failed", "", "", self.wanted, self.about]
        values = [show(self.median(library)) for library in LIBRARIES]
        ratios = [f"{self.ratio:.2f}", self.spread(), self.by_processors()]
        return [self.name, *values, *ratios, self.wanted, self.about]


def duration(seconds: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.2f} {unit}"
    return f"{seconds * 1e6:.1f} us"


def megabytes(size: float) -> str:
    return f"{size / 1e6:.0f} MB"


def measure(library: str, name: str) -> dict[str, float]:
    """Runs one work once, in a new process."""
    return told_by([HERE / "works.py", library, name, "--since", repr(time.time())])


def told_by(script: Sequence[str | Path], longest: float = _LONGEST) -> dict[str, float]:
    """The last line that a script prints, run in a new process."""
    command = [sys.executable, *map(str, script)]
    try:
        done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, timeout=longest)
    except subprocess.TimeoutExpired:
        raise RuntimeError(f"not done after {longest:.0f} s") from None
    if done.returncode:
        raise RuntimeError(done.stderr.strip() or f"exit status {done.returncode}")
    return json.loads(done.stdout.strip().splitlines()[-1])


def rows_for(names: Sequence[str]) -> dict[str, Row]:
    rows = {}
    for name in names:
        rows[name] = Row(name, WORKS[name].about, floor=WORKS[name].floor)
        if name == "start":
            rows["memory"] = Row("memory", "the most memory that process has used", ceiling=MEMORY_CEILING)
    return rows


def measure_all(names: Sequence[str], rounds: int) -> list[Row]:
    """Measures every work `rounds` times on each library, in turns; whoever began comes second next time."""
    rows = rows_for(names)
    failed: set[str] = set()
    for turn in range(rounds):
        order = list(LIBRARIES)[:: -1 if turn % 2 else 1]
        for name in names:
            for library in order:
                if name in failed:
                    continue
                progress(f"round {turn + 1} of {rounds}: {name} on {library}")
                try:
                    found = measure(library, name)
                except RuntimeError as error:
                    failed.add(name)
                    progress("")
                    print(f"{name} failed on {library}:\n{error}", file=sys.stderr)
                    continue
                rows[name].seen[library].append(found["seconds"])
                if name != "start":
                    rows[name].busy[library].append(found["processors"])
                if name == "start":
                    rows["memory"].seen[library].append(found["bytes"])
    progress("")
    for name in failed | ({"memory"} if "start" in failed else set()):
        rows[name].seen = {library: [] for library in LIBRARIES}
        rows[name].busy = {library: [] for library in LIBRARIES}
    return list(rows.values())


def progress(line: str) -> None:
    """One changing line on a terminal, a line each elsewhere; to stderr, so that the table is clean."""
    if sys.stderr.isatty():
        print(f"\r\033[K{line}", end="", file=sys.stderr, flush=True)
    elif line:
        print(line, file=sys.stderr, flush=True)


def table(rows: Sequence[Row], markdown: bool) -> str:
    head = [
        "work",
        "TensorFlow",
        "TensorFleet",
        "ratio",
        "quartiles",
        "by processors",
        "floor",
        "what one step is",
    ]
    cells = [row.cells() for row in rows]
    empty = [
        i for i in range(len(head)) if not any(line[i] for line in cells)
    ]  # such as floors, where there are none
    head, *cells = ([cell for i, cell in enumerate(line) if i not in empty] for line in [head, *cells])
    if markdown:
        lines = ["| " + " | ".join(line) + " |" for line in [head, *cells]]
        return "\n".join([lines[0], "|---" + "|--:" * (len(head) - 2) + "|---|", *lines[1:]])
    widths = [max(len(line[i]) for line in [head, *cells]) for i in range(len(head))]
    lines = []
    for line in [head, *cells]:
        name, *numbers, about = (cell.rjust(width) for cell, width in zip(line, widths, strict=True))
        lines.append("  ".join([name.lstrip().ljust(widths[0]), *numbers, about.lstrip()]))
    return "\n".join(lines)


def losses(rows: Sequence[Row]) -> str:
    """The rows in which TensorFlow is better."""
    lost = [f"{row.name} {row.ratio:.2f}" for row in rows if row.is_lost]
    return f"Slower than TensorFlow: {', '.join(lost)}." if lost else "Slower than TensorFlow: nothing."


def conditions(rounds: int) -> str:
    """Where and with what the numbers were found."""
    version = importlib.metadata.version
    return (
        f"{time.strftime('%Y-%m-%d')}, {os.cpu_count()} CPUs ({platform.machine()}), Python "
        f"{platform.python_version()}, tensorflow-cpu {version('tensorflow-cpu')}, jax {version('jax')}, "
        f"median of {rounds} round{'s' if rounds > 1 else ''}."
    )


def write(text: str) -> None:
    """Puts the table between the markers of the two READMEs."""
    for path in TABLES:
        page = path.read_text()
        before, _, rest = page.partition(BEGIN)
        _, _, after = rest.partition(END)
        if not rest or END not in rest:
            raise SystemExit(f"{path} has no {BEGIN} ... {END} to fill in.")
        path.write_text(f"{before}{BEGIN}\n{text}\n{END}{after}")
    draw()


def draw() -> None:
    """Draws the chart of the tables anew."""
    subprocess.run([sys.executable, str(HERE.parent / "tools" / "make_pictures.py"), "chart"], check=True)


def parser_of(description: str, works: dict[str, str]) -> argparse.ArgumentParser:
    """The flags that all of these scripts have; `works` tells what each measures."""
    listing = "\n".join(f"  {name:14} {about}" for name, about in works.items())
    parser = argparse.ArgumentParser(
        description=description,
        epilog=f"works:\n{listing}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("works", nargs="*", metavar="work", help="what to measure (default: everything)")
    parser.add_argument("--rounds", type=int, default=3, help="times each work is measured (default: 3)")
    parser.add_argument("--check", action="store_true", help="exit with 1 if a work misses its floor")
    return parser


def parsed(parser: argparse.ArgumentParser, known: Sequence[str]) -> argparse.Namespace:
    """The flags given; ends with an error if one names a work that there is not."""
    flags = parser.parse_args()
    unknown = [name for name in flags.works if name not in known]
    if unknown:
        parser.error(f"there is no work {', '.join(unknown)}; choose from {', '.join(known)}")
    return flags


def read_flags() -> argparse.Namespace:
    about = "Measure TensorFleet against TensorFlow, in turns, and print the ratio of their times."
    parser = parser_of(about, {work.name: work.about for work in WORKS.values()})
    parser.add_argument("--least", type=float, help="exit with 1 if some time ratio is below this")
    parser.add_argument("--markdown", action="store_true", help="print the table as Markdown")
    parser.add_argument("--write", action="store_true", help="put the table into the READMEs")
    flags = parsed(parser, list(WORKS))
    if flags.rounds < 1:
        parser.error("--rounds must be at least 1")
    if flags.write and flags.works:
        parser.error("--write needs every work: leave the names out")
    if importlib.util.find_spec("tensorflow") is None:
        parser.error("TensorFlow is not installed here; `make bench` prepares an environment that has it")
    return flags


def main() -> int:
    flags = read_flags()
    names = list(dict.fromkeys(flags.works)) or list(WORKS)
    rows = measure_all(names, flags.rounds)
    complete = all(row.complete for row in rows)
    where = conditions(flags.rounds)
    print(f"{table(rows, flags.markdown)}\n\n{where}\n{losses(rows)}")
    if flags.write and complete:
        write(f"{table(rows, markdown=True)}\n\n{where}")
    slow = [row.name for row in rows if not row.met] if flags.check else []
    if flags.least is not None:
        slow += [r.name for r in rows if r.complete and r.ceiling is None and r.ratio < flags.least]
    if slow:
        print(f"Missed: {', '.join(dict.fromkeys(slow))}.", file=sys.stderr)
    return int(bool(slow) or not complete)


if __name__ == "__main__":
    sys.exit(main())

"""Rows of measured values, the tables made of them, and the files in which they are kept.

A ratio is always the other library's value over ours: above 1 TensorFleet is better, whether in time or in memory.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path

HERE = Path(__file__).resolve().parent
PAGE = HERE / "README.md"
RESULTS = HERE.parent / "build" / "bench"
OURS = "tensorfleet"
TITLES = {"tensorflow": "TensorFlow", "tensorfleet": "TensorFleet", "torch": "PyTorch", "jax": "JAX"}
SIZES = {"half": 0.5, "full": 1.0, "double": 2.0}
#: with fewer rounds there are no quartiles
LEAST_ROUNDS = 3


@dataclass
class Row:
    """What was found for one work: a value per round and library, and what is asked of their ratio."""

    name: str
    about: str
    floor: float | None = None
    unit: str = "seconds"  # or "bytes"; "added" is a share of a step, each library's own
    size: str = "full"
    seen: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    #: processor time, where it was measured
    busy: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    #: where and with what the values were found, once they are saved
    conditions: str = ""

    def median(self, library: str) -> float:
        return statistics.median(self.seen[library])

    def has(self, peer: str) -> bool:
        """Whether there is a comparison with this library."""
        return bool(self.seen.get(peer) and self.seen.get(OURS))

    @property
    def complete(self) -> bool:
        return self.has("tensorflow")

    def ratios(self, peer: str = "tensorflow") -> list[float]:
        """Theirs over ours, round by round: in a round both met the same machine."""
        return [theirs / ours for theirs, ours in zip(self.seen[peer], self.seen[OURS], strict=False)]

    def ratio(self, peer: str = "tensorflow") -> float:
        return statistics.median(self.ratios(peer))

    def quartiles(self, peer: str = "tensorflow") -> tuple[float, float] | None:
        """How far the ratio moves from round to round."""
        rounds = self.ratios(peer)
        if len(rounds) < LEAST_ROUNDS:
            return None
        low, _, high = statistics.quantiles(rounds, n=4, method="inclusive")
        return low, high

    def spread(self, peer: str = "tensorflow") -> str:
        found = self.quartiles(peer)
        return f"{found[0]:.2f}-{found[1]:.2f}" if found else ""

    def processors(self, peer: str = "tensorflow") -> float | None:
        """The ratio of processor times: below the other one, more of ours is done on several cores."""
        pairs = zip(self.busy.get(peer, ()), self.busy.get(OURS, ()), strict=False)
        rounds = [theirs / ours for theirs, ours in pairs if ours]
        return statistics.median(rounds) if rounds else None

    def by_processors(self, peer: str = "tensorflow") -> str:
        found = self.processors(peer)
        return "" if found is None else f"{found:.2f}"

    def is_lost(self, peer: str = "tensorflow") -> bool:
        """Whether the other library is better."""
        return self.unit != "added" and self.has(peer) and self.ratio(peer) < 1

    @property
    def wanted(self) -> str:
        return f">= {self.floor:g}" if self.floor is not None else ""

    @property
    def met(self) -> bool:
        return self.complete and (self.floor is None or self.ratio() >= self.floor)

    def shown(self, library: str) -> str:
        """A library's median, with its unit."""
        if not self.seen.get(library):
            return ""
        value = self.median(library)
        if self.unit == "added":
            return f"{100 * (value - 1):+.0f} %"
        return duration(value) if self.unit == "seconds" else megabytes(value)

    def against(self, peer: str) -> list[str]:
        """The cells that compare with one library: its value, the ratio, its quartiles, the ratio of processor times."""
        if not self.has(peer):
            return [self.shown(peer), "", "", ""]
        return [self.shown(peer), f"{self.ratio(peer):.2f}", self.spread(peer), self.by_processors(peer)]

    def cells(self) -> list[str]:
        """The row of the table against TensorFlow."""
        if not self.complete:
            return [self.name, "", "", "failed", "", "", self.wanted, self.about]
        theirs, *ratios = self.against("tensorflow")
        if self.unit == "added":
            ratios = ["", "", ""]
        return [self.name, theirs, self.shown(OURS), *ratios, self.wanted, self.about]


def duration(seconds: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.2f} {unit}"
    return f"{seconds * 1e6:.1f} us"


def megabytes(size: float) -> str:
    return f"{size / 1e6:.0f} MB"


# -- tables --------------------------------------------------------------------------------------------


def grid(head: Sequence[str], cells: Sequence[Sequence[str]], markdown: bool) -> str:
    """A table whose first column is words, as are notes and what a step is; columns without a cell are left out."""
    used = [i for i in range(len(head)) if i == 0 or any(line[i] for line in cells)]
    lines = [[line[i] for i in used] for line in [head, *cells]]
    words = [i == 0 or name.startswith(("what", "note")) for i, name in enumerate(lines[0])]
    if markdown:
        rule = "|" + "|".join("---" if left else "--:" for left in words) + "|"
        rows = ["| " + " | ".join(line) + " |" for line in lines]
        return "\n".join([rows[0], rule, *rows[1:]])
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]

    def padded(line: list[str]) -> str:
        pairs = zip(line, widths, words, strict=True)
        return "  ".join(c.ljust(w) if left else c.rjust(w) for c, w, left in pairs).rstrip()

    return "\n".join(map(padded, lines))


def table(rows: Sequence[Row], markdown: bool) -> str:
    """The comparison with TensorFlow."""
    head = ["work", "TensorFlow", "TensorFleet", "ratio", "quartiles", "by processors", "floor"]
    return grid([*head, "what one step is"], [row.cells() for row in rows], markdown)


def peers_table(rows: Sequence[Row], peers: Sequence[str], markdown: bool) -> str:
    """The comparison with other libraries, side by side."""
    head = ["work", TITLES[OURS]]
    for peer in peers:
        head += [TITLES[peer], "ratio", "quartiles", "by processors"]
    some = [row for row in rows if any(row.has(peer) for peer in peers)]
    lines = [[row.name, row.shown(OURS), *(c for p in peers for c in row.against(p))] for row in some]
    return grid(head, lines, markdown)


def sizes_table(rows: Sequence[Row], peers: Sequence[str], markdown: bool) -> str:
    """The ratios at each size, a group of columns for each library."""
    by_name: dict[str, dict[str, Row]] = {}
    for row in rows:
        by_name.setdefault(row.name, {})[row.size] = row
    head = ["work", *(f"{TITLES[peer]}, {size}" for peer in peers for size in SIZES)]
    lines = []
    for name, sizes in by_name.items():
        if len(sizes) > 1:
            pairs = [(sizes.get(size), peer) for peer in peers for size in SIZES]
            lines.append([name, *(f"{r.ratio(p):.2f}" if r and r.has(p) else "" for r, p in pairs)])
    return grid(head, lines, markdown)


def losses(rows: Sequence[Row], peers: Sequence[str] = ("tensorflow",)) -> str:
    """The rows in which another library is better, a line for each library."""
    lines = []
    for peer in peers:
        lost = [row for row in rows if row.is_lost(peer)]
        names = [f"{r.name}{'' if r.size == 'full' else ' ' + r.size} {r.ratio(peer):.2f}" for r in lost]
        lines.append(f"Behind {TITLES[peer]}: {', '.join(names) or 'nothing'}.")
    return "\n".join(lines)


def conditions(rounds: int) -> str:
    """Where and with what the numbers were found."""
    packages = {"tensorflow-cpu": "tensorflow", "torch": "torch", "jax": "jax"}
    versions = [
        f"{package} {importlib.metadata.version(package)}"
        for package, module in packages.items()
        if importlib.util.find_spec(module)
    ]
    return (
        f"{time.strftime('%Y-%m-%d')}, {os.cpu_count()} CPUs ({platform.machine()}), Python "
        f"{platform.python_version()}, {', '.join(versions)}, "
        f"median of {rounds} round{'s' if rounds > 1 else ''}."
    )


def write_between(marker: str, text: str, page: Path = PAGE) -> None:
    """Puts a table between its markers in a page, and draws the chart of the tables anew."""
    begin, end = f"<!-- {marker} -->", f"<!-- /{marker} -->"
    before, _, rest = page.read_text().partition(begin)
    _, found, after = rest.partition(end)
    if not found:
        raise SystemExit(f"{page} has no {begin} ... {end} to fill in.")
    page.write_text(f"{before}{begin}\n{text}\n{end}{after}")
    draw()


def draw() -> None:
    """Draws the chart of the tables anew."""
    subprocess.run([sys.executable, str(HERE.parent / "tools" / "make_pictures.py"), "chart"], check=True)


# -- files ---------------------------------------------------------------------------------------------


def save(script: str, rows: Sequence[Row], where: str) -> None:
    """Keeps the rows for summary.py; rows of an earlier run that were not measured again stay."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    path = RESULTS / f"{script}.json"
    kept = {(row.name, row.size): row for row in load(path)} if path.exists() else {}
    for row in rows:
        row.conditions = where
        kept[row.name, row.size] = row
    saved = [{f.name: getattr(row, f.name) for f in fields(Row)} for row in kept.values()]
    path.write_text(json.dumps(saved, indent=1))


def load(path: Path) -> list[Row]:
    """The rows that a script has saved."""
    return [Row(**row) for row in json.loads(path.read_text())]

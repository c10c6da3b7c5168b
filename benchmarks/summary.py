"""List where TensorFleet is behind another library, over all scripts that have saved their results.

    make bench
    .venv-peers/bin/python benchmarks/summary.py

Reads build/bench/*.json, in which each script keeps its rows. It measures nothing and never fails.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from report import OURS, RESULTS, TITLES, Row, grid, load

HEAD = ("work", "size", "script", "other", "TensorFleet", "ratio", "quartiles", "by processors", "note")


def saved(folder: Path) -> list[tuple[str, Row]]:
    """All rows, each with the script that measured it; a file that cannot be read is left out, with a word about it."""
    found = []
    for path in sorted(folder.glob("*.json")):
        try:
            found += [(path.stem, row) for row in load(path)]
        except (ValueError, TypeError, OSError) as error:
            print(f"{path} cannot be read: {error}", file=sys.stderr)
    return found


def verdict(row: Row, peer: str) -> str:
    """How sure it is that the other library is ahead."""
    quartiles = row.quartiles(peer)
    if quartiles is None:
        return "too few rounds to be sure"
    return "" if quartiles[1] < 1 else "within the spread of the rounds"


def lines(rows: Sequence[tuple[str, Row]], peer: str) -> list[list[str]]:
    """A line for each row that is lost to a library, the worst first."""
    lost = [(script, row) for script, row in rows if row.is_lost(peer)]
    made = []
    for script, row in sorted(lost, key=lambda pair: pair[1].ratio(peer)):
        theirs, ratio, spread, busy = row.against(peer)
        size = "" if row.size == "full" else row.size
        cells = [row.name, size, script, theirs, row.shown(OURS), ratio, spread, busy]
        made.append([*cells, verdict(row, peer)])
    return made


def costs_more(rows: Sequence[tuple[str, Row]], peer: str) -> list[str]:
    """Rows in which we are as fast, but take more processor time."""
    found = []
    for _, row in rows:
        busy = row.processors(peer)
        if busy is not None and busy < 1 and not row.is_lost(peer):
            found.append((busy, f"{row.name}{'' if row.size == 'full' else ' ' + row.size} {busy:.2f}"))
    return [text for _, text in sorted(found)]


def summary(rows: Sequence[tuple[str, Row]]) -> str:
    """The whole list, a part for each library that was measured."""
    parts = []
    for peer, title in TITLES.items():
        compared = [(script, row) for script, row in rows if row.unit != "added" and row.has(peer)]
        if peer == OURS or not compared:
            continue
        lost = lines(compared, peer)
        parts.append(f"Behind {title}: {len(lost)} of {len(compared)} rows.")
        if lost:
            parts.append(grid(HEAD, lost, markdown=False))
        if costs := costs_more(compared, peer):
            parts.append(f"Not behind by the clock, but with more processor time: {', '.join(costs)}.")
    return "\n\n".join(parts) or "No results yet: `make bench` measures."


def main() -> int:
    rows = saved(RESULTS)
    print(summary(rows))
    days = sorted({row.conditions.partition(",")[0] for _, row in rows if row.conditions})
    if len(days) > 1:
        print(f"\nThe rows were measured between {days[0]} and {days[-1]}.")
    return 0


if __name__ == "__main__":
    sys.exit(main())

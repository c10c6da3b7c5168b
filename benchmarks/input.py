"""Measure how both libraries bring data to a step, in turns, and print the ratio of their times.

make bench
.venv-peers/bin/python benchmarks/input.py --rounds 3 records lines
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from cluster import write_between
from input_works import WORKS, prepare
from run import Row, conditions, losses, parsed, parser_of, progress, table, told_by
from works import LIBRARIES

HERE = Path(__file__).resolve().parent
_LONGEST = 300.0


class Added(Row):
    """What getting its data from a dataset adds to a step; each library's own, not one against the other."""

    @property
    def met(self) -> bool:
        return self.complete and self.median("tensorfleet") < 1.1

    @property
    def wanted(self) -> str:
        return "< +10 %"

    def cells(self) -> list[str]:
        if not self.complete:
            return super().cells()
        values = [f"{100 * (self.median(library) - 1):+.0f} %" for library in LIBRARIES]
        return [self.name, *values, "", "", "", self.wanted, self.about]

    @property
    def is_lost(self) -> bool:
        return False  # it is no ratio of the two


def measure(library: str, name: str, folder: str) -> float:
    """Runs one work once, in a new process."""
    return told_by([HERE / "input_works.py", library, name, folder], _LONGEST)["seconds"]


def measure_all(names: list[str], rounds: int) -> list[Row]:
    rows = {
        name: (Added if name == "feeding" else Row)(name, WORKS[name].about, floor=WORKS[name].floor)
        for name in names
    }
    with tempfile.TemporaryDirectory() as folder:
        prepare(Path(folder))
        for turn in range(rounds):
            for name in names:
                for library in list(LIBRARIES)[:: -1 if turn % 2 else 1]:
                    progress(f"round {turn + 1} of {rounds}: {name} on {library}")
                    try:
                        rows[name].seen[library].append(measure(library, name, folder))
                    except RuntimeError as error:
                        progress("")
                        print(f"{name} failed on {library}:\n{error}", file=sys.stderr)
    progress("")
    return list(rows.values())


def main() -> int:
    about = "Measure the input of TensorFleet against that of TensorFlow."
    parser = parser_of(about, {work.name: work.about for work in WORKS.values()})
    parser.add_argument("--write", action="store_true", help="put the table into the page of benchmarks")
    flags = parsed(parser, list(WORKS))
    rows = measure_all(flags.works or list(WORKS), flags.rounds)
    where = conditions(flags.rounds)
    print(f"{table(rows, False)}\n\n{where}\n{losses(rows)}")
    if flags.write and not flags.works:
        write_between("input table", f"{table(rows, True)}\n\n{where}")
    return int(flags.check and not all(row.met for row in rows))


if __name__ == "__main__":
    sys.exit(main())

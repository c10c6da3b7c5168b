"""Measure how both libraries bring data to a step, in turns, and print the ratio of their times.

make bench
.venv-peers/bin/python benchmarks/input.py --rounds 3 records lines
"""

from __future__ import annotations

import functools
import sys
import tempfile
from pathlib import Path

from input_works import WORKS, prepare
from measuring import Job, take_turns, told_by
from report import HERE, Row, conditions, losses, save, table, write_between
from run import parsed, parser_of
from works import LIBRARIES

_LONGEST = 300.0


class Added(Row):
    """What getting its data from a dataset adds to a step; each library's own, not one against the other."""

    @property
    def met(self) -> bool:
        return self.complete and self.median("tensorfleet") < 1.1

    @property
    def wanted(self) -> str:
        return "< +10 %"


def measure(name: str, folder: str, library: str) -> dict[str, float]:
    """Runs one work once, in a new process."""
    found = told_by([HERE / "input_works.py", library, name, folder], _LONGEST)
    if name in ("feeding", "queue_ps"):
        # A share of a step has no processor time of its own; nor has a queue on a server, of which this is one end.
        return {"seconds": found["seconds"]}
    return {"seconds": found["seconds"], "processors": found["processor"]}


def jobs_for(names: list[str], folder: str) -> list[Job]:
    jobs = []
    for name in names:
        work = WORKS[name]
        if name == "feeding":
            row: Row = Added(name, work.about, unit="added")
        else:
            row = Row(name, work.about, floor=work.floor)
        jobs.append(Job(name, list(LIBRARIES), {"seconds": row}, functools.partial(measure, name, folder)))
    return jobs


def main() -> int:
    about = "Measure the input of TensorFleet against that of TensorFlow."
    parser = parser_of(about, {work.name: work.about for work in WORKS.values()})
    flags = parsed(parser, list(WORKS))
    with tempfile.TemporaryDirectory() as folder:
        prepare(Path(folder))
        jobs = jobs_for(flags.works or list(WORKS), folder)
        take_turns("input", jobs, flags.rounds)
    rows = [row for job in jobs for row in job.rows.values()]
    where = conditions(flags.rounds)
    save("input", rows, where)
    print(f"{table(rows, False)}\n\n{where}\n{losses(rows)}")
    if flags.write:
        write_between("input table", f"{table(rows, True)}\n\n{where}")
    return int(flags.check and not all(row.met for row in rows))


if __name__ == "__main__":
    sys.exit(main())

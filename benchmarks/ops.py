"""Time the ops of the library one by one against TensorFlow's, at sizes where arithmetic dominates.

    make bench
    .venv-peers/bin/python benchmarks/ops.py --rounds 7 "sort*" top_k
    .venv-peers/bin/python benchmarks/ops.py --below 0.67
    .venv-peers/bin/python benchmarks/ops.py --write "string_*"

Both libraries run in this process and take turns. Each is timed by the clock (the best run of a round, since a busy machine
only ever makes a run slower) and by the processor time that all its threads took together (the mean of a round). The ratio is
the median of the rounds. A row's ratio is the lower of the two; above 1 TensorFleet is faster. Rows below 0.67 are timed again
at the end, twice as long, and all rounds count. Every row is told when it is measured; all are printed at the end, worst
first. --write puts them among the rows of README.md; a run that is interrupted writes those that it has.
"""

from __future__ import annotations

import argparse
import fnmatch
import os
import re
import sys
import textwrap
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")

import numpy as np
import op_host
import op_math
import op_nn
from measuring import spoken
from report import HERE, OURS, Row, conditions, save, write_between

OPS = op_math.OPS | op_nn.OPS | op_host.OPS
LEAST = 0.67  # rows below are slow
SETTLES = 0.01  # seconds after which the threads of a run wait for the next one
MARKER = "op table"


@dataclass
class Found:
    """One row of the table: its ratio, the lower of the clock's and the processors', and the cells that tell more."""

    name: str
    ratio: float
    more: tuple[str, ...] = ()

    @classmethod
    def of(cls, row: Row) -> Found:
        """The row of an op's times."""
        clock, busy = row.ratio(), row.processors()
        assert busy is not None
        times = (row.shown("tensorflow"), row.shown(OURS))
        cells = (*times, f"{clock:.2f}", row.spread(), f"{busy:.2f}")
        return cls(row.name, round(min(clock, busy), 2), cells)

    def __str__(self) -> str:
        theirs, ours, clock, spread, busy = self.more
        return f"{self.name:36}{theirs:>12}{ours:>14}{clock:>14}{spread:>14}{busy:>15}"


class Runner:
    """One op in one library, ready to be run again and again."""

    def __init__(self, tf: Any, call: Callable, inputs: tuple) -> None:
        graph = tf.Graph()
        with graph.as_default(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            places = [tf.placeholder(tf.as_dtype(x.dtype), x.shape) for x in inputs]
            result = call(tf, *places)
            prepare = [tf.global_variables_initializer(), tf.tables_initializer()]
        self._session = tf.Session(graph=graph)
        self._session.run(prepare)
        self._run = self._session.make_callable(result, places)
        self._inputs = inputs
        for _ in range(25):  # ours tries both of its ways first
            self._run(*inputs)

    def time(self, least: float) -> tuple[float, float]:
        """Of the runs that fit into so many seconds: the best by the clock, the mean of the processors.

        The system counts the time of a thread when it stops, or a few times in 100 ms: a single run may seem to cost
        its other threads nothing. So only that of all runs together is read, when they have stopped.
        """
        best, runs = np.inf, 0
        time.sleep(SETTLES)
        busy, end = time.process_time(), time.perf_counter() + least
        now = -np.inf
        while now < end:
            start = time.perf_counter()
            self._run(*self._inputs)
            now = time.perf_counter()
            best, runs = min(best, now - start), runs + 1
        time.sleep(SETTLES)
        return best, (time.process_time() - busy) / runs

    def close(self) -> None:
        self._session.close()


def measure(libraries: dict[str, Any], row: Row, rounds: int, seconds: float) -> None:
    """Adds rounds of an op in each library to its row; whoever began comes second next time."""
    call, inputs = OPS[row.name]
    runners = {key: Runner(tf, call, inputs) for key, tf in libraries.items()}
    for turn in range(rounds):
        for key in list(runners)[:: -1 if turn % 2 else 1]:
            clock, busy = runners[key].time(seconds)
            row.seen[key].append(clock)
            row.busy[key].append(busy)
    for runner in runners.values():
        runner.close()


def written() -> dict[str, Found]:
    """The rows that the page of benchmarks has."""
    _, _, rest = (HERE / "README.md").read_text().partition(f"<!-- {MARKER} -->")
    slow, _, others = rest.partition(f"<!-- /{MARKER} -->")[0].partition("<details>")
    rows = [Found(m[1], float(m[2])) for m in re.finditer(r"(\w+)\s(\d+\.\d\d)", others)]
    for line in slow.splitlines():
        name, *more = (cell.strip() for cell in line.strip("|").split("|"))
        if name in OPS:
            rows.append(Found(name, min(float(more[2]), float(more[-1])), tuple(more)))
    return {row.name: row for row in rows if row.name in OPS}


def page(rows: list[Found], where: str) -> str:
    """What the page of benchmarks says of all rows."""
    slow, others = ([row for row in rows if (row.ratio < LEAST) == below] for below in (True, False))
    fast = sum(row.ratio >= 1 for row in others)
    head = [
        "| op | TensorFlow | TensorFleet | by the clock | quartiles | by processors |",
        "|---|--:|--:|--:|--:|--:|",
    ]
    table = [*head, *("| " + " | ".join([row.name, *row.more]) + " |" for row in slow), ""]
    lines = [
        f"Of {len(rows)} rows {fast} are at 1 or above, {len(others) - fast} more at {LEAST} or above, and "
        f"{len(slow) or 'none'} below{':' if slow else '.'}",
        "",
        *(table if slow else []),
        where,
        "",
        "<details><summary>The others</summary>",
        "",
        *textwrap.wrap(", ".join(f"{row.name} {row.ratio:.2f}" for row in others) + ".", 150),
        "",
        "</details>",
    ]
    return "\n".join(lines)


def measured(names: list[str], rounds: int, seconds: float, again: int) -> Iterator[Row]:
    """The rows of ops, each as soon as it is measured; slow ones up to so many times again, with more rounds."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import tensorflow.compat.v1 as oracle
    oracle.disable_v2_behavior()
    oracle.logging.set_verbosity(oracle.logging.ERROR)
    import tensorfleet

    libraries = {"tensorfleet": tensorfleet, "tensorflow": oracle}
    rows: dict[str, Row] = {}
    for name in names:
        row = Row(name, "one op")
        try:
            measure(libraries, row, rounds, seconds)
        except Exception as e:
            print(f"{name}: {type(e).__name__}: {e}", file=sys.stderr)
        else:
            rows[name] = row
            yield row
    for _ in range(again):
        for row in [row for row in rows.values() if Found.of(row).ratio < LEAST]:
            measure(libraries, row, 2 * rounds, seconds)
            yield row


def main() -> None:
    """Prints the table of all ops, or of those named."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=0.1, help="per library and round")
    parser.add_argument("--again", type=int, default=2, help="how often slow rows are timed again")
    parser.add_argument("--below", type=float, default=np.inf, help="print only rows below this ratio")
    parser.add_argument("--write", action="store_true", help="put the rows into the page of benchmarks")
    parser.add_argument("names", nargs="*", default=["*"], help="ops to measure, or patterns; all by default")
    options = parser.parse_args()
    names = [name for name in OPS if any(fnmatch.fnmatchcase(name, p) for p in options.names)]
    # A round takes as long for each library; starting an op takes about as long as its rounds.
    print(
        f"{len(names)} ops, about {spoken(4 * len(names) * options.rounds * options.seconds)}.",
        file=sys.stderr,
    )
    rows: dict[str, Row] = {}
    try:
        for row in measured(names, options.rounds, options.seconds, options.again):
            rows[row.name] = row
            print(f"{len(rows)}/{len(names)} {Found.of(row)}", file=sys.stderr, flush=True)
    except KeyboardInterrupt:
        print(f"interrupted after {len(rows)} of {len(names)} rows", file=sys.stderr)
    where = conditions(options.rounds)
    save("ops", list(rows.values()), where)
    found = {name: Found.of(row) for name, row in rows.items()}
    head = ("op", "TensorFlow", "TensorFleet", "by the clock", "quartiles", "by processors")
    print("{:36}{:>12}{:>14}{:>14}{:>14}{:>15}".format(*head))
    for row in sorted(found.values(), key=lambda row: row.ratio):
        if row.ratio < options.below:
            print(row)
    if options.write:
        write_between(MARKER, page(sorted((written() | found).values(), key=lambda row: row.ratio), where))


if __name__ == "__main__":
    main()

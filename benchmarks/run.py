"""Measure TensorFleet side by side with TensorFlow, PyTorch and JAX, and print the ratios of their times.

    make bench
    .venv-peers/bin/python benchmarks/run.py --rounds 5 mlp100 lstm
    .venv-peers/bin/python benchmarks/run.py --against torch,jax --size half,double transformer

Every measurement runs in a process of its own. The libraries take turns, work by work, so that all
see the same machine; a ratio above 1 means that TensorFleet is faster.
"""

from __future__ import annotations

import argparse
import functools
import importlib.util
import sys
import time
from collections.abc import Iterable, Sequence

from measuring import Job, take_turns, told_by
from report import (
    HERE,
    LEAST_ROUNDS,
    OURS,
    SIZES,
    Row,
    conditions,
    losses,
    peers_table,
    save,
    sizes_table,
    table,
    write_between,
)
from works import LIBRARIES, PEERS, WORKS

# Rows for the most memory that the process of a work has used: the work, and the least ratio to TensorFlow.
MEMORY = {
    "memory": ("start", 1.54),
    "memory_transformer": ("transformer", None),
    "memory_resnet": ("resnet", None),
}
NAMES = [*WORKS, *MEMORY]


def measure(name: str, size: str, library: str) -> dict[str, float]:
    """Runs one work once, in a new process."""
    return told_by([HERE / "works.py", library, name, "--size", size, "--since", repr(time.time())])


def can_run(library: str, name: str) -> bool:
    """Whether a library has this work. Those of PyTorch and JAX are in modules that import them, so ask the text."""
    return library in LIBRARIES or f'"{name}":' in (HERE / f"{PEERS[library]}.py").read_text()


def jobs_for(names: Sequence[str], against: Iterable[str], sizes: Sequence[str]) -> list[Job]:
    """One job for each work and size. A work whose memory is asked for is measured, with its own row."""
    works = dict.fromkeys(MEMORY[name][0] if name in MEMORY else name for name in names)
    jobs = []
    for name in works:
        chosen = WORKS[name]
        libraries = [*LIBRARIES, *(peer for peer in against if can_run(peer, name))]
        for size in sizes if chosen.scales else ["full"]:
            full = size == "full"
            rows = {"seconds": Row(name, chosen.about, chosen.floor if full else None, size=size)}
            for memory, (of, floor) in MEMORY.items():
                if of == name:
                    about = f"the most memory that the process of {name} has used"
                    rows["bytes"] = Row(memory, about, floor if full else None, "bytes", size)
            label = name if full else f"{name} ({size})"
            jobs.append(Job(label, libraries, rows, functools.partial(measure, name, size)))
    return jobs


def parser_of(description: str, works: dict[str, str]) -> argparse.ArgumentParser:
    """The flags that all of these scripts have; `works` tells what each measures."""
    listing = "\n".join(f"  {name:18} {about}" for name, about in works.items())
    parser = argparse.ArgumentParser(
        description=description,
        epilog=f"works:\n{listing}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("works", nargs="*", metavar="work", help="what to measure (default: everything)")
    parser.add_argument("--rounds", type=int, default=3, help="times each work is measured (default: 3)")
    parser.add_argument("--check", action="store_true", help="exit with 1 if a work misses its floor")
    parser.add_argument("--write", action="store_true", help="put the tables into the page of benchmarks")
    return parser


def parsed(parser: argparse.ArgumentParser, known: Sequence[str]) -> argparse.Namespace:
    """The flags given; ends with an error if they make no sense."""
    flags = parser.parse_args()
    unknown = [name for name in flags.works if name not in known]
    if unknown:
        parser.error(f"there is no work {', '.join(unknown)}; choose from {', '.join(known)}")
    if flags.rounds < 1:
        parser.error("--rounds must be at least 1")
    if flags.write and flags.works:
        parser.error("--write needs every work: leave the names out")
    if flags.write and flags.rounds < LEAST_ROUNDS:
        parser.error(f"--write needs at least {LEAST_ROUNDS} rounds, for the quartiles")
    if importlib.util.find_spec("tensorflow") is None:
        parser.error("TensorFlow is not installed here; `make bench` prepares an environment that has it")
    return flags


def chosen_from(known: Iterable[str], text: str, parser: argparse.ArgumentParser) -> list[str]:
    """The names in a list with commas."""
    names = [name for name in text.split(",") if name]
    unknown = [name for name in names if name not in known]
    if unknown:
        parser.error(f"there is no {', '.join(unknown)}; choose from {', '.join(known)}")
    return names


def read_flags() -> argparse.Namespace:
    about = "Measure TensorFleet against TensorFlow and others, in turns, and print the ratio of their times."
    parser = parser_of(about, {work.name: work.about for work in WORKS.values()})
    parser.add_argument("--against", default="", help="more libraries to measure: torch,jax")
    parser.add_argument("--size", default="", help="more sizes to measure: half,double")
    parser.add_argument("--least", type=float, help="exit with 1 if some ratio to TensorFlow is below this")
    parser.add_argument("--markdown", action="store_true", help="print the tables as Markdown")
    flags = parsed(parser, NAMES)
    flags.against = chosen_from(PEERS, flags.against, parser)
    sizes = chosen_from(SIZES, flags.size, parser)
    flags.size = [size for size in SIZES if size in (*sizes, "full")]
    missing = [peer for peer in flags.against if importlib.util.find_spec(peer) is None]
    if missing:
        parser.error(f"{', '.join(missing)} is not installed here: pip install 'tensorfleet[bench]'")
    return flags


def tables(rows: Sequence[Row], flags: argparse.Namespace, markdown: bool) -> dict[str, str]:
    """The tables that these measurements fill, by their marker in the page."""
    full = [row for row in rows if row.size == "full"]
    made = {"table": table(full, markdown)}
    if flags.against:
        made["peers table"] = peers_table(full, flags.against, markdown)
    if len(flags.size) > 1:
        made["sizes table"] = sizes_table(rows, ["tensorflow", *flags.against], markdown)
    return made


def main() -> int:
    flags = read_flags()
    jobs = jobs_for(flags.works or NAMES, flags.against, flags.size)
    take_turns("run", jobs, flags.rounds)
    rows = [row for job in jobs for row in job.rows.values()]
    complete = all(
        row.has(peer) for job in jobs for row in job.rows.values() for peer in job.libraries if peer != OURS
    )
    where = conditions(flags.rounds)
    save("run", rows, where)
    printed = "\n\n".join(tables(rows, flags, flags.markdown).values())
    print(f"{printed}\n\n{where}\n{losses(rows, ['tensorflow', *flags.against])}")
    if flags.write and complete:
        for marker, text in tables(rows, flags, markdown=True).items():
            write_between(marker, f"{text}\n\n{where}")
            if marker == "table":
                write_between(marker, f"{text}\n\n{where}", HERE.parent / "README.md")
    slow = [row.name for row in rows if not row.met] if flags.check else []
    if flags.least is not None:
        slow += [r.name for r in rows if r.complete and r.ratio() < flags.least]
    if slow:
        print(f"Missed: {', '.join(dict.fromkeys(slow))}.", file=sys.stderr)
    return int(bool(slow) or not complete)


if __name__ == "__main__":
    sys.exit(main())

"""Measure how the time of a step grows with its variables and operations, and updates with the clients of a server.

    make bench
    .venv-peers/bin/python benchmarks/growth.py --rounds 3 variables1000 chain10000 clients16

Each measurement is a process of its own, the libraries in turns. `first` rows are the mean step of the first second after
the first run; the others are steps that have settled. A `stall` is the longest step after the first.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cluster import addresses, write_between
from run import ENVIRONMENT, Row, conditions, losses, parsed, parser_of, progress, table, told_by
from works import LIBRARIES, load, session

HERE = Path(__file__).resolve().parent
# How long a work runs before its steps count as settled: ours compile in this time, if they ever do.
_SETTLING_SECONDS = {"chain50000": 90.0, "chain10000": 30.0, "variables1000": 20.0}
_UPDATING_SECONDS = 3.0
_LONGEST = 600.0


def variables(tf: Any, count: int) -> Callable[[], Any]:
    """One step of SGD on so many scalar variables."""
    scalars = [tf.get_variable(f"v{i}", [], initializer=tf.zeros_initializer()) for i in range(count)]
    loss = tf.add_n([tf.square(v - float(i % 7)) for i, v in enumerate(scalars)])
    train = tf.train.GradientDescentOptimizer(0.01).minimize(loss)
    sess = session(tf)
    return lambda: sess.run([train, loss])


def chain(tf: Any, count: int) -> Callable[[], Any]:
    """So many small operations, one after the other."""
    x = value = tf.placeholder(tf.float32, [8])
    for i in range(count // 2):
        value = value * 0.999 + float(i % 3)
    sess = tf.Session()
    return lambda: sess.run(value, {x: [1.0] * 8})


BUILD = {"variables": variables, "chain": chain}
SIZES = {"variables": (10, 100, 1000), "chain": (100, 1000, 10_000, 50_000), "clients": (1, 2, 16)}
ABOUT = {
    "variables": "a step of SGD on {:,} scalar variables",
    "chain": "a chain of {:,} small ops",
    "clients": "updates of a scalar on a ps by {:,} clients, time for one",
}
WORKS = {f"{kind}{size}": (kind, size) for kind, sizes in SIZES.items() for size in sizes}
FLOORS = {"variables": 2.0, "chain": 2.0, "clients": 4.0}


def grow(library: str, name: str) -> None:
    """Runs one work in this process and prints its times."""
    kind, size = WORKS[name]
    step = BUILD[kind](load(library), size)
    step()
    times: list[float] = []
    began = now = time.perf_counter()
    end = began + _SETTLING_SECONDS.get(name, 5.0)
    in_first = 0
    while now < end:
        step()
        before, now = now, time.perf_counter()
        times.append(now - before)
        if now - began <= 1.0 or len(times) == 1:
            in_first = len(times)
    settled = sorted(times[-max(len(times) // 4, 1) :])
    first = times[:in_first]
    print(
        json.dumps(
            {
                "first": sum(first) / len(first),
                "stall": max(times),
                "seconds": settled[len(settled) // 2],
            }
        )
    )


def serve(library: str, address: str) -> None:
    """The parameter server of the clients."""
    tf = load(library)
    tf.train.Server(tf.train.ClusterSpec({"ps": [address]}), job_name="ps", task_index=0).join()


def update(library: str, address: str) -> None:
    """One client: waits until all are ready, updates for a while, and prints how many updates it has made."""
    tf = load(library)
    with tf.device("/job:ps/task:0"):
        count = tf.get_variable("count", [], initializer=tf.zeros_initializer())
        add = tf.assign_add(count, 1.0)
    sess = tf.Session(f"grpc://{address}")
    sess.run(count.initializer)
    sess.run(add.op)
    print("ready", flush=True)
    sys.stdin.readline()
    end, made = time.monotonic() + _UPDATING_SECONDS, 0
    while time.monotonic() < end:
        sess.run(add.op)
        made += 1
    print(json.dumps({"updates": made}), flush=True)


def seconds_of_an_update(library: str, clients: int) -> float:
    """How long one update takes, with so many clients at it."""
    (address,) = addresses(1)

    def started(*arguments: object) -> subprocess.Popen[str]:
        command = [sys.executable, str(HERE / "growth.py"), "--child", library, *map(str, arguments)]
        pipe = subprocess.PIPE
        return subprocess.Popen(
            command, env=ENVIRONMENT, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True
        )

    server = started("serve", address)
    running = [started("update", address) for _ in range(clients)]
    try:
        for client in running:
            assert client.stdout is not None
            if client.stdout.readline() != "ready\n":
                raise RuntimeError("a client did not start")
        for client in running:
            assert client.stdin is not None
            client.stdin.write("\n")
            client.stdin.flush()
        made = 0
        for client in running:
            out, _ = client.communicate(timeout=_LONGEST)
            if client.returncode:
                raise RuntimeError(f"a client ended with exit status {client.returncode}")
            made += json.loads(out.strip().splitlines()[-1])["updates"]
        return _UPDATING_SECONDS / made
    except subprocess.TimeoutExpired:
        raise RuntimeError(f"not done after {_LONGEST:.0f} s") from None
    finally:
        for process in (server, *running):
            process.kill()
            process.communicate()


def rows_for(names: list[str]) -> dict[str, Row]:
    """The rows of the table: three for each chain, one for all else."""
    rows = {}
    for name in names:
        kind, size = WORKS[name]
        about = ABOUT[kind].format(size)
        rows[name] = Row(name, about, floor=FLOORS[kind])
        if kind == "chain":
            rows[f"{name} first"] = Row(f"{name} first", "the same, in the first second", floor=1.0)
            rows[f"{name} stall"] = Row(f"{name} stall", "the same, the longest step after the first")
    return rows


def measure_all(names: list[str], rounds: int) -> list[Row]:
    rows = rows_for(names)
    for turn in range(rounds):
        for name in names:
            for library in list(LIBRARIES)[:: -1 if turn % 2 else 1]:
                progress(f"round {turn + 1} of {rounds}: {name} on {library}")
                kind, size = WORKS[name]
                try:
                    if kind == "clients":
                        found = {"seconds": seconds_of_an_update(library, size)}
                    else:
                        found = told_by([HERE / "growth.py", "--child", library, "grow", name], _LONGEST)
                except RuntimeError as error:
                    progress("")
                    print(f"{name} failed on {library}:\n{error}", file=sys.stderr)
                    continue
                rows[name].seen[library].append(found["seconds"])
                if kind == "chain":
                    for part in ("first", "stall"):
                        rows[f"{name} {part}"].seen[library].append(found[part])
    progress("")
    return list(rows.values())


def child(library: str, what: str, *arguments: str) -> None:
    """What a process of its own does."""
    if what == "grow":
        grow(library, arguments[0])
    elif what == "serve":
        serve(library, arguments[0])
    else:
        update(library, arguments[0])


def main() -> int:
    if sys.argv[1:2] == ["--child"]:
        child(*sys.argv[2:])
        return 0
    about = "Measure how steps grow with variables, operations and clients, against TensorFlow."
    parser = parser_of(about, {name: ABOUT[kind].format(size) for name, (kind, size) in WORKS.items()})
    parser.add_argument("--write", action="store_true", help="put the table into the page of benchmarks")
    flags = parsed(parser, list(WORKS))
    rows = measure_all(flags.works or list(WORKS), flags.rounds)
    where = conditions(flags.rounds)
    print(f"{table(rows, False)}\n\n{where}\n{losses(rows)}")
    if flags.write and not flags.works:
        write_between("growth table", f"{table(rows, True)}\n\n{where}")
    return int(flags.check and not all(row.met for row in rows))


if __name__ == "__main__":
    sys.exit(main())

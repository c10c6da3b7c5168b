"""Measure how the time of a step grows with its variables and operations, and updates with the clients of a server.

    make bench
    .venv-peers/bin/python benchmarks/growth.py --rounds 3 variables1000 chain10000 clients16

Each measurement is a process of its own, the libraries in turns. `first` rows are the mean step of the first second after
the first run; the others are steps that have settled. A `stall` is the longest step after the first.
"""

from __future__ import annotations

import functools
import json
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

from cluster import addresses
from measuring import ENVIRONMENT, Job, processor_seconds, take_turns, told_by
from report import HERE, Row, conditions, losses, save, table, write_between
from run import parsed, parser_of
from works import LIBRARIES, load, session

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
    busy: list[float] = []
    began = now = time.perf_counter()
    end = began + _SETTLING_SECONDS.get(name, 5.0)
    in_first = 0
    while now < end:
        step()
        before, now = now, time.perf_counter()
        times.append(now - before)
        busy.append(time.process_time())
        if now - began <= 1.0 or len(times) == 1:
            in_first = len(times)
    count = max(len(times) // 4, 1)
    settled = sorted(times[-count:])
    first = times[:in_first]
    print(
        json.dumps(
            {
                "first": sum(first) / len(first),
                "stall": max(times),
                "seconds": settled[len(settled) // 2],
                "processors": (busy[-1] - busy[-count]) / max(count - 1, 1),
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


def measure_update(clients: int, library: str) -> dict[str, float]:
    """How long one update takes, with so many clients at it, and the processor time of server and clients for it."""
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
        everybody = [server.pid, *(client.pid for client in running)]
        busy = -sum(map(processor_seconds, everybody))
        for client in running:
            assert client.stdin is not None
            client.stdin.write("\n")
            client.stdin.flush()
        began = time.monotonic()
        time.sleep(0.8 * _UPDATING_SECONDS)  # the clients stop by themselves: read their clocks before
        busy += sum(map(processor_seconds, everybody))
        busy /= time.monotonic() - began
        made = 0
        for client in running:
            out, _ = client.communicate(timeout=_LONGEST)
            if client.returncode:
                raise RuntimeError(f"a client ended with exit status {client.returncode}")
            made += json.loads(out.strip().splitlines()[-1])["updates"]
        return {"seconds": _UPDATING_SECONDS / made, "processors": busy * _UPDATING_SECONDS / made}
    except subprocess.TimeoutExpired:
        raise RuntimeError(f"not done after {_LONGEST:.0f} s") from None
    finally:
        for process in (server, *running):
            process.kill()
            process.communicate()


def jobs_for(names: list[str]) -> list[Job]:
    """Three rows for each chain, one for all else."""
    jobs = []
    for name in names:
        kind, size = WORKS[name]
        rows = {"seconds": Row(name, ABOUT[kind].format(size), floor=FLOORS[kind])}
        if kind == "chain":
            rows["first"] = Row(f"{name} first", "the same, in the first second", floor=1.0)
            rows["stall"] = Row(f"{name} stall", "the same, the longest step after the first")
        measure = (
            functools.partial(measure_update, size)
            if kind == "clients"
            else functools.partial(measure_step, name)
        )
        jobs.append(Job(name, list(LIBRARIES), rows, measure))
    return jobs


def measure_step(name: str, library: str) -> dict[str, float]:
    return told_by([HERE / "growth.py", "--child", library, "grow", name], _LONGEST)


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
    flags = parsed(parser, list(WORKS))
    jobs = jobs_for(flags.works or list(WORKS))
    take_turns("growth", jobs, flags.rounds)
    rows = [row for job in jobs for row in job.rows.values()]
    where = conditions(flags.rounds)
    save("growth", rows, where)
    print(f"{table(rows, False)}\n\n{where}\n{losses(rows)}")
    if flags.write:
        write_between("growth table", f"{table(rows, True)}\n\n{where}")
    return int(flags.check and not all(row.met for row in rows))


if __name__ == "__main__":
    sys.exit(main())

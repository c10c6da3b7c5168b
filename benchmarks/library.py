"""Measure parameters and tables without a graph beside Ray, PyTorch and Redis.

    python benchmarks/library.py
    python benchmarks/library.py async --rounds 5
    python benchmarks/library.py table --keys 1000000

Each contender runs in processes of its own, and they take turns. Everything has one thread: the machine has few cores.

async   an MLP 784-100-10 on batches of 100: 1 parameter server, 2 workers that pull and push and wait for nobody.
        Against an actor of Ray with the weights in its object store, and a parameter server over PyTorch's RPC.
bsp     the same, and both workers push together. Against PyTorch's DistributedDataParallel over gloo.
table   one client sets 1,000 of 10 million keys and reads them. Against MSET and MGET in one pipeline of Redis.

It needs flax, optax, ray, torch, redis (with hiredis) and redis-server. One that is missing is left out and said so.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import library_peers
import numpy as np
import psutil
from library_peers import BATCH, HIDDEN, batch_of

WORKERS = 2
LONGEST = 600.0
_SECONDS, _WARM_STEPS = 4.0, 60
#: the contenders of each work, ours first, and the least ratio to each of the others
WORKS = {
    "async": {"tensorfleet": None, "ray": 5.0, "torch-rpc": 5.0},
    "bsp": {"tensorfleet": None, "torch-ddp": 1.5},
    "table": {"tensorfleet": None, "redis": 5.0},
}
_ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
    "JAX_PLATFORMS": "cpu",
    "CUDA_VISIBLE_DEVICES": "",
    "RAY_DEDUP_LOGS": "0",
    "RAY_USAGE_STATS_ENABLED": "0",
}


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as held:
        return held.getsockname()[1]


# -- what a worker does -------------------------------------------------------------------------------


def measure(step: Callable[[], object]) -> None:
    """Warms up, says so, waits for the others, and tells how long a step takes."""
    for _ in range(_WARM_STEPS):
        step()
    print("ready", flush=True)
    sys.stdin.readline()
    steps, began = 0, time.perf_counter()
    while time.perf_counter() - began < _SECONDS:
        step()
        steps += 1
    print(json.dumps({"steps": steps, "seconds": time.perf_counter() - began}), flush=True)
    sys.stdin.readline()  # stays until all are done: with "bsp" they need each other


def measure_together(step: Callable[[], object], steps: int) -> None:
    """As `measure`, with a number of steps: workers that wait for each other must make the same."""
    for _ in range(_WARM_STEPS):
        step()
    print("ready", flush=True)
    sys.stdin.readline()
    began = time.perf_counter()
    for _ in range(steps):
        step()
    print(json.dumps({"steps": steps, "seconds": time.perf_counter() - began}), flush=True)
    sys.stdin.readline()


def fleet_worker(work: str, keys: int) -> None:
    from tensorfleet import fleet

    with fleet.join() as cluster:
        if work == "table":
            table = cluster.table("weights", dim=1, merge="set")
            _fill(keys, lambda some, values: table.push(some, values))
            rng, values = np.random.default_rng(1), np.ones((1000, 1), np.float32)

            def request() -> None:
                chosen = rng.integers(0, keys, 1000)
                table.push(chosen, values)
                table.pull(chosen)

            measure(request)
            return
        import optax

        init, gradients = library_peers.flax_model()
        model = cluster.parameters(
            "model", init, optax.sgd(0.01), consistency="asp" if work == "async" else "bsp"
        )
        x, y = batch_of(cluster.rank)

        def step() -> None:
            model.push(gradients(model.pull(), x, y))

        if work == "async":
            measure(step)
        else:
            measure_together(step, 2000)


def _fill(keys: int, push: Callable[[np.ndarray, np.ndarray], object]) -> None:
    for begin in range(0, keys, 100_000):
        some = np.arange(begin, min(begin + 100_000, keys))
        push(some, np.zeros((len(some), 1), np.float32))


# -- the processes of a contender ---------------------------------------------------------------------


def processor_seconds() -> float:
    """The processor time that this process's descendants have used so far."""
    total = 0.0
    for process in psutil.Process().children(recursive=True):
        try:
            used = process.cpu_times()
        except psutil.NoSuchProcess:
            continue
        total += used.user + used.system
    return total


def drive(workers: list[subprocess.Popen[str]]) -> dict[str, float]:
    """Lets workers begin together and gathers what they tell."""
    for worker in workers:
        _line(worker, "ready")
    before = processor_seconds()
    for worker in workers:
        _say(worker)
    told = [json.loads(_line(worker, "{")) for worker in workers]
    used = processor_seconds() - before
    for worker in workers:
        _say(worker)
    steps = sum(one["steps"] for one in told)
    return {
        "seconds": statistics.mean(one["seconds"] / one["steps"] for one in told),
        "processors": used / steps,
    }


def _line(worker: subprocess.Popen[str], beginning: str) -> str:
    assert worker.stdout is not None
    for line in worker.stdout:
        if line.startswith(beginning):
            return line
    raise RuntimeError(f"a worker ended with code {worker.wait(LONGEST)}")


def _say(worker: subprocess.Popen[str]) -> None:
    assert worker.stdin is not None
    worker.stdin.write("go\n")
    worker.stdin.flush()


@contextmanager
def tasks(commands: list[tuple[list[str], dict[str, str]]]) -> Iterator[list[subprocess.Popen[str]]]:
    """Processes, which end with the block."""
    running = [
        subprocess.Popen(
            command, env={**os.environ, **more}, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for command, more in commands
    ]
    try:
        yield running
    finally:
        for process in running:
            process.kill()
            process.wait(LONGEST)


def this(*arguments: str) -> list[str]:
    return [sys.executable, __file__, *arguments]


def run_fleet(work: str, keys: int) -> dict[str, float]:
    workers = 1 if work == "table" else WORKERS
    cluster = {
        "ps": [f"127.0.0.1:{free_port()}"],
        "worker": [f"127.0.0.1:{free_port()}" for _ in range(workers)],
    }
    commands = []
    for job, addresses in cluster.items():
        for index in range(len(addresses)):
            told = json.dumps({"cluster": cluster, "task": {"type": job, "index": index}})
            commands.append((this(work, "--task", "tensorfleet", "--keys", str(keys)), {"TF_CONFIG": told}))
    with tasks(commands) as running:
        return drive(running[1:])


def run_torch(work: str, keys: int) -> dict[str, float]:
    ranks = WORKERS + (work == "async")
    more = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "WORLD_SIZE": str(ranks)}
    name = "torch-rpc" if work == "async" else "torch-ddp"
    commands = [(this(work, "--task", name), {**more, "RANK": str(rank)}) for rank in range(ranks)]
    with tasks(commands) as running:
        return drive(running[ranks - WORKERS :])


def run_redis(work: str, keys: int) -> dict[str, float]:
    port = free_port()
    server = ["redis-server", "--port", str(port), "--save", "", "--appendonly", "no", "--bind", "127.0.0.1"]
    more = {"REDIS_PORT": str(port)}
    with tasks([(server, {}), (this(work, "--task", "redis", "--keys", str(keys)), more)]) as running:
        return drive(running[1:])


def run_ray(work: str, keys: int) -> dict[str, float]:
    return library_peers.run_ray(WORKERS, _WARM_STEPS, _SECONDS, processor_seconds)


RUNS: dict[str, Callable[[str, int], dict[str, float]]] = {
    "tensorfleet": run_fleet,
    "ray": run_ray,
    "torch-rpc": run_torch,
    "torch-ddp": run_torch,
    "redis": run_redis,
}
TASKS: dict[str, Callable[[str, int], None]] = {
    "tensorfleet": fleet_worker,
    "torch-rpc": lambda work, keys: library_peers.rpc_task(WORKERS, measure),
    "torch-ddp": lambda work, keys: library_peers.ddp_task(lambda step: measure_together(step, 2000)),
    "redis": lambda work, keys: library_peers.redis_task(keys, _fill, measure),
}


# -- turns --------------------------------------------------------------------------------------------


def measured(work: str, contender: str, keys: int) -> dict[str, float] | str:
    """The result of a contender in a process of its own, or why there is none."""
    command = this(work, "--contender", contender, "--keys", str(keys))
    try:
        done = subprocess.run(
            command, env={**os.environ, **_ONE_THREAD}, capture_output=True, text=True, timeout=LONGEST
        )
    except subprocess.TimeoutExpired:
        return f"not done after {LONGEST:.0f} s"
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode or not lines:
        return (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
    found: dict[str, float] = json.loads(lines[-1])
    return found


def compare(work: str, rounds: int, keys: int) -> Iterator[dict[str, Any]]:
    """Measures the contenders of a work in turns and gives a row for each of the others."""
    seen: dict[str, list[dict[str, float]]] = {name: [] for name in WORKS[work]}
    missing: dict[str, str] = {}
    for turn in range(rounds):
        for name in list(seen)[:: -1 if turn % 2 else 1]:
            if name in missing:
                continue
            result = measured(work, name, keys)
            if isinstance(result, str):
                missing[name] = result
            else:
                seen[name].append(result)
                print(f"  {work}, round {turn + 1}: {name} {result['seconds'] * 1e6:.0f} us", file=sys.stderr)
    for name, floor in WORKS[work].items():
        if name in missing:
            print(f"{work}: {name} is left out: {missing[name]}", file=sys.stderr)
        elif floor is not None and seen["tensorfleet"]:
            pairs = list(zip(seen["tensorfleet"], seen[name], strict=True))
            yield {
                "work": work,
                "against": name,
                "ours": statistics.median(a["seconds"] for a, _ in pairs),
                "theirs": statistics.median(b["seconds"] for _, b in pairs),
                "ratio": statistics.median(b["seconds"] / a["seconds"] for a, b in pairs),
                "by processors": statistics.median(b["processors"] / a["processors"] for a, b in pairs),
                "floor": floor,
            }


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("works", nargs="*", metavar="work", help=f"of {', '.join(WORKS)} (default: all)")
    parser.add_argument("--rounds", type=int, default=3, help="times each is measured (default: 3)")
    parser.add_argument(
        "--keys", type=int, default=10_000_000, help="keys of the table (default: 10 million)"
    )
    parser.add_argument("--check", action="store_true", help="exit with 1 if a ratio is below its floor")
    parser.add_argument("--contender", choices=RUNS, help=argparse.SUPPRESS)
    parser.add_argument("--task", choices=TASKS, help=argparse.SUPPRESS)
    flags = parser.parse_args()
    for work in flags.works:
        if work not in WORKS:
            parser.error(f"there is no work {work}; choose from {', '.join(WORKS)}")
    if flags.task:
        TASKS[flags.task](flags.works[0], flags.keys)
        return 0
    if flags.contender:
        print(json.dumps(RUNS[flags.contender](flags.works[0], flags.keys)))
        return 0
    rows = [row for work in flags.works or WORKS for row in compare(work, flags.rounds, flags.keys)]
    print(
        f"MLP 784-{HIDDEN}-10 on batches of {BATCH}, 1 server, {WORKERS} workers; a table of {flags.keys:,} keys"
    )
    print("| work | against | ours, us | theirs, us | ratio | by processors | at least |")
    print("|---|---|--:|--:|--:|--:|--:|")
    for row in rows:
        print(
            f"| {row['work']} | {row['against']} | {row['ours'] * 1e6:.0f} | {row['theirs'] * 1e6:.0f} | "
            f"{row['ratio']:.2f} | {row['by processors']:.2f} | {row['floor']} |"
        )
    folder = Path(__file__).resolve().parent.parent / "build" / "bench"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "library.json").write_text(json.dumps(rows, indent=1))
    return int(flags.check and any(row["ratio"] < row["floor"] for row in rows))


if __name__ == "__main__":
    sys.exit(main())

"""Measure PyTorch's DistributedDataParallel over gloo on the model of the work `sync` of cluster.py.

    python benchmarks/ddp.py
    python benchmarks/ddp.py --hidden 200

Two processes of this machine train 784-100-10 on batches of 100 and average their gradients in every step, as two
workers of `sync` do. Each has one thread, its share of two cores. It needs PyTorch, which no other benchmark does:
`pip install torch` (the build for CPUs is enough).
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

import numpy as np

WORKERS = 2
_STEPS, _WARM_STEPS, _BLOCKS = 200, 20, 3
_LONGEST = 300.0


def train(index: int, hidden: int, port: int) -> None:
    """One of the processes: prints the seconds that a step takes."""
    import torch
    import torch.distributed as dist

    torch.set_num_threads(max((os.cpu_count() or 1) // WORKERS, 1))
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    dist.init_process_group("gloo", rank=index, world_size=WORKERS)
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(784, hidden), torch.nn.ReLU(), torch.nn.Linear(hidden, 10))
    replica = torch.nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.SGD(replica.parameters(), 0.01)
    loss_of = torch.nn.CrossEntropyLoss()
    r = np.random.RandomState(index)
    x = torch.from_numpy(r.rand(100, 784).astype("f"))
    y = torch.from_numpy(np.eye(10, dtype="f")[r.randint(0, 10, 100)])

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        loss_of(replica(x), y).backward()
        optimizer.step()

    for _ in range(_WARM_STEPS):
        step()
    best = []
    for _ in range(_BLOCKS):
        began = time.perf_counter()
        for _ in range(_STEPS):
            step()
        best.append((time.perf_counter() - began) / _STEPS)
    print(json.dumps({"seconds": min(best)}), flush=True)
    dist.destroy_process_group()


def seconds_of_a_step(hidden: int = 100) -> float:
    """Seconds per step, the mean over the processes."""
    with socket.create_server(("127.0.0.1", 0)) as held:
        port = held.getsockname()[1]
    command = [sys.executable, __file__, "--hidden", str(hidden), "--port", str(port), "--index"]
    running = [
        subprocess.Popen([*command, str(i)], stdout=subprocess.PIPE, text=True) for i in range(WORKERS)
    ]
    try:
        outputs = [process.communicate(timeout=_LONGEST)[0] for process in running]
    finally:
        for process in running:
            process.kill()
            process.wait()
    return statistics.mean(json.loads(out.strip().splitlines()[-1])["seconds"] for out in outputs)


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure DistributedDataParallel of PyTorch over gloo.")
    parser.add_argument("--hidden", type=int, default=100, help="hidden units of the network")
    parser.add_argument("--index", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--port", type=int, help=argparse.SUPPRESS)
    flags = parser.parse_args()
    if flags.index is not None:
        train(flags.index, flags.hidden, flags.port)
        return
    seconds = seconds_of_a_step(flags.hidden)
    print(
        f"DistributedDataParallel, gloo, two processes, 784-{flags.hidden}-10: {seconds * 1e6:.0f} us for a step"
    )


if __name__ == "__main__":
    main()

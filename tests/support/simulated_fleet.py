"""A cluster that exists as arithmetic: its tasks answer topic `stats` with counters that grow with the time.

ps/0 holds one large variable and is hot, worker/1 is a straggler. As a program it serves the page of this cluster:

    python -m tests.support.simulated_fleet --ps 2 --workers 3 --port 8765
"""

from __future__ import annotations

import argparse
import math
import tempfile
import time
from pathlib import Path

from tensorfleet.base import errors
from tensorfleet.cluster.inspection.topics import Report

_PULL_BYTES = 4_000_000  # per step, of the large variable


class SimulatedFleet:
    """The tasks, and what they would answer at a time."""

    def __init__(self, ps=2, workers=3, started=None, clock=time.time, hot=True, slow=True):
        self.ps, self.workers, self.hot, self.slow = ps, workers, hot, slow
        self.clock = clock
        self.started = clock() if started is None else started
        self.silent, self.gone, self.restarted = set(), set(), {}
        self.questions = []

    @property
    def labels(self):
        return [f"ps/{i}" for i in range(self.ps)] + [f"worker/{i}" for i in range(self.workers)]

    def connect(self, label, address):
        return _Asker(self, label)

    def ask(self, label, address, topic, options=None, seconds=10.0):
        """As `tensorfleet.cluster.inspection.ask.ask`."""
        self.questions.append((label, topic, dict(options or {})))
        if label in self.gone:
            raise errors.UnavailableError(None, None, f"{label} cannot be reached: Connection refused.")
        if label in self.silent:
            raise errors.DeadlineExceededError(None, None, f"{label} did not answer within {seconds:g} s.")
        if topic == "stats":
            return Report(self.stats(label))
        if topic == "stacks":
            frame = {"file": "train.py", "line": 12, "function": "main", "code": "sess.run(train_op)"}
            thread = {
                "name": "MainThread",
                "id": 1,
                "step": "step 7",
                "waits_for": "ps/0",
                "since_seconds": 0.2,
            }
            return Report({"threads": [thread | {"frames": [frame]}]})
        if topic == "settings":
            setting = {"name": "TENSORFLEET_WIRE", "value": label, "default": "", "source": "environment"}
            return Report({"settings": [setting | {"purpose": "", "problem": None}]})
        if topic == "graph":
            node = {"name": f"{label}/x", "op": "Add", "device": "", "inputs": [], "line": None}
            return Report(
                {"version": "1", "sessions": [{"session": "s", "graph": [node]}], "left_out": 0}
                if dict(options or {}).get("unless") != "1"
                else {"version": "1", "is_unchanged": True}
            )
        raise errors.InvalidArgumentError(
            None, None, f"No topic {topic!r} to inspect. There are graph, settings, stacks, stats."
        )

    def stats(self, label, now=None):
        """The report of a task."""
        now = self.clock() if now is None else now
        job, index = label.split("/")[0], int(label.split("/")[1])
        began = self.restarted.get(label, self.started)
        age = max(now - began, 0.0)
        report = {
            "version": 1,
            "task": label,
            "incarnation": int(began * 1000) % 2**31 + 1,
            "time": now,
            "started": began,
            "host": "simulated",
            "pid": 1000 + index,
            "process": {
                "cpu_seconds": age * (0.4 + 0.1 * (index % 5)),
                "memory_bytes": int(4e8 + 1e7 * (index % 7) + 2e6 * math.sin(now / 9)),
                "cores": 4,
                "threads": 12,
            },
            "peers": [],
            "variables": [],
            "queues": [],
            "shards": [{"name": "input", "held": 3, "finished": int(now), "dealt_again": 1}],
            "staleness": [],
            "scalars": {},
            "under_way": [],
            "variable_count": 0,
            "variable_bytes": 0,
            "last_error": None,
            "steps": {"count": 0, "failed": 0, "seconds": 0.0, "global_step": self._total(now), "parts": {}},
            "server": {
                "requests": 0,
                "sent_bytes": 0,
                "received_bytes": 0,
                "busy_seconds": 0.0,
                "updates": 0,
                "clients": 0,
            },
        }
        return report | (self._server(index, now) if job == "ps" else self._worker(index, age, now))

    def rate(self, index):
        """Steps per second of a worker."""
        return 10.0 / 3.2 if self.slow and index == 1 else 10.0 + index % 3 * 0.4

    def _total(self, now):
        return int(sum(self.rate(i) for i in range(self.workers)) * max(now - self.started, 0.0))

    def _share(self, server):
        """Of a step's bytes, the part of a server."""
        if not self.hot:
            return 1.0 / self.ps
        return 0.71 if server == 0 and self.ps > 1 else (0.29 / (self.ps - 1) if self.ps > 1 else 1.0)

    def _worker(self, index, age, now):
        steps = self.rate(index) * age
        seconds = 1.0 / self.rate(index)
        parts = {"input": 0.01, "pull": 0.02, "push": 0.015, "wait": 0.005}
        parts["compute"] = seconds - sum(parts.values())
        return {
            "steps": {
                "count": int(steps),
                "failed": 0,
                "seconds": steps * seconds,
                "global_step": self._total(now),
                "parts": {part: value * steps for part, value in parts.items()},
            },
            "peers": [
                {
                    "task": f"ps/{i}",
                    "requests": int(steps * 2),
                    "sent_bytes": int(steps * _PULL_BYTES * self._share(i) * 0.5),
                    "received_bytes": int(steps * _PULL_BYTES * self._share(i) * 0.5),
                    "waited_seconds": steps * 0.01,
                }
                for i in range(self.ps)
            ],
            "queues": [
                {
                    "name": "batch/fifo_queue",
                    "kind": "FIFOQueue",
                    "size": int(16 + 8 * math.sin(now / 3 + index)),
                    "capacity": 32,
                    "enqueued": int(steps * 32),
                    "dequeued": int(steps * 32),
                    "enqueue_wait_seconds": age * 0.1,
                    "dequeue_wait_seconds": age * 0.02,
                }
            ],
            "scalars": {
                "loss": [self._total(now), 2.3 * math.exp(-self._total(now) / 3000) + 0.05 * math.sin(now)],
                "accuracy": [self._total(now), 1 - math.exp(-self._total(now) / 2000)],
            },
        }

    def _server(self, index, now):
        steps = sum(self.rate(i) for i in range(self.workers)) * max(now - self.started, 0.0)
        moved = steps * _PULL_BYTES * self._share(index) * 0.5
        names = {"embeddings": 4e8} if index == 0 and self.hot else {"dense/kernel": 8e6, "dense/bias": 4e3}
        share = {name: size / sum(names.values()) for name, size in names.items()}
        return {
            "server": {
                "requests": int(steps * 2),
                "sent_bytes": int(moved),
                "received_bytes": int(moved),
                "busy_seconds": steps * 0.012 * self._share(index),
                "updates": int(steps),
                "clients": self.workers,
            },
            "variables": [
                {
                    "name": name,
                    "dtype": "float32",
                    "shape": [int(size / 400), 100],
                    "bytes": int(size),
                    "version": int(steps),
                    "reads": int(steps),
                    "updates": int(steps),
                    "read_bytes": int(moved * share[name]),
                    "update_bytes": int(moved * share[name]),
                }
                for name, size in names.items()
            ],
            "variable_count": len(names),
            "variable_bytes": int(sum(names.values())),
            "staleness": [
                {
                    "worker": f"worker/{i}",
                    "counts": {
                        str(age): int(self.rate(i) * max(now - self.started, 0) * 0.5**age)
                        for age in range(1, 6)
                    },
                    "dropped": 0,
                }
                for i in range(self.workers)
            ],
        }


class _Asker:
    def __init__(self, fleet, label):
        self._fleet, self._label = fleet, label

    def ask(self, topic, options=None, seconds=10.0):
        return self._fleet.ask(self._label, "", topic, options, seconds)

    def close(self):
        pass


def main():
    """Serves the page of a simulated cluster until Ctrl-C."""
    from tensorfleet.cli.dashboard.collector import StatsCollector
    from tensorfleet.cli.dashboard.server import PageServer, listen, place_of
    from tensorfleet.cli.dashboard.sources import LiveRun, RunFacts
    from tensorfleet.cli.dashboard.store import StatsStore

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ps", type=int, default=2)
    parser.add_argument("--workers", type=int, default=3)
    parser.add_argument("--port", default="0")
    parser.add_argument("--key")
    args = parser.parse_args()
    fleet = SimulatedFleet(args.ps, args.workers)
    logs = Path(tempfile.mkdtemp(prefix="tensorfleet-simulated-"))
    collector = StatsCollector(fleet.connect)
    for i, label in enumerate(fleet.labels):
        collector.update(label, f"127.0.0.1:{2222 + i}", 1000 + i, "running")
        (logs / f"{label.replace('/', '-')}.log").write_text(f"started {label}\n<script>alert(1)</script>\n")
    run = LiveRun(
        RunFacts("simulated", "train.py", logs), collector, StatsStore(logs / "stats.sqlite"), fleet.ask
    )
    page = listen(place_of(args.port), args.key)
    server = PageServer(run, page)
    run.start()
    server.start()
    print(page.address, flush=True)
    try:
        while not server.wait(1.0):
            pass
    except KeyboardInterrupt:
        server.stop()
    run.stop()


if __name__ == "__main__":
    main()

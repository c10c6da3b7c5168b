"""A run that does not exist, in the shape of the page's `/api/*`: for tests of the page and for its pictures.

    python -m tensorfleet.cli.dashboard.simulated --ps 20 --workers 180 --port 8080

Every number follows from the seed and the clock: the same moment always looks the same. One server is hot, one worker
is slow, one waits for its input, losses fall, and a task dies when `kill` says so.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from tensorfleet.cli.dashboard import simulated_topics as topics
from tensorfleet.cli.dashboard.kept import KEPT
from tensorfleet.cli.dashboard.simulated_findings import findings
from tensorfleet.cli.dashboard.sources import Unavailable

Json = dict[str, Any]
Numbers = npt.NDArray[np.float64]

_STEPS_PER_SECOND = 14.0  # of an ordinary worker
_BYTES_PER_STEP = 2.4e6  # that a worker pulls; it pushes a little less
_HISTORY_SECONDS = 900
_MAX_POINTS = 600  # of a series; longer times are thinned, as the store of a real run does
_PARTS = ("input", "pull", "compute", "push", "wait")
_ORDINARY = (0.07, 0.19, 0.46, 0.16, 0.12)
_SLOW = (0.05, 0.09, 0.72, 0.08, 0.06)
_HUNGRY = (0.62, 0.08, 0.18, 0.07, 0.05)

HOSTILE = "<script>window.hacked = 1</script><img src=x onerror='window.hacked = 1'>"


class SimulatedRun:
    """Answers what the page asks, as the server of a real run does.

    `hostile` puts HTML into every text that comes from a run: the page must show it as text.
    """

    def __init__(
        self,
        ps: int = 2,
        workers: int = 3,
        *,
        seed: int = 1,
        hostile: bool = False,
        history: float = _HISTORY_SECONDS,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.servers = [f"ps/{i}" for i in range(ps)]
        self.workers = [f"worker/{i}" for i in range(workers)]
        self.labels = [*self.servers, *self.workers]
        self.hot = self.servers[0] if ps > 1 else None
        self.slow = self.workers[-1] if workers > 1 else None
        self.hungry = self.workers[1] if workers > 2 else None
        self.text = HOSTILE if hostile else ""
        self.started = clock() - history
        self.ended: float | None = None
        self.exit_code: int | None = None
        self._clock = clock
        self._seed = seed
        self._deaths: dict[str, float] = {}
        self._silent: set[str] = set()
        self._number = {label: i for i, label in enumerate(self.labels)}

    # -- what may happen to the run ------------------------------------------------------------------

    def kill(self, label: str) -> None:
        """The task dies now."""
        self._deaths.setdefault(label, self._clock())

    def silence(self, label: str) -> None:
        """The task stops answering questions from now on."""
        self._silent.add(label)

    def finish(self, exit_code: int = 0) -> None:
        """The run ends now."""
        self.ended, self.exit_code = self._clock(), exit_code

    # -- what the page asks --------------------------------------------------------------------------

    def describe(self) -> Json:
        """`/api/run`."""
        return {
            "name": "ctr-embeddings" + self.text,
            "script": "train.py" + self.text,
            "started": self.started,
            "ended": self.ended,
            "is_live": self.ended is None,
            "exit_code": self.exit_code,
            "tasks": [self._task(label) for label in self.labels],
            "settings": topics.settings(self.text),
            "events": self._events(),
        }

    def now(self) -> Json:
        """`/api/now`."""
        now = self._now()
        loads = {label: self._load(label, now) for label in self.servers}
        mean = sum(loads.values()) / max(len(loads), 1)
        hottest = max(loads, key=lambda label: loads[label], default=None)
        return {
            "time": now,
            "tasks": {label: self._numbers(label, now) for label in self.labels},
            "traffic": self._traffic(now),
            "servers": {
                "load": loads,
                "hottest": hottest,
                "hottest_to_mean": loads[hottest] / mean if hottest and mean else None,
            },
            "staleness": [self._staleness(label, now) for label in self.workers],
            "queues": self._queues(now),
            "variables": topics.variables(self.servers, self._shares(), self._pull_rate(now), now, self.text),
            "findings": findings(self, now, self.text),
        }

    def series(self, seconds: float = 600, since: float = 0) -> Json:
        """`/api/series`."""
        now = math.floor(self._now())
        first = max(now - int(seconds), math.ceil(self.started))
        if since:
            first = max(first, math.floor(since) + 1)
        every = 1 if since else max(1, math.ceil((now - first) / _MAX_POINTS))
        times = np.arange(first, now + 1, every, dtype=np.float64)
        steps = self._global_step(times)
        shape = 1.35 * np.exp(-steps / (self._full_rate() * 500)) + 0.21
        loss = shape * (1 + 0.05 * (self._noise("loss", times) - 0.5))
        loads = {label: self._load_series(label, times) for label in self.servers}
        return {
            "times": times.tolist(),
            "series": {
                "global_step": steps.astype(int).tolist(),
                "loss": {
                    "loss": _rounded(loss),
                    "auc" + self.text: _rounded(0.93 - 0.3 * shape + 0.01 * self._noise("auc", times)),
                },
                "steps_per_second": {w: _rounded(self._rate(w, times)) for w in self.workers},
                "memory_bytes": {t: _rounded(self._memory(t, times)) for t in self.labels},
                "cpu_percent": {t: _rounded(self._cpu(t, times)) for t in self.labels},
                "server_bytes_per_second": {t: _rounded(load) for t, load in loads.items()},
            },
        }

    def log_lines(self, label: str, tail: int = 200) -> list[str]:
        """`/api/logs/TASK`. Raises KeyError for an unknown task."""
        now, number = int(self._now()), self._number[label]
        lines = [
            topics.log_line(label, number, second, self.text) for second in range(now - tail + 1, now + 1)
        ]
        return [*lines[:-1], lines[-1] + self.text]

    def inspect(self, label: str, topic: str, options: Mapping[str, Any]) -> Json:
        """`/api/inspect/TASK/TOPIC`. Raises KeyError for an unknown task, `Unavailable` if it refuses."""
        if label not in self._number:
            raise KeyError(label)
        if self.ended is not None and topic in KEPT:
            return {**self._told(label, topic, options), "kept_at": self.ended}
        if self.state(label) != "running":
            raise Unavailable(f"{label} does not answer: it is {self.state(label)}.")
        return self._told(label, topic, options)

    def _told(self, label: str, topic: str, options: Mapping[str, Any]) -> Json:
        if topic == "stacks":
            return topics.stacks(label, self.servers[0] if self.servers else "ps/0", self.text)
        if topic == "graph":
            return topics.graph(self.servers, self.workers, self.text)
        if topic == "profile":
            return topics.profile(float(options.get("seconds", 5)), self.text)
        if topic == "stats":
            now = self._now()
            every = topics.variables(self.servers, self._shares(), self._pull_rate(now), now, self.text)
            return {"variables": [variable for variable in every if variable["task"] == label]}
        if topic == "settings":
            return topics.task_settings(label, self.text)
        if topic == "watch":
            return topics.watch(label, options)
        if topic == "watch_take":
            return topics.watch_take(str(options.get("id", "")))
        raise Unavailable(
            f"{label} has no topic {topic!r}. There are graph, profile, settings, stacks, stats, watch."
        )

    def metrics(self) -> str:
        """`/metrics`: nothing, because nothing is measured."""
        return "# A simulated run.\n"

    def stop(self) -> None:
        """Nothing is open."""

    def trace(self, steps: int) -> Json:
        """`/api/trace`."""
        return topics.trace(self.servers[:8], self.workers[:12], steps, self.slow)

    # -- one task ------------------------------------------------------------------------------------

    def state(self, label: str) -> str:
        """The task's state, as the page shows it."""
        if label in self._deaths:
            return "dead"
        if self.ended is not None:
            return "ended" if not self.exit_code else "failed"
        return "silent" if label in self._silent else "running"

    def fractions(self, label: str, now: float) -> dict[str, float]:
        """How a worker's step divides into its parts; empty for a server."""
        if label not in self.workers or self.state(label) != "running":
            return {}
        means = _SLOW if label == self.slow else _HUNGRY if label == self.hungry else _ORDINARY
        moment = np.array([now])
        weights = [
            mean * (0.9 + 0.2 * float(self._noise(label + part, moment)[0]))
            for part, mean in zip(_PARTS, means, strict=True)
        ]
        return {part: round(weight / sum(weights), 4) for part, weight in zip(_PARTS, weights, strict=True)}

    def died(self, label: str) -> float:
        """When a dead task died."""
        return self._deaths[label]

    def share_of_hot(self) -> float:
        """The share of all bytes that the hot server carries."""
        return float(self._shares()[0]) if self.hot else 0.0

    def last_words(self, label: str) -> list[str] | None:
        """The last lines of a dead task."""
        if label not in self._deaths:
            return None
        return [
            f'  File "train.py", line {84 + self._number[label]}, in train' + self.text,
            "    _, step = sess.run([train_op, global_step])",
            "Killed by signal SIGKILL (9)." + self.text,
        ]

    def _task(self, label: str) -> Json:
        job, _, index = label.partition("/")
        number = self._number[label]
        return {
            "label": label,
            "job": job,
            "index": int(index),
            "state": self.state(label),
            "pid": 41000 + number,
            "address": f"10.0.{number // 200}.{number % 200 + 10}:2222",
            "host": f"node-{number // 8:02d}",
            "uptime_seconds": self._uptime(label),
            "last_words": self.last_words(label),
        }

    def _events(self) -> list[Json]:
        rows: list[Json] = [
            {"time": self.started, "kind": "run", "task": None, "text": "started" + self.text}
        ]
        for label, died in self._deaths.items():
            rows.append({"time": died, "kind": "task", "task": label, "text": "dead with code -9"})
        if self.ended is not None:
            rows.append(
                {"time": self.ended, "kind": "run", "task": None, "text": f"ended with code {self.exit_code}"}
            )
        return rows

    def _uptime(self, label: str) -> float:
        return round(min(self._now(), self._deaths.get(label, math.inf)) - self.started, 1)

    def _numbers(self, label: str, now: float) -> Json:
        is_worker = label in self.workers
        is_running = self.state(label) == "running"
        moment = np.array([now])
        load = self._load(label, now) if not is_worker else self._worker_bytes(label, now)
        return {
            "state": self.state(label),
            "uptime_seconds": self._uptime(label),
            "steps_per_second": _one(self._rate(label, moment)) if is_worker and is_running else None,
            "memory_bytes": _one(self._memory(label, moment)) if is_running else None,
            "cpu_percent": _one(self._cpu(label, moment)) if is_running else None,
            "global_step": int(self._global_step(moment)[0]) if is_worker else None,
            "is_straggler": label == self.slow and is_running,
            "parts": self.fractions(label, now),
            "between_fraction": 0.04 if is_worker and is_running else None,
            "seconds_per_step": _one(1.0 / self._rate(label, moment)) if is_worker and is_running else None,
            "requests_per_second": None if is_worker else round(load / 1.1e5, 1),
            "busy_fraction": None if is_worker else round(min(load / (self._pull_rate(now) * 0.9), 0.97), 3),
            "updates_per_second": None if is_worker else round(self._total_rate(now), 1),
            "sent_bytes_per_second": round(load * 0.55),
            "received_bytes_per_second": round(load * 0.45),
            "last_error": {"time": now - 95, "text": "Timed out after 5 s waiting for ps/0." + self.text}
            if label == self.slow
            else None,
        }

    # -- numbers over time ---------------------------------------------------------------------------

    def _now(self) -> float:
        return self._clock() if self.ended is None else self.ended

    def _noise(self, key: str, times: Numbers) -> Numbers:
        """Between 0 and 1, smooth, the same for the same key and times."""
        phase = (sum(map(ord, key)) * 7 + self._seed * 13) % 997
        slow = np.sin(times / 17 + phase) * np.sin(times / 7.3 + phase * 1.7)
        fast = np.modf(np.abs(np.sin(np.floor(times) * 12.9898 + phase) * 43758.5453))[0]
        result: Numbers = 0.5 + 0.28 * slow + 0.3 * (fast - 0.5)
        return result

    def _while_alive(self, label: str, times: Numbers, values: Numbers) -> Numbers:
        return np.where(times < self._deaths.get(label, math.inf), values, np.nan)

    def _mean_rate(self, label: str) -> float:
        if label == self.slow:
            return _STEPS_PER_SECOND * 0.34
        return _STEPS_PER_SECOND * (0.62 if label == self.hungry else 1 + 0.02 * (self._number[label] % 5))

    def _rate(self, label: str, times: Numbers) -> Numbers:
        values = self._mean_rate(label) * (0.9 + 0.2 * self._noise(label, times))
        return self._while_alive(label, times, values)

    def _full_rate(self) -> float:
        return sum(map(self._mean_rate, self.workers))

    def _total_rate(self, now: float) -> float:
        return sum(self._mean_rate(w) for w in self.workers if self._deaths.get(w, math.inf) > now)

    def _global_step(self, times: Numbers) -> Numbers:
        steps = np.zeros_like(times)
        for worker in self.workers:
            steps += self._mean_rate(worker) * (
                np.minimum(times, self._deaths.get(worker, math.inf)) - self.started
            )
        return np.floor(steps)

    def _memory(self, label: str, times: Numbers) -> Numbers:
        full = 2.6e9 if label == self.hot else 7.1e8 if label in self.servers else 9.4e8
        grown = full * (1 - 0.4 * np.exp(-(times - self.started) / 120))
        return self._while_alive(label, times, grown * (0.99 + 0.02 * self._noise(label + "m", times)))

    def _cpu(self, label: str, times: Numbers) -> Numbers:
        mean = 168 if label == self.hot else 46 if label in self.servers else 122
        mean = 41 if label in (self.slow, self.hungry) else mean
        return self._while_alive(label, times, mean * (0.85 + 0.3 * self._noise(label + "c", times)))

    def _shares(self) -> Numbers:
        """Which part of a step's bytes each server carries: the first has the big variable."""
        weights = np.array([0.8 + 0.4 * (i * 7 % 11) / 11 for i in range(len(self.servers))])
        if self.hot:
            weights[0] = 2.6 + 0.09 * len(weights) ** 1.3
        shares: Numbers = weights / max(float(weights.sum()), 1e-9)
        return shares

    def _pull_rate(self, now: float) -> float:
        return self._total_rate(now) * _BYTES_PER_STEP * 1.8

    def _load_series(self, label: str, times: Numbers) -> Numbers:
        share = self._shares()[self._number[label]]
        values = share * self._pull_rate(self._now()) * (0.93 + 0.14 * self._noise(label, times))
        return self._while_alive(label, times, values)

    def _load(self, label: str, now: float) -> float:
        load = float(self._load_series(label, np.array([now]))[0])
        return 0.0 if math.isnan(load) else round(load)

    def _worker_bytes(self, label: str, now: float) -> float:
        rate = float(self._rate(label, np.array([now]))[0])
        return 0.0 if math.isnan(rate) else rate * _BYTES_PER_STEP * 1.8

    def _traffic(self, now: float) -> list[Json]:
        shares, rows = self._shares(), []
        for worker in self.workers:
            total = self._worker_bytes(worker, now)
            for server, share in zip(self.servers, shares, strict=True):
                if total and self.state(server) == "running":
                    rows.append(_flow((worker, server), total * share, total / 9e5))
        return rows

    def _staleness(self, label: str, now: float) -> Json:
        mean = len(self.workers) * (2.2 if label == self.slow else 0.8)
        steps = self._mean_rate(label) * (now - self.started)
        counts = {}
        for k in range(int(mean * 3) + 2):
            count = steps * math.exp(-((k - mean) ** 2) / (mean * 1.6 + 0.5)) / math.sqrt(mean * 5.1 + 1)
            if count >= 1:
                counts[str(k)] = int(count)
        return {"worker": label, "counts": counts, "dropped": int(steps / 60) if label == self.slow else 0}

    def _queues(self, now: float) -> list[Json]:
        rows: list[Json] = []
        for worker in self.workers[:40]:
            fill = 2 if worker == self.hungry else 20 + 12 * self._noise(worker + "q", np.array([now]))[0]
            rows.append(
                {
                    "task": worker,
                    "name": "input/shuffle_batch" + self.text,
                    "kind": "RandomShuffleQueue",
                    "size": int(fill),
                    "capacity": 32,
                    "enqueued_per_second": self._mean_rate(worker),
                    "dequeued_per_second": self._mean_rate(worker),
                    "enqueue_waits": 0.004 if worker == self.hungry else 0.31,
                    "dequeue_waits": 0.61 if worker == self.hungry else 0.002,
                }
            )
        return rows


def _flow(ends: tuple[str, str], bytes_per_second: float, requests: float) -> Json:
    return {
        "from": ends[0],
        "to": ends[1],
        "bytes_per_second": round(bytes_per_second),
        "requests_per_second": round(requests, 1),
    }


def _one(values: Numbers) -> float | None:
    return _rounded(values)[0]


def _rounded(values: Numbers) -> list[float | None]:
    """Four digits, as a server would send; None where there is no number."""
    return [None if math.isnan(value) else float(f"{value:.4g}") for value in values.tolist()]


if __name__ == "__main__":
    from tensorfleet.cli.dashboard.simulated_server import main

    main()

"""`tf.test.Benchmark`: operations timed the way TensorFlow's own benchmarks are.

A script that ends in `tf.test.main()` runs its benchmarks instead of its tests with `--benchmarks=all`, or with a
pattern for the names of those to run.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from tensorfleet.base import logging
from tensorfleet.base.platform.app import run
from tensorfleet.base.protos import ConfigProto


def benchmark_config() -> Any:
    """The session options benchmarks run with."""
    return ConfigProto()


# Every class of benchmarks that was defined.
GLOBAL_BENCHMARK_REGISTRY: set[type] = set()


def _run_benchmarks(regex: str) -> None:
    """Runs the benchmarks in whose `module.Class.method` a pattern is found; `all` are all of them."""
    for kind in sorted(GLOBAL_BENCHMARK_REGISTRY, key=lambda k: k.__qualname__):
        methods = [
            name for name in dir(kind) if name.startswith("benchmark") and callable(getattr(kind, name))
        ]
        full = f"{kind.__module__}.{kind.__name__}"
        chosen = [name for name in methods if regex == "all" or re.search(regex, f"{full}.{name}")]
        result = kind() if chosen else None
        for name in chosen:
            getattr(result, name)()


def benchmarks_main(true_main: Callable[[], Any], argv: list[str] | None = None) -> None:
    """Runs the benchmarks that `--benchmarks=PATTERN` asks for, or, without it, `true_main`."""
    given = sys.argv if argv is None else argv
    asked = next((arg for arg in given if re.match("--?benchmarks=", arg)), None)
    if asked is None:
        true_main()
        return
    given.remove(asked)
    run(lambda _: _run_benchmarks(asked.partition("=")[2]), argv=given)


class Benchmark:
    """A class whose methods named `benchmark...` time something and report it."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        GLOBAL_BENCHMARK_REGISTRY.add(cls)

    def __init__(self) -> None:
        self.reported: list[dict[str, Any]] = []

    @classmethod
    def is_abstract(cls) -> bool:
        """Whether this is the base class itself."""
        return cls is Benchmark

    def report_benchmark(
        self,
        iters: int | None = None,
        cpu_time: float | None = None,
        wall_time: float | None = None,
        throughput: float | None = None,
        extras: dict[str, Any] | None = None,
        name: str | None = None,
        metrics: Any = None,
    ) -> None:
        """Keeps one result, and logs it."""
        result = dict(iters=iters, cpu_time=cpu_time, wall_time=wall_time, throughput=throughput)
        entry = {"name": name or type(self).__name__, **result, "extras": extras or {}, "metrics": metrics}
        self.reported.append(entry)
        logging.get_logger().info("Benchmark [%s]: %s", entry["name"], entry)

    def run_op_benchmark(
        self,
        sess: Any,
        op_or_tensor: Any,
        feed_dict: Any = None,
        burn_iters: int = 2,
        min_iters: int = 10,
        store_trace: bool = False,
        store_memory_usage: bool = True,
        name: str | None = None,
        extras: dict[str, Any] | None = None,
        mbs: float = 0,
    ) -> dict[str, Any]:
        """Runs an operation many times and reports the median time of one run."""
        target = getattr(op_or_tensor, "op", op_or_tensor)
        for _ in range(burn_iters):
            sess.run(target, feed_dict)
        times = []
        for _ in range(min_iters):
            start = time.perf_counter()
            sess.run(target, feed_dict)
            times.append(time.perf_counter() - start)
        median = float(np.median(times)) if times else -1.0
        throughput = mbs / median if mbs and median > 0 else None
        spread = (
            {"wall_time_mean": float(np.mean(times)), "wall_time_stdev": float(np.std(times))}
            if times
            else {}
        )
        result: dict[str, Any] = {
            "iters": min_iters,
            "wall_time": median,
            "throughput": throughput,
            "extras": {**(extras or {}), **spread},
        }
        self.report_benchmark(name=name, **result)
        return {"name": name or type(self).__name__, **result}

    def evaluate(self, tensors: Any) -> Any:
        """The values of tensors in the default session, or in a new one."""
        from tensorfleet.graph.scopes import get_default_session
        from tensorfleet.session.session import Session

        session = get_default_session()
        if session is not None:
            return session.run(tensors)
        with Session() as fresh:
            return fresh.run(tensors)

"""Time the ops of the library one by one against TensorFlow's, at sizes where arithmetic dominates.

    make bench
    .venv-peers/bin/python benchmarks/ops.py --rounds 7 "sort*" top_k
    .venv-peers/bin/python benchmarks/ops.py --below 0.67

Both libraries run in this process and take turns; the best of all rounds counts, since a busy machine only
ever makes a run slower. Each is timed by the clock and by the processor time that all its threads took together,
which says more on a busy machine. A ratio above 1 means that TensorFleet is faster. Worst first, by the clock.
"""

from __future__ import annotations

import argparse
import fnmatch
import os
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")

import numpy as np
import op_host
import op_math
import op_nn

OPS = op_math.OPS | op_nn.OPS | op_host.OPS
NEVER = np.array([np.inf, np.inf])


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
        for _ in range(3):
            self._run(*inputs)

    def time(self, least: float) -> np.ndarray:
        """The best of the runs that fit into so many seconds: by the clock, and of the processors."""
        best, end = NEVER, time.perf_counter() + least
        while True:
            busy, start = time.process_time(), time.perf_counter()
            self._run(*self._inputs)
            now = time.perf_counter()
            best = np.minimum(best, (now - start, time.process_time() - busy))
            if now > end:
                return best

    def close(self) -> None:
        self._session.close()


def measure(libraries: dict[str, Any], name: str, rounds: int, seconds: float) -> dict[str, np.ndarray]:
    """The best times of an op in each library."""
    call, inputs = OPS[name]
    runners = {key: Runner(tf, call, inputs) for key, tf in libraries.items()}
    best = dict.fromkeys(runners, NEVER)
    for _ in range(rounds):
        for key, runner in runners.items():
            best[key] = np.minimum(best[key], runner.time(seconds))
    for runner in runners.values():
        runner.close()
    return best


def main() -> None:
    """Prints the table of all ops, or of those named."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=0.1, help="per library and round")
    parser.add_argument("--below", type=float, default=np.inf, help="print only rows below this ratio")
    parser.add_argument("names", nargs="*", default=["*"], help="ops to measure, or patterns; all by default")
    options = parser.parse_args()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import tensorflow.compat.v1 as oracle
    oracle.disable_v2_behavior()
    oracle.logging.set_verbosity(oracle.logging.ERROR)
    import tensorfleet

    libraries = {"tensorfleet": tensorfleet, "tensorflow": oracle}
    rows = []
    for name in OPS:
        if not any(fnmatch.fnmatchcase(name, pattern) for pattern in options.names):
            continue
        try:
            best = measure(libraries, name, options.rounds, options.seconds)
        except Exception as e:
            print(f"{name}: {type(e).__name__}: {e}", file=sys.stderr)
            continue
        rows.append((*(best["tensorflow"] / best["tensorfleet"]), name, best))
    print(f"{'op':32}{'TensorFlow':>14}{'TensorFleet':>14}{'ratio':>8}{'by processor time':>20}")
    for ratio, busy, name, best in sorted(rows, key=lambda row: row[:3]):
        theirs, ours = (best[key][0] * 1e3 for key in ("tensorflow", "tensorfleet"))
        if ratio < options.below:
            print(f"{name:32}{theirs:11.2f} ms{ours:11.2f} ms{ratio:8.2f}{busy:20.2f}")


if __name__ == "__main__":
    main()

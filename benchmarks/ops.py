"""Time the ops of the library one by one against TensorFlow's, at sizes where arithmetic dominates.

    make bench
    .venv-peers/bin/python benchmarks/ops.py --rounds 7 sort top_k

Both libraries run in this process and take turns; the best of all rounds counts, since a busy machine only
ever makes a run slower. A ratio above 1 means that TensorFleet is faster. Worst first.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")

import op_host
import op_math
import op_nn

OPS = op_math.OPS | op_nn.OPS | op_host.OPS


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

    def time(self, least: float) -> float:
        """The best of the runs that fit into so many seconds."""
        best, end = float("inf"), time.perf_counter() + least
        while True:
            start = time.perf_counter()
            self._run(*self._inputs)
            now = time.perf_counter()
            best = min(best, now - start)
            if now > end:
                return best

    def close(self) -> None:
        self._session.close()


def measure(libraries: dict[str, Any], name: str, rounds: int, seconds: float) -> dict[str, float]:
    """The best time of an op in each library."""
    call, inputs = OPS[name]
    runners = {key: Runner(tf, call, inputs) for key, tf in libraries.items()}
    best = dict.fromkeys(runners, float("inf"))
    for _ in range(rounds):
        for key, runner in runners.items():
            best[key] = min(best[key], runner.time(seconds))
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
    parser.add_argument("names", nargs="*", help="ops to measure; all of them by default")
    options = parser.parse_args()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import tensorflow.compat.v1 as oracle
    oracle.disable_v2_behavior()
    oracle.logging.set_verbosity(oracle.logging.ERROR)
    import tensorfleet

    libraries = {"tensorfleet": tensorfleet, "tensorflow": oracle}
    rows = []
    for name in options.names or OPS:
        try:
            best = measure(libraries, name, options.rounds, options.seconds)
        except Exception as e:
            print(f"{name}: {type(e).__name__}: {e}", file=sys.stderr)
            continue
        rows.append((best["tensorflow"] / best["tensorfleet"], name, best))
    print(f"{'op':24}{'TensorFleet':>14}{'TensorFlow':>14}{'ratio':>8}")
    for ratio, name, best in sorted(rows):
        print(f"{name:24}{best['tensorfleet'] * 1e3:11.2f} ms{best['tensorflow'] * 1e3:11.2f} ms{ratio:8.2f}")


if __name__ == "__main__":
    main()

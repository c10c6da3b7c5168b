"""How long training takes against the bound of its staleness, with one slow worker: the curve of Li et al. (2014).

    python benchmarks/staleness.py            # measures, prints the table and writes benchmarks/staleness.svg

"Scaling Distributed Machine Learning with the Parameter Server" (OSDI 2014) shows that bounded staleness is faster than
both bulk synchronous and unbounded asynchronous training. Here four workers train softmax regression on real digits
under `tf.fleet.Optimizer`. Each has some of the digits for itself, and the last one computes ten times as long. The time
until the loss on all digits is reached is that of a whole cluster of servers in this process; computing is a pause.
"""

from __future__ import annotations

import argparse
import statistics
import threading
import time
from pathlib import Path

import numpy as np

import tensorfleet as tf

WORKERS = 4
BOUNDS = ("0", "1", "2", "4", "8", "16", "unbounded")
PAUSE, SLOWER = 0.04, 10  # seconds that a worker computes, and how much longer the slow one does
BATCH, RATE, TARGET = 128, 0.2, 0.65
BELOW = SLOWER + 2  # looks in a row that must find the loss below the target: one step of the slow worker
MOST_SECONDS = 60.0
HERE = Path(__file__).resolve().parent


def digits() -> tuple[np.ndarray, np.ndarray]:
    """Real handwritten digits, sorted by what they are."""
    (images, labels), _ = tf.keras.datasets.mnist.load_data()
    order = np.argsort(labels, kind="stable")
    flat = images.reshape(len(images), -1).astype(np.float32) / 255
    return flat[order], labels[order].astype(np.int32)


def loss_of(weights: np.ndarray, images: np.ndarray, labels: np.ndarray) -> float:
    """The cross entropy of softmax regression."""
    scores = images @ weights[:-1] + weights[-1]
    scores -= scores.max(1, keepdims=True)
    chosen = scores[np.arange(len(labels)), labels]
    return float(np.mean(np.log(np.exp(scores).sum(1)) - chosen))


class Worker:
    """One worker: a graph, a session, and its share of the digits."""

    def __init__(self, index: int, target: str, consistency: str, name: str) -> None:
        self.index = index
        with (
            tf.Graph().as_default(),
            tf.container(name),
            tf.device(tf.train.replica_device_setter(ps_tasks=1, worker_device=f"/job:worker/task:{index}")),
        ):
            step = tf.train.get_or_create_global_step()
            self.weights = tf.get_variable("w", [785, 10], initializer=tf.zeros_initializer())
            self.images = tf.placeholder(tf.float32, [None, 784])
            self.labels = tf.placeholder(tf.int32, [None])
            scores = tf.matmul(self.images, self.weights[:-1]) + self.weights[-1]
            loss = tf.losses.sparse_softmax_cross_entropy(self.labels, scores)
            opt = tf.fleet.Optimizer(tf.train.GradientDescentOptimizer(RATE), consistency, WORKERS)
            ((gradient, variable),) = opt.compute_gradients(loss)
            late = tf.py_func(self.compute, [gradient[0, 0]], tf.float32)
            late.set_shape([])
            self.train = opt.apply_gradients([(gradient + late, variable)], global_step=step)
            self.init = tf.global_variables_initializer()
            self.step = step
            self.session = tf.Session(target)

    def compute(self, _: np.ndarray) -> np.float32:
        """What computing is here."""
        time.sleep(PAUSE * (SLOWER if self.index == WORKERS - 1 else 1))
        return np.float32(0)

    def run(self, images: np.ndarray, labels: np.ndarray, over: threading.Event, seed: int) -> None:
        """Trains until the training is over."""
        share = np.array_split(np.arange(len(labels)), WORKERS)[self.index]
        random = np.random.RandomState(seed * WORKERS + self.index)
        try:
            while not over.is_set():
                rows = random.choice(share, BATCH)
                self.session.run(self.train, {self.images: images[rows], self.labels: labels[rows]})
        except tf.errors.OpError:
            if not over.is_set():
                raise


def seconds_to_target(servers: list, bound: str, seed: int, data: tuple) -> tuple[float, int]:
    """How long a training takes to the target, and how many updates it has made."""
    images, labels = data
    consistency = "asp" if bound == "unbounded" else f"ssp:{bound}"
    name = f"{consistency}-{seed}"
    workers = [Worker(i, servers[i].target, consistency, name) for i in range(WORKERS)]
    workers[0].session.run(workers[0].init)
    over = threading.Event()
    threads = [
        threading.Thread(target=worker.run, args=(images, labels, over, seed), daemon=True)
        for worker in workers
    ]
    with tf.Session(servers[0].target, graph=workers[0].session.graph) as look:
        look.run([workers[0].weights, workers[0].step])
        began, below, reached = time.perf_counter(), 0, 0.0
        for thread in threads:
            thread.start()
        while below < BELOW and time.perf_counter() - began < MOST_SECONDS:
            now = time.perf_counter() - began
            weights, step = look.run([workers[0].weights, workers[0].step])
            below = below + 1 if loss_of(weights, images[::9], labels[::9]) < TARGET else 0
            reached = now if below == 1 else reached
            time.sleep(PAUSE)
    over.set()
    for worker in workers:
        worker.session.close()
    for thread in threads:
        thread.join(10.0)
    return (reached if below >= BELOW else MOST_SECONDS), int(step)


def picture(seconds: dict[str, float]) -> str:
    """The curve as SVG."""
    left, top, width, height = 50, 50, 480, 220
    scale = height / (max(seconds.values()) * 1.15)
    across = {bound: left + 30 + i * (width - 60) / (len(seconds) - 1) for i, bound in enumerate(seconds)}
    spots = [(across[bound], top + height - value * scale, bound, value) for bound, value in seconds.items()]
    line = " ".join(f"{x:.0f},{y:.0f}" for x, y, _, _ in spots)
    middle = left + width / 2
    made = [
        '<svg xmlns="http://www.w3.org/2000/svg" width="580" height="340" font-family="sans-serif" font-size="13">',
        '<rect width="580" height="340" fill="white"/>',
        f'<text x="{middle}" y="24" text-anchor="middle" font-weight="bold">Seconds to a loss of {TARGET}, one of four '
        "workers slow</text>",
        f'<path d="M{left},{top} v{height} h{width}" fill="none" stroke="#888"/>',
        f'<polyline points="{line}" fill="none" stroke="#c40" stroke-width="2"/>',
        f'<text x="{middle}" y="{top + height + 44}" text-anchor="middle">bound of ssp (steps); unbounded is asp</text>',
    ]
    for x, y, bound, value in spots:
        made += [
            f'<circle cx="{x:.0f}" cy="{y:.0f}" r="4" fill="#c40"/>',
            f'<text x="{x:.0f}" y="{y - 10:.0f}" text-anchor="middle">{value:.1f}</text>',
            f'<text x="{x:.0f}" y="{top + height + 20}" text-anchor="middle">{bound}</text>',
        ]
    return "\n".join([*made, "</svg>\n"])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=3, help="trainings for each bound (default: 3)")
    parser.add_argument("--picture", default=str(HERE / "staleness.svg"), help="where the picture goes")
    flags = parser.parse_args()
    tf.logging.set_verbosity(tf.logging.ERROR)
    servers, _ = tf.test.create_local_cluster(num_workers=WORKERS, num_ps=1)
    data = digits()
    found: dict[str, list[tuple[float, int]]] = {bound: [] for bound in BOUNDS}
    # Each round measures all bounds, so that a machine that gets slower slows all of them.
    for seed in range(flags.rounds):
        for bound in BOUNDS:
            found[bound].append(seconds_to_target(servers, bound, seed, data))
    print("    bound   seconds (each round)          updates")
    for bound, runs in found.items():
        times = "  ".join(f"{seconds:5.1f}" for seconds, _ in runs)
        middle = statistics.median(seconds for seconds, _ in runs)
        print(f"{bound:>9}   {middle:5.1f}   ({times})   {statistics.median(n for _, n in runs):.0f}")
    medians = {bound: statistics.median(seconds for seconds, _ in runs) for bound, runs in found.items()}
    Path(flags.picture).write_text(picture(medians))


if __name__ == "__main__":
    main()

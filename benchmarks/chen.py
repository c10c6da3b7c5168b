"""What stale gradients cost in accuracy, and what backup workers save in time: the effects of Chen et al. (2016).

    python benchmarks/chen.py            # measures, prints both tables and writes benchmarks/chen.svg

"Revisiting Distributed Synchronous SGD" (arXiv:1604.00981) shows both on a cluster of hundreds of machines. Here the
staleness of every gradient is set exactly (it is computed from the weights of so many steps ago), and the workers are
threads whose computing is a pause; one of eight is slow.
"""

from __future__ import annotations

import argparse
import collections
import statistics
import threading
import time
from pathlib import Path

import numpy as np
from tensorfleet.examples.tutorials.mnist import input_data

import tensorfleet as tf

STALENESS = (0, 5, 20, 50)
WORKERS = 8
BACKUPS = (0, 1, 2, 3, 4)
PAUSE, SLOW_PAUSE = 0.02, 0.2  # seconds that a worker computes; the slow one
HERE = Path(__file__).resolve().parent


def stale_accuracy(staleness: int, steps: int, seed: int) -> float:
    """The accuracy of a small network on digits it has not seen, trained on gradients of that age."""
    data = input_data.read_data_sets("", one_hot=True)
    random = np.random.RandomState(seed)
    with tf.Graph().as_default(), tf.Session() as sess:
        x, y = tf.placeholder(tf.float32, [None, 784]), tf.placeholder(tf.float32, [None, 10])
        shapes = [[784, 64], [64], [64, 10], [10]]
        weights = [
            tf.Variable(random.normal(0, 1 / np.sqrt(s[0]), s).astype("f") * (len(s) > 1)) for s in shapes
        ]
        read = [tf.identity(w) for w in weights]  # fed with the weights of an earlier step
        scores = tf.matmul(tf.nn.relu(tf.matmul(x, read[0]) + read[1]), read[2]) + read[3]
        loss = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(labels=y, logits=scores))
        right = tf.equal(tf.argmax(scores, 1), tf.argmax(y, 1))
        accuracy = tf.reduce_mean(tf.cast(right, tf.float32))
        train = tf.train.GradientDescentOptimizer(0.05).apply_gradients(
            list(zip(tf.gradients(loss, read), weights, strict=True))
        )
        sess.run(tf.global_variables_initializer())
        before: collections.deque = collections.deque(maxlen=staleness + 1)
        for _ in range(steps):
            before.append(sess.run(weights))
            rows = random.randint(0, len(data.train.images), 64)
            feeds = {x: data.train.images[rows], y: data.train.labels[rows]}
            sess.run(train, {**feeds, **dict(zip(read, before[0], strict=True))})
        return float(sess.run(accuracy, {x: data.validation.images, y: data.validation.labels}))


def steps_per_second(backups: int, seconds: float) -> float:
    """The global steps that eight workers make when the gradients of `8 - backups` are enough for one."""
    servers, _ = tf.test.create_local_cluster(num_workers=WORKERS, num_ps=1)
    over = threading.Event()
    found: list[float] = []

    def worker(index: int) -> None:
        with tf.Graph().as_default(), tf.device(tf.train.replica_device_setter(ps_tasks=1)):
            step = tf.train.get_or_create_global_step()
            w = tf.get_variable("w", [64], initializer=tf.zeros_initializer())
            sgd = tf.train.GradientDescentOptimizer(0.1)
            opt = tf.train.SyncReplicasOptimizer(sgd, WORKERS - backups, total_num_replicas=WORKERS)
            train = opt.minimize(tf.reduce_sum(tf.square(w - 1.0)), global_step=step)
            hook = opt.make_session_run_hook(index == 0)
            with tf.train.MonitoredTrainingSession(servers[index].target, index == 0, hooks=[hook]) as sess:
                began, first = 0.0, 0
                while not over.is_set():
                    time.sleep(SLOW_PAUSE if index == WORKERS - 1 else PAUSE)
                    sess.run(train)
                    if index:
                        continue
                    now = sess.run_step_fn(lambda step_context: step_context.session.run(step))
                    if now >= 5 and not began:  # all have come
                        began, first = time.perf_counter(), now
                    elif began and time.perf_counter() - began > seconds:
                        found.append((now - first) / (time.perf_counter() - began))
                        over.set()
                if index:
                    sess._tf_sess().close()

    def run(index: int) -> None:
        try:
            worker(index)
        except tf.errors.OpError:
            if not over.is_set():
                raise

    threads = [threading.Thread(target=run, args=(i,), daemon=True) for i in range(WORKERS)]
    for thread in threads:
        thread.start()
    threads[0].join()
    for thread in threads[1:]:
        thread.join(5.0)
    return found[0]


def panel(left: int, title: str, across: str, points: dict[int, float], form: str) -> list[str]:
    """One chart of a picture: a line through the points, each with its value."""
    width, height, top = 340, 200, 50
    low, high = min(points.values()), max(points.values())
    low = 0.0 if low < high / 2 else low - (high - low) * 0.2
    scale = height / ((high - low) * 1.15 or 1)
    end = max(points) or 1
    spots = [
        (left + 20 + k / end * (width - 40), top + height - (v - low) * scale, k, v)
        for k, v in points.items()
    ]
    line = " ".join(f"{x:.0f},{y:.0f}" for x, y, _, _ in spots)
    made = [
        f'<text x="{left + width / 2}" y="24" text-anchor="middle" font-weight="bold">{title}</text>',
        f'<path d="M{left},{top} v{height} h{width}" fill="none" stroke="#888"/>',
        f'<polyline points="{line}" fill="none" stroke="#c40" stroke-width="2"/>',
        f'<text x="{left + width / 2}" y="{top + height + 40}" text-anchor="middle">{across}</text>',
    ]
    for x, y, k, v in spots:
        made += [
            f'<circle cx="{x:.0f}" cy="{y:.0f}" r="4" fill="#c40"/>',
            f'<text x="{x:.0f}" y="{y - 10:.0f}" text-anchor="middle">{form.format(v)}</text>',
            f'<text x="{x:.0f}" y="{top + height + 18}" text-anchor="middle">{k}</text>',
        ]
    return made


def picture(stale: dict[int, float], backup: dict[int, float]) -> str:
    """Both charts as SVG."""
    shapes = panel(30, "Accuracy with stale gradients", "staleness (steps)", stale, "{:.3f}")
    shapes += panel(420, "Eight workers, one of them slow", "backup workers", backup, "{:.1f}/s")
    style = 'font-family="sans-serif" font-size="13"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="790" height="310" {style}>'
    return "\n".join([head, '<rect width="790" height="310" fill="white"/>', *shapes, "</svg>\n"])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--steps", type=int, default=1000, help="steps of each training (default: 1000)")
    parser.add_argument("--rounds", type=int, default=3, help="trainings for each staleness (default: 3)")
    parser.add_argument("--seconds", type=float, default=4.0, help="for each number of backups (default: 4)")
    parser.add_argument("--picture", default=str(HERE / "chen.svg"), help="where the picture goes")
    flags = parser.parse_args()
    tf.logging.set_verbosity(tf.logging.ERROR)
    stale = {
        s: statistics.mean(stale_accuracy(s, flags.steps, seed) for seed in range(flags.rounds))
        for s in STALENESS
    }
    print("staleness   accuracy")
    for s, accuracy in stale.items():
        print(f"{s:9}   {accuracy:.4f}")
    backup = {b: steps_per_second(b, flags.seconds) for b in BACKUPS}
    print("\nbackups   steps per second")
    for b, speed in backup.items():
        print(f"{b:7}   {speed:.2f}")
    Path(flags.picture).write_text(picture(stale, backup))


if __name__ == "__main__":
    main()

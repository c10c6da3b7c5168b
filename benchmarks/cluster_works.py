"""What benchmarks/cluster.py measures: one task of a cluster that runs one work, the same code for both libraries.

    cluster_works.py LIBRARY JOB INDEX WORK CLUSTER FOLDER

CLUSTER is JSON, jobs to addresses. A worker prints the seconds one step takes, and leaves a file in FOLDER when it has: the
others may still be measuring, and a synchronous step needs everybody.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from works import load

MEGABYTE = 1 << 20


@dataclass(frozen=True)
class Work:
    """One thing to measure: on how many tasks, how many steps, the ratio to reach, what one step is."""

    name: str
    ps: int
    workers: int
    steps: int
    floor: float | None
    about: str
    build: Callable[..., tuple[Any, dict, list]]
    outside: bool = False  # whether the workers are clients of the ps, and no tasks of the cluster


def add(tf: Any, me: str, index: int, workers: int) -> tuple[Any, dict, list]:
    x = tf.placeholder(tf.float32, [])
    return x + 1.0, {x: 41.0}, []


def null(tf: Any, me: str, index: int, workers: int) -> tuple[Any, dict, list]:
    v = tf.get_variable("v", [], initializer=tf.zeros_initializer())
    with tf.device(me):
        return v + 1.0, {}, []


def pull(tf: Any, me: str, index: int, workers: int) -> tuple[Any, dict, list]:
    v = tf.get_variable("v", [100 * MEGABYTE // 4], initializer=tf.zeros_initializer())
    with tf.device(me):
        return tf.reduce_max(v), {}, []


def push(tf: Any, me: str, index: int, workers: int) -> tuple[Any, dict, list]:
    size = 100 * MEGABYTE // 4
    v = tf.get_variable("v", [size], initializer=tf.zeros_initializer())
    with tf.device(me):
        value = tf.fill([size], tf.random_uniform([]))
    return tf.assign_add(v, value).op, {}, []


def many(tf: Any, me: str, index: int, workers: int) -> tuple[Any, dict, list]:
    parts = [
        tf.get_variable(f"v{i}", [MEGABYTE // 4 // 64], initializer=tf.zeros_initializer()) for i in range(64)
    ]
    with tf.device(me):
        return tf.add_n([tf.reduce_max(p) for p in parts]), {}, []


def sparse(megabytes: int) -> Callable[..., tuple[Any, dict, list]]:
    def build(tf: Any, me: str, index: int, workers: int) -> tuple[Any, dict, list]:
        rows = megabytes * MEGABYTE // 512
        v = tf.get_variable("v", [rows, 128], initializer=tf.zeros_initializer())
        ids = tf.placeholder(tf.int32, [32])
        loss = tf.reduce_sum(tf.square(tf.nn.embedding_lookup(v, ids) - 1.0))
        train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
        return train, {ids: np.random.RandomState(index).randint(0, rows, 32).astype("i")}, []

    return build


def network(hidden: int, sync: bool) -> Callable[..., tuple[Any, dict, list]]:
    def build(tf: Any, me: str, index: int, workers: int) -> tuple[Any, dict, list]:
        x = tf.placeholder(tf.float32, [None, 784])
        y = tf.placeholder(tf.float32, [None, 10])
        w1 = tf.get_variable("w1", [784, hidden])
        b1 = tf.get_variable("b1", [hidden], initializer=tf.zeros_initializer())
        w2 = tf.get_variable("w2", [hidden, 10])
        b2 = tf.get_variable("b2", [10], initializer=tf.zeros_initializer())
        scores = tf.matmul(tf.nn.relu(tf.matmul(x, w1) + b1), w2) + b2
        loss = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(labels=y, logits=scores))
        optimizer, hooks = tf.train.GradientDescentOptimizer(0.01), []
        if sync:
            optimizer = tf.train.SyncReplicasOptimizer(optimizer, workers, total_num_replicas=workers)
        train = optimizer.minimize(loss, global_step=tf.train.get_or_create_global_step())
        if sync:
            hooks.append(optimizer.make_session_run_hook(index == 0))
        r = np.random.RandomState(index)
        labels = np.eye(10, dtype="f")[r.randint(0, 10, 100)]
        return train, {x: r.rand(100, 784).astype("f"), y: labels}, hooks

    return build


_ALL = [
    Work("null", 1, 1, 500, 8, "a worker reads a scalar on a ps", null),
    Work(
        "async", 1, 1, 300, 2.5, "training step, 784-100-10, batch 100, asynchronous SGD", network(100, False)
    ),
    Work("async_2w", 1, 2, 300, 2.5, "the same with two workers", network(100, False)),
    Work("async_2ps", 2, 2, 300, 2.5, "the same with two ps and two workers", network(100, False)),
    Work("async1024", 1, 1, 100, 1.5, "the same with 1024 hidden units, one worker", network(1024, False)),
    Work("sync", 1, 2, 200, 3, "training step, 784-100-10, two workers averaged", network(100, True)),
    Work("pull", 1, 1, 10, 6, "a worker reads a variable of 100 MB", pull),
    Work("push", 1, 1, 10, 4, "a worker adds 100 MB to a variable", push),
    Work("sparse", 1, 1, 300, 4, "32 rows of a table of 10 MB, and their gradient back", sparse(10)),
    Work("sparse_large", 1, 1, 300, 4, "the same with a table of 1 GB", sparse(1000)),
    Work("many", 4, 1, 200, 8, "a worker reads 64 variables, 1 MB in all, on four ps", many),
    Work("client", 1, 1, 500, 4, "another process adds one to a number on a server", add, outside=True),
]
WORKS = {work.name: work for work in _ALL}


def main() -> None:
    library, job, index, name, cluster, folder = sys.argv[1:]
    tf = load(library)
    work, spec, number = WORKS[name], tf.train.ClusterSpec(json.loads(cluster)), int(index)
    if work.outside and job == "worker":
        target, me = f"grpc://{spec.task_address('ps', 0)}", "/job:ps/task:0"
    else:
        server = tf.train.Server(spec, job_name=job, task_index=number)
        target, me = server.target, f"/job:worker/task:{number}"
    if job == "ps":
        server.join()
        return
    with tf.device(tf.train.replica_device_setter(worker_device=me, cluster=spec)):
        tf.train.get_or_create_global_step()
        step, feed, hooks = work.build(tf, me, number, work.workers)
    with tf.train.MonitoredTrainingSession(master=target, is_chief=number == 0, hooks=hooks) as session:
        for _ in range(20):
            session.run(step, feed)
        best = []
        for _ in range(3):
            began = time.perf_counter()
            for _ in range(work.steps):
                session.run(step, feed)
            best.append((time.perf_counter() - began) / work.steps)
        print(json.dumps({"seconds": min(best)}), flush=True)
        Path(folder, index).touch()

        def leave() -> None:
            while len(os.listdir(folder)) < work.workers:
                time.sleep(0.01)
            os._exit(0)

        threading.Thread(target=leave).start()
        while hooks:
            session.run(step, feed)
        time.sleep(300)


if __name__ == "__main__":
    main()

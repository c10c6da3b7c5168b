"""Measure what surrounds training, side by side: the cost of a monitored session, and saving and restoring.

    .venv-peers/bin/python benchmarks/training.py
    .venv-peers/bin/python benchmarks/training.py --rounds 5 save restore

Every measurement is a new cluster of processes on this machine; the libraries take turns.

    monitored, hooks   what MonitoredTrainingSession adds to a step of a bare session: without hooks, and with those it has
                       when given a checkpoint_dir (1 ps, 1 worker, the step reads a scalar and counts)
    save, restore      200 MB in 8 variables over 2 ps, sharded
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from cluster import addresses, started
from measuring import Job, take_turns
from report import Row, conditions, losses, save, table, write_between
from run import parsed, parser_of
from works import LIBRARIES, load

HERE = Path(__file__).resolve()
ABOUT = {
    "monitored": "what a MonitoredTrainingSession adds to a step",
    "hooks": "the same with the hooks that save and count",
    "save": "200 MB over 2 ps, sharded",
    "restore": "the same back",
}
FLOORS = {"monitored": 1.0, "hooks": 1.0, "save": 1.5, "restore": 1.5}
TOGETHER = {"monitored": "sessions", "hooks": "sessions", "save": "files", "restore": "files"}
TASKS = {"sessions": 1, "files": 2}
_LONGEST = 240.0


def sessions(tf: Any, target: str, folder: str) -> dict[str, float]:
    """Seconds that monitored sessions add to a step, the fastest blocks compared."""
    step = tf.train.get_or_create_global_step()
    train = tf.assign_add(step, 1)
    scaffold = tf.train.Scaffold()
    monitored = tf.train.MonitoredTrainingSession
    with (
        monitored(target, checkpoint_dir=folder, scaffold=scaffold) as hooks,
        monitored(target, scaffold=scaffold) as bare,
        tf.Session(target) as plain,
    ):
        subjects = {"plain": plain, "monitored": bare, "hooks": hooks}
        best = dict.fromkeys(subjects, float("inf"))
        for turn in range(120):
            for name, session in subjects.items():
                began = time.perf_counter()
                for _ in range(10):
                    session.run(train)
                if turn > 20:
                    best[name] = min(best[name], (time.perf_counter() - began) / 10)
    return {name: max(best[name] - best["plain"], 1e-7) for name in ("monitored", "hooks")}


def files(tf: Any, target: str, folder: str) -> dict[str, float]:
    """Seconds of a save and of a restore, the fastest of several."""
    for i in range(8):
        tf.get_variable(f"v{i}", [25 * 250_000], initializer=tf.random_uniform_initializer())
    saver = tf.train.Saver(sharded=True)
    with tf.Session(target) as sess:
        sess.run(tf.global_variables_initializer())
        best = {"save": float("inf"), "restore": float("inf")}
        for n in range(5):
            began = time.perf_counter()
            path = saver.save(sess, os.path.join(folder, "model"), global_step=n, write_meta_graph=False)
            best["save"] = min(best["save"], time.perf_counter() - began)
            began = time.perf_counter()
            saver.restore(sess, path)
            best["restore"] = min(best["restore"], time.perf_counter() - began)
    return best


def task(library: str, work: str, job: str, index: int, cluster: dict, folder: str) -> None:
    """One process of a cluster."""
    tf = load(library)
    server = tf.train.Server(cluster, job_name=job, task_index=index)
    if job == "ps":
        server.join()
        return
    with tf.device(tf.train.replica_device_setter(cluster=cluster, worker_device="/job:worker/task:0")):
        print(json.dumps(globals()[work](tf, server.target, folder)), flush=True)
    os._exit(0)


def measure(work: str, library: str) -> dict[str, float]:
    """What one new cluster measures."""
    cluster = {"ps": addresses(TASKS[work]), "worker": addresses(1)}
    folder = tempfile.mkdtemp()
    with contextlib.ExitStack() as running:
        running.callback(shutil.rmtree, folder, ignore_errors=True)

        def start(job: str, index: int) -> subprocess.Popen:
            script = [HERE, "--task", library, work, job, str(index)]
            return started([*script, json.dumps(cluster), folder], running)

        for i in range(TASKS[work]):
            start("ps", i)
        out, error = start("worker", 0).communicate(timeout=_LONGEST)
        lines = [line for line in out.splitlines() if line.startswith("{")]
        if not lines:
            raise RuntimeError(error.strip())
        return json.loads(lines[-1])


def main() -> int:
    parser = parser_of(__doc__, ABOUT)
    parser.add_argument("--task", nargs=6, help=argparse.SUPPRESS)
    flags = parsed(parser, list(ABOUT))
    if flags.task:
        library, work, job, index, cluster, folder = flags.task
        task(library, work, job, int(index), json.loads(cluster), folder)
        return 0
    names = flags.works or list(ABOUT)
    rows = {name: Row(name, ABOUT[name], floor=FLOORS[name]) for name in names}
    jobs = []
    for work in dict.fromkeys(TOGETHER[name] for name in names):
        own = {name: row for name, row in rows.items() if TOGETHER[name] == work}
        jobs.append(Job(work, list(LIBRARIES), own, functools.partial(measure, work)))
    take_turns("training", jobs, flags.rounds)
    where = conditions(flags.rounds)
    save("training", list(rows.values()), where)
    print(f"{table(list(rows.values()), False)}\n\n{where}\n{losses(list(rows.values()))}")
    if flags.write:
        write_between("training table", f"{table(list(rows.values()), True)}\n\n{where}")
    return int(flags.check and not all(row.met for row in rows.values()))


if __name__ == "__main__":
    sys.exit(main())

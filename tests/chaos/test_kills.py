"""Tasks and clients killed at random points of a step, and a ledger of what was acknowledged.

Two pairs of a ps and a worker, each with a client that adds. One pair is killed, part by part, again and again; the other
must not notice. Every acknowledged addition is there once, every other at most once.
"""

import itertools
import os
import random
import threading
import time

import pytest

import tensorfleet as tf
from tensorfleet.testing.cluster import ProcessCluster

ROUNDS = int(os.environ.get("TENSORFLEET_CHAOS_ROUNDS", "20"))
SEED = int(os.environ.get("TENSORFLEET_CHAOS_SEED", "20261116"))
SECONDS = 120  # for what takes one
PAUSE = 30  # how long the others may pause; on a quiet machine they pause for less than two
SCRIPT = os.path.join(os.path.dirname(__file__), "adder.py")


class Ledger:
    """What a client has written down."""

    def __init__(self, path):
        self.path = path
        self.path.touch()
        self._lines = []
        self._read = 0
        self._acknowledged = 0

    def lines(self):
        with open(self.path, "rb") as f:
            f.seek(self._read)
            whole = f.read().rpartition(b"\n")[0]  # a killed client may have left half a line
        if whole:
            self._read += len(whole) + 1
            fresh = [line.split() for line in whole.decode().split("\n")]
            self._lines += fresh
            self._acknowledged += sum(line[0] == "a" for line in fresh)
        return self._lines

    def acknowledged(self):
        self.lines()
        return self._acknowledged

    def next(self):
        return max((int(line[1]) for line in self.lines() if line[0] == "t"), default=-1) + 1

    def pause(self):
        times = [float(line[2]) for line in self.lines() if line[0] == "a" and len(line) == 3]
        return max((b - a for a, b in itertools.pairwise(times)), default=0.0)

    def check(self, marks, counter):
        lines = self.lines()
        since = max((i for i, line in enumerate(lines) if line[0] == "i"), default=0)
        tried = {int(line[1]) for line in lines[since:] if line[0] == "t"}
        done = {int(line[1]) for line in lines[since:] if line[0] == "a"}
        result = {int(i) for i in marks.nonzero()[0]}
        assert done <= result, "acknowledged, but not there"
        assert result <= tried, "there, but never tried"
        assert marks.max() <= 1, "done twice"
        assert len(done) <= counter <= len(tried)


def until(condition, what, alive=None):
    never = threading.Event()
    limit = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < limit, f"it did not happen in {SECONDS} s: {what}"
        assert alive is None or alive.poll() is None, "a client has ended"
        never.wait(0.005)


def resources_of(pid):
    """Descriptors and threads of a process, and its memory in megabytes."""
    with open(f"/proc/{pid}/status") as f:
        result = dict(line.split(":", 1) for line in f.read().splitlines() if ":" in line)
    return len(os.listdir(f"/proc/{pid}/fd")), int(result["Threads"]), int(result["VmRSS"].split()[0]) // 1024


def state(cluster, pair):
    with tf.Graph().as_default():
        with tf.device(f"/job:ps/task:{pair}"):
            counter = tf.Variable(0, name="counter")
            marks = tf.Variable(tf.zeros([4_000_000], tf.int32), name="marks")
        with tf.Session(cluster.target("worker", pair)) as sess:  # a fresh session works
            return sess.run([marks, counter])


@pytest.mark.parametrize("victim", ["worker", "ps", "client"])
def test_kills_at_random_points_of_a_step(tmp_path, victim):
    print(f"seed {SEED}, {ROUNDS} rounds")
    r = random.Random(f"{SEED} {victim}")
    ledgers = [Ledger(tmp_path / f"ledger{pair}") for pair in range(2)]
    # A killed process closes its connections: nobody needs to be given up for being silent on a busy machine.
    with ProcessCluster(ps=2, worker=2, env={"TENSORFLEET_SILENT_SECONDS": "30"}) as cluster:

        def client(pair):
            path, first = str(ledgers[pair].path), str(ledgers[pair].next())
            return cluster.script(SCRIPT, cluster.target("worker", pair), str(pair), path, first)

        clients = [client(0), client(1)]
        for pair in range(2):
            until(lambda pair=pair: ledgers[pair].acknowledged() > 20, "the first additions", clients[pair])
        before = [resources_of(cluster.process(job, 1).pid) for job in ("ps", "worker")]
        for _ in range(ROUNDS):
            time.sleep(r.uniform(0, 0.05))  # to a random point of a step
            seen = ledgers[0].acknowledged()
            if victim == "client":
                clients[0].kill()
                clients[0].wait(SECONDS)
                clients[0] = client(0)
            else:
                cluster.kill(victim, 0)
                time.sleep(r.choice((0.0, r.uniform(0, 0.1))))
                cluster.start(victim, 0)
            until(
                lambda seen=seen: ledgers[0].acknowledged() > seen + 2,
                f"the client goes on after a killed {victim}",
                clients[0],
            )
        for one in clients:
            one.kill()
            one.wait(SECONDS)
        for pair in range(2):
            ledgers[pair].check(*state(cluster, pair))
        print(f"the other pair paused {ledgers[1].pause():.2f} s at most")
        assert ledgers[1].pause() < PAUSE
        assert not any(line[0] in "ie" for line in ledgers[1].lines()[2:]), "the other pair had an error"
        for job, (files, threads, memory) in zip(("ps", "worker"), before, strict=True):
            pid = cluster.process(job, 1).pid
            until(
                lambda pid=pid, files=files, threads=threads: (
                    resources_of(pid)[0] <= files + 2 and resources_of(pid)[1] <= threads + 2
                ),
                "descriptors and threads of the other pair are as before",
            )
            assert resources_of(pid)[2] < memory + 200

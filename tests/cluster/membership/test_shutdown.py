"""When a server ends that was told to: after the workers, which were told at the same time, have saved."""

import itertools
import json
import os
import signal

from tensorfleet.cluster.membership.shutdown import Departure
from tests.support.launching import launched

SAVING = """
import time
import tensorflow as tf
tf.app.flags.DEFINE_string("ps_hosts", "", "")
tf.app.flags.DEFINE_string("worker_hosts", "", "")
tf.app.flags.DEFINE_string("job_name", "", "")
tf.app.flags.DEFINE_integer("task_index", 0, "")
FLAGS = tf.app.flags.FLAGS
cluster = tf.train.ClusterSpec({"ps": FLAGS.ps_hosts.split(","), "worker": FLAGS.worker_hosts.split(",")})
server = tf.train.Server(cluster, job_name=FLAGS.job_name, task_index=FLAGS.task_index)
if FLAGS.job_name == "ps":
    server.join()
with tf.device("/job:ps/task:0"):
    total = tf.get_variable("total", [], initializer=tf.zeros_initializer())
    more = tf.assign_add(total, 1.0)

class Saves(tf.train.SessionRunHook):
    def end(self, session):
        # Long after the signal: a parameter server that did not stay would be gone.
        before = session.run(total)
        for _ in range(20):
            time.sleep(0.1)
            session.run(more)
        print("saved", session.run(total) - before, flush=True)

with tf.train.MonitoredTrainingSession(server.target, is_chief=True, hooks=[Saves()]) as session:
    session.run(more)
    print("began", flush=True)
    while not session.should_stop():
        time.sleep(0.01)
        session.run(more)
"""


def test_a_server_without_workers_goes_when_it_is_told():
    departure = Departure(30.0)
    assert not departure.is_due(has_workers=False, now=1.0)
    departure.ask(2.0)
    assert departure.is_due(has_workers=False, now=2.0)


def test_a_server_without_notice_goes_at_once():
    departure = Departure(0.0)
    departure.ask(2.0)
    assert departure.is_due(has_workers=True, now=2.0)


def test_a_server_stays_for_its_workers_until_the_time_is_over_however_often_it_is_told():
    moments = [2.0, 12.0, 22.0]
    for times in range(1, 4):
        for told in itertools.combinations(moments, times):
            departure = Departure(30.0)
            for now in told:
                departure.ask(now)
                assert not departure.is_due(has_workers=True, now=now)
            assert departure.is_due(has_workers=False, now=told[-1])
            assert not departure.is_due(has_workers=True, now=told[0] + 29.0)
            assert departure.is_due(has_workers=True, now=told[0] + 30.0)


def test_a_worker_saves_though_its_parameter_server_was_told_to_end_too(tmp_path):
    (tmp_path / "train.py").write_text(SAVING)
    options = ("--grace", "60", "--dashboard", "off", "--ps", "1", "--workers", "1")
    with launched(tmp_path, "run", *options, "train.py") as run:
        run.read_until("began")
        (listed,) = (tmp_path / "state").glob("*.json")
        tasks = json.loads(listed.read_text())["tasks"]
        for label in ("ps/0", "worker/0"):  # as a machine does that is about to be taken away
            os.kill(tasks[label]["pid"], signal.SIGTERM)
        run.end()
    assert "[worker/0] saved 20.0" in run.stdout, run.stdout + run.stderr
    assert run.code == 143

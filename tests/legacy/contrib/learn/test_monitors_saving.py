"""Monitors that save, count, capture and dump."""

import glob
import os

import numpy as np
import pytest

import tensorfleet as tf

monitors = tf.contrib.learn.monitors


def run(monitor, steps, ask=lambda name: 1.0):
    """Calls a monitor as a training of so many steps does."""
    monitor.begin(max_steps=steps)
    for step in range(steps):
        asked = monitor.step_begin(step)
        monitor.step_end(step, {one: ask(one) for one in asked})
        monitor.post_step(step, None)
    monitor.end(None)


class Noting(monitors.EveryN):
    def __init__(self, *args):
        super().__init__(*args)
        self.begun, self.posted = [], []

    def every_n_step_begin(self, step):
        self.begun.append(step)
        return []

    def every_n_post_step(self, step, session):
        self.posted.append(step)


def test_a_monitor_looks_at_the_first_steps_and_so_many_after_each_look():
    monitor = Noting(8, 1)
    run(monitor, 30)
    assert monitor.begun == [0, 1, 9, 17, 25] and monitor.posted == [0, 1, 9, 17, 25, 29]


def test_calls_out_of_order_are_refused():
    monitor = monitors.BaseMonitor()
    with pytest.raises(ValueError, match="end called without begin"):
        monitor.end()
    monitor.begin(max_steps=3)
    with pytest.raises(ValueError, match="begin called twice"):
        monitor.begin()
    with pytest.raises(ValueError, match="Invalid step 4"):
        monitor.step_begin(4)
    monitor.step_begin(1)
    with pytest.raises(ValueError, match="step_end expected 1 but got 2"):
        monitor.step_end(2, {})
    monitor.epoch_begin(0)
    with pytest.raises(ValueError, match="epoch_begin called twice"):
        monitor.epoch_begin(1)
    with pytest.raises(ValueError, match="epoch_end expected 0 but got 5"):
        monitor.epoch_end(5)
    with pytest.raises(ValueError, match="Missing estimator"):
        monitor.set_estimator(None)


def test_a_variable_is_captured():
    monitor = monitors.CaptureVariable("v:0", every_n=2, first_n=0)
    run(monitor, 5, ask=lambda name: name)
    assert monitor.values == {0: "v:0", 2: "v:0", 4: "v:0"}


def test_dumps_are_compared(graph):
    tf.Variable([1.0], name="v")
    tf.add(tf.constant([1.0]), 2.0, name="sum")
    one, other = monitors.GraphDump(), monitors.GraphDump()
    run(one, 1, ask=lambda tensor: np.ones(1))
    run(other, 1, ask=lambda tensor: np.ones(1))
    assert {tensor.op.type for tensor in one.data[0]} == {"VariableV2", "Add"}
    one.data[0].update(a=np.ones(1), b=2)
    with pytest.raises(ValueError, match="a missing at step 0"):
        one.compare(other, 0)
    other.data[0].update(a=np.ones(1), b=3)
    assert one.compare(other, 0) == (["a"], {"b": (2, 3)})


def test_checkpoints_are_saved_at_steps_and_at_the_end(graph, tmp_path):
    step = tf.train.get_or_create_global_step()
    more = tf.assign_add(step, 1)
    monitor = monitors.CheckpointSaver(str(tmp_path), save_steps=2, saver=tf.train.Saver(max_to_keep=None))
    hook = monitors.RunHookAdapterForMonitors([monitor])
    with tf.train.MonitoredSession(hooks=[hook]) as session:
        for _ in range(4):
            session.run(more)
    saved = {os.path.basename(name) for name in glob.glob(str(tmp_path / "*.index"))}
    assert saved == {f"model.ckpt-{n}.index" for n in (1, 3, 4)}
    for given in ({}, {"save_secs": 1, "save_steps": 1}):
        with pytest.raises(ValueError, match="save_steps"):
            monitors.CheckpointSaver(str(tmp_path), **given)


def test_summaries_and_speeds_are_written(graph, tmp_path):
    step = tf.train.get_or_create_global_step()
    more = tf.assign_add(step, 1)
    [printed, summaries] = monitors.get_default_monitors(more, tf.summary.scalar("x", 1.0), 1, str(tmp_path))
    hook = monitors.RunHookAdapterForMonitors([printed, summaries, monitors.StepCounter(1, str(tmp_path))])
    with tf.train.MonitoredSession(hooks=[hook]) as session:
        for _ in range(3):
            session.run(more)
    tf.summary.FileWriterCache.clear()
    [events] = glob.glob(str(tmp_path / "*tfevents*"))
    tags = [value.tag for event in tf.train.summary_iterator(events) for value in event.summary.value]
    assert tags.count("x") == 3 and tags.count("global_step/sec") == 2


def test_what_is_trained_is_logged(graph, caplog):
    tf.get_variable("w", initializer=2.0)
    monitor = monitors.LoggingTrainable(every_n=1)
    tf.logging.set_verbosity(tf.logging.INFO)
    run(monitor, 1)
    assert "w:0 = 1.0" in caplog.text

"""Hooks act when they should, and write what they should."""

import json
import logging

import numpy as np
import pytest

import tensorfleet as tf
from tensorfleet.api.train import hooks, hooks_saving
from tensorfleet.api.train import waiting as patience


@pytest.fixture
def log(caplog, monkeypatch):
    """The lines that are logged."""
    logger = tf.get_logger()
    monkeypatch.setattr(logger, "propagate", True)
    caplog.set_level(logging.INFO, logger.name)
    return caplog


@pytest.fixture
def clock(monkeypatch):
    now = [1000.0]
    monkeypatch.setattr(hooks.time, "time", lambda: now[0])
    return now


class Writer:
    """Keeps what is added to it."""

    def __init__(self) -> None:
        self.summaries: list = []
        self.logs: list = []

    def add_summary(self, summary, step) -> None:
        message = tf.Summary.FromString(summary) if isinstance(summary, bytes) else summary
        self.summaries.append((int(step), {v.tag: v.simple_value for v in message.value}))

    def add_session_log(self, entry, step) -> None:
        self.logs.append((entry.status, int(step)))

    def flush(self) -> None: ...


def steps() -> tuple:
    step = tf.train.get_or_create_global_step()
    return step, tf.assign_add(step, 1)


def run(hook_list, fetches, times: int = 1000):
    with tf.train.SingularMonitoredSession(hooks=hook_list) as sess:
        for _ in range(times):
            if sess.should_stop():
                break
            sess.run(fetches)
        return sess.raw_session().run(tf.train.get_global_step()) if tf.train.get_global_step() else None


# -- the timer --


def test_the_timer_needs_exactly_one_interval():
    with pytest.raises(ValueError, match="Either every_secs or every_steps"):
        tf.train.SecondOrStepTimer()
    with pytest.raises(ValueError, match="Can not provide both"):
        tf.train.SecondOrStepTimer(1, 1)


def test_the_timer_counts_steps():
    timer = tf.train.SecondOrStepTimer(every_steps=3)
    assert timer.should_trigger_for_step(1)
    assert timer.update_last_triggered_step(1) == (None, None)
    assert [s for s in range(1, 7) if timer.should_trigger_for_step(s)] == [4, 5, 6]
    assert timer.update_last_triggered_step(5)[1] == 4
    assert timer.last_triggered_step() == 5
    timer.reset()
    assert timer.last_triggered_step() is None


def test_the_timer_counts_seconds(clock):
    timer = tf.train.SecondOrStepTimer(every_secs=2.0)
    timer.update_last_triggered_step(1)
    clock[0] += 3.0
    assert not timer.should_trigger_for_step(1), "once per step"
    assert timer.should_trigger_for_step(2)
    assert timer.update_last_triggered_step(2) == (3.0, 1)
    assert not timer.should_trigger_for_step(3)


# -- stopping --


def test_training_stops_at_the_last_step():
    step, train = steps()
    assert run([tf.train.StopAtStepHook(last_step=10)], train) == 10


def test_training_stops_after_a_number_of_steps():
    step, train = steps()
    hook = tf.train.StopAtStepHook(num_steps=5)
    scaffold = tf.train.Scaffold(init_op=tf.assign(step, 7))
    with tf.train.SingularMonitoredSession(hooks=[hook], scaffold=scaffold) as sess:
        while not sess.should_stop():
            sess.run(train)
        assert sess.raw_session().run(step) == 12


def test_stop_at_step_needs_one_number_and_a_step():
    with pytest.raises(ValueError, match="One of num_steps or last_step must be specified"):
        tf.train.StopAtStepHook()
    with pytest.raises(ValueError, match="Only one of num_steps or last_step can be specified"):
        tf.train.StopAtStepHook(num_steps=1, last_step=1)
    with pytest.raises(RuntimeError, match="Global step should be created to use StopAtStepHook"):
        tf.train.StopAtStepHook(num_steps=1).begin()


def test_nan_ends_the_training():
    step, train = steps()
    loss = tf.where(train > 3, np.float32("nan"), 1.0)
    with pytest.raises(tf.train.NanLossDuringTrainingError, match="NaN loss during training"):
        run([tf.train.NanTensorHook(loss)], loss)


def test_nan_ends_the_training_quietly_when_asked():
    step, train = steps()
    loss = tf.where(train > 3, np.float32("nan"), 1.0)
    assert run([tf.train.NanTensorHook(loss, fail_on_nan_loss=False)], loss) == 4


def test_a_worker_waits_for_the_global_step(monkeypatch, session):
    step, train = steps()
    hook = tf.train.GlobalStepWaiterHook(wait_until_step=3)
    hook.begin()
    session.run(tf.global_variables_initializer())
    monkeypatch.setattr(hooks.time, "sleep", lambda _: session.run(train))
    context = tf.train.SessionRunContext(tf.train.SessionRunArgs(None), session)
    hook.before_run(context)
    assert session.run(step) == 3
    session.run(step.initializer)
    hook.before_run(context)
    assert session.run(step) == 0, "only the first run waits"


def test_a_global_step_that_stands_still_is_not_waited_for_for_ever(monkeypatch, session, log):
    step, train = steps()
    hook = tf.train.GlobalStepWaiterHook(wait_until_step=3)
    hook.begin()
    session.run(tf.global_variables_initializer())
    now = [0.0]
    moves = iter([True, False, False])

    def sleep(_):
        now[0] += 40
        if next(moves, False):
            session.run(train)

    monkeypatch.setattr(hooks.time, "sleep", sleep)
    monkeypatch.setattr(patience, "monotonic", lambda: now[0])
    monkeypatch.setenv("TENSORFLEET_STEP_SECONDS", "100")
    with pytest.raises(tf.errors.DeadlineExceededError) as caught:
        hook.before_run(tf.train.SessionRunContext(tf.train.SessionRunArgs(None), session))
    assert "global step 3 before starting training; it is 1" in caught.value.message
    assert "set TENSORFLEET_STEP_SECONDS" in caught.value.message
    lines = [r.getMessage() for r in log.records if "unchanged" in r.getMessage()]
    assert lines == [
        f"Waiting for global step 3 before starting training; it is 1: unchanged for {n} s."
        for n in (0, 40, 80)
    ]
    assert now[0] == 160, "each step of the others begins a new wait"


# -- logging, feeding, final operations --


def test_values_are_logged_every_few_runs(log):
    t = tf.constant(42.0, name="foo")
    run([tf.train.LoggingTensorHook([t.name], every_n_iter=10)], tf.no_op(), 31)
    lines = [r.getMessage() for r in log.records if "foo" in r.getMessage()]
    assert lines[0] == "foo:0 = 42.0"
    assert len(lines) == 4
    assert lines[1].startswith("foo:0 = 42.0 (")


def test_values_are_logged_by_time_at_the_end_and_by_a_formatter(log, clock):
    t = tf.constant(1.5, name="foo")
    hook = tf.train.LoggingTensorHook(
        {"tag": t}, every_n_secs=5, at_end=True, formatter=lambda v: f"<{v['tag']}>"
    )
    with tf.train.SingularMonitoredSession(hooks=[hook]) as sess:
        for _ in range(6):
            sess.run(t)
            clock[0] += 2.0
    assert [r.getMessage() for r in log.records if "1.5" in r.getMessage()] == ["<1.5>"] * 3


def test_an_operation_name_stands_for_its_only_output():
    tf.constant(1.0, name="one")
    tf.unstack([1.0, 2.0], name="two")
    assert hooks.graph_element("one").name == "one:0"
    with pytest.raises(ValueError, match="ambiguous"):
        hooks.graph_element("two")
    with tf.Graph().as_default():
        other = tf.constant(1.0)
    with pytest.raises(ValueError, match="equal to current graph"):
        hooks.graph_element(other)


@pytest.mark.parametrize(
    ("kwargs", "text"),
    [
        ({}, "exactly one of every_n_iter and every_n_secs must be provided"),
        ({"every_n_iter": 1, "every_n_secs": 1}, "exactly one of"),
        ({"every_n_iter": 0}, "invalid every_n_iter=0"),
    ],
)
def test_logging_refuses_what_makes_no_sense(kwargs, text):
    with pytest.raises(ValueError, match=text):
        tf.train.LoggingTensorHook([], **kwargs)


def test_feeds_come_from_a_function():
    x = tf.placeholder(tf.float32, [])
    numbers = iter([1.0, 2.0])
    with tf.train.MonitoredSession(hooks=[tf.train.FeedFnHook(lambda: {x: next(numbers)})]) as sess:
        assert [sess.run(x) for _ in range(2)] == [1.0, 2.0]


def test_final_operations_run_at_the_end():
    step, train = steps()
    hook = tf.train.FinalOpsHook([step, tf.constant(5)])
    run([hook], train, 4)
    assert hook.final_ops_values == [4, 5]


def test_final_operations_that_read_input_are_reported(log):
    end = tf.py_func(lambda: [][0], [], tf.float32)

    class Ended:
        def run(self, *args, **kwargs):
            raise tf.errors.OutOfRangeError(None, None, "end")

    with pytest.raises(tf.errors.OutOfRangeError):
        tf.train.FinalOpsHook(end).end(Ended())
    assert "dependency back to some input source" in log.text


# -- checkpoints --


class Listener(tf.train.CheckpointSaverListener):
    def __init__(self, stop_at: int | None = None) -> None:
        self.calls: list = []
        self.stop_at = stop_at

    def begin(self) -> None:
        self.calls.append("begin")

    def before_save(self, session, global_step_value) -> None:
        self.calls.append(("before", int(global_step_value)))

    def after_save(self, session, global_step_value):
        self.calls.append(("after", int(global_step_value)))
        return self.stop_at is not None and global_step_value >= self.stop_at

    def end(self, session, global_step_value) -> None:
        self.calls.append(("end", int(global_step_value)))


def test_checkpoints_at_the_start_every_few_steps_and_the_end(tmp_path):
    step, train = steps()
    listener = Listener()
    hook = tf.train.CheckpointSaverHook(
        str(tmp_path), save_steps=2, scaffold=tf.train.Scaffold(), listeners=[listener]
    )
    scaffold = hook._scaffold
    with tf.train.SingularMonitoredSession(hooks=[hook], scaffold=scaffold) as sess:
        for _ in range(5):
            sess.run(train)
    assert [c for c in listener.calls if c[0] == "after"] == [("after", s) for s in (0, 2, 4, 5)]
    assert listener.calls[0] == "begin"
    assert listener.calls[-1] == ("end", 5)
    assert tf.train.latest_checkpoint(str(tmp_path)) == str(tmp_path / "model.ckpt-5")
    assert (tmp_path / "graph.pbtxt").exists()


def test_checkpoints_by_time(tmp_path, clock):
    step, train = steps()
    listener = Listener()
    scaffold = tf.train.Scaffold()
    hook = tf.train.CheckpointSaverHook(str(tmp_path), save_secs=2, scaffold=scaffold, listeners=[listener])
    with tf.train.SingularMonitoredSession(hooks=[hook], scaffold=scaffold) as sess:
        for _ in range(6):
            clock[0] += 1.0
            sess.run(train)
    assert [s for kind, s in listener.calls[1:] if kind == "after"] == [0, 2, 4, 6]


def test_a_saver_hook_keeps_its_own_list_of_listeners(tmp_path):
    listeners = [Listener()]
    hook = tf.train.CheckpointSaverHook(str(tmp_path), save_steps=2, listeners=listeners)
    hook._listeners.append(Listener())
    assert len(listeners) == 1


def test_a_listener_ends_the_training(tmp_path):
    step, train = steps()
    scaffold = tf.train.Scaffold()
    hook = tf.train.CheckpointSaverHook(
        str(tmp_path), save_steps=1, scaffold=scaffold, listeners=[Listener(stop_at=3)]
    )
    with tf.train.SingularMonitoredSession(hooks=[hook], scaffold=scaffold) as sess:
        while not sess.should_stop():
            sess.run(train)
        assert sess.raw_session().run(step) == 3


def test_the_saver_comes_from_the_collection(tmp_path):
    step, train = steps()
    hook = tf.train.CheckpointSaverHook(str(tmp_path), save_steps=1)
    with pytest.raises(RuntimeError, match="No items in collection savers"):
        hook._get_saver()
    saver = tf.train.Saver()
    tf.add_to_collection(tf.GraphKeys.SAVERS, saver)
    assert hook._get_saver() is saver
    tf.add_to_collection(tf.GraphKeys.SAVERS, tf.train.Saver())
    with pytest.raises(RuntimeError, match="More than one item in collection savers"):
        tf.train.CheckpointSaverHook(str(tmp_path), save_steps=1)._get_saver()
    with pytest.raises(ValueError, match="both saver and scaffold"):
        tf.train.CheckpointSaverHook(str(tmp_path), saver=saver, scaffold=tf.train.Scaffold())


# -- summaries and speed --


def test_summaries_every_few_steps():
    step, train = steps()
    scalar = tf.summary.scalar("value", tf.cast(train, tf.float32))
    writer = Writer()
    run([tf.train.SummarySaverHook(save_steps=8, summary_writer=writer, summary_op=scalar)], train, 30)
    assert [s for s, _ in writer.summaries] == [1, 9, 17, 25]
    assert writer.summaries[1][1] == {"value": 9.0}
    assert writer.logs == [(tf.SessionLog.START, 1)]


def test_several_summaries_and_those_of_a_scaffold():
    step, train = steps()
    both = [tf.summary.scalar(n, 1.0) for n in ("a", "b")]
    writer = Writer()
    run([tf.train.SummarySaverHook(save_steps=1, summary_writer=writer, summary_op=both)], train, 1)
    assert [tags for _, tags in writer.summaries] == [{"a": 1.0}, {"b": 1.0}]
    with pytest.raises(ValueError, match="Exactly one of scaffold or summary_op"):
        tf.train.SummarySaverHook(save_steps=1)
    hook = tf.train.SummarySaverHook(save_steps=1, scaffold=tf.train.Scaffold())
    assert hook._get_summary_op() is None


def test_speed_is_measured(clock, log):
    step, train = steps()
    writer = Writer()
    hook = tf.train.StepCounterHook(summary_writer=writer, every_n_steps=10)
    with tf.train.SingularMonitoredSession(hooks=[hook]) as sess:
        for _ in range(30):
            clock[0] += 0.5
            sess.run(train)
    assert [s for s, _ in writer.summaries] == [11, 21]
    assert writer.summaries[0][1] == {"global_step/sec": 2.0}
    assert "global_step/sec: 2" in log.text
    with pytest.raises(ValueError, match="exactly one of every_n_steps and every_n_secs"):
        tf.train.StepCounterHook(every_n_secs=1)


def test_a_step_that_does_not_increase_is_noticed(log):
    steps()
    run([tf.train.StepCounterHook(every_n_steps=1)], tf.no_op(), 12)
    assert log.text.count("global step (tf.train.get_global_step) has not been increased") == 5


def test_traces_are_written(tmp_path):
    step, train = steps()
    run([tf.train.ProfilerHook(save_steps=2, output_dir=str(tmp_path))], train, 5)
    result = sorted(p.name for p in tmp_path.glob("timeline-*.json"))
    assert result == ["timeline-3.json", "timeline-5.json"] or result == [
        "timeline-2.json",
        "timeline-4.json",
    ]
    assert json.loads((tmp_path / result[0]).read_text())["traceEvents"]


def test_hooks_are_published_for_scripts():
    assert tf.estimator.StopAtStepHook is tf.train.StopAtStepHook
    assert tf.python.training.basic_session_run_hooks.SummarySaverHook is hooks_saving.SummarySaverHook

"""Supervisors, monitored sessions and hooks do, write, log and refuse what TensorFlow's do."""

import logging
import os
import re

import pytest

import tensorfleet as tf


def model(lib):
    step = lib.train.get_or_create_global_step()
    x = lib.Variable(1.0, name="x")
    lib.summary.scalar("value", x)
    loss = lib.square(x - 3.0)
    return lib.train.GradientDescentOptimizer(0.1).minimize(loss, global_step=step), loss, step


def files(folder: str) -> list:
    return sorted(f for f in os.listdir(folder) if not f.startswith("events"))


def events(lib, folder: str) -> list:
    """What the event files hold, but for times and graphs."""
    result = []
    for name in sorted(f for f in os.listdir(folder) if f.startswith("events")):
        for e in lib.train.summary_iterator(os.path.join(folder, name)):
            kind = e.WhichOneof("what")
            if kind == "session_log":
                result.append((e.step, kind, e.session_log.status))
            elif kind == "summary":
                result.append((e.step, kind, [v.tag for v in e.summary.value]))
    return result


def a_monitored_training(lib, folder):
    train, loss, step = model(lib)
    hooks = [lib.train.StopAtStepHook(last_step=7), lib.train.NanTensorHook(loss)]
    with lib.train.MonitoredTrainingSession(
        checkpoint_dir=folder,
        hooks=hooks,
        save_checkpoint_steps=3,
        save_summaries_steps=2,
        log_step_count_steps=2,
    ) as sess:
        values = []
        while not sess.should_stop():
            values.append(round(float(sess.run([train, loss])[1]), 4))
    return values, sess.should_stop(), sess.graph, files(folder), events(lib, folder)


def a_training_that_goes_on(lib, folder):
    train, loss, step = model(lib)
    results = []
    for _ in range(2):
        with lib.train.MonitoredTrainingSession(
            checkpoint_dir=folder, hooks=[lib.train.StopAtStepHook(num_steps=2)], log_step_count_steps=None
        ) as sess:
            while not sess.should_stop():
                sess.run(train)
            results.append(int(sess._tf_sess().run(step)))
    return results, files(folder)


def a_supervised_training(lib, folder):
    train, loss, step = model(lib)
    sv = lib.train.Supervisor(logdir=folder, save_model_secs=0, save_summaries_secs=0)
    with sv.managed_session() as sess:
        for _ in range(3):
            sess.run(train)
        sv.summary_computed(sess, sess.run(sv.summary_op))
        sv.saver.save(sess, sv.save_path, global_step=sv.global_step)
    return sv.should_stop(), files(folder), events(lib, folder), sv.init_op.name, sv.ready_op.name


def a_hook_sees_everything(lib, folder):
    c = lib.constant(1, name="c")
    found = []

    class Hook(lib.train.SessionRunHook):
        def begin(self):
            found.append("begin")

        def after_create_session(self, session, coord):
            found.append(("created", coord.should_stop()))

        def before_run(self, run_context):
            found.append(("before", str(run_context.original_args.feed_dict), run_context.stop_requested))
            return lib.train.SessionRunArgs({"c": c})

        def after_run(self, run_context, run_values):
            found.append(("after", int(run_values.results["c"]), str(run_values.options)))

        def end(self, session):
            found.append("end")

    with lib.train.SingularMonitoredSession(hooks=[Hook()]) as sess:
        sess.run(c)
        sess.run({"a": c}, feed_dict={c: 5})
    return found


def a_step_function(lib, folder):
    c = lib.constant(2)
    with lib.train.SingularMonitoredSession() as sess:
        return (
            int(sess.run_step_fn(lambda step_context: step_context.run_with_hooks(c) + 1)),
            sess.run_step_fn(lambda step_context: step_context.session is sess.raw_session()),
        )


def the_layers_of_a_session(lib, folder):
    lib.constant(2)
    names = []
    with lib.train.MonitoredTrainingSession() as sess:
        while hasattr(sess, "_sess"):
            names.append(type(sess).__name__)
            sess = sess._sess
    return names, type(sess).__name__


SCENARIOS = [
    a_monitored_training,
    a_training_that_goes_on,
    a_supervised_training,
    a_hook_sees_everything,
    a_step_function,
    the_layers_of_a_session,
]


def outcome(lib, scenario, folder):
    os.makedirs(folder)
    with lib.Graph().as_default():
        result = scenario(lib, folder)
    lib.summary.FileWriterCache.clear()
    return result


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_the_outcome_is_the_same(tensorflow, tmp_path, scenario):
    expected = outcome(tensorflow, scenario, str(tmp_path / "theirs"))
    assert outcome(tf, scenario, str(tmp_path / "ours")) == expected


REFUSALS = {
    "no interval": lambda lib: lib.train.SecondOrStepTimer(),
    "two intervals": lambda lib: lib.train.SecondOrStepTimer(1, 1),
    "stop when": lambda lib: lib.train.StopAtStepHook(),
    "stop twice": lambda lib: lib.train.StopAtStepHook(1, 2),
    "stop without a step": lambda lib: lib.train.StopAtStepHook(1).begin(),
    "wait without a step": lambda lib: lib.train.GlobalStepWaiterHook(1).begin(),
    "count without a step": lambda lib: lib.train.StepCounterHook().begin(),
    "summaries without a step": lambda lib: lib.train.SummarySaverHook(
        1, summary_op=lib.constant("")
    ).begin(),
    "summaries of nothing": lambda lib: lib.train.SummarySaverHook(1),
    "log never": lambda lib: lib.train.LoggingTensorHook(["x"]),
    "log backwards": lambda lib: lib.train.LoggingTensorHook(["x"], every_n_iter=-1),
    "count what": lambda lib: lib.train.StepCounterHook(every_n_secs=3),
    "scaffold of a string": lambda lib: lib.train.Scaffold(copy_from_scaffold="x"),
    "closed": lambda lib: [s := lib.train.MonitoredSession(), s.close(), s.close()],
    "no arguments": lambda lib: lib.train.MonitoredSession().run_step_fn(lambda: 1),
    "services elsewhere": lambda lib: lib.train.Supervisor(is_chief=False).start_standard_services(None),
    "summaries of nobody": lambda lib: lib.train.Supervisor().summary_computed(None, None),
    "not initialized": lambda lib: lib.train.SessionManager().prepare_session(""),
    "local check alone": lambda lib: lib.train.SessionManager(ready_for_local_init_op=1),
    "two checkpoints": lambda lib: lib.train.SessionManager().recover_session("", 1, "a", "b"),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_refusals_have_the_same_words(tensorflow, name):
    texts = []
    for lib in (tf, tensorflow):
        with lib.Graph().as_default():
            lib.constant(1)
            with pytest.raises(Exception) as e:
                REFUSALS[name](lib)
            words = re.sub(r"[^a-z ]", "", str(e.value).lower().split("\n")[0])
            texts.append((type(e.value).__name__, words.split()[:8]))
    assert texts[0] == texts[1]


class Lines(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record) -> None:
        self.lines.append(record.getMessage())


# TensorFlow 2 says more than 1.15 did.
NEWER = ("Calling checkpoint listeners", "From ", "Instructions", "It seems that global step")


def test_the_log_is_the_same(tensorflow, tmp_path):
    logs = []
    for name, lib in (("ours", tf), ("theirs", tensorflow)):
        logger, handler = lib.get_logger(), Lines()
        level = logger.level
        logger.addHandler(handler)
        logger.setLevel(logging.INFO)
        try:
            outcome(lib, a_training_that_goes_on, str(tmp_path / name))
        finally:
            logger.removeHandler(handler)
            logger.setLevel(level)
        lines = [line.replace(str(tmp_path / name), "") for line in handler.lines]
        logs.append([line for line in lines if not line.startswith(NEWER)])
    assert logs[0] == logs[1]

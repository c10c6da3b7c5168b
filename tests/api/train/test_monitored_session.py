"""Monitored sessions start, call hooks, recover from lost tasks and stop cleanly."""

import threading

import pytest

import tensorfleet as tf
from tensorfleet.api.train import waiting as patience


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch):
    monkeypatch.setattr(patience, "sleep", lambda _: None)


class Recorder(tf.train.SessionRunHook):
    """Notes what is called, and may ask for something."""

    def __init__(self, request=None) -> None:
        self.calls: list[str] = []
        self.request = request
        self.values: list = []

    def begin(self) -> None:
        self.calls.append("begin")

    def after_create_session(self, session, coord) -> None:
        assert not coord.should_stop()
        self.calls.append("after_create_session")

    def before_run(self, run_context):
        self.calls.append("before_run")
        self.context = run_context
        return self.request

    def after_run(self, run_context, run_values) -> None:
        self.calls.append("after_run")
        self.values.append(run_values)

    def end(self, session) -> None:
        self.calls.append("end")


class FailOnce(tf.train.SessionRunHook):
    """Raises an error in the n-th run."""

    def __init__(self, n: int, error: Exception) -> None:
        self.n = n
        self.error: Exception | None = error

    def before_run(self, run_context):
        self.n -= 1
        if self.n == 0 and self.error is not None:
            error, self.error = self.error, None
            raise error


def lost() -> tf.errors.AbortedError:
    return tf.errors.AbortedError(None, None, "lost")


# -- hooks around runs --


def test_hooks_are_called_in_order_and_see_their_values():
    a, b = tf.constant(1), tf.constant(2)
    hook = Recorder(tf.train.SessionRunArgs({"x": b, "y": [a]}))
    with tf.train.MonitoredSession(hooks=[hook]) as sess:
        assert sess.run([a, b]) == [1, 2]
    assert hook.calls == ["begin", "after_create_session", "before_run", "after_run", "end"]
    assert hook.values[0].results == {"x": 2, "y": [1]}
    assert hook.context.original_args == tf.train.SessionRunArgs([a, b])
    assert hook.values[0].run_metadata == tf.RunMetadata()


def test_end_is_not_called_after_an_error():
    hook = Recorder()
    with pytest.raises(RuntimeError, match="a bug"), tf.train.MonitoredSession(hooks=[hook]) as sess:
        sess.run([])
        raise RuntimeError("a bug")
    assert hook.calls[-1] == "after_run"
    assert sess.should_stop()


def test_feeds_of_hooks_and_of_the_program_are_joined():
    x, y = tf.placeholder(tf.int32, []), tf.placeholder(tf.int32, [])
    total = x + y
    with tf.train.MonitoredSession(hooks=[Recorder(tf.train.SessionRunArgs(None, {x: 1}))]) as sess:
        assert sess.run(total, {y: 10}) == 11
        with pytest.raises(RuntimeError, match="fed by a SessionRunHook and user"):
            sess.run(total, {x: 1, y: 10})
    twice = [Recorder(tf.train.SessionRunArgs(None, {x: 1})) for _ in range(2)]
    with (
        tf.train.MonitoredSession(hooks=twice) as sess,
        pytest.raises(RuntimeError, match="fed by two hooks"),
    ):
        sess.run(total, {y: 10})


def test_options_of_hooks_are_merged():
    a = tf.random_uniform([]) + 2.0
    wants = [
        tf.RunOptions(trace_level=tf.RunOptions.SOFTWARE_TRACE),
        tf.RunOptions(timeout_in_ms=60000, report_tensor_allocations_upon_oom=True),
    ]
    items = [Recorder(tf.train.SessionRunArgs(None, options=o)) for o in wants]
    with tf.train.MonitoredSession(hooks=items) as sess:
        sess.run(a, options=tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE))
    options = items[0].values[0].options
    assert (options.trace_level, options.timeout_in_ms) == (tf.RunOptions.FULL_TRACE, 60000)
    assert options.report_tensor_allocations_upon_oom
    assert items[0].values[0].run_metadata.step_stats.dev_stats


def test_metadata_of_the_program_is_filled():
    a = tf.random_uniform([]) + 2.0
    metadata = tf.RunMetadata()
    with tf.train.MonitoredSession() as sess:
        sess.run(a, options=tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE), run_metadata=metadata)
    assert metadata.step_stats.dev_stats


def test_a_hook_ends_the_loop():
    class Stop(tf.train.SessionRunHook):
        def after_run(self, run_context, run_values):
            run_context.request_stop()

    a = tf.constant(1)
    with tf.train.MonitoredSession(hooks=[Stop()]) as sess:
        assert not sess.should_stop()
        sess.run(a)
        assert sess.should_stop()
        with pytest.raises(RuntimeError, match="Run called even after should_stop requested"):
            sess.run(a)


# -- ending --


@pytest.mark.parametrize("error", [tf.errors.OutOfRangeError(None, None, "end"), StopIteration()])
def test_the_end_of_the_input_ends_the_block_quietly(error):
    hook = Recorder()
    with tf.train.MonitoredSession(hooks=[hook]) as sess:
        raise error
    assert hook.calls[-1] == "end"
    assert sess.should_stop()


def test_a_closed_session_is_closed():
    tf.constant(1)
    sess = tf.train.MonitoredSession()
    assert sess.graph is tf.get_default_graph()
    assert tf.get_default_graph().finalized
    sess.close()
    assert sess.graph is None
    assert not tf.get_default_graph().finalized
    with pytest.raises(RuntimeError, match="Session is already closed"):
        sess.close()


def test_an_error_in_a_thread_comes_out_of_the_block():
    class InThread(tf.train.SessionRunHook):
        def after_create_session(self, session, coord):
            def work():
                with coord.stop_on_exception():
                    raise ValueError("in a thread")

            thread = threading.Thread(target=work)
            coord.register_thread(thread)
            thread.start()
            thread.join()

    tf.constant(1)
    with (
        pytest.raises(ValueError, match="in a thread"),
        tf.train.MonitoredSession(hooks=[InThread()]) as sess,
    ):
        while not sess.should_stop():
            pass


def test_a_thread_that_stops_the_coordinator_ends_the_loop():
    class Coordinated(tf.train.SessionRunHook):
        def after_create_session(self, session, coord):
            self.coord = coord

    hook = Coordinated()
    tf.constant(1)
    with tf.train.MonitoredSession(hooks=[hook]) as sess:
        assert not sess.should_stop()
        hook.coord.request_stop()
        assert sess.should_stop()


def test_the_real_session_is_found_by_following_the_layers():
    tf.constant(1)
    with tf.train.MonitoredTrainingSession() as sess:
        inner = sess
        while type(inner).__name__ != "Session":
            inner = inner._sess
        assert inner is sess._tf_sess()


# -- recovering --


@pytest.mark.parametrize("error", [tf.errors.AbortedError, tf.errors.UnavailableError])
def test_training_goes_on_from_the_checkpoint_when_a_task_was_lost(tmp_path, error):
    step = tf.train.get_or_create_global_step()
    train = tf.assign_add(step, 1)
    hooks = [FailOnce(4, error(None, None, "lost")), Recorder()]
    with tf.train.MonitoredTrainingSession(
        checkpoint_dir=str(tmp_path), hooks=hooks, save_checkpoint_steps=2, log_step_count_steps=0
    ) as sess:
        seen = [int(sess.run(train)) for _ in range(5)]
    assert seen == [1, 2, 3, 3, 4], "the checkpoint of step 2 was restored"
    assert hooks[1].calls.count("after_create_session") == 2
    assert hooks[1].calls.count("begin") == 1


def test_a_session_is_made_again_until_it_can_be():
    tf.Variable(1.0)

    class Creator:
        def __init__(self) -> None:
            self.failures = 2
            self.inner = tf.train.ChiefSessionCreator()

        def create_session(self):
            if self.failures:
                self.failures -= 1
                raise lost()
            return self.inner.create_session()

    creator = Creator()
    with tf.train.MonitoredSession(creator) as sess:
        assert creator.failures == 0
        assert not sess.should_stop()


@pytest.mark.parametrize("fails", ["making", "running"])
def test_a_session_that_is_lost_again_and_again_ends_with_an_error(monkeypatch, fails):
    monkeypatch.setenv("TENSORFLEET_RECOVERY_SECONDS", "100")
    now = [0.0]
    monkeypatch.setattr(patience, "monotonic", lambda: now[0])
    monkeypatch.setattr(patience, "sleep", lambda seconds: now.__setitem__(0, now[0] + 30 * seconds))
    one = tf.constant(1)

    class Creator:
        made = 0

        def create_session(self):
            self.made += 1
            if fails == "making" and self.made > 1:
                raise lost()
            return tf.train.ChiefSessionCreator().create_session()

    class Loses(tf.train.SessionRunHook):
        runs = 0

        def after_run(self, run_context, run_values):
            self.runs += 1
            if self.runs > 1:
                raise lost()

    creator = Creator()
    with (
        pytest.raises(tf.errors.DeadlineExceededError) as caught,
        tf.train.MonitoredSession(creator, hooks=[Loses()]) as sess,
    ):
        assert sess.run(one) == 1
        sess.run(one)
    assert lost().message in caught.value.message
    assert "set TENSORFLEET_RECOVERY_SECONDS" in caught.value.message
    assert creator.made > 3 and now[0] > 100


def test_a_run_that_succeeds_ends_the_count_of_losses(monkeypatch):
    monkeypatch.setenv("TENSORFLEET_RECOVERY_SECONDS", "100")
    now = [0.0]
    monkeypatch.setattr(patience, "monotonic", lambda: now[0])
    one = tf.constant(1)

    class LosesEverySecond(tf.train.SessionRunHook):
        runs = 0

        def after_run(self, run_context, run_values):
            self.runs += 1
            now[0] += 60
            if self.runs % 2:
                raise lost()

    with tf.train.MonitoredSession(hooks=[LosesEverySecond()]) as sess:
        for _ in range(5):
            assert sess.run(one) == 1


def test_a_lost_task_noticed_by_a_thread_counts():
    c = tf.constant(1)

    class Notices(tf.train.SessionRunHook):
        sessions = 0

        def after_create_session(self, session, coord):
            self.sessions += 1
            self.coord = coord

        def before_run(self, run_context):
            if self.sessions == 1:
                self.coord.request_stop(lost())
                raise tf.errors.CancelledError(None, None, "because of that")

    hook = Notices()
    with tf.train.MonitoredSession(hooks=[hook]) as sess:
        assert sess.run(c) == 1
    assert hook.sessions == 2


def test_should_stop_recovers_as_well():
    c = tf.constant(1)

    class Notices(tf.train.SessionRunHook):
        sessions = 0

        def after_create_session(self, session, coord):
            self.sessions += 1
            if self.sessions == 1:
                coord.request_stop(lost())

    hook = Notices()
    with tf.train.MonitoredSession(hooks=[hook]) as sess:
        assert not sess.should_stop()
        assert sess.run(c) == 1
    assert hook.sessions == 2


def test_a_singular_session_lets_the_error_through():
    c = tf.constant(1)
    with (
        pytest.raises(tf.errors.AbortedError),
        tf.train.SingularMonitoredSession(hooks=[FailOnce(1, lost())]) as sess,
    ):
        sess.run(c)


# -- step functions --


def test_a_step_function_runs_with_and_without_hooks():
    c = tf.constant(3)
    hook = Recorder()

    def step_fn(step_context):
        return step_context.session.run(c) + step_context.run_with_hooks(fetches=c)

    with tf.train.MonitoredSession(hooks=[hook]) as sess:
        assert sess.run_step_fn(step_fn) == 6
    assert hook.calls.count("before_run") == 1


def test_a_step_function_ends_the_loop():
    tf.constant(3)
    with tf.train.MonitoredSession() as sess:
        while not sess.should_stop():
            sess.run_step_fn(lambda step_context: step_context.request_stop())
        raise AssertionError("request_stop leaves the block")
    assert sess.should_stop()


def test_a_step_function_takes_one_argument_of_a_fixed_name():
    tf.constant(3)

    class Model:
        def step(self, step_context):
            return "method"

    with tf.train.MonitoredSession() as sess:
        assert sess.run_step_fn(Model().step) == "method"
        for wrong in (lambda: None, lambda foo: None, lambda step_context, more: None):
            with pytest.raises(ValueError, match="may either have one `step_context` argument"):
                sess.run_step_fn(wrong)


def test_a_step_function_is_called_again_with_the_new_session():
    c = tf.constant(3)
    sessions = []

    def step_fn(step_context):
        sessions.append(step_context.session)
        return step_context.run_with_hooks(c)

    with tf.train.MonitoredSession(hooks=[FailOnce(1, lost())]) as sess:
        assert sess.run_step_fn(step_fn) == 3
    assert len(set(sessions)) == 2
    assert sessions[1].graph is tf.get_default_graph()


# -- training sessions --


def test_a_training_session_saves_and_starts_where_it_ended(tmp_path):
    step = tf.train.get_or_create_global_step()
    train = tf.assign_add(step, 1)
    tf.summary.scalar("step", tf.cast(step, tf.float32))
    for _ in range(2):
        with tf.train.MonitoredTrainingSession(
            checkpoint_dir=str(tmp_path),
            hooks=[tf.train.StopAtStepHook(num_steps=3)],
            save_summaries_steps=1,
        ) as sess:
            while not sess.should_stop():
                sess.run(train)
    assert tf.train.latest_checkpoint(str(tmp_path)).endswith("model.ckpt-6")
    tags = [
        v.tag
        for path in tmp_path.glob("events*")
        for e in tf.train.summary_iterator(str(path))
        for v in e.summary.value
    ]
    assert tags.count("step") == 6


@pytest.mark.parametrize(
    ("kwargs", "expected"),
    [
        ({}, ["StepCounterHook", "SummarySaverHook", "CheckpointSaverHook"]),
        ({"save_checkpoint_secs": None}, ["StepCounterHook", "SummarySaverHook"]),
        ({"save_checkpoint_secs": 0}, ["StepCounterHook", "SummarySaverHook"]),
        ({"save_summaries_steps": None}, ["StepCounterHook", "CheckpointSaverHook"]),
        ({"log_step_count_steps": None}, ["SummarySaverHook", "CheckpointSaverHook"]),
        ({"save_checkpoint_steps": 5}, ["StepCounterHook", "SummarySaverHook", "CheckpointSaverHook"]),
    ],
)
def test_the_hooks_of_a_training_session(tmp_path, kwargs, expected):
    tf.train.get_or_create_global_step()
    with tf.train.MonitoredTrainingSession(checkpoint_dir=str(tmp_path), **kwargs) as sess:
        assert [type(h).__name__ for h in sess._hooks] == expected


def test_only_the_chief_has_the_chief_hooks(tmp_path, server):
    tf.train.get_or_create_global_step()
    chief_hook, hook = Recorder(), Recorder()
    kwargs = {"master": server.target, "chief_only_hooks": [chief_hook], "hooks": [hook]}
    with (
        tf.train.MonitoredTrainingSession(checkpoint_dir=str(tmp_path), **kwargs) as chief,
        tf.train.MonitoredTrainingSession(is_chief=False, max_wait_secs=60, **kwargs) as worker,
    ):
        assert chief._hooks[0] is chief_hook
        assert worker._hooks == [hook]


def test_a_worker_gives_up_after_its_time():
    tf.Variable(1.0)
    with pytest.raises(tf.errors.DeadlineExceededError, match="not ready after waiting"):
        tf.train.MonitoredTrainingSession(is_chief=False, max_wait_secs=0.2)


def test_summaries_may_go_elsewhere(tmp_path):
    tf.train.get_or_create_global_step()
    with tf.train.MonitoredTrainingSession(summary_dir=str(tmp_path)) as sess:
        assert [type(h).__name__ for h in sess._hooks] == ["StepCounterHook", "SummarySaverHook"]


def test_init_fn_and_feeds_of_the_scaffold_are_used():
    p = tf.placeholder(tf.float32, [])
    v = tf.Variable(p)
    w = tf.Variable(0.0)
    double = tf.assign(w, v * 2.0)
    scaffold = tf.train.Scaffold(
        init_op=tf.global_variables_initializer(),
        init_feed_dict={p: 4.0},
        init_fn=lambda scaffold, sess: sess.run(double),
    )
    with tf.train.MonitoredSession(tf.train.ChiefSessionCreator(scaffold)) as sess:
        assert sess.run([v, w]) == [4.0, 8.0]

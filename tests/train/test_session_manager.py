"""Sessions are restored, initialized or waited for."""

import pytest

import tensorfleet as tf
from tensorfleet.train import session_manager
from tests.support.waiting import in_background


@pytest.fixture
def pauses(monkeypatch):
    """Sleeping takes no time; the list tells how long it would have."""
    clock, slept = [0.0], []

    def sleep(seconds):
        clock[0] += seconds
        slept.append(seconds)

    monkeypatch.setattr(session_manager.time, "sleep", sleep)
    monkeypatch.setattr(session_manager.time, "monotonic", lambda: clock[0])
    return slept


def manager(**kwargs) -> tf.train.SessionManager:
    return tf.train.SessionManager(ready_op=tf.report_uninitialized_variables(), **kwargs)


def checkpoint(folder, value: float) -> None:
    with tf.Graph().as_default(), tf.Session() as sess:
        v = tf.Variable(value, name="v")
        sess.run(v.initializer)
        tf.train.Saver({"v": v}).save(sess, str(folder / "ckpt"))


def test_prepare_runs_the_init_op_with_its_feeds_and_then_the_function():
    p = tf.placeholder(tf.float32, [])
    v = tf.Variable(p, name="v")
    called = []
    sess = manager().prepare_session(
        "", init_op=tf.global_variables_initializer(), init_feed_dict={p: 3.0}, init_fn=called.append
    )
    assert sess.run(v) == 3.0
    assert called == [sess]


def test_prepare_fails_when_nothing_initializes():
    tf.Variable(1.0, name="v")
    with pytest.raises(RuntimeError, match="no init_op or init_fn or local_init_op was given"):
        manager().prepare_session("")


def test_prepare_names_what_the_init_op_forgot():
    v = tf.Variable(1.0, name="v")
    tf.Variable(1.0, name="w")
    with pytest.raises(RuntimeError, match="did not make model ready.*error: Variables not initialized: w"):
        manager().prepare_session("", init_op=v.initializer)


def test_prepare_restores_instead_of_initializing(tmp_path):
    checkpoint(tmp_path, 7.0)
    v = tf.Variable(1.0, name="v")
    saver = tf.train.Saver({"v": v})
    sess = manager().prepare_session(
        "", init_op=v.initializer, saver=saver, checkpoint_dir=str(tmp_path), init_fn=lambda s: 1 / 0
    )
    assert sess.run(v) == 7.0
    assert saver.last_checkpoints == [str(tmp_path / "ckpt")]


def test_prepare_restores_a_given_file(tmp_path):
    checkpoint(tmp_path, 7.0)
    v = tf.Variable(1.0, name="v")
    sess = manager().prepare_session(
        "",
        init_op=v.initializer,
        saver=tf.train.Saver({"v": v}),
        checkpoint_filename_with_path=str(tmp_path / "ckpt"),
    )
    assert sess.run(v) == 7.0


def test_a_directory_and_a_file_are_too_much(tmp_path):
    v = tf.Variable(1.0, name="v")
    with pytest.raises(ValueError, match="Can not provide both"):
        manager().recover_session("", tf.train.Saver([v]), str(tmp_path), str(tmp_path / "ckpt"))


def test_local_initialization_waits_for_what_it_needs():
    v = tf.Variable(1.0, name="v")
    local = tf.Variable(v.initialized_value(), name="local", collections=[tf.GraphKeys.LOCAL_VARIABLES])
    sm = manager(
        ready_for_local_init_op=tf.report_uninitialized_variables(tf.global_variables()),
        local_init_op=local.initializer,
    )
    with pytest.raises(RuntimeError, match="not make model ready for local_init.*not initialized: v"):
        sm.prepare_session("", init_op=tf.no_op())
    assert sm.prepare_session("", init_op=v.initializer).run(local) == 1.0


def test_a_check_for_local_initialization_needs_the_operation():
    with pytest.raises(ValueError, match="you must also pass a local_init_op"):
        tf.train.SessionManager(ready_for_local_init_op=tf.no_op())


def test_recover_tells_whether_a_checkpoint_made_the_model_ready(tmp_path):
    v = tf.Variable(1.0, name="v")
    saver = tf.train.Saver({"v": v})
    sm = manager()
    sess, ready = sm.recover_session("", saver=saver, checkpoint_dir=str(tmp_path))
    assert not ready
    checkpoint(tmp_path, 7.0)
    sess, ready = sm.recover_session("", saver=saver, checkpoint_dir=str(tmp_path))
    assert ready
    assert sess.run(v) == 7.0
    tf.Variable(1.0, name="w")
    sess, ready = manager().recover_session("", saver=saver, checkpoint_dir=str(tmp_path))
    assert not ready


def test_recover_waits_for_a_checkpoint(tmp_path, pauses, monkeypatch):
    v = tf.Variable(1.0, name="v")
    saver = tf.train.Saver({"v": v})
    sm = manager()
    assert not sm.recover_session("", saver, str(tmp_path), wait_for_checkpoint=True, max_wait_secs=3)[1]
    assert sum(pauses) == pytest.approx(3)
    states = iter([None, None, tf.train.generate_checkpoint_state_proto("", str(tmp_path / "ckpt"))])
    checkpoint(tmp_path, 7.0)
    monkeypatch.setattr(session_manager, "get_checkpoint_state", lambda folder: next(states))
    assert sm.recover_session("", saver, str(tmp_path), wait_for_checkpoint=True)[1]


def test_a_worker_starts_soon_after_the_chief(server):
    v = tf.Variable(2.0, name="v")
    sm = manager()
    init = v.initializer
    worker = in_background(lambda: sm.wait_for_session(server.target).run(v))
    with tf.Session(server.target) as chief:
        chief.run(init)
        assert worker.result(60) == 2.0


def test_waiting_looks_often_but_seldom_says_so(pauses, caplog, monkeypatch):
    monkeypatch.setattr(tf.get_logger(), "propagate", True)
    caplog.set_level("INFO", tf.get_logger().name)
    tf.Variable(1.0, name="v")
    with pytest.raises(
        tf.errors.DeadlineExceededError, match="after waiting 20 secs. Variables not init.*: v"
    ):
        manager(recovery_wait_secs=8).wait_for_session("", max_wait_secs=20)
    assert pauses[0] == 0.1
    assert max(pauses) == 0.5
    assert sum(pauses) == pytest.approx(20)
    assert caplog.text.count("Waiting for model to be ready.") == 3


def test_what_is_not_ready_is_told_as_before_0_12():
    v = tf.Variable(1.0, name="v")
    with tf.Session() as sess:
        assert manager()._model_not_ready(sess) == "Variables not initialized: v"
        sess.run(v.initializer)
        assert manager()._model_not_ready(sess) is None


def test_local_initialization_runs_once_while_waiting(pauses):
    tf.Variable(1.0, name="v")
    sm = manager(local_init_op=tf.no_op())
    original, calls = sm._try_run_local_init_op, []

    def counted(sess):
        calls.append(sess)
        return original(sess)

    sm._try_run_local_init_op = counted
    with pytest.raises(tf.errors.DeadlineExceededError):
        sm.wait_for_session("", max_wait_secs=5)
    assert len(calls) == 1


def test_waiting_goes_on_while_a_task_is_unreachable(pauses, monkeypatch):
    v = tf.Variable(1.0, name="v")
    sm = manager(local_init_op=v.initializer)
    failures = iter([tf.errors.UnavailableError(None, None, "ps is not there")] * 3)
    original = sm._try_run_local_init_op

    def sometimes(sess):
        for error in failures:
            raise error
        return original(sess)

    monkeypatch.setattr(sm, "_try_run_local_init_op", sometimes)
    assert sm.wait_for_session("").run(v) == 1.0
    assert len(pauses) == 3


def test_an_old_ready_op_that_fails_means_not_ready():
    v = tf.Variable(1.0, name="v")
    sm = tf.train.SessionManager(ready_op=tf.assert_variables_initialized())
    with pytest.raises(RuntimeError, match="did not make model ready"):
        sm.prepare_session("", init_op=tf.no_op())
    assert sm.prepare_session("", init_op=v.initializer).run(v) == 1.0


class Counted:
    """A weight and a global step on a server, which a chief's manager makes ready."""

    def __init__(self, server, folder):
        self.target, self.folder = server.target, str(folder)
        self.step = tf.train.get_or_create_global_step()
        self.weight = tf.get_variable("weight", [], initializer=tf.zeros_initializer())
        self.set = [v.assign(tf.cast(x, v.dtype.base_dtype)) for v, x in self._fed()]
        self.init, self.saver = tf.global_variables_initializer(), tf.train.Saver()

    def _fed(self):
        self.value = tf.placeholder(tf.int64, [])
        return [(self.step, self.value), (self.weight, self.value)]

    def prepared(self, manager, folder=None):
        return manager.prepare_session(
            self.target, init_op=self.init, saver=self.saver, checkpoint_dir=folder or self.folder
        )

    def save(self, sess):
        self.saver.save(sess, f"{self.folder}/model", global_step=self.step)


@pytest.fixture
def counted(server, tmp_path):
    return Counted(server, tmp_path)


def test_a_chief_that_starts_again_keeps_what_living_servers_have_beyond_its_checkpoint(counted, caplog):
    with counted.prepared(manager()) as sess:
        sess.run(counted.set, {counted.value: 5})
        counted.save(sess)
        sess.run(counted.set, {counted.value: 8})
    with caplog.at_level("WARNING", logger="tensorflow"), counted.prepared(manager()) as sess:
        assert sess.run([counted.step, counted.weight]) == [8, 8.0]
    assert "Training goes on from step 8" in caplog.text


def test_a_chief_that_starts_again_restores_a_checkpoint_that_is_newer_than_the_servers(counted):
    with counted.prepared(manager()) as sess:
        sess.run(counted.set, {counted.value: 5})
        counted.save(sess)
        sess.run(counted.set, {counted.value: 3})
    with counted.prepared(manager()) as sess:
        assert sess.run([counted.step, counted.weight]) == [5, 5.0]


def test_servers_that_have_lost_their_state_get_the_checkpoint(counted):
    sm = manager()
    with counted.prepared(sm) as sess:
        sess.run(counted.set, {counted.value: 5})
        counted.save(sess)
        sess.run(counted.set, {counted.value: 8})
    tf.Session.reset(counted.target)
    with counted.prepared(sm) as sess:
        assert sess.run([counted.step, counted.weight]) == [5, 5.0]


def test_a_session_that_begins_anew_does_not_initialize_what_is_there(counted, tmp_path):
    sm, nothing = manager(), str(tmp_path / "nothing")
    with counted.prepared(sm, nothing) as sess:
        sess.run(counted.set, {counted.value: 8})
    with counted.prepared(sm, nothing) as sess:
        assert sess.run(counted.weight) == 8.0
    with counted.prepared(manager(), nothing) as sess:  # another program
        assert sess.run(counted.weight) == 0.0


def test_local_variables_of_a_new_session_do_not_make_the_state_look_lost(counted):
    local = tf.get_variable("mine", [], collections=[tf.GraphKeys.LOCAL_VARIABLES])
    sm = manager(local_init_op=tf.local_variables_initializer())
    with counted.prepared(sm) as sess:
        sess.run([counted.set, local.initializer], {counted.value: 8})
        counted.save(sess)
        sess.run(counted.set, {counted.value: 9})
    with counted.prepared(sm) as sess:
        assert sess.run(counted.step) == 9


def test_a_file_that_was_asked_for_is_restored_once(counted):
    with counted.prepared(manager()) as sess:
        sess.run(counted.set, {counted.value: 5})
        counted.save(sess)
        sess.run(counted.set, {counted.value: 8})
    sm, path = manager(), tf.train.latest_checkpoint(counted.folder)
    for expected in (5, 9):
        with sm.prepare_session(
            counted.target, saver=counted.saver, checkpoint_filename_with_path=path
        ) as sess:
            assert sess.run(counted.step) == expected
            sess.run(counted.set, {counted.value: 9})

"""Supervisors start, save and stop a training, as the chief and as one of the others."""

import threading

import pytest

import tensorfleet as tf
from tensorfleet.api.train import session_manager
from tests.support.waiting import in_background


def events(folder) -> list:
    return [e for path in sorted(folder.glob("events*")) for e in tf.train.summary_iterator(str(path))]


def statuses(folder) -> list:
    return [e.session_log.status for e in events(folder) if e.WhichOneof("what") == "session_log"]


def scalars(folder) -> dict:
    return {v.tag: v.simple_value for e in events(folder) for v in e.summary.value}


def test_a_managed_session_is_ready_and_is_closed_at_the_end(tmp_path):
    v = tf.Variable(3.0)
    sv = tf.train.Supervisor(logdir=str(tmp_path))
    assert tf.get_default_graph().finalized
    with sv.managed_session() as sess:
        assert sess.run(v) == 3.0
        assert not sv.should_stop()
    assert sv.should_stop()
    with pytest.raises(RuntimeError, match="closed"):
        sess.run(v)


def test_errors_come_out_of_the_block():
    tf.constant(1)
    sv = tf.train.Supervisor()
    with pytest.raises(ValueError, match="mine"), sv.managed_session():
        raise ValueError("mine")


def test_the_end_of_the_input_does_not():
    tf.constant(1)
    sv = tf.train.Supervisor()
    with sv.managed_session():
        raise tf.errors.OutOfRangeError(None, None, "end")
    assert sv.should_stop()


def test_an_error_of_a_thread_comes_out_of_the_block():
    tf.constant(1)
    sv = tf.train.Supervisor()

    def fail():
        raise ValueError("in a loop")

    with pytest.raises(ValueError, match="in a loop"), sv.managed_session():
        sv.loop(0.01, fail)
        sv.wait_for_stop()


def test_a_failed_start_stops_the_supervisor():
    tf.Variable(1.0, name="v")
    sv = tf.train.Supervisor(init_op=None, local_init_op=None)
    with pytest.raises(RuntimeError, match="no init_op"), sv.managed_session():
        pass


def test_a_loop_calls_a_function_until_the_end():
    tf.constant(1)
    sv = tf.train.Supervisor()
    enough = threading.Event()
    calls = []

    def work(a, b):
        calls.append((a, b))
        if len(calls) == 3:
            enough.set()

    with sv.managed_session():
        looper = sv.Loop(0.001, work, args=(1,), kwargs={"b": 2})
        assert enough.wait(60)
    assert not looper.is_alive()
    assert set(calls) == {(1, 2)}


def test_the_chief_writes_graph_start_checkpoint_and_stop(tmp_path):
    step = tf.train.get_or_create_global_step()
    train = tf.assign_add(step, 1)
    sv = tf.train.Supervisor(logdir=str(tmp_path), save_model_secs=0)
    with sv.managed_session() as sess:
        sess.run(train)
        sv.saver.save(sess, sv.save_path, global_step=sv.global_step)
    assert (tmp_path / "graph.pbtxt").exists()
    assert tf.train.latest_checkpoint(str(tmp_path)) == str(tmp_path / "model.ckpt-1")
    assert statuses(tmp_path) == [tf.SessionLog.START, tf.SessionLog.STOP]
    kinds = [e.WhichOneof("what") for e in events(tmp_path)]
    assert kinds[:3] == ["file_version", "graph_def", "meta_graph_def"]


def test_the_services_save_summaries_speed_and_checkpoints(tmp_path):
    tf.train.get_or_create_global_step()
    tf.summary.scalar("c1", 1.0)
    tf.summary.scalar("c2", 2.0)
    sv = tf.train.Supervisor(logdir=str(tmp_path), save_summaries_secs=1000, save_model_secs=1000)
    sess = sv.prepare_or_wait_for_session(start_standard_services=False)
    threads = sv.start_standard_services(sess)
    assert [type(t).__name__ for t in threads] == [
        "SVSummaryThread",
        "SVStepCounterThread",
        "SVTimerCheckpointThread",
    ]
    for t in threads:  # each does its work once before it looks whether to stop
        t.run_loop()
    sv.stop()
    result = scalars(tmp_path)
    assert (result["c1"], result["c2"]) == (1.0, 2.0)
    assert "global_step/sec" in result
    assert tf.SessionLog.CHECKPOINT in statuses(tmp_path)
    assert tf.train.latest_checkpoint(str(tmp_path)).endswith("model.ckpt-0")


def test_training_goes_on_where_it_ended(tmp_path):
    step = tf.train.get_or_create_global_step()
    train = tf.assign_add(step, 1)
    sv = tf.train.Supervisor(logdir=str(tmp_path), save_model_secs=0)
    for expected in (1, 2):
        with sv.managed_session() as sess:
            assert sess.run(train) == expected
            sv.saver.save(sess, sv.save_path, global_step=step)


def test_a_program_writes_its_own_summaries(tmp_path):
    tf.train.get_or_create_global_step()
    summary = tf.summary.scalar("mine", 5.0)
    sv = tf.train.Supervisor(logdir=str(tmp_path), summary_op=None, save_model_secs=0, save_summaries_secs=0)
    with sv.managed_session() as sess:
        sv.summary_computed(sess, sess.run(summary))
        sv.SummaryComputed(sess, sess.run(summary), global_step=100)
    written = [(e.step, e.summary.value[0].simple_value) for e in events(tmp_path) if e.summary.value]
    assert written == [(0, 5.0), (100, 5.0)]


def test_without_a_directory_nothing_is_written():
    tf.Variable(1.0)
    summary = tf.summary.scalar("mine", 5.0)
    sv = tf.train.Supervisor()
    assert sv.summary_writer is sv.save_path is None
    with sv.managed_session() as sess:
        assert sv.start_standard_services(sess) is None
        with pytest.raises(RuntimeError, match="requires a summary writer"):
            sv.summary_computed(sess, sess.run(summary))


def test_a_writer_of_ones_own_or_none(tmp_path):
    tf.Variable(1.0)
    writer = tf.summary.FileWriter(str(tmp_path / "mine"))
    sv = tf.train.Supervisor(logdir=str(tmp_path), summary_writer=writer)
    assert sv.summary_writer is writer
    writer.close()
    with tf.Graph().as_default():
        tf.Variable(1.0)
        assert tf.train.Supervisor(logdir=str(tmp_path), summary_writer=None).summary_writer is None


def test_what_the_graph_has_is_used():
    tf.Variable(1.0)
    marks = {}
    for name in ("init_op", "ready_op", "summary_op"):
        marks[name] = tf.constant(name, name=name)
        tf.add_to_collection(getattr(tf.GraphKeys, name.upper()), marks[name])
    step = tf.Variable(0, name="global_step", trainable=False)
    sv = tf.train.Supervisor()
    assert {name: getattr(sv, name) for name in marks} == marks
    assert sv.global_step.name == step.name
    assert isinstance(sv.saver, tf.train.Saver)
    assert sv.ready_for_local_init_op is None
    assert sv.save_model_secs == 600
    assert sv.save_summaries_secs == 120
    assert isinstance(sv.coord, tf.train.Coordinator)


def test_a_global_step_that_is_no_integer_is_no_global_step():
    tf.Variable(0.0, name="global_step")
    assert tf.train.Supervisor().global_step is None


def test_none_means_to_do_without():
    tf.Variable(1.0, name="v")
    sv = tf.train.Supervisor(ready_op=None, init_op=None, saver=None, global_step=None, local_init_op=None)
    assert sv.ready_op is sv.init_op is sv.saver is sv.global_step is None


def test_init_feed_and_function():
    p = tf.placeholder(tf.float32, [2])
    v = tf.Variable(p, name="v")
    called = []
    sv = tf.train.Supervisor(init_feed_dict={p: [1.0, 2.0]}, init_fn=called.append)
    with sv.managed_session() as sess:
        assert sess.run(v).tolist() == [1.0, 2.0]
        assert called == [sess]


def test_local_variables_are_initialized():
    local = tf.Variable(4.0, name="local", collections=[tf.GraphKeys.LOCAL_VARIABLES])
    sv = tf.train.Supervisor()
    with sv.managed_session() as sess:
        assert sess.run(local) == 4.0


def test_another_graph_can_be_supervised():
    other = tf.Graph()
    with other.as_default():
        v = tf.Variable(6.0)
    sv = tf.train.Supervisor(graph=other)
    assert other.finalized
    assert not tf.get_default_graph().finalized
    with sv.managed_session() as sess:
        assert sess.run(v) == 6.0


# -- not the chief --


def test_the_others_wait_for_the_chief(tmp_path, server):
    with tf.device("/job:local"):
        v = tf.Variable(2.0, name="v")
    sv = tf.train.Supervisor(is_chief=False, logdir=str(tmp_path), recovery_wait_secs=1000)
    assert sv.summary_writer is sv.save_path is sv.save_model_secs is sv.save_summaries_secs is None

    def work():
        with sv.managed_session(server.target) as sess:
            return sess.run(v)

    worker = in_background(work)
    with tf.Session(server.target) as chief:
        chief.run(v.initializer)
        assert worker.result(60) == 2.0
    assert list(tmp_path.iterdir()) == []


def test_the_others_cannot_start_the_services():
    tf.constant(1)
    sv = tf.train.Supervisor(is_chief=False)
    with pytest.raises(RuntimeError, match="Only chief supervisor can start standard services"):
        sv.start_standard_services(tf.Session())


def test_variables_of_replicas_need_a_device():
    tf.Variable(1.0, name="v")
    with pytest.raises(ValueError, match="all Variables must have their device set"):
        tf.train.Supervisor(is_chief=False)


def test_a_session_manager_of_ones_own():
    tf.constant(1)
    sm = tf.train.SessionManager()
    assert tf.train.Supervisor(session_manager=sm).session_manager is sm
    assert isinstance(tf.train.Supervisor().session_manager, session_manager.SessionManager)


# -- queues and loops --


def test_queue_runners_are_started_and_stopped():
    queue = tf.FIFOQueue(3, [tf.float32], shapes=[[]])
    tf.train.add_queue_runner(tf.train.QueueRunner(queue, [queue.enqueue(1.5)]))
    out = queue.dequeue()
    sv = tf.train.Supervisor()
    with sv.managed_session() as sess:
        assert [sess.run(out) for _ in range(10)] == [1.5] * 10
    assert sv.coord.joined


def test_a_basic_loop_runs_until_the_supervisor_stops():
    step = tf.train.get_or_create_global_step()
    train = tf.assign_add(step, 1)
    sv = tf.train.Supervisor()
    seen = []

    def step_fn(sess, limit, bonus=0):
        seen.append(int(sess.run(train)))
        if seen[-1] >= limit + bonus:
            sv.request_stop()

    tf.train.basic_train_loop(sv, step_fn, args=(2,), kwargs={"bonus": 1})
    assert seen == [1, 2, 3]


def test_a_basic_loop_starts_again_after_an_abort():
    tf.constant(1)
    sv = tf.train.Supervisor()
    calls = []

    def step_fn(sess):
        calls.append(sess)
        if len(calls) == 1:
            raise tf.errors.AbortedError(None, None, "lost")
        sv.request_stop()

    tf.train.basic_train_loop(sv, step_fn)
    assert len(set(calls)) == 2


def test_names_of_the_threads_are_published():
    module = tf.python.training.supervisor
    assert {module.SVSummaryThread, module.SVStepCounterThread, module.SVTimerCheckpointThread}
    assert issubclass(module.SVSummaryThread, tf.train.LooperThread)

"""`tensorfleet run --consistency`: the optimizers of an unedited script train as the run says."""

import numpy as np
import pytest

import tensorfleet as tf
from tensorfleet.fleet.consistency import of_run


@pytest.fixture
def installed(monkeypatch):
    def install(text):
        monkeypatch.setenv("TENSORFLEET_CONSISTENCY", text)
        of_run.install()

    yield install
    of_run.uninstall()


def judged(graph=None):
    """The gates of a graph: what they decide."""
    ops = (graph or tf.get_default_graph()).get_operations()
    return [op.get_attr("consistency").decode() for op in ops if op.type == "FleetConsistency"]


def quadratic():
    step = tf.train.get_or_create_global_step()
    w = tf.get_variable("w", [2], initializer=tf.zeros_initializer())
    return w, tf.reduce_sum(tf.square(w - 1.0)), step


def test_an_optimizer_trains_as_the_run_says(installed):
    installed("ssp:3")
    w, loss, step = quadratic()
    train = tf.train.AdamOptimizer(0.1).minimize(loss, global_step=step)
    assert set(judged()) == {"ssp:3"}
    with tf.train.MonitoredTrainingSession() as sess:
        for _ in range(3):
            sess.run(train)
        assert sess._tf_sess().run(step) == 3


def test_without_the_run_an_optimizer_is_left_alone():
    w, loss, step = quadratic()
    tf.train.AdamOptimizer(0.1).minimize(loss, global_step=step)
    assert judged() == []


def test_the_run_replaces_what_the_script_says(installed):
    installed("asp")
    w, loss, step = quadratic()
    tf.fleet.Optimizer(tf.train.GradientDescentOptimizer(0.1), "bsp").minimize(loss, global_step=step)
    assert set(judged()) == {"asp"}


def test_an_optimizer_of_the_scripts_own_keeps_its_own_part(installed):
    installed("asp")

    class Halved(tf.train.GradientDescentOptimizer):
        calls = 0

        def apply_gradients(self, grads_and_vars, global_step=None, name=None):
            Halved.calls += 1
            pairs = [(g / 2, v) for g, v in grads_and_vars]
            return super().apply_gradients(pairs, global_step, name)

    w, loss, step = quadratic()
    train = Halved(0.5).minimize(loss, global_step=step)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        sess.run(train)
        np.testing.assert_allclose(sess.run(w), [0.5, 0.5])
    assert Halved.calls == 1
    assert len(set(judged())) == 1


def test_two_optimizers_of_a_script_have_a_gate_each(installed):
    installed("bsp")
    w, loss, step = quadratic()
    v = tf.get_variable("v", [], initializer=tf.zeros_initializer())
    tf.train.GradientDescentOptimizer(0.1).minimize(loss, global_step=step)
    tf.train.GradientDescentOptimizer(0.1).minimize(tf.square(v - 1.0), var_list=[v])
    names = {
        op.get_attr("shared_name").decode()
        for op in tf.get_default_graph().get_operations()
        if op.type == "FleetConsistency"
    }
    assert names == {"consistency/w", "consistency/v"}


def sync_training(averages=None):
    w, loss, step = quadratic()
    opt = tf.train.SyncReplicasOptimizer(
        tf.train.GradientDescentOptimizer(0.1), 2, 2, variable_averages=averages, variables_to_average=[w]
    )
    return opt, opt.minimize(loss, global_step=step), step


def test_synchronous_replicas_become_a_name_for_it(installed):
    installed("asp")
    opt, train, step = sync_training()
    assert isinstance(opt, tf.train.SyncReplicasOptimizer)
    assert set(judged()) == {"asp"}
    hooks = [opt.make_session_run_hook(True), tf.train.StopAtStepHook(last_step=4)]
    with tf.train.MonitoredTrainingSession(hooks=hooks) as sess:
        while not sess.should_stop():
            sess.run(train)  # alone: nobody waits for the second replica


def test_what_a_supervisor_asks_of_synchronous_replicas_is_there(installed):
    installed("asp")
    opt, train, step = sync_training(averages=tf.train.ExponentialMovingAverage(0.9))
    supervisor = tf.train.Supervisor(
        local_init_op=opt.chief_init_op, ready_for_local_init_op=opt.ready_for_local_init_op, global_step=step
    )
    runner, tokens = opt.get_chief_queue_runner(), opt.get_init_tokens_op()
    with supervisor.managed_session() as sess:
        assert supervisor.start_queue_runners(sess, [runner]) == []
        sess.run(tokens)
        for _ in range(3):
            sess.run(train)
        assert sess.run(step) == 3
    assert opt.local_step_init_op is opt.chief_init_op


def test_a_subclass_of_synchronous_replicas_is_refused(installed):
    installed("asp")

    class Own(tf.train.SyncReplicasOptimizer):
        pass

    with pytest.raises(
        TypeError, match="Own is a SyncReplicasOptimizer of the script's own.*Leave out --consi"
    ):
        Own(tf.train.GradientDescentOptimizer(0.1), 2)


def test_synchronous_replicas_must_be_asked_in_order(installed):
    installed("asp")
    opt = tf.train.SyncReplicasOptimizer(tf.train.GradientDescentOptimizer(0.1), 2)
    with pytest.raises(ValueError, match=r"after apply_gradients\(\)"):
        opt.get_chief_queue_runner()
    with pytest.raises(ValueError, match=r"after apply_gradients\(\)"):
        opt.get_init_tokens_op()
    with pytest.raises(ValueError, match="Global step is required"):
        opt.minimize(quadratic()[1])


def test_a_text_without_a_meaning_is_refused_at_once(monkeypatch):
    monkeypatch.setenv("TENSORFLEET_CONSISTENCY", "spp:4")
    with pytest.raises(ValueError, match="TENSORFLEET_CONSISTENCY is 'spp:4'. Did you mean 'ssp:4'"):
        of_run.install()
    assert tf.train.SyncReplicasOptimizer.__name__ == "SyncReplicasOptimizer"

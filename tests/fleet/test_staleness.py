"""Workers that do not wait for each other: old gradients are measured, scaled, dropped, or kept from getting old."""

import numpy as np
import pytest

import tensorfleet as tf
from tensorfleet.testing.cluster import free_addresses
from tests.support.waiting import in_background


class Late:
    """A training step whose gradient arrives after `others` more updates."""

    def __init__(self, **kwargs) -> None:
        self.step = tf.train.get_or_create_global_step()
        self.w = tf.Variable([8.0], name="w")
        self.table = tf.Variable(np.zeros((3, 1), np.float32), name="table")
        self.opt = tf.fleet.StalenessOptimizer(tf.train.MomentumOptimizer(1.0, 0.0), **kwargs)
        loss = tf.reduce_sum(self.w * 4.0) + tf.reduce_sum(tf.gather(self.table, [1])) * 4.0
        pairs = self.opt.compute_gradients(loss)
        self.others = tf.placeholder(tf.int64, [])
        with tf.control_dependencies(
            [self.opt._seen, *(g.values if hasattr(g, "values") else g for g, _ in pairs)]
        ):
            passed = tf.assign_add(self.step, self.others)
        with tf.control_dependencies([passed]):
            pairs = [(_after(g), v) for g, v in pairs]
        self.train = self.opt.apply_gradients(pairs, self.step)

    def run(self, others: int) -> tuple:
        with tf.Session() as sess:
            sess.run(tf.global_variables_initializer())
            _, age = sess.run([self.train, self.opt.staleness], {self.others: others})
            w, table, step = sess.run([self.w, self.table, self.step])
        return int(age), 8.0 - w[0], -table[1, 0], int(step) - others


def _after(grad):
    if isinstance(grad, tf.IndexedSlices):
        return tf.IndexedSlices(tf.identity(grad.values), grad.indices, grad.dense_shape)
    return tf.identity(grad)


@pytest.mark.parametrize("others", [0, 3])
def test_staleness_is_measured(others):
    assert Late().run(others) == (others, 4.0, 4.0, 1)


@pytest.mark.parametrize(("others", "expected"), [(0, 4.0), (1, 2.0), (3, 1.0)])
def test_old_gradients_count_less(others, expected):
    assert Late(policy="scale").run(others) == (others, expected, expected, 1)


@pytest.mark.parametrize(("others", "applied"), [(0, True), (2, True), (3, False)])
def test_gradients_beyond_the_bound_are_dropped(others, applied):
    expected = 4.0 if applied else 0.0
    assert Late(policy="drop", bound=2).run(others) == (others, expected, expected, int(applied))


def test_slots_are_those_of_the_wrapped_optimizer():
    late = Late(policy="drop", bound=0)
    assert late.opt.get_slot_names() == ["momentum"]
    assert late.opt.get_slot(late.w, "momentum").op.name == "w/Momentum"
    assert [v.op.name for v in late.opt.variables()] == ["table/Momentum", "w/Momentum"]


def test_minimize_works_as_with_any_optimizer():
    tf.train.get_or_create_global_step()
    w = tf.Variable(3.0)
    opt = tf.fleet.StalenessOptimizer(tf.train.GradientDescentOptimizer(0.5), policy="scale")
    train = opt.minimize(tf.square(w), global_step=tf.train.get_global_step())
    with tf.train.MonitoredTrainingSession(hooks=[tf.train.StopAtStepHook(last_step=3)]) as sess:
        while not sess.should_stop():
            sess.run(train)
        assert sess._tf_sess().run(w) == 0.0


class Worker:
    """A worker under the policy "wait", on a server that it shares."""

    def __init__(self, spec, server, index: int, bound: int) -> None:
        self.server = server
        self.is_chief = index == 0
        self.graph = tf.Graph()
        self.made = 0
        setter = tf.train.replica_device_setter(cluster=spec, worker_device=f"/job:worker/task:{index}")
        with self.graph.as_default(), tf.device(setter):
            step = tf.train.get_or_create_global_step()
            opt = tf.fleet.StalenessOptimizer(
                tf.train.GradientDescentOptimizer(0.1), "wait", bound=bound, num_workers=2
            )
            self.train = opt.minimize(tf.Variable(1.0) * 2.0, global_step=step)
            self.hook = opt.make_session_run_hook(index)

    def session(self):
        with self.graph.as_default():
            return tf.train.MonitoredTrainingSession(
                self.server.target, is_chief=self.is_chief, hooks=[self.hook]
            )

    def make(self, session, steps: int) -> None:
        for _ in range(steps):
            session.run(self.train)
            self.made += 1


@pytest.fixture
def servers(serve):
    spec = tf.train.ClusterSpec(free_addresses(ps=1, worker=2))
    return spec, [serve(spec, job, i) for job, i in (("ps", 0), ("worker", 0), ("worker", 1))]


def test_a_fast_worker_waits_for_the_slow_one(servers):
    spec, result = servers
    fast, slow = (Worker(spec, result[1 + i], i, bound=2) for i in range(2))
    with fast.session() as first, slow.session() as second:
        hurrying = in_background(fast.make, first, 11)
        for _ in range(9):
            slow.make(second, 1)
            # A step ends when the next one may begin, at most two ahead.
            assert fast.made <= slow.made + 2
        hurrying.result(60)


def test_a_worker_that_ended_is_not_waited_for(servers):
    spec, result = servers
    fast, slow = (Worker(spec, result[1 + i], i, bound=1) for i in range(2))
    with fast.session() as first:
        hurrying = in_background(fast.make, first, 10)
        with slow.session() as second:
            slow.make(second, 1)
        hurrying.result(60)


def test_a_worker_that_never_comes_is_given_up(servers, monkeypatch, caplog):
    monkeypatch.setenv("TENSORFLEET_REPLICA_SECONDS", "0.2")
    spec, result = servers
    alone = Worker(spec, result[1], 0, bound=1)
    with caplog.at_level("WARNING", logger="tensorflow"), alone.session() as sess:
        alone.make(sess, 6)
    said = [r.getMessage() for r in caplog.records if "Training goes on" in r.getMessage()]
    assert len(said) == 1, "it waited once"
    assert "without a worker that has not come: nothing came from there for 0.2 s (ssp:1)" in said[0]


@pytest.mark.parametrize(
    ("kwargs", "text"),
    [
        ({"policy": "guess"}, "policy must be one of measure, scale, drop, wait"),
        ({"policy": "drop"}, "need a bound of 0 or more"),
        ({"policy": "scale", "bound": 1}, "need a bound"),
        ({"policy": "drop", "bound": -1}, "bound must be 0 or more, not -1"),
        ({"policy": "wait", "bound": 1}, "needs num_workers"),
        ({"policy": "wait", "bound": 1, "num_workers": 0}, "num_workers must be 1 or more, not 0"),
        ({"warm_up_steps": -1}, "warm_up_steps must be 0 or more, not -1"),
        ({"rate": float("nan")}, "rate must be above 0 and finite, not nan"),
    ],
)
def test_what_makes_no_sense_is_refused(kwargs, text):
    with pytest.raises(ValueError, match=text):
        tf.fleet.StalenessOptimizer(tf.train.GradientDescentOptimizer(0.1), **kwargs)


@pytest.mark.parametrize(
    ("kwargs", "text"),
    [
        ({"policy": "drop", "bound": "x"}, "bound must be a whole number of 0 or more, not 'x'"),
        ({"policy": "drop", "bound": 1.5}, "bound must be a whole number of 0 or more, not 1.5"),
        ({"policy": "drop", "bound": True}, "bound must be a whole number of 0 or more, not True"),
        (
            {"policy": "wait", "bound": 1, "num_workers": "2"},
            "num_workers must be a whole number of 1 or more",
        ),
        ({"warm_up_steps": None}, "warm_up_steps must be a whole number of 0 or more, not None"),
        ({"rate": "half"}, "rate must be a number above 0, not 'half'"),
        ({"opt": 0.1}, "opt must be a tf.train.Optimizer, not 0.1"),
    ],
)
def test_an_argument_of_another_type_is_refused(kwargs, text):
    given = {"opt": tf.train.GradientDescentOptimizer(0.1), **kwargs}
    with pytest.raises(TypeError, match=text):
        tf.fleet.StalenessOptimizer(**given)


@pytest.mark.parametrize(
    ("index", "kind", "text"),
    [
        (2, ValueError, "there are workers 0 to 1, and no 2"),
        (-1, ValueError, "task_index must be 0 or more, not -1"),
        ("0", TypeError, "task_index must be a whole number of 0 or more, not '0'"),
    ],
)
def test_a_hook_of_a_worker_that_does_not_exist_is_refused(index, kind, text):
    with pytest.raises(kind, match=text):
        bounded()[0].make_session_run_hook(index)
    with pytest.raises(ValueError, match="max_wait_secs must be above 0"):
        bounded()[0].make_session_run_hook(0, max_wait_secs=-1)


def bounded(**kwargs):
    """An optimizer that makes workers wait, and its training step."""
    kwargs = kwargs or {"policy": "wait", "bound": 1, "num_workers": 2}
    opt = tf.fleet.StalenessOptimizer(tf.train.GradientDescentOptimizer(0.1), **kwargs)
    return opt, opt.minimize(tf.Variable(1.0) * 2.0, global_step=tf.train.get_or_create_global_step())


def test_a_warm_up_is_refused_without_the_hook():
    opt, train = bounded(warm_up_steps=5)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        with pytest.raises(tf.errors.InvalidArgumentError) as caught:
            sess.run(train)
        assert "StalenessOptimizer with warm_up_steps trains without its hook" in str(caught.value)
        assert sess.run(tf.train.get_global_step()) == 0
    with tf.train.MonitoredTrainingSession(hooks=[opt.make_session_run_hook(0)]) as sess:
        for _ in range(2):
            sess.run(train)


def test_it_must_be_asked_in_order():
    opt = tf.fleet.StalenessOptimizer(tf.train.GradientDescentOptimizer(0.1))
    w = tf.Variable(1.0)
    with pytest.raises(ValueError, match="create_global_step"):
        opt.compute_gradients(w * 2.0)
    with pytest.raises(ValueError, match=r"compute_gradients\(\) of this optimizer"):
        opt.apply_gradients([(tf.constant(1.0), w)])
    with pytest.raises(ValueError, match=r"after apply_gradients\(\) or minimize\(\)"):
        opt.make_session_run_hook(0)


def test_a_histogram_of_what_was_applied_is_kept(caplog):
    late = Late(policy="drop", bound=3)
    evaluate = late.w * 2.0
    hook = late.opt.make_session_run_hook(5)
    with (
        caplog.at_level("INFO", logger="tensorflow"),
        tf.train.MonitoredTrainingSession(hooks=[hook]) as sess,
    ):
        for others in (0, 1, 1, 3, 4):
            sess.run([late.train, late.opt.staleness], {late.others: others})
            sess.run(evaluate)
    assert late.opt.histogram == {0: 1, 1: 2, 3: 1}
    assert late.opt.dropped == 1
    messages = [r.getMessage() for r in caplog.records if "Staleness of" in r.getMessage()]
    assert messages == ["Staleness of the gradients of worker 5: 0: 1, 1: 2, 3: 1; 1 dropped"]


@pytest.mark.parametrize("given", [0.5, lambda: 0.5])
def test_the_rate_is_lowered(given, session):
    step = tf.train.get_or_create_global_step()
    w = tf.Variable(3.0)
    for item in (tf.train.GradientDescentOptimizer(given), tf.train.AdamOptimizer(given)):
        opt = tf.fleet.StalenessOptimizer(item, rate=0.5)
        assert opt.minimize(w * 2.0, global_step=step)
    session.run(tf.global_variables_initializer())
    session.run(
        tf.fleet.StalenessOptimizer(tf.train.GradientDescentOptimizer(given), rate=0.5).minimize(w * 2.0)
    )
    assert session.run(w) == 2.5


def test_a_rate_that_cannot_be_lowered_is_refused():
    with pytest.raises(ValueError, match="rate must be above 0"):
        tf.fleet.StalenessOptimizer(tf.train.GradientDescentOptimizer(0.1), rate=0.0)
    plain = tf.train.Optimizer(False, "plain")
    with pytest.raises(ValueError, match="has no learning rate"):
        tf.fleet.StalenessOptimizer(plain, rate=0.5)


def test_others_wait_while_the_first_worker_warms_up(servers):
    spec, result = servers
    workers = []
    for index in range(2):
        graph = tf.Graph()
        setter = tf.train.replica_device_setter(cluster=spec, worker_device=f"/job:worker/task:{index}")
        with graph.as_default(), tf.device(setter):
            step = tf.train.get_or_create_global_step()
            opt = tf.fleet.StalenessOptimizer(tf.train.GradientDescentOptimizer(0.1), warm_up_steps=3)
            train = opt.minimize(tf.Variable(1.0) * 2.0, global_step=step)
            hook = opt.make_session_run_hook(index)
            sess = tf.train.MonitoredTrainingSession(result[1 + index].target, index == 0, hooks=[hook])
        workers.append((sess, train, step))
    (first, train, step), (second, train2, step2) = workers

    def other():
        second.run(train2)
        return second._tf_sess().run(step2)

    waiting = in_background(other)
    for _ in range(3):
        assert not waiting.done()
        first.run(train)
    assert waiting.result(60) == 4
    for sess, *_ in workers:
        sess.close()


def test_a_first_worker_that_never_comes_is_not_waited_for_longer_than_said():
    step = tf.train.get_or_create_global_step()
    opt = tf.fleet.StalenessOptimizer(tf.train.GradientDescentOptimizer(0.1), warm_up_steps=3)
    train = opt.minimize(tf.Variable(1.0) * 2.0, global_step=step)
    hook = opt.make_session_run_hook(1, max_wait_secs=0.1)
    with tf.train.MonitoredTrainingSession(hooks=[hook]) as sess:
        sess.run(train)
        assert sess.run(step) == 1


def test_the_defaults_change_nothing():
    def trained(wrap):
        with tf.Graph().as_default(), tf.Session() as sess:
            step = tf.train.get_or_create_global_step()
            w = tf.get_variable("w", [3], initializer=tf.constant_initializer([1.0, -2.0, 3.0]))
            train = wrap(tf.train.AdamOptimizer(0.1)).minimize(tf.reduce_sum(tf.square(w)), global_step=step)
            sess.run(tf.global_variables_initializer())
            for _ in range(5):
                sess.run(train)
            return sess.run([w, step]), sorted(v.op.name for v in tf.global_variables())

    (plain, steps), names = trained(lambda opt: opt)
    (wrapped, same_steps), same_names = trained(tf.fleet.StalenessOptimizer)
    np.testing.assert_array_equal(wrapped, plain)
    assert (steps, names) == (same_steps, same_names)

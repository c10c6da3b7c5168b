"""Replicas that train together: one update from several gradients, stale ones dropped, a clean end."""

import queue
import threading

import numpy as np
import pytest

import tensorfleet as tf
from tensorfleet.api.train.dropped_gradients import DroppedReport
from tensorfleet.ops.state.await_replicas import await_replicas
from tensorfleet.testing.cluster import free_addresses
from tests.support.waiting import SECONDS, in_background, together

RATE = 0.5


@pytest.fixture
def cluster(serve):
    """A parameter server and two workers, all in this process."""
    spec = tf.train.ClusterSpec(free_addresses(ps=1, worker=2))
    return spec, [serve(spec, job, i) for job, i in (("ps", 0), ("worker", 0), ("worker", 1))]


class Replica:
    """A worker's own graph: a dense and a sparse variable, gradients that are fed."""

    def __init__(self, cluster, index: int, aggregate: int, total: int | None = None, **kwargs) -> None:
        spec, servers = cluster
        self.target = servers[1 + index].target
        self.is_chief = index == 0
        self.graph = tf.Graph()
        setter = tf.train.replica_device_setter(cluster=spec, worker_device=f"/job:worker/task:{index}")
        with self.graph.as_default(), tf.device(setter):
            self.step = tf.train.get_or_create_global_step()
            self.dense = tf.Variable([1.0, 2.0], name="dense")
            self.table = tf.Variable(np.zeros((4, 1), np.float32), name="table")
            self.grad = tf.placeholder(tf.float32, [2])
            self.rows = tf.placeholder(tf.int32, [None])
            opt = tf.train.GradientDescentOptimizer(RATE)
            self.opt = tf.train.SyncReplicasOptimizer(opt, aggregate, total, **kwargs)
            values = tf.ones([tf.size(self.rows), 1])
            slices = tf.IndexedSlices(values, self.rows, tf.constant([4, 1]))
            self.train = self.opt.apply_gradients(
                [(self.grad, self.dense), (slices, self.table)], global_step=self.step
            )

    def session(self, num_tokens: int = 0, hooks=()):
        with self.graph.as_default():
            hook = self.opt.make_session_run_hook(self.is_chief, num_tokens)
            return tf.train.MonitoredTrainingSession(
                self.target, is_chief=self.is_chief, hooks=[hook, *hooks], stop_grace_period_secs=60
            )

    def feeds(self, grad, rows) -> dict:
        return {self.grad: grad, self.rows: rows}


def test_an_update_is_the_mean_of_all_replicas(cluster):
    a, b = (Replica(cluster, i, 2) for i in range(2))
    with a.session() as first, b.session() as second:
        for n in range(1, 4):
            together(
                lambda: first.run(a.train, a.feeds([1.0, 0.0], [0, 1])),
                lambda: second.run(b.train, b.feeds([3.0, 1.0], [1])),
            )
            step, dense, table = first.run([a.step, a.dense, a.table], a.feeds([0.0, 0.0], []))
            assert step == n
            np.testing.assert_allclose(dense, [1.0 - RATE * 2.0 * n, 2.0 - RATE * 0.5 * n])
            # Of a row too, the mean is over all replicas.
            np.testing.assert_allclose(table[:, 0], [-RATE * n / 2, -RATE * n, 0.0, 0.0])


def test_two_half_batches_train_as_one_whole(cluster):
    data = np.random.RandomState(0).rand(8, 3).astype("f")

    def model():
        x = tf.placeholder(tf.float32, [None, 3])
        w = tf.get_variable("w", [3, 1], initializer=tf.constant_initializer(0.3))
        loss = tf.reduce_mean(tf.square(tf.matmul(x, w) - 1.0))
        return x, w, loss, tf.train.get_or_create_global_step()

    with tf.Graph().as_default(), tf.Session() as sess:
        x, w, loss, step = model()
        train = tf.train.AdamOptimizer(0.1).minimize(loss, step)
        sess.run(tf.global_variables_initializer())
        for _ in range(5):
            sess.run(train, {x: data})
        expected = sess.run(w)

    spec, servers = cluster
    replicas = []
    for i in range(2):
        graph = tf.Graph()
        setter = tf.train.replica_device_setter(cluster=spec, worker_device=f"/job:worker/task:{i}")
        with graph.as_default(), tf.device(setter):
            x, w, loss, step = model()
            opt = tf.train.SyncReplicasOptimizer(tf.train.AdamOptimizer(0.1), 2)
            train = opt.minimize(loss, global_step=step)
            assert [v.op.name for v in opt.variables()] == [
                "beta1_power",
                "beta2_power",
                "w/Adam",
                "w/Adam_1",
            ]
            assert opt.get_slot_names() == ["m", "v"]
            assert opt.get_slot(w, "m").op.name == "w/Adam"
            hook = opt.make_session_run_hook(i == 0, num_tokens=0)
            half = data[4 * i : 4 * i + 4]
            replicas.append((graph, servers[1 + i].target, i == 0, hook, train, x, half, w))
    results = []
    both = threading.Barrier(2, timeout=60)  # or one that is quick could take the other's token, too

    def work(graph, target, chief, hook, train, x, half, w):
        with graph.as_default(), tf.train.MonitoredTrainingSession(target, chief, hooks=[hook]) as sess:
            for _ in range(5):
                sess.run(train, {x: half})
                both.wait()
            results.append(sess.run(w))
            both.wait()

    together(*(lambda r=r: work(*r) for r in replicas))
    for value in results:
        np.testing.assert_allclose(value, expected, rtol=1e-5)


def test_a_backup_replica_is_not_waited_for_and_its_late_gradient_is_dropped(cluster):
    a, b = (Replica(cluster, i, 1, 2) for i in range(2))
    with a.session(num_tokens=2) as first, b.session() as second:
        tf_second = second._tf_sess()
        local = b.opt._local_step
        first.run(a.train, a.feeds([1.0, 0.0], [0]))
        while first.run(a.step, a.feeds([0.0, 0.0], [])) < 3:
            first.run(a.train, a.feeds([1.0, 0.0], [0]))
        assert tf_second.run(local) == 0
        before = first.run([a.step, a.dense], a.feeds([0.0, 0.0], []))
        second.run(b.train, b.feeds([1000.0, 0.0], [0]))
        after = first.run([a.step, a.dense], a.feeds([0.0, 0.0], []))
        assert after[0] == before[0]
        np.testing.assert_array_equal(after[1], before[1])
        assert tf_second.run(local) > 0, "with its token it catches up"
        assert a.opt.dropped_gradients(first)["/job:worker/task:1"] == 1
        assert tf.fleet.dropped_gradients(tf_second)["/job:worker/task:1"] == 1


def test_more_gradients_than_replicas(cluster):
    a, b = (Replica(cluster, i, 3, 2) for i in range(2))
    with pytest.raises(ValueError, match=r"Too few tokens to finish the first step: 0 \(given\) vs 1"):
        a.session(num_tokens=0)
    a, b = (Replica(cluster, i, 3, 2) for i in range(2))
    with a.session(num_tokens=1) as first, b.session() as second:
        first.run(a.train, a.feeds([3.0, 0.0], [0]))  # with the one token there is
        together(
            lambda: first.run(a.train, a.feeds([3.0, 0.0], [0])),
            lambda: second.run(b.train, b.feeds([3.0, 0.0], [0])),
        )
        assert first.run(a.step, a.feeds([0.0, 0.0], [])) == 1


@pytest.mark.flaky(
    reruns=2,
    reason="a replica that is not scheduled for seconds counts as lost: 12 of 300 runs on a loaded machine",
)
def test_replicas_end_together_however_far_they_are(cluster):
    a, b = (Replica(cluster, i, 2) for i in range(2))
    ends = []

    def train(replica):
        with replica.session(-1, [tf.train.StopAtStepHook(last_step=6)]) as sess:
            while not sess.should_stop():
                sess.run(replica.train, replica.feeds([1.0, 1.0], [0]))
        ends.append(replica)

    together(lambda: train(a), lambda: train(b))
    assert len(ends) == 2


@pytest.mark.parametrize("reset", [True, False])
def test_a_second_training_on_the_same_servers(cluster, reset):
    for _ in range(2):
        one_step(*(Replica(cluster, i, 2) for i in range(2)))
        for server in cluster[1] if reset else ():
            tf.Session.reset(server.target)


def one_step(a: Replica, b: Replica) -> None:
    with a.session() as first, b.session() as second:
        together(
            lambda: first.run(a.train, a.feeds([2.0, 0.0], [0])),
            lambda: second.run(b.train, b.feeds([2.0, 0.0], [0])),
        )
        assert first.run(a.step, a.feeds([0.0, 0.0], [])) == 1
        np.testing.assert_allclose(first.run(a.dense, a.feeds([0.0, 0.0], [])), [0.0, 2.0])


def test_averages_follow_the_updates(serve):
    spec = tf.train.ClusterSpec(free_addresses(ps=1, worker=1))
    servers = [serve(spec, "ps", 0), serve(spec, "worker", 0)]
    with (
        tf.Graph().as_default(),
        tf.device(tf.train.replica_device_setter(cluster=spec, worker_device="/job:worker/task:0")),
    ):
        step = tf.train.get_or_create_global_step()
        w = tf.Variable(1.0, name="w")
        ema = tf.train.ExponentialMovingAverage(0.5)
        opt = tf.train.SyncReplicasOptimizer(
            tf.train.GradientDescentOptimizer(1.0), 1, variable_averages=ema, variables_to_average=[w]
        )
        train = opt.minimize(w * 2.0, global_step=step)
        average = ema.average(w)
        with tf.train.MonitoredTrainingSession(
            servers[1].target, hooks=[opt.make_session_run_hook(True, 0)]
        ) as sess:
            for _ in range(3):
                sess.run(train)
            # The average of an update is computed before the next update begins.
            sess.run(train)
            assert sess.run(w) == -7.0
            assert sess.run(average) >= -7.0


class WithARunnerOfItsOwn(tf.train.SyncReplicasOptimizer):
    """As optimizers of others do it that follow TensorFlow's: a plain queue runner, over a queue that nobody uses."""

    def apply_gradients(self, grads_and_vars, global_step=None, name=None):
        train = super().apply_gradients(grads_and_vars, global_step, name)
        unused = tf.FIFOQueue(1, tf.int32, shapes=(), shared_name="dummy_queue")
        self._chief_queue_runner = tf.train.QueueRunner(unused, self._chief_queue_runner.enqueue_ops)
        return train


def test_a_subclass_may_make_the_runner_of_the_updates_itself(cluster, monkeypatch):
    monkeypatch.setattr(tf.train, "SyncReplicasOptimizer", WithARunnerOfItsOwn)
    a, b = (Replica(cluster, i, 2) for i in range(2))
    with a.session() as first, b.session() as second:
        together(
            lambda: first.run(a.train, a.feeds([1.0, 0.0], [])),
            lambda: second.run(b.train, b.feeds([3.0, 0.0], [])),
        )
        assert first.run(a.step, a.feeds([0.0, 0.0], [])) == 1
        np.testing.assert_allclose(first.run(a.dense, a.feeds([0.0, 0.0], [])), [0.0, 2.0])


def test_a_supervisor_starts_the_same_things(cluster):
    replicas = [Replica(cluster, i, 2) for i in range(2)]
    sessions, reached = queue.SimpleQueue(), queue.SimpleQueue()

    def train(replica):
        opt = replica.opt
        with replica.graph.as_default():
            tokens = opt.get_init_tokens_op() if replica.is_chief else None
            sv = tf.train.Supervisor(
                is_chief=replica.is_chief,
                init_op=tf.global_variables_initializer(),
                local_init_op=opt.chief_init_op if replica.is_chief else opt.local_step_init_op,
                ready_for_local_init_op=opt.ready_for_local_init_op,
                recovery_wait_secs=1,
                global_step=replica.step,
            )
            sess = sv.prepare_or_wait_for_session(replica.target)
            sessions.put(sess)
            if replica.is_chief:
                sess.run(tokens)
                sv.start_queue_runners(sess, [opt.get_chief_queue_runner()])
            step = 0
            while True:  # neither gets on without the other, so both train until both are far enough
                before, (_, step) = (
                    step,
                    sess.run([replica.train, replica.step], replica.feeds([1.0, 1.0], [1])),
                )
                if before < 5 <= step:
                    reached.put(replica)

    ends = [in_background(train, replica) for replica in replicas]
    assert {reached.get(timeout=SECONDS), reached.get(timeout=SECONDS)} == set(replicas)
    for _ in ends:
        sessions.get(timeout=SECONDS).close()
    for end in ends:
        assert isinstance(end.exception(SECONDS), (tf.errors.CancelledError, RuntimeError))


def test_a_chief_that_stops_its_supervisor_leaves_each_replica_a_token_for_its_last_step(cluster):
    replica = Replica(cluster, 0, 2)
    with replica.graph.as_default():
        tokens, left = replica.opt.get_init_tokens_op(), replica.opt._sync_token_queue.size()
        sv = tf.train.Supervisor(init_op=tf.global_variables_initializer(), global_step=replica.step)
        with sv.prepare_or_wait_for_session(replica.target) as sess:
            sess.run([replica.opt.chief_init_op, tokens])
            sv.start_queue_runners(sess, [replica.opt.get_chief_queue_runner()])
            sess.run(replica.train, replica.feeds([1.0, 1.0], [1]))
            assert sess.run(left) == 1
            sv.stop()
            assert sess.run(left) == 3


def test_a_chief_may_close_its_session_before_it_stops_its_supervisor(cluster):
    replica = Replica(cluster, 0, 1)
    with replica.graph.as_default():
        tokens = replica.opt.get_init_tokens_op()
        sv = tf.train.Supervisor(init_op=tf.global_variables_initializer(), global_step=replica.step)
        with sv.prepare_or_wait_for_session(replica.target) as sess:
            sess.run([replica.opt.chief_init_op, tokens])
            sv.start_queue_runners(sess, [replica.opt.get_chief_queue_runner()])
            sess.run(replica.train, replica.feeds([1.0, 1.0], [1]))
        assert sv.coord.wait_for_stop(SECONDS)
        sv.stop()


def test_a_failed_update_wakes_the_replicas_and_is_reported(cluster):
    spec, servers = cluster
    with tf.Graph().as_default(), tf.device(tf.train.replica_device_setter(cluster=spec)):
        step = tf.train.get_or_create_global_step()
        rate = tf.check_numerics(tf.cast(step, tf.float32) / 0.0, "bad rate")
        opt = tf.train.SyncReplicasOptimizer(tf.train.GradientDescentOptimizer(rate), 1)
        train = opt.minimize(tf.Variable(1.0) * 2.0, global_step=step)
        hook = opt.make_session_run_hook(True, 0)
        with (
            pytest.raises(tf.errors.InvalidArgumentError, match="bad rate"),
            tf.train.MonitoredTrainingSession(servers[1].target, hooks=[hook]) as sess,
        ):
            while not sess.should_stop():
                sess.run(train)


def test_dropped_gradients_are_logged_by_replica(cluster, caplog):
    a, b = (Replica(cluster, i, 1, 2) for i in range(2))
    with a.session(num_tokens=2) as first, b.session() as second:
        while first.run(a.step, a.feeds([0.0, 0.0], [])) < 3:
            first.run(a.train, a.feeds([1.0, 0.0], [0]))
        second.run(b.train, b.feeds([1.0, 0.0], [0]))
        tell = DroppedReport()
        with caplog.at_level("INFO", logger="tensorflow"):
            tell.now(first)
            tell.now(first)
    messages = [r.getMessage() for r in caplog.records if "Stale gradients dropped" in r.getMessage()]
    assert len(messages) == 1
    assert "1 of /job:worker/task:1" in messages[0]


def test_replicas_that_cannot_fill_a_step_any_more_end_with_an_error(cluster, monkeypatch):
    monkeypatch.setenv("TENSORFLEET_REPLICA_SECONDS", "0.5")
    a, b = (Replica(cluster, i, 2) for i in range(2))
    with pytest.raises(tf.errors.FailedPreconditionError) as caught, a.session() as first:
        with pytest.raises(KeyError), b.session() as second:
            together(
                lambda: first.run(a.train, a.feeds([2.0, 0.0], [0])),
                lambda: second.run(b.train, b.feeds([2.0, 0.0], [0])),
            )
            raise KeyError("an error of the program")
        for _ in range(2):
            first.run(a.train, a.feeds([2.0, 0.0], [0]))
    assert "cannot go on: /job:worker/task:1 of 2 replicas ended or was lost" in str(caught.value)
    assert "replicas_to_aggregate" in str(caught.value)


def test_a_chief_ends_in_good_order_after_a_replica_that_took_the_last_tokens(cluster, monkeypatch):
    monkeypatch.setenv("TENSORFLEET_REPLICA_SECONDS", "0.5")
    a, b = (Replica(cluster, i, 2) for i in range(2))
    with a.session(-1, [tf.train.StopAtStepHook(last_step=6)]) as first:
        with b.session(hooks=[tf.train.StopAtStepHook(last_step=6)]) as second:
            while not second.should_stop():
                second.run(b.train, b.feeds([1.0, 1.0], [0]))
        while not first.should_stop():
            first.run(a.train, a.feeds([1.0, 1.0], [0]))


def test_a_replica_that_wants_more_steps_than_the_chief_ends_with_it(cluster):
    a, b = (Replica(cluster, i, 2) for i in range(2))
    first = a.session(num_tokens=-1)
    with b.session() as second:
        with first:
            together(
                lambda: first.run(a.train, a.feeds([2.0, 0.0], [0])),
                lambda: second.run(b.train, b.feeds([2.0, 0.0], [0])),
            )
        for _ in range(10):
            second.run(b.train, b.feeds([2.0, 0.0], [0]))
        pytest.fail("nobody is left who makes an update")
    assert second.should_stop()


def test_the_chief_may_train_again_after_it_has_ended(cluster):
    def train():
        a, b = (Replica(cluster, i, 2) for i in range(2))
        with a.session(num_tokens=-1) as first, b.session() as second:
            before = first.run(a.step, a.feeds([0.0, 0.0], []))
            while first.run(a.step, a.feeds([0.0, 0.0], [])) < before + 3:
                together(
                    lambda: first.run(a.train, a.feeds([2.0, 0.0], [0])),
                    lambda: second.run(b.train, b.feeds([2.0, 0.0], [0])),
                )

    train()
    train()


def test_a_replica_that_comes_back_fills_the_step(cluster, monkeypatch):
    monkeypatch.setenv("TENSORFLEET_REPLICA_SECONDS", "60")
    a, b = (Replica(cluster, i, 2) for i in range(2))
    with a.session() as first:
        with b.session() as second:
            together(
                lambda: first.run(a.train, a.feeds([2.0, 0.0], [0])),
                lambda: second.run(b.train, b.feeds([2.0, 0.0], [0])),
            )
        again = Replica(cluster, 1, 2)
        with again.session() as second:
            together(
                lambda: first.run(a.train, a.feeds([2.0, 0.0], [0])),
                lambda: second.run(again.train, again.feeds([2.0, 0.0], [0])),
            )
        assert first.run(a.step, a.feeds([0.0, 0.0], [])) == 2


def test_it_must_be_told_variables_and_a_step():
    opt = tf.train.SyncReplicasOptimizer(tf.train.GradientDescentOptimizer(1.0), 2)
    v = tf.Variable(1.0)
    with pytest.raises(ValueError, match="Must supply at least one variable"):
        opt.apply_gradients([], global_step=v)
    with pytest.raises(ValueError, match="Global step is required to check staleness"):
        opt.apply_gradients([(tf.constant(1.0), v)])
    with pytest.raises(ValueError, match=r"Should be called after apply_gradients\(\)"):
        opt.get_chief_queue_runner()
    with pytest.raises(ValueError, match="should be called after apply_gradients"):
        opt.get_init_tokens_op()
    with pytest.raises(ValueError, match="apply_gradient should be called before using the hook"):
        opt.make_session_run_hook(True).begin()


def test_names_are_those_of_tensorflow(graph):
    step = tf.train.get_or_create_global_step()
    v = tf.Variable([1.0], name="v")
    opt = tf.train.SyncReplicasOptimizer(tf.train.GradientDescentOptimizer(1.0), 2, 3)
    train = opt.minimize(tf.reduce_sum(v), global_step=step)
    assert train.name == "Assign_1:0"
    queue = graph.get_operation_by_name("sync_token_q")
    assert queue.get_attr("shared_name") == b"sync_token_q"
    accumulator = graph.get_operation_by_name("sync_replicas/conditional_accumulator")
    assert accumulator.get_attr("shared_name") == b"v:0/grad_accum"
    assert [v.op.name for v in tf.local_variables()] == ["sync_rep_local_step"]
    assert opt.get_name() == "sync_replicas"


def test_an_update_is_the_mean_of_the_members_that_are_there(cluster):
    a, b = (Replica(cluster, i, "members") for i in range(2))
    with a.session(num_tokens=-1) as first:
        for n in range(1, 4):
            first.run(a.train, a.feeds([2.0, 0.0], [0]))
            assert first.run(a.step, a.feeds([0.0, 0.0], [])) == n
        assert first.run(a.dense, a.feeds([0.0, 0.0], []))[0] == 1.0 - RATE * 2.0 * 3
        with b.session() as second:
            # Its first gradient may be of a step that is over, and then it waits for the next update.
            joins = in_background(lambda: second.run(b.train, b.feeds([0.0, 0.0], [0])))
            while not joins.done():
                first.run(a.train, a.feeds([0.0, 0.0], [0]))
            joins.result(SECONDS)
            before = first.run(a.dense, a.feeds([0.0, 0.0], []))[0]
            together(
                lambda: first.run(a.train, a.feeds([4.0, 0.0], [0])),
                lambda: second.run(b.train, b.feeds([0.0, 0.0], [0])),
            )
            assert first.run(a.dense, a.feeds([0.0, 0.0], []))[0] == before - RATE * 2.0
        step = first.run(a.step, a.feeds([0.0, 0.0], []))
        first.run(a.train, a.feeds([0.0, 0.0], [0]))
        assert first.run(a.step, a.feeds([0.0, 0.0], [])) == step + 1


@pytest.mark.parametrize(
    ("aggregate", "total", "text"),
    [
        ("all", None, "replicas_to_aggregate must be a number or 'members', but is 'all'."),
        ("members", 3, "so there are no backup replicas. Leave out total_num_replicas."),
    ],
)
def test_a_number_of_gradients_is_a_number_or_that_of_the_members(aggregate, total, text):
    with pytest.raises(ValueError, match=text):
        tf.train.SyncReplicasOptimizer(tf.train.GradientDescentOptimizer(0.1), aggregate, total)


def test_only_a_queue_of_tokens_can_wait_for_replicas():
    with tf.Graph().as_default(), tf.Session() as sess:
        queue = tf.FIFOQueue(1, tf.int64, shapes=())
        with pytest.raises(tf.errors.InvalidArgumentError, match="is not a queue of tokens for replicas"):
            sess.run(await_replicas(queue.queue_ref))

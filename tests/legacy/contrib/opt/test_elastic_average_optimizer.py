"""Workers with variables of their own that meet in the middle."""

import numpy as np
import pytest

import tensorfleet as tf
from tests.support.waiting import together

opt = tf.contrib.opt
CENTRE = "global_center_variable"


@pytest.fixture
def servers():
    workers, ps = tf.test.create_local_cluster(num_workers=2, num_ps=1)
    yield workers
    for server in (*workers, *ps):
        server.stop()


class Worker:
    """One worker's graph and session: two variables, a constant gradient of -1."""

    def __init__(self, servers, index, getter, make, parts=False, gradient=-1.0):
        self.graph = tf.Graph()
        device = f"/job:worker/task:{index}/cpu:0"
        with self.graph.as_default():
            self.getter = getter(worker_device=device)
            place = tf.train.replica_device_setter(
                worker_device=device, ps_device="/job:ps/task:0", ps_tasks=1
            )
            with tf.variable_scope("", custom_getter=self.getter), tf.device(place):
                step = tf.train.get_or_create_global_step()
                trained = [tf.get_variable("v", initializer=0.0)]
                if parts:
                    split = tf.fixed_size_partitioner(2)
                    table = tf.get_variable("t", [2, 3], partitioner=split, initializer=tf.ones_initializer())
                    trained += list(table)
            with tf.device(device):
                self.optimizer = make(self.getter)
                grads = [tf.fill(v.shape, gradient) for v in trained]
                self.train = self.optimizer.apply_gradients(list(zip(grads, trained, strict=True)), step)
                self.hook = self._hook(index)
                self.saver = getattr(self.optimizer, "swapping_saver", lambda: None)()
            self.session = tf.train.MonitoredTrainingSession(
                servers[index].target, is_chief=index == 0, hooks=[self.hook]
            )

    def _hook(self, index):
        if isinstance(self.optimizer, opt.ModelAverageOptimizer):
            return self.optimizer.make_session_run_hook()
        return self.optimizer.make_session_run_hook(index == 0, index)

    def step(self):
        self.session.run(self.train)

    def values(self):
        return tuple(float(x) for x in self.session.run(["v:0", f"{CENTRE}/v:0", "global_step:0"]))


def test_the_worker_and_the_centre_are_drawn_together_every_period(servers, tmp_path):
    def make(getter):
        sgd = tf.train.GradientDescentOptimizer(1.0)
        return opt.ElasticAverageOptimizer(sgd, 1, getter, communication_period=2, moving_rate=0.5, rho=0.0)

    worker = Worker(servers, 0, opt.ElasticAverageCustomGetter, make, parts=True)
    assert worker.values() == (0.0, 0.0, 0.0)
    worker.step()
    assert worker.values() == (1.0, 0.0, 0.0)
    worker.step()
    assert worker.values() == (1.0, 1.0, 1.0)
    worker.step()
    assert worker.values() == (2.0, 1.0, 1.0)
    path = worker.saver.save(worker.session._tf_sess(), str(tmp_path / "model"))
    assert tf.train.load_variable(path, "v") == 1.0
    np.testing.assert_array_equal(tf.train.load_variable(path, "t"), np.full([2, 3], 2.0))


def test_two_workers_pull_at_one_centre(servers):
    def make(getter):
        sgd = tf.train.GradientDescentOptimizer(1.0)
        return opt.ElasticAverageOptimizer(sgd, 2, getter, communication_period=1, moving_rate=0.5)

    first, second = (Worker(servers, i, opt.ElasticAverageCustomGetter, make) for i in range(2))
    first.step()
    second.step()
    assert first.values()[:2] == (0.5, 0.75)
    assert second.values()[:2] == (0.75, 0.75)


def test_the_gradient_of_the_distance_from_the_centre_is_added(session):
    getter = opt.ElasticAverageCustomGetter(worker_device="/cpu:0")
    with tf.variable_scope("elastic", custom_getter=getter):
        v = tf.get_variable("v", initializer=3.0)
    sgd = tf.train.GradientDescentOptimizer(1.0)
    elastic = opt.ElasticAverageOptimizer(sgd, 1, getter, rho=2.0)
    ((grad, _),) = elastic.compute_gradients(5.0 * v, [v])
    session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
    session.run(v.assign(4.0))
    assert session.run(grad) == 5.0 + 2.0 * (4.0 - 3.0)


def test_the_server_takes_one_step_by_the_mean_gradient(servers):
    def make(getter):
        adam = tf.train.AdamOptimizer(0.1, beta1=0.0, beta2=0.0)
        return opt.AGNOptimizer(adam, 1, getter, communication_period=4)

    worker = Worker(servers, 0, opt.AGNCustomGetter, make, parts=True)
    with worker.graph.as_default():
        names = [v.op.name for v in tf.global_variables()]
    assert not [n for n in names if "beta" in n]
    assert not [n for n in names if "Adam" in n and CENTRE not in n]
    for _ in range(3):
        worker.step()
    np.testing.assert_allclose(worker.values(), (0.3, 0.0, 0.0), atol=1e-6)
    worker.step()
    np.testing.assert_allclose(worker.values(), (0.1, 0.1, 1.0), atol=1e-6)
    for _ in range(4):
        worker.step()
    np.testing.assert_allclose(worker.values(), (0.2, 0.2, 2.0), atol=1e-6)


def test_all_workers_go_on_from_their_mean(servers):
    def make_as(chief):
        def make(getter):
            sgd = tf.train.GradientDescentOptimizer(1.0)
            return opt.ModelAverageOptimizer(sgd, 2, chief, getter, interval_steps=2)

        return make

    first = Worker(servers, 0, opt.ModelAverageCustomGetter, make_as(True), gradient=-1.0)
    second = Worker(servers, 1, opt.ModelAverageCustomGetter, make_as(False), gradient=-2.0)
    first.step()
    second.step()
    assert first.values() == (1.0, 0.0, 0.0)
    together(first.step, second.step)
    assert first.values() == second.values() == (3.0, 3.0, 1.0)


@pytest.mark.parametrize(
    ("getter", "others"),
    [
        (opt.ModelAverageCustomGetter, "_local_2_global"),
        (opt.ElasticAverageCustomGetter, "_global_map"),
        (opt.AGNCustomGetter, "_global_map"),
    ],
)
def test_a_getter_makes_the_workers_variable_here_and_the_other_on_the_servers(getter, others):
    cluster = tf.train.ClusterSpec({"ps": ["a:1", "b:1"], "worker": ["c:1"]})
    output = getter(worker_device="/job:worker/task:0")
    place = tf.train.replica_device_setter(cluster=cluster, worker_device="/job:worker/task:0")
    with tf.Graph().as_default(), tf.device(place), tf.variable_scope("", custom_getter=output):
        v, w = (tf.get_variable(name, initializer=[1.0]) for name in "vw")
        step = tf.get_variable("step", initializer=0, trainable=False)
    assert [x.device for x in (v, w, step)] == ["/job:worker/task:0"] * 2 + [step.device]
    result = getattr(output, others)
    assert [result[x].device for x in (v, w)] == ["/job:ps/task:0", "/job:ps/task:1"]

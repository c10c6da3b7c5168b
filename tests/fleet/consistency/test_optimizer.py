"""`tf.fleet.Optimizer`: workers of a cluster train as their consistency says, without hooks, in plain sessions."""

import threading

import numpy as np
import pytest

import tensorfleet as tf
from tensorfleet.testing.cluster import free_addresses
from tests.support.waiting import in_background, together, until

WORKERS = 3
RANDOM = np.random.RandomState(7)
INPUTS = RANDOM.normal(size=[12, 4]).astype(np.float32)
ROWS = np.arange(12) % 5
TARGETS = (INPUTS @ [1.0, -2.0, 0.5, 3.0] + 0.1 * ROWS).astype(np.float32)


class Model:
    """A regression with a dense weight and a table of which each example needs one row."""

    def __init__(self, setter, optimizer, counts_steps=True) -> None:
        self.graph = tf.Graph()
        with self.graph.as_default(), tf.device(setter):
            self.step = tf.train.get_or_create_global_step()
            self.w = tf.get_variable("w", [4], initializer=tf.zeros_initializer())
            self.table = tf.get_variable("table", [5], initializer=tf.ones_initializer())
            self.x = tf.placeholder(tf.float32, [None, 4])
            self.rows = tf.placeholder(tf.int64, [None])
            self.y = tf.placeholder(tf.float32, [None])
            predicted = tf.reduce_sum(self.x * self.w, 1) + tf.gather(self.table, self.rows)
            self.loss = tf.reduce_mean(tf.square(predicted - self.y))
            self.optimizer = optimizer()
            self.train = self.optimizer.minimize(self.loss, global_step=self.step if counts_steps else None)
            self.init = tf.global_variables_initializer()

    def feeds(self, part=slice(None)):
        return {self.x: INPUTS[part], self.rows: ROWS[part], self.y: TARGETS[part]}


class Cluster:
    """Workers on the servers of a cluster, each with a third of the examples."""

    def __init__(self, serve, ps=1) -> None:
        self.spec = tf.train.ClusterSpec(free_addresses(ps=ps, worker=WORKERS))
        servers = [serve(self.spec, "ps", i) for i in range(ps)]
        self.targets = [serve(self.spec, "worker", i).target for i in range(WORKERS)]
        self.ps = servers[0].target

    def model(self, index, text, opt=None, num_workers=WORKERS, **kwargs):
        setter = tf.train.replica_device_setter(cluster=self.spec, worker_device=f"/job:worker/task:{index}")
        make = opt or (lambda: tf.train.GradientDescentOptimizer(0.1))
        return Model(setter, lambda: tf.fleet.Optimizer(make(), text, num_workers), **kwargs)

    def train(self, text, steps, opt=None, **kwargs):
        """All workers make some steps at the same time; the models and the sessions of all."""
        models = [self.model(i, text, opt, **kwargs) for i in range(WORKERS)]
        sessions = [
            tf.Session(target, graph=model.graph) for target, model in zip(self.targets, models, strict=True)
        ]
        sessions[0].run(models[0].init)

        def work(i):
            part = models[i].feeds(slice(i, None, WORKERS))
            return [sessions[i].run(models[i].train, part) for _ in range(steps)]

        together(*(lambda i=i: work(i) for i in range(WORKERS)))
        return models, sessions


@pytest.fixture
def cluster(serve):
    return Cluster(serve)


def alone(steps, opt):
    """What one process learns from all examples."""
    model = Model(None, opt)
    with tf.Session(graph=model.graph) as sess:
        sess.run(model.init)
        for _ in range(steps):
            sess.run(model.train, model.feeds())
        return sess.run([model.w, model.table, model.step])


OPTIMIZERS = {
    "descent": lambda: tf.train.GradientDescentOptimizer(0.1),
    "momentum": lambda: tf.train.MomentumOptimizer(0.05, 0.9),
    "adam": lambda: tf.train.AdamOptimizer(0.1),
}


@pytest.mark.parametrize("ps", [1, 2])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_bsp_learns_what_one_process_learns_from_the_whole_batch(serve, name, ps):
    models, sessions = Cluster(serve, ps).train("bsp", 10, OPTIMIZERS[name])
    w, table, step = sessions[0].run([models[0].w, models[0].table, models[0].step])
    expected = alone(10, OPTIMIZERS[name])
    assert step == expected[2] == 10
    np.testing.assert_allclose(w, expected[0], rtol=1e-4)
    np.testing.assert_allclose(table, expected[1], rtol=1e-4)


VALUES = (
    "bsp",
    "backup:1",
    "ssp:0",
    "ssp:2 scale",
    "asp",
    "asp drop:1",
    "auto",
    "bsp dense, asp sparse",
    "asp after 20 bsp",
    "ssp:1 after 10 asp scale",
)


@pytest.mark.parametrize("text", VALUES)
def test_every_consistency_learns(cluster, text):
    models, sessions = cluster.train(text, 60)
    assert sessions[0].run(models[0].loss, models[0].feeds()) < 0.5
    stale = tf.fleet.stats(cluster.targets[0], "ps/0")["staleness"]
    halves = 2 if "dense" in text else 1
    for told in stale:
        assert sum(told["counts"].values()) + told["dropped"] == 60 * halves, "every gradient is counted"
    assert [told["worker"] for told in stale] == [f"worker/{i}" for i in range(WORKERS)]


@pytest.mark.parametrize("text", ["bsp", "asp drop:1", "ssp:1"])
def test_a_training_without_a_global_step_counts_updates_itself(cluster, text):
    models, sessions = cluster.train(text, 40, counts_steps=False)
    assert sessions[0].run(models[0].loss, models[0].feeds()) < 1.0
    assert sessions[0].run(models[0].step) == 0


def test_dense_and_sparse_gradients_go_different_ways(cluster):
    models, sessions = cluster.train("bsp dense, asp sparse", 8)
    assert sessions[0].run(models[0].step) == 8, "dense updates count"
    updates = {v["name"]: v["updates"] for v in tf.fleet.stats(cluster.targets[0], "ps/0")["variables"]}
    assert updates["table"] >= 1 + 8 * WORKERS - 3, "each worker's rows are updates of their own"


def test_asp_after_bsp_counts_every_update_from_then_on(cluster):
    models, sessions = cluster.train("asp after 5 bsp", 15)
    assert sessions[0].run(models[0].step) == 5 + (15 - 5) * WORKERS


@pytest.mark.parametrize("text", ["bsp", "ssp:1", "auto", "backup:1"])
def test_the_others_go_on_without_a_worker_that_is_gone(cluster, text):
    models, sessions = cluster.train(text, 3)
    rest = in_background(
        together,
        *(
            lambda i=i: [sessions[i].run(models[i].train, models[i].feeds()) for _ in range(6)]
            for i in (0, 1)
        ),
    )
    gate = [t for t in tf.fleet.stats(cluster.targets[0], "ps/0")["staleness"] if t["worker"] == "worker/0"]
    assert gate, "the gate counts"
    sessions[2].close()
    rest.result(60)
    losses = sessions[0].run(models[0].loss, models[0].feeds())
    assert np.isfinite(losses)


def test_a_worker_that_hangs_is_given_up_and_comes_back(cluster, monkeypatch, caplog):
    monkeypatch.setenv("TENSORFLEET_REPLICA_SECONDS", "0.3")
    models, sessions = cluster.train("bsp", 2)
    with caplog.at_level("WARNING", logger="tensorflow"):
        for _ in range(2):
            together(*(lambda i=i: sessions[i].run(models[i].train, models[i].feeds()) for i in (0, 1)))
    said = [r.getMessage() for r in caplog.records if "Training goes on without" in r.getMessage()]
    assert said and "/job:worker/task:2" in said[0]
    sessions[2].run(models[2].train, models[2].feeds())
    dropped = {t["worker"]: t["dropped"] for t in tf.fleet.stats(cluster.targets[0], "ps/0")["staleness"]}
    assert dropped["worker/2"] <= 1


def test_a_step_whose_time_is_over_leaves_the_others_running(cluster):
    models, sessions = cluster.train("bsp", 1)
    with pytest.raises(tf.errors.DeadlineExceededError, match="until the consistency 'bsp' lets the next"):
        sessions[0].run(models[0].train, models[0].feeds(), options=tf.RunOptions(timeout_in_ms=300))
    together(*(lambda i=i: sessions[i].run(models[i].train, models[i].feeds()) for i in range(WORKERS)))
    assert sessions[0].run(models[0].step) >= 2


def test_workers_that_ask_for_different_things_are_told(cluster):
    first, second = cluster.model(0, "asp"), cluster.model(1, "ssp:3")
    with (
        tf.Session(cluster.targets[0], graph=first.graph) as one,
        tf.Session(cluster.targets[1], graph=second.graph) as other,
    ):
        one.run(first.init)
        one.run(first.train, first.feeds())
        with pytest.raises(
            tf.errors.InvalidArgumentError, match="consistency 'ssp:3', and the others with 'asp'. Give"
        ):
            other.run(second.train, second.feeds())


def test_a_reset_ends_all_waits_and_forgets_who_came(cluster):
    models, sessions = cluster.train("bsp", 1)
    waiting = in_background(sessions[0].run, models[0].train, models[0].feeds())
    stats = lambda: tf.fleet.stats(cluster.targets[0], "ps/0")["staleness"]  # noqa: E731
    until(lambda: sum(stats()[0]["counts"].values()) == 2, "the first worker's gradient")
    tf.Session.reset(cluster.ps)
    with pytest.raises((tf.errors.CancelledError, tf.errors.AbortedError, tf.errors.FailedPreconditionError)):
        waiting.result(60)


def test_one_process_needs_no_cluster():
    model = Model(None, lambda: tf.fleet.Optimizer(tf.train.AdamOptimizer(0.1), "bsp"))
    with tf.Session(graph=model.graph) as sess:
        sess.run(model.init)
        for _ in range(10):
            sess.run(model.train, model.feeds())
        found = sess.run([model.w, model.table, model.step])
    expected = alone(10, OPTIMIZERS["adam"])
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-5)
    assert found[2] == expected[2]


def test_slots_are_those_of_the_wrapped_optimizer():
    model = Model(None, lambda: tf.fleet.Optimizer(tf.train.MomentumOptimizer(0.1, 0.9), "bsp"))
    with model.graph.as_default():
        assert model.optimizer.get_slot_names() == ["momentum"]
        assert model.optimizer.get_slot(model.w, "momentum").op.name == "w/Momentum"
        assert [v.op.name for v in model.optimizer.variables()] == ["table/Momentum", "w/Momentum"]


def test_what_makes_no_sense_is_refused():
    plain = tf.train.GradientDescentOptimizer(0.1)
    with pytest.raises(TypeError, match=r"opt must be a tf.train.Optimizer, not 0.1"):
        tf.fleet.Optimizer(0.1)
    with pytest.raises(ValueError, match="consistency is 'spp:4'. Did you mean 'ssp:4'"):
        tf.fleet.Optimizer(plain, "spp:4")
    with pytest.raises(TypeError, match="consistency must be a text such as 'ssp:4', not 4"):
        tf.fleet.Optimizer(plain, 4)
    with pytest.raises(ValueError, match="num_workers must be 1 or more, not 0"):
        tf.fleet.Optimizer(plain, "bsp", num_workers=0)
    with pytest.raises(ValueError, match="No gradients provided for any variable"):
        tf.fleet.Optimizer(plain).apply_gradients([(None, tf.Variable(1.0))])


@pytest.mark.parametrize(
    ("config", "count"),
    [
        (None, 1),
        ('{"cluster": {"ps": ["a:1"], "chief": ["b:1"], "worker": ["c:1", "d:1"]}}', 3),
        ("no json", 1),
        ("[]", 1),
        ('{"cluster": {"worker": 3}}', 1),
    ],
)
def test_the_number_of_workers_is_that_of_the_cluster(monkeypatch, config, count):
    if config is None:
        monkeypatch.delenv("TF_CONFIG", raising=False)
    else:
        monkeypatch.setenv("TF_CONFIG", config)
    opt = tf.fleet.Optimizer(tf.train.GradientDescentOptimizer(0.1), "bsp")
    assert opt.num_workers == count
    assert not [t for t in threading.enumerate() if "consistency" in t.name]

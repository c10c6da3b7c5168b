"""A pytree on parameter servers: what workers see of it, and what they are refused."""

import subprocess
import sys
import threading

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import tensorfleet as tf
from tensorfleet.base import errors
from tensorfleet.fleet.library import division


@pytest.fixture
def local():
    made = []

    def start(ps=1, workers=1):
        made.append(tf.fleet.local(ps=ps, workers=workers))
        return made[-1]

    yield start
    for one in made:
        one.close()


def init():
    rng = np.random.default_rng(0)
    return {
        "dense": {"kernel": rng.standard_normal((12, 8)).astype(np.float32), "bias": np.zeros(8, np.float32)},
        "scale": np.float32(2.0),
    }


def gradients(params, step):
    return jax.tree.map(lambda x: np.asarray(x * np.float32(0.1) + np.float32(0.01 * step)), params)


def plain(optimizer, steps, workers=1):
    """The same training with Optax in one process."""
    params = init()
    state = optimizer.init(params)
    for step in range(steps):
        given = [gradients(params, step + 10 * worker) for worker in range(workers)]
        mean = jax.tree.map(lambda *some: sum(some[1:], some[0]) / len(some), *given)
        updates, state = optimizer.update(mean, state, params)
        params = jax.tree.map(np.asarray, optax.apply_updates(params, updates))
    return params


def assert_equal(ours, wanted, rtol=1e-5):
    assert jax.tree.structure(ours) == jax.tree.structure(wanted)
    for a, b in zip(jax.tree.leaves(ours), jax.tree.leaves(wanted), strict=True):
        np.testing.assert_allclose(a, b, rtol=rtol, atol=1e-6)


OPTIMIZERS = {
    "adam": optax.adam(1e-2),
    "momentum with a schedule": optax.sgd(optax.linear_schedule(0.1, 0.01, 5), momentum=0.9),
    "norm of all": optax.chain(optax.clip_by_global_norm(0.5), optax.adamw(1e-2)),
    "lamb": optax.lamb(1e-2),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("ps", [1, 3])
def test_one_worker_trains_as_plain_optax_does(local, monkeypatch, name, ps):
    monkeypatch.setattr(division, "_MIN_PIECE_BYTES", 64)  # the kernel is split
    optimizer = OPTIMIZERS[name]
    with local(ps).join() as cluster:
        model = cluster.parameters("model", init, optimizer)
        for step in range(6):
            model.push(gradients(model.pull(), step))
        assert_equal(model.pull(), plain(optimizer, 6))


@pytest.mark.parametrize("ps", [1, 2])
def test_workers_that_push_together_train_on_the_mean_of_their_gradients(local, ps):
    optimizer = OPTIMIZERS["norm of all"]

    def train():
        with tf.fleet.join(timeout=120) as cluster:
            model = cluster.parameters("model", init, optimizer, consistency="bsp")
            for step in range(5):
                model.push(gradients(model.pull(), step + 10 * cluster.rank))
            return model.pull()

    for params in local(ps, 2).run(train):
        assert_equal(params, plain(optimizer, 5, workers=2))


def test_a_worker_that_has_ended_stops_nobody_who_pushes_together(local):
    steps = {0: 3, 1: 6}

    def train():
        with tf.fleet.join(timeout=120) as cluster:
            model = cluster.parameters("model", init, optax.sgd(1.0), consistency="bsp")
            ones = jax.tree.map(np.ones_like, model.pull())
            for _ in range(steps[cluster.rank]):
                model.push(ones)
            return float(model.pull()["scale"])

    assert local(1, 2).run(train)[1] == 2.0 - 6


def test_a_worker_that_does_not_come_does_not_stop_the_others_for_ever(local, monkeypatch):
    monkeypatch.setenv("TENSORFLEET_REPLICA_SECONDS", "0.5")
    with local(1, 2).join(0, timeout=60) as cluster:
        model = cluster.parameters("model", init, optax.sgd(1.0), consistency="bsp")
        model.push(jax.tree.map(np.ones_like, model.pull()))
        assert float(model.pull()["scale"]) == 1.0


def test_a_push_that_waits_too_long_for_others_says_so(local):
    with local(1, 2).join(0, timeout=1.0) as cluster:
        model = cluster.parameters("model", init, optax.sgd(1.0), consistency="bsp")
        with pytest.raises(
            errors.DeadlineExceededError, match="waiting for other workers to push 'model' .bsp."
        ):
            model.push(model.pull())


def test_nobody_is_further_ahead_than_the_bound(local):
    cluster_of = local(1, 2)
    with cluster_of.join(0, timeout=2.0) as fast, cluster_of.join(1) as slow:
        ours, theirs = (c.parameters("m", init, optax.sgd(0.1), consistency="ssp:2") for c in (fast, slow))
        zeros = jax.tree.map(np.zeros_like, ours.pull())
        for _ in range(2):
            ours.push(zeros)
        stamp = ours.push(zeros, wait=False)
        with pytest.raises(errors.DeadlineExceededError, match="waiting for push of 'm'"):
            ours.wait(stamp, 0.2)
        theirs.push(zeros)
        ours.wait(stamp)


@pytest.mark.parametrize(
    ("consistency", "expected"), [("asp scale", -1.5), ("asp drop:0", -1.0), ("asp", -2.0)]
)
def test_old_gradients_count_as_the_consistency_says(local, consistency, expected):
    cluster_of = local(1, 2)
    with cluster_of.join(0) as one, cluster_of.join(1) as other:
        ours, theirs = (
            c.parameters("m", {"w": np.float32(0)}, optax.sgd(1.0), consistency=consistency)
            for c in (one, other)
        )
        ours.pull()
        theirs.pull()
        theirs.push({"w": np.float32(1)})
        ours.push({"w": np.float32(1)})  # there was an update since it pulled
        assert float(ours.pull()["w"]) == expected


@pytest.mark.parametrize("consistency", ["backup:1", "auto", "bsp after 2 asp"])
def test_workers_train_under_any_consistency(local, consistency):
    def train():
        with tf.fleet.join(timeout=120) as cluster:
            model = cluster.parameters("model", init, optax.sgd(0.5), consistency=consistency)
            for _ in range(8):
                params = model.pull()
                model.push(jax.tree.map(np.asarray, params))  # of half the sum of squares
            return float(model.pull()["scale"])

    assert max(map(abs, local(1, 2).run(train))) < 0.5


def test_all_workers_see_the_values_of_the_first(local):
    def train():
        with tf.fleet.join() as cluster:
            model = cluster.parameters("model", {"w": np.full(3, cluster.rank, np.float32)}, optax.sgd(0.1))
            return model.pull()["w"].tolist()

    assert local(1, 3).run(train) == [[0, 0, 0]] * 3


def test_what_was_pulled_does_not_change(local):
    with local().join() as cluster:
        model = cluster.parameters("model", init, optax.sgd(1.0))
        before = model.pull()
        model.push(jax.tree.map(np.ones_like, before))
        assert float(before["scale"]) == 2.0
        assert float(model.pull()["scale"]) == 1.0


def test_arrays_come_back_as_those_of_init_or_of_another_tree(local):
    with local().join() as cluster:
        model = cluster.parameters("model", {"w": jnp.ones(3)}, optax.sgd(1.0))
        assert isinstance(model.pull()["w"], jax.Array)
        assert model.pull()["w"].dtype == np.float32
        assert type(model.pull(like={"w": np.zeros(3)})["w"]) is np.ndarray
        with pytest.raises(ValueError, match="like does not have the structure of 'model': it lacks"):
            model.pull(like={"v": np.zeros(3)})


@pytest.mark.parametrize("dtype", ["float64", "float16"])
def test_parameters_of_other_types_are_trained_too(local, dtype):
    with local(2).join() as cluster:
        model = cluster.parameters(
            "model", {"w": np.ones(3, dtype), "v": np.ones((), dtype)}, optax.adam(0.5)
        )
        for _ in range(3):
            params = model.pull()
            assert params["w"].dtype == dtype
            model.push(params)
        assert (model.pull()["w"] < 0.3).all()


def test_a_push_that_does_not_wait_is_waited_for_by_its_timestamp(local):
    with local().join() as cluster:
        model = cluster.parameters("model", init, optax.sgd(1.0))
        ones = jax.tree.map(np.ones_like, model.pull())
        stamps = [model.push(ones, wait=False) for _ in range(4)]
        assert stamps == [1, 2, 3, 4]
        model.wait(stamps[-1])
        assert float(model.pull()["scale"]) == -2.0
        model.push(ones, wait=False)


def test_the_end_of_the_block_waits_for_pushes_under_way(local):
    cluster_of = local()
    with cluster_of.join() as cluster:
        model = cluster.parameters("model", init, optax.sgd(1.0))
        ones = jax.tree.map(np.ones_like, model.pull())
        for _ in range(8):
            model.push(ones, wait=False)
    with cluster_of.join() as cluster:
        again = cluster.parameters("model", init, optax.sgd(1.0))
        assert float(again.pull()["scale"]) == 2.0 - 8


def test_sessions_see_the_same_state_by_name(local):
    cluster_of = local(2)
    with cluster_of.join() as cluster:
        model = cluster.parameters("model", init, optax.adam(1e-2))
        model.push(jax.tree.map(np.ones_like, model.pull()))
        wanted = model.pull()
        names = [kept.name for kept in model._update.parameters]
        assert names == ["model/dense/bias", "model/dense/kernel", "model/scale"]
        server = model._update.parameters[1].home
        with tf.Graph().as_default(), tf.device(f"/job:ps/task:{server}"):
            kernel = tf.get_variable("model/dense/kernel", [12, 8])
            momentum = tf.get_variable("model/optimizer/0/mu/dense/kernel", [12, 8])
            with tf.Session(cluster_of.target) as sess:
                np.testing.assert_array_equal(sess.run(kernel), wanted["dense"]["kernel"])
                assert sess.run(momentum).max() > 0
                sess.run(tf.assign(kernel, tf.zeros([12, 8])))
        assert not model.pull()["dense"]["kernel"].any()


TYPES = """
import jax.numpy as jnp, numpy as np, optax
import tensorfleet as tf

with tf.fleet.local().join() as cluster:
    model = cluster.parameters("model", {"w": jnp.ones(3)}, optax.sgd(1.0))
    model.push(model.pull())
    with tf.Graph().as_default(), tf.Session() as sess:
        numbers = tf.placeholder(tf.int64, [None])
        wide = tf.reduce_sum(numbers * 2**40)
        for _ in range(40):  # NumPy runs it first, XLA later
            total = sess.run(wide, {numbers: np.arange(10)})
    print(jnp.ones(3).dtype, jnp.arange(3).dtype, model.pull()["w"].dtype, total == 45 * 2**40)
"""


def test_jax_keeps_the_types_that_a_program_expects_and_graphs_have_all_of_theirs():
    done = subprocess.run([sys.executable, "-c", TYPES], capture_output=True, text=True, timeout=240)
    assert done.stdout.split() == ["float32", "int32", "float32", "True"], done.stderr


class Refused:
    """One call for each mistake, on parameters that are there."""

    @pytest.fixture(autouse=True)
    def _model(self, local):
        with local(1, 2).join() as cluster:
            self.cluster = cluster
            self.model = cluster.parameters("model", init, optax.adam(1e-2))
            self.params = self.model.pull()
            yield


class TestRefused(Refused):
    def test_gradients_of_another_structure(self):
        with pytest.raises(
            ValueError, match=r"gradients does not have the structure of 'model': it lacks \['scale'\]"
        ):
            self.model.push({"dense": self.params["dense"]})

    def test_gradients_of_another_shape(self):
        given = {**self.params, "scale": np.zeros(2, np.float32)}
        with pytest.raises(ValueError, match=r"gradients\['scale'\] of 'model' has shape \[2\], not \[\]"):
            self.model.push(given)

    def test_gradients_of_another_type(self):
        given = {**self.params, "scale": np.float64(1)}
        with pytest.raises(
            TypeError, match=r"gradients\['scale'\] of 'model' has the type float64, not float32"
        ):
            self.model.push(given)

    def test_gradients_that_are_no_arrays(self):
        with pytest.raises(
            TypeError, match=r"gradients\['scale'\] of 'model' must be an array of NumPy, JAX or PyTorch"
        ):
            self.model.push({**self.params, "scale": object()})

    def test_a_name_that_is_used(self):
        with pytest.raises(ValueError, match="name is 'model', which this worker uses already"):
            self.cluster.parameters("model", init, optax.adam(1e-2))

    @pytest.mark.parametrize("name", ["", "a b", "/x", None])
    def test_a_name_that_is_none(self, name):
        with pytest.raises(ValueError, match="name must be a text of letters"):
            self.cluster.parameters(name, init, optax.adam(1e-2))

    def test_something_else_than_an_optimizer(self):
        with pytest.raises(TypeError, match="optimizer must be a transformation of Optax"):
            self.cluster.parameters("other", init, 0.1)

    def test_a_tree_without_arrays(self):
        with pytest.raises(ValueError, match="init of 'other' gave a tree without arrays"):
            self.cluster.parameters("other", dict, optax.sgd(0.1))

    @pytest.mark.parametrize("text", ["ssp", "ssp:-1", "pbs", 4])
    def test_a_consistency_that_is_none(self, text):
        with pytest.raises((ValueError, TypeError), match="consistency "):
            self.cluster.parameters("other", init, optax.sgd(0.1), consistency=text)

    def test_a_push_after_the_end(self):
        self.model.close()
        with pytest.raises(RuntimeError, match="'model' is closed. Push inside the block of fleet.join"):
            self.model.push(self.params)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            (init, optax.adam(2e-2)),
            "optimizer: another program made them with an optimizer that computes something else",
        ),
        (
            (lambda: {**init(), "scale": np.zeros(3, np.float32)}, optax.adam(1e-2)),
            r"leaf \['scale'\] is float32\[\] on",
        ),
        (
            (lambda: {"dense": init()["dense"]}, optax.adam(1e-2)),
            r"leaf \['scale'\] is float32\[\] .* and missing here",
        ),
        ((init, optax.adam(1e-2), "bsp"), "consistency: it is 'asp' on the servers and 'bsp' here"),
    ],
)
def test_two_programs_that_differ_in_their_arguments_are_told_so(local, arguments, message):
    cluster_of = local(1, 2)
    with cluster_of.join(0) as first, cluster_of.join(1) as second:
        first.parameters("model", init, optax.adam(1e-2))
        with pytest.raises(ValueError, match=message):
            second.parameters("model", *arguments)


def test_a_chief_that_does_not_come_is_named(local):
    with local(1, 2).join(1, timeout=0.3) as cluster:
        with pytest.raises(errors.DeadlineExceededError, match="waiting for the chief to initialize 'model'"):
            cluster.parameters("model", init, optax.sgd(0.1))


def test_no_thread_is_left_behind(local):
    with local().join() as cluster:
        model = cluster.parameters("model", init, optax.sgd(1.0))
        model.wait(model.push(model.pull(), wait=False))
        assert any(t.name.startswith("requests of model") for t in threading.enumerate())
    assert not any(t.name.startswith("requests of model") for t in threading.enumerate())

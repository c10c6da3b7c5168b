"""Watching tensors of a running task: the right values, the same results, and nothing left behind."""

import gc
import weakref

import numpy as np
import pytest

import tensorfleet as tf
from tensorfleet.cluster.inspection import leases
from tensorfleet.cluster.inspection.ask import ask
from tensorfleet.runtime import observing
from tensorfleet.runtime.segments.compiled import Compiler
from tensorfleet.runtime.tensor_watch import TensorWatch
from tests.support.waiting import in_background, until


@pytest.fixture(autouse=True)
def nothing_left():
    yield
    assert observing.active == ()


def _ask(server, topic, **options):
    return ask(server.task, server.target.removeprefix("grpc://"), topic, options)


def _model(seed=3):
    tf.set_random_seed(seed)
    x = tf.placeholder(tf.float32, [4, 3], name="x")
    w = tf.get_variable("w", [3, 2], initializer=tf.random_normal_initializer(seed=seed))
    hidden = tf.nn.relu(tf.matmul(x, w, name="product"), name="hidden")
    loss = tf.reduce_sum(tf.square(hidden), name="loss")
    train = tf.train.GradientDescentOptimizer(0.01).minimize(loss, name="train")
    return x, w, loss, train


def _train(target, steps, on_step=lambda i: None):
    """Trains; gives the losses and the weights as bytes."""
    with tf.Graph().as_default():
        x, w, loss, train = _model()
        rng = np.random.RandomState(0)
        with tf.Session(target) as session:
            session.run(tf.global_variables_initializer())
            losses = []
            for i in range(steps):
                on_step(i)
                losses.append(session.run([loss, train], {x: rng.rand(4, 3)})[0])
            return losses, session.run(w).tobytes()


def _forget(server):
    tf.Session.reset(server.target)


def test_watched_values_are_those_of_the_steps_and_training_is_the_same_to_the_bit(server):
    plain = _train(server.target, 40)
    _forget(server)
    ids = []

    def on_step(i):
        if i == 20:
            names = ["loss", "product:0", "hidden", "w", "x"]
            ids.append(_ask(server, "watch", tensors=names, steps=5).content["id"])

    watched = _train(server.target, 40, on_step)
    report = _ask(server, "watch_take", id=ids[0], seconds=1.0)
    leases.withdraw(ids[0])
    assert watched == plain
    values = {(s["name"], s["step"]): report.arrays[s["array"]] for s in report.content["seen"]}
    assert report.content["done"] and len(values) == 25
    for step in range(1, 6):
        assert values["loss:0", step] == watched[0][19 + step]
        np.testing.assert_allclose(values["hidden:0", step], np.maximum(values["product:0", step], 0))
        np.testing.assert_allclose(
            np.square(values["hidden:0", step]).sum(), watched[0][19 + step], rtol=1e-5
        )


def test_values_inside_of_compiled_segments_are_computed_beside_them(monkeypatch):
    monkeypatch.setattr(
        Compiler, "wanted", lambda self: True
    )  # else the time decides, and numpy rounds in another way

    def train(watched):
        with tf.Graph().as_default():
            x = tf.placeholder(tf.float32, [256, 256], name="x")
            w = tf.get_variable("w", [256, 256], initializer=tf.random_normal_initializer(seed=1))
            inner = tf.tanh(tf.matmul(x, w), name="inner")
            loss = tf.reduce_mean(tf.square(inner))
            train = tf.train.AdamOptimizer(0.01).minimize(loss)
            with tf.Session() as session:
                session.run(tf.global_variables_initializer())
                rng = np.random.RandomState(0)
                for _ in range(3):
                    session.run(train, {x: rng.rand(256, 256)})
                if watched:
                    watch = TensorWatch(["inner:0"], 3)
                    observing.add(watch)
                before = session.run(w)
                feed = rng.rand(256, 256).astype(np.float32)
                for _ in range(3):
                    session.run(train, {x: feed})
                if watched:
                    observing.remove(watch)
                    seen, done = watch.take(0.0)
                    assert done
                    np.testing.assert_allclose(seen[0].value, np.tanh(feed @ before), rtol=1e-3, atol=1e-4)
                return session.run(w)

    np.testing.assert_array_equal(train(True), train(False))


def test_random_numbers_are_those_of_the_step(server):
    with tf.Graph().as_default(), tf.Session(server.target) as session:
        noise = tf.random_uniform([8], seed=4, name="noise")
        total = tf.reduce_sum(noise * 2.0, name="total")
        session.run(total)
        number = _ask(server, "watch", tensors=["noise/mul", "noise"], steps=1).content["id"]
        value = session.run(total)
        report = _ask(server, "watch_take", id=number)
        leases.withdraw(number)
        noise_value = next(
            report.arrays[s["array"]] for s in report.content["seen"] if s["name"] == "noise:0"
        )
        np.testing.assert_allclose(noise_value.sum() * 2, value, rtol=1e-6)


def test_an_unknown_name_offers_the_nearest(server):
    with tf.Graph().as_default(), tf.Session(server.target) as session:
        value = tf.add(tf.placeholder_with_default(1.0, []), 2.0, name="dense/Relu")
        session.run(value)
        with pytest.raises(
            tf.errors.NotFoundError, match="No tensor 'dense/Rleu:0'.*Did you mean dense/Relu:0"
        ):
            _ask(server, "watch", tensors=["dense/Rleu:0"])
        with pytest.raises(tf.errors.NotFoundError, match="Did you mean dense/Relu:0"):
            _ask(server, "watch", tensors=["Relu"])


def test_steps_that_do_not_compute_the_tensor_are_told_and_run_nothing_more(server):
    with tf.Graph().as_default(), tf.Session(server.target) as session:
        ran = []
        given = tf.placeholder(tf.float32, [])
        tf.identity(tf.py_func(lambda v: ran.append(1) or v, [given], tf.float32), name="other")
        other = tf.add(given, 1.0, name="one")
        session.run(other, {given: 1.0})
        number = _ask(server, "watch", tensors=["other"]).content["id"]
        session.run(other, {given: 1.0})
        content = _ask(server, "watch_take", id=number, seconds=0.0).content
        leases.withdraw(number)
        assert content["seen"] == [] and content["others"] == {"one:0": 1}
        assert ran == []


def test_strings_and_tensors_of_host_operations_are_watched(server):
    with tf.Graph().as_default(), tf.Session(server.target) as session:
        given = tf.placeholder(tf.string, [2])
        words = tf.string_join([given, "!"], name="words")
        length = tf.size(tf.string_split(words, "!").values, name="length")
        number = _ask(server, "watch", tensors=["words", "length"]).content["id"]
        session.run(length, {given: ["a", "b"]})
        report = _ask(server, "watch_take", id=number)
        leases.withdraw(number)
        by_name = {s["name"]: s for s in report.content["seen"]}
        assert by_name["words:0"]["texts"] == ["a!", "b!"]
        assert report.arrays[by_name["length:0"]["array"]] == 2


def test_a_branch_that_is_not_taken_does_not_count(server):
    with tf.Graph().as_default(), tf.Session(server.target) as session:
        which = tf.placeholder(tf.bool, [], name="which")
        value = tf.placeholder(tf.float32, [], name="value")
        result = tf.cond(which, lambda: tf.multiply(value, 2.0, name="doubled"), lambda: value)
        number = _ask(server, "watch", tensors=["cond/doubled"]).content["id"]
        session.run(result, {which: False, value: 3.0})
        session.run(result, {which: True, value: 4.0})
        report = _ask(server, "watch_take", id=number)
        leases.withdraw(number)
        assert [report.arrays[s["array"]].item() for s in report.content["seen"]] == [8.0]


def test_a_watch_that_nobody_asks_about_is_removed_by_the_next_step(server, monkeypatch):
    monkeypatch.setattr(leases, "LEASE_SECONDS", 0.0)
    with tf.Graph().as_default(), tf.Session(server.target) as session:
        given = tf.placeholder(tf.float32, [])
        value = tf.add(given, 2.0, name="value")
        session.run(value, {given: 1.0})
        number = _ask(server, "watch", tensors=["value"]).content["id"]
        assert session.run(value, {given: 1.0}) == 3.0
        assert observing.active == ()
        with pytest.raises(tf.errors.NotFoundError, match="nobody asked about it"):
            _ask(server, "watch_take", id=number)


def test_a_watch_that_fails_does_not_fail_the_step(caplog):
    class Broken:
        expires = float("inf")

        def begin(self, program, session):
            raise ValueError("broken watch")

    broken = Broken()
    observing.add(broken)
    try:
        with tf.Graph().as_default(), tf.Session() as session:
            given = tf.placeholder(tf.float32, [])
            assert session.run(given + 1.0, {given: 1.0}) == 2.0
    finally:
        observing.remove(broken)
    assert "broken watch" in caplog.text


@pytest.mark.parametrize("setting", ["stats", "off"])
def test_values_are_not_told_where_that_is_switched_off(server, monkeypatch, setting):
    monkeypatch.setenv("TENSORFLEET_INSPECTION", setting)
    for topic in ("watch", "numerics", "attach"):
        with pytest.raises(tf.errors.PermissionDeniedError, match=f"TENSORFLEET_INSPECTION is '{setting}'"):
            _ask(server, topic)
    if setting == "off":
        with pytest.raises(tf.errors.PermissionDeniedError):
            _ask(server, "stacks")
    else:
        assert _ask(server, "stacks").content["threads"]


def test_waiting_for_values_ends_as_soon_as_they_come(server):
    with tf.Graph().as_default(), tf.Session(server.target) as session:
        given = tf.placeholder(tf.float32, [])
        value = tf.add(given, 2.0, name="late")
        session.run(value, {given: 1.0})
        number = _ask(server, "watch", tensors=["late"]).content["id"]
        taken = in_background(_ask, server, "watch_take", id=number, seconds=5.0)
        session.run(value, {given: 1.0})
        assert taken.result(60).content["done"]
        leases.withdraw(number)


def test_a_watch_that_nobody_asks_about_frees_its_values_without_another_step(server, monkeypatch):
    monkeypatch.setattr(leases, "LEASE_SECONDS", 0.2)
    with tf.Graph().as_default(), tf.Session(server.target) as session:
        value = tf.add(tf.placeholder_with_default(1.0, []), 2.0, name="value")
        session.run(value)
        begun = _ask(server, "watch", tensors=["value"]).content["id"]
        watch = weakref.ref(leases._watches[begun])
        session.run(value)
        until(lambda: not leases._watches and observing.active == ())
        until(lambda: gc.collect() is not None and watch() is None)

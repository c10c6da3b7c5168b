"""The first operation that makes a NaN or an infinity."""

import numpy as np
import pytest

import tensorfleet as tf
from tensorfleet.cluster.inspection import leases
from tensorfleet.cluster.inspection.ask import ask


def _checked(server, run):
    address = server.target.removeprefix("grpc://")
    number = ask(server.task, address, "numerics").content["id"]
    try:
        run()
        return ask(server.task, address, "numerics_take", {"id": number, "seconds": 0.0}).content
    finally:
        leases.withdraw(number)


@pytest.fixture
def model(server):
    with tf.Graph().as_default(), tf.Session(server.target) as session:
        x = tf.placeholder(tf.float32, [3], name="x")
        w = tf.get_variable("w", initializer=tf.ones([3]))
        risky = tf.log(x * w, name="risky")
        loss = tf.reduce_sum(risky * 0.0, name="loss")
        session.run(tf.global_variables_initializer())
        yield session, x, w, loss


def test_the_operation_that_makes_an_infinity_is_named_with_its_inputs_and_line(server, model):
    session, x, _, loss = model
    content = _checked(server, lambda: session.run(loss, {x: [1.0, 0.0, 2.0]}))
    maker = content["maker"]
    assert (maker["op"], maker["type"], maker["makes"]) == ("risky", "Log", True)
    assert "test_numerics.py" in maker["line"] and "tf.log(x * w" in maker["code"]
    assert maker["output"]["infinities"] == 1
    (given,) = maker["inputs"]
    assert (given["name"], given["min"], given["max"], given["nans"]) == ("mul:0", 0.0, 2.0, 0)


def test_a_variable_that_has_a_nan_already_is_not_made_by_who_reads_it(server, model):
    session, x, w, loss = model
    session.run(w.assign([1.0, float("nan"), 1.0]))
    content = _checked(server, lambda: session.run(loss, {x: [1.0, 1.0, 2.0]}))
    assert content["maker"] is None
    assert content["taker"]["op"] == "w/read"
    assert [i["nans"] for i in content["taker"]["inputs"] if i["name"] == "w:0"] == [1]


def test_finite_steps_are_counted_and_nothing_is_named(server, model):
    session, x, _, loss = model
    content = _checked(server, lambda: [session.run(loss, {x: [1.0, 1.0, 2.0]}) for _ in range(3)])
    assert content["checked"] == 3 and content["maker"] is None and content["taker"] is None


def test_a_step_that_fails_is_checked_up_to_there(server):
    with tf.Graph().as_default(), tf.Session(server.target) as session:
        x = tf.placeholder(tf.float32, [2], name="x")
        checked = tf.check_numerics(tf.sqrt(x, name="root"), "the root")

        def run():
            with pytest.raises(tf.errors.InvalidArgumentError, match="the root"):
                session.run(checked, {x: [1.0, -1.0]})

        assert _checked(server, run)["maker"]["op"] == "root"


def test_a_nan_of_a_python_function_is_found(server):
    with tf.Graph().as_default(), tf.Session(server.target) as session:
        x = tf.placeholder(tf.float32, [2], name="x")
        y = tf.py_func(lambda v: v / np.float32("nan"), [x], tf.float32, name="divides")
        content = _checked(server, lambda: session.run(y, {x: [1.0, 2.0]}))
        assert content["maker"]["op"] == "divides"


def test_it_ends_after_as_many_steps_as_were_asked_for_whatever_programs_they_run(server, model):
    session, x, _, loss = model
    address = server.target.removeprefix("grpc://")
    number = ask(server.task, address, "numerics", {"steps": 2}).content["id"]
    try:
        told = []
        for _ in range(3):
            session.run(loss, {x: [1.0, 1.0, 2.0]})
            told.append(ask(server.task, address, "numerics_take", {"id": number, "seconds": 0.0}).content)
        assert [(t["checked"], t["unit"], t["done"]) for t in told[:2]] == [
            (1, "steps", False),
            (2, "steps", True),
        ]
    finally:
        leases.withdraw(number)

"""`FleetJaxCall` from a GraphDef: what was changed on its way, or made by somebody else, is refused before anything runs."""

import re

import jax.numpy as jnp
import numpy as np
import pytest

import tensorfleet as tf
from tensorfleet.testing.cluster import ProcessCluster
from tests.support.sessions import initialized, run


def exported():
    """The GraphDef of a call, and its node."""
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, [None, 4], "x")
        tf.fleet.jax_op(lambda x: jnp.tanh(x) * 2.0, name="call", vjp_order=1)(x)
    result = graph.as_graph_def()
    return result, next(node for node in result.node if node.op == "FleetJaxCall")


def replace_in_module(old, new):
    def change(node):
        text = node.attr["module"].s
        assert old in text
        node.attr["module"].s = text.replace(old, new)

    return change


def set_attr(name, value):
    def change(node):
        target = node.attr[name]
        if isinstance(value, list):
            del target.list.s[:], target.list.i[:]
            (target.list.i if value and isinstance(value[0], int) else target.list.s).extend(value)
        elif isinstance(value, bool):
            target.b = value
        else:
            target.s = value

    return change


def call_back(node):
    """Has Python called where the hyperbolic tangent was taken."""
    call = rb'"stablehlo.custom_call"(\1) <{call_target_name = "xla_ffi_python_cpu_callback"}> :'
    node.attr["module"].s, count = re.subn(rb'"stablehlo.tanh"\((%\w+)\)[^:]*:', call, node.attr["module"].s)
    assert count == 1


CHANGED = {
    "no module": (set_attr("module", b""), "has no function 'main'"),
    "noise": (set_attr("module", bytes(range(256))), "cannot be read: it is no text"),
    "a callback": (
        call_back,
        "calls the function 'xla_ffi_python_cpu_callback' of the process that runs it. Python callbacks",
    ),
    "other element types": (
        replace_in_module(b"xf32>", b"xf64>"),
        "cannot be read: .* compatible element type",
    ),
    "other sizes": (
        set_attr("in_sizes", [b"b, 5"]),
        "has other arguments than its program|exported function .* has shape",
    ),
    "sizes that are code": (
        set_attr("out_sizes", [b"__import__('os').system('true'), 4"]),
        "the type float32\\[__import__",
    ),
    "sizes without end": (set_attr("out_sizes", [b"b," * 100_000]), "the type float32\\[b,b,b"),
    "too few sizes": (set_attr("in_sizes", []), "1 types and 0 shapes"),
    "too few labels": (set_attr("labels", []), "0 labels of 1 arguments"),
    "an argument that is not there": (set_attr("kept", [7]), "the list \\[7\\] of used arguments"),
}


@pytest.mark.parametrize("what", CHANGED)
def test_a_changed_graph_is_refused(what):
    change, words = CHANGED[what]
    graph, node = exported()
    change(node)
    with pytest.raises((tf.errors.InvalidArgumentError, ValueError), match=words):
        tf.import_graph_def(graph)


@pytest.mark.parametrize("packed", [b"noise", b"\x0a\x03abc"])
def test_a_changed_gradient_is_refused(packed):
    graph, node = exported()
    node.attr["gradient"].s = packed
    node.attr["identity"].s = b"from elsewhere"
    tf.import_graph_def(graph, name="")
    x, y = (tf.get_default_graph().get_tensor_by_name(name) for name in ("x:0", "call:0"))
    with pytest.raises(
        tf.errors.InvalidArgumentError, match="The gradient that travelled with 'call' is malformed"
    ):
        tf.gradients(y, x)


def test_a_server_refuses_a_changed_graph():
    with ProcessCluster(worker=1) as cluster:
        x = tf.placeholder(tf.float32, [None, 4])
        with tf.device("/job:worker/task:0"):
            y = tf.fleet.jax_op(lambda x: jnp.tanh(x) * 2.0)(x)
        y.op._attrs["module"] = y.op._attrs["module"].replace(b"stablehlo.tanh", b"stablehlo.infeed")
        with tf.Session(cluster.target("worker", 0)) as session:
            with pytest.raises(tf.errors.InvalidArgumentError, match="A StableHLO program cannot be read"):
                session.run(y, {x: np.ones((1, 4))})
            assert session.run(tf.constant(1.0)) == 1.0  # it goes on


def test_a_graph_goes_there_and_back():
    graph, _ = exported()
    (y,) = tf.import_graph_def(graph, {"x": tf.ones([2, 4])}, ["call:0"], name="")
    again = tf.get_default_graph().as_graph_def()
    assert (
        next(node for node in again.node if node.op == "FleetJaxCall").attr
        == next(node for node in graph.node if node.op == "FleetJaxCall").attr
    )
    np.testing.assert_allclose(run(y), np.full((2, 4), 2 * np.tanh(1.0)), rtol=1e-6)


@pytest.mark.parametrize("resource", [False, True])
def test_an_update_by_a_function_goes_there_and_back(resource):
    optax = pytest.importorskip("optax")
    w = tf.get_variable("w", initializer=np.ones(3, np.float32), use_resource=resource)
    train = tf.fleet.OptaxOptimizer(optax.sgd(0.5)).minimize(tf.reduce_sum(w * w))
    graph = tf.get_default_graph().as_graph_def()
    kinds = {node.op for node in graph.node}
    assert ("FleetResourceJaxUpdate" if resource else "FleetJaxUpdate") in kinds
    with tf.Graph().as_default():
        tf.import_graph_def(graph, name="")
        with tf.Session() as session:
            for node in graph.node:
                if node.name.endswith("/Assign"):
                    session.run(node.name)
            session.run(train.name)
            value = session.run("w/Read/ReadVariableOp:0" if resource else "w/read:0")
    np.testing.assert_allclose(value, np.zeros(3), atol=1e-6)
    with initialized() as session:
        session.run(train)
        np.testing.assert_allclose(session.run(w), np.zeros(3), atol=1e-6)

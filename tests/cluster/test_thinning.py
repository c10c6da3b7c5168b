"""Sixteen bits on the wire: what fits is rounded, what does not is saturated and told."""

import textwrap

import numpy as np
import pytest

import tensorfleet as tf
from tensorfleet.cluster import thinning
from tensorfleet.cluster.thinning import Saturated, full, thin
from tensorfleet.platform import logging
from tensorfleet.testing.cluster import free_addresses

SECONDS = 60


@pytest.fixture
def said(monkeypatch):
    """What is logged; nothing was saturated before."""
    lines = []
    monkeypatch.setattr(logging, "warning", lambda text, *args: lines.append(text % args))
    monkeypatch.setattr(thinning, "saturated", Saturated())
    return lines


@pytest.mark.parametrize(
    ("kind", "largest", "beyond"), [("float16", 65504.0, 2e5), ("bfloat16", 3.3895314e38, 3.4e38)]
)
def test_a_finite_value_stays_finite_and_real_infinities_and_nans_stay_themselves(
    said, kind, largest, beyond
):
    given = np.array([1.5, beyond, -beyond, np.inf, -np.inf, np.nan, 0.0], np.float32)
    found = full(thin(given, kind, "'g:0'"))
    np.testing.assert_allclose(found, [1.5, largest, -largest, np.inf, -np.inf, np.nan, 0.0])
    assert len(said) == 1 and said[0].startswith("2 values of 'g:0'") and kind in said[0]


@pytest.mark.parametrize("kind", ["float16", "bfloat16"])
def test_values_that_fit_and_infinities_alone_are_not_told_of(said, kind):
    thin(np.array([-65504.0, 65519.0, np.inf, np.nan], np.float32), kind, "'g:0'")
    thin(np.zeros([0, 3], np.float32), kind, "'g:0'")
    assert full(thin(np.float32(2.5), kind, "'g:0'")) == 2.5
    assert said == []


def test_a_scalar_that_does_not_fit_stays_a_scalar(said):
    found = thin(np.float32(-1e6), "float16", "'g:0'")
    assert found.shape == () and found == -65504.0


def test_each_edge_is_told_once_and_the_total_once_a_minute():
    counted = Saturated()
    assert "3 values of 'a'" in counted.add("'a'", "float16", 3, 1e6, 10.0)
    assert counted.add("'a'", "float16", 3, 1e6, 20.0) is None
    assert "1 value of 'b'" in counted.add("'b'", "float16", 1, 1e6, 30.0)
    assert counted.add("'b'", "float16", 1, 1e6, 69.0) is None
    total = counted.add("'a'", "float16", 1, 1e6, 70.5)
    assert "So far 9 values" in total and "Tensors: 2, most often 'a' (7 values)" in total
    assert counted.add("'a'", "float16", 1, 1e6, 129.0) is None
    assert "So far 10 values" in counted.rest()
    assert counted.rest() is None


def test_the_total_is_not_told_where_every_value_has_been():
    counted = Saturated()
    assert counted.rest() is None
    counted.add("'a'", "float16", 3, 1e6, 10.0)
    assert counted.rest() is None


@pytest.mark.parametrize(
    ("own", "edge"),
    [
        ("ps", "'mul:0' to /job:worker/replica:0/task:0"),
        ("worker", "'mul:0' from /job:ps/replica:0/task:0"),
        ("other", "'mul:0' from /job:ps/replica:0/task:0"),
    ],
    ids=["sent by the session's task", "in an answer", "pushed from task to task"],
)
def test_a_value_beyond_float16_arrives_as_the_largest(monkeypatch, said, serve, own, edge):
    monkeypatch.setenv("TENSORFLEET_WIRE", "float16")
    spec = free_addresses(ps=1, worker=1, other=1)
    servers = {job: serve(spec, job, 0) for job in spec}
    x = tf.placeholder(tf.float32, [])
    with tf.device("/job:ps/task:0"):
        a = x * 1.0
    with tf.device("/job:worker/task:0"):
        b = a + 0.0
    with tf.Session(servers[own].target) as s:
        assert s.run(b, {x: 2e5}) == 65504.0
        assert s.run(b, {x: -2e5}) == -65504.0
        assert s.run(b, {x: np.inf}) == np.inf
    assert len(said) == 1 and said[0].startswith(f"1 value of {edge}, up to 200000:")


def test_a_gradient_beyond_float16_does_not_destroy_the_variable_and_is_told_of(tasks, tmp_path):
    script = tmp_path / "train.py"
    script.write_text(
        textwrap.dedent("""
        import os, sys
        os.environ["TENSORFLEET_WIRE"] = "float16"
        import tensorfleet as tf

        spec = {"ps": [sys.argv[1]], "worker": [sys.argv[2]]}
        ps, worker = tf.train.Server(spec, "ps", 0), tf.train.Server(spec, "worker", 0)
        with tf.device(tf.train.replica_device_setter(cluster=spec)):
            w = tf.get_variable("w", [2], initializer=tf.ones_initializer())
            train = tf.train.GradientDescentOptimizer(1e-5).minimize(tf.reduce_sum(w * [1e7, 1.0]))
        with tf.Session(worker.target) as sess:
            sess.run(w.initializer)
            for _ in range(3):
                sess.run(train)
            print("w is", sess.run(w))
    """)
    )
    spec = free_addresses(ps=1, worker=1)
    process = tasks.start(script, spec["ps"][0], spec["worker"][0])
    text, _ = process.communicate(timeout=SECONDS)
    assert process.returncode == 0, text
    assert "w is [-0.96" in text  # 1 - 3 * 0.65504
    assert text.count("too large for float16") == 1
    assert "So far 3 values" in text  # the total, at the end

"""What operations cost, told when the session's options ask for a model of it."""

import pytest

import tensorfleet as tf


def told(runs, options=None, **model):
    """How many nodes the model has after each of some runs, and the last model."""
    x = tf.placeholder(tf.float32, [2, 2], name="x")
    v = tf.Variable([[1.0, 2.0], [3.0, 4.0]], name="v")
    y = tf.matmul(x, v, name="y")
    z = tf.reduce_sum(y, name="z")
    config = tf.ConfigProto(graph_options=tf.GraphOptions(**model))
    counts = []
    with tf.Session(config=config) as session:
        session.run(v.initializer)
        for _ in range(runs):
            metadata = tf.RunMetadata()
            session.run([z, y], {x: [[1, 2], [3, 4]]}, options=options, run_metadata=metadata)
            counts.append(len(metadata.cost_graph.node))
    return counts, metadata


def test_it_is_empty_unless_asked_for():
    full = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
    counts, metadata = told(2, full)
    assert counts == [0, 0] and metadata.step_stats.dev_stats


@pytest.mark.parametrize(
    ("model", "filled"),
    [
        ({"build_cost_model": 1}, [True, True, True, True]),
        ({"build_cost_model": 2}, [False, True, False, True]),
        ({"build_cost_model": 1, "build_cost_model_after": 2}, [False, False, True, True]),
    ],
)
def test_every_so_many_runs(model, filled):
    counts, _ = told(4, **model)
    assert [n > 0 for n in counts] == filled


def test_it_has_the_operations_with_what_they_take_and_make():
    _, metadata = told(1, build_cost_model=1)
    nodes = metadata.cost_graph.node
    assert [n.id for n in nodes] == list(range(len(nodes)))
    by_name = {n.name: n for n in nodes}
    assert {"_SOURCE", "_SINK", "_arg_x_0_0", "v", "v/read", "y", "z"} <= by_name.keys()
    assert {"_retval_y_0_0", "_retval_z_0_1"} <= by_name.keys()
    y = by_name["y"]
    assert [nodes[i.preceding_node].name for i in y.input_info] == ["_arg_x_0_0", "v/read"]
    assert [o.size for o in y.output_info] == [16]
    assert y.device.endswith("/device:CPU:0")
    assert by_name["v"].persistent_memory_size == 16


def test_without_a_place_to_put_it_the_run_is_as_ever():
    config = tf.ConfigProto(graph_options=tf.GraphOptions(build_cost_model=1))
    with tf.Session(config=config) as session:
        assert session.run(tf.constant(1.0) + 2.0) == 3.0

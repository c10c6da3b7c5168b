"""What `sess.run` takes besides tensors, and how sessions are entered and left."""

import warnings

import numpy as np
import pytest
from tensorfleet.core.protobuf import config_pb2
from tensorfleet.python.client import session as session_module

import tensorfleet as tf


class Pair:
    """Two tensors that are fetched as their sum."""

    def __init__(self, a, b):
        self.a, self.b = a, b


def test_a_type_can_be_registered_once_for_fetching_and_feeding(session):
    session_module.register_session_run_conversion_functions(
        Pair,
        lambda p: ([p.a, p.b], sum),
        lambda p, value: [(p.a, value[0]), (p.b, value[1])],
        lambda p: [p.a, p.b],
    )
    with pytest.raises(ValueError, match="already been registered"):
        session_module.register_session_run_conversion_functions(Pair, lambda p: ([], sum))
    pair = Pair(tf.constant(1.0), tf.constant(2.0))
    assert session.run(pair) == 3.0
    assert session.run([pair, pair.a * 2], {pair: (5.0, 6.0)}) == [11.0, 10.0]
    handle = session.partial_run_setup([pair], [])
    assert session.partial_run(handle, pair) == 3.0


def test_a_feed_key_may_be_a_nest_of_tensors(session):
    keys = (tf.placeholder(tf.float32), (tf.placeholder(tf.float32, [2]),))
    total = keys[0] + keys[1][0]
    np.testing.assert_array_equal(session.run(total, {keys: (1.0, ([2.0, 3.0],))}), [3.0, 4.0])
    with pytest.raises(ValueError, match="as many values"):
        session.run(total, {keys: (1.0,)})


def test_the_shape_of_a_sparse_placeholder_need_not_be_fed_when_it_is_known(session):
    sparse = tf.sparse_placeholder(tf.float32, [3])
    dense = tf.sparse_tensor_to_dense(sparse)
    assert session.run(dense, {sparse: ([[1]], [7.0])}).tolist() == [0.0, 7.0, 0.0]


def test_what_a_callable_options_message_asks_for(session):
    x = tf.placeholder(tf.float32, name="x")
    y = tf.add(x, 1.0, name="y")
    call = session._make_callable_from_options(config_pb2.CallableOptions(feed=[x.name], fetch=[y.name]))
    assert call(np.float32(1)) == [2.0]


def test_a_session_is_not_entered_twice(session):
    with pytest.raises(RuntimeError, match="not re-entrant"):
        session.__enter__()


def test_default_sessions_end_in_the_order_they_began():
    first, second = tf.Session().as_default(), tf.Session().as_default()
    first.__enter__()
    second.__enter__()
    with pytest.raises(AssertionError, match="Nesting violated"):
        first.__exit__(None, None, None)
    second.__exit__(None, None, None)
    first.__exit__(None, None, None)
    assert tf.get_default_session() is None


def test_a_second_interactive_session_warns():
    first = tf.InteractiveSession()
    with pytest.warns(UserWarning, match="already active"):
        second = tf.InteractiveSession()
    second.close()
    first.close()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tf.InteractiveSession().close()


def test_a_constant_is_in_the_trace_and_in_the_graphs_of_the_devices(session):
    options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE, output_partition_graphs=True)
    metadata = tf.RunMetadata()
    x = tf.constant(1.0)
    session.run(x, options=options, run_metadata=metadata)
    assert [s.node_name for d in metadata.step_stats.dev_stats for s in d.node_stats] == [x.op.name]
    assert [n.name for g in metadata.partition_graphs for n in g.node] == [x.op.name]
    session.run(x, run_metadata=metadata)
    assert not metadata.partition_graphs and not metadata.HasField("step_stats")


def test_options_and_metadata_must_be_messages(session):
    x = tf.constant(1.0)
    with pytest.raises(TypeError, match=r"tf\.RunOptions"):
        session.run(x, options=3)
    with pytest.raises(TypeError, match=r"tf\.RunMetadata"):
        session.run(x, run_metadata={})


def test_shapes_are_in_the_graph_def_when_the_configuration_asks():
    tf.constant(1.0)
    config = tf.ConfigProto(graph_options=tf.GraphOptions(infer_shapes=True))
    assert "_output_shapes" not in tf.Session().graph_def.node[0].attr
    assert "_output_shapes" in tf.Session(config=config).graph_def.node[0].attr


def test_a_sparse_placeholder_of_known_shape_has_a_constant_one(session):
    known = tf.sparse_placeholder(tf.float32, [3, 2], name="known")
    assert known.dense_shape.op.type == "Const"
    assert known.dense_shape.name == "known/shape:0"
    partly = tf.sparse_placeholder(tf.float32, [None, 2], name="partly")
    assert partly.dense_shape.op.type == "Placeholder"
    assert partly.dense_shape.shape.as_list() == [2]
    total = tf.sparse_reduce_sum(partly)
    assert session.run(total, {partly: ([[0, 1]], [7.0], [1, 2])}) == 7.0
    with pytest.raises(ValueError, match="takes 3 values"):
        session.run(total, {partly: ([[0, 1]], [7.0])})

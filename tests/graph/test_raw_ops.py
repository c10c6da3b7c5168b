"""Ops as functions, under their own names and those TensorFlow generates."""

import numpy as np
import pytest
from tensorfleet.python.ops import gen_array_ops, gen_data_flow_ops, gen_math_ops, gen_nn_ops

import tensorfleet as tf
from tests.support.sessions import run


def test_raw_ops_take_keywords():
    x = np.float32([[1, 2], [3, 4]])
    np.testing.assert_array_equal(run(tf.raw_ops.MatMul(a=x, b=x, transpose_b=True)), x @ x.T)
    op = tf.raw_ops.MatMul(a=x, b=x, name="product").op
    assert (op.name, op.type) == ("product", "MatMul")
    with pytest.raises(TypeError):
        tf.raw_ops.MatMul(x, x)
    with pytest.raises(AttributeError):
        tf.raw_ops.NoSuchOp  # noqa: B018


def test_arguments_are_called_as_by_the_functions_of_tensorflow():
    x = np.float32([[1, 2], [3, 4]])
    assert run(tf.raw_ops.Sum(input=x, axis=0)).tolist() == [4, 6]
    assert run(tf.raw_ops.Select(condition=x > 2, x=x, y=-x)).tolist() == [[-1, -2], [3, 4]]
    assert run(tf.raw_ops.Where(condition=x > 3)).tolist() == [[1, 1]]
    assert tf.raw_ops.ExpandDims(input=x, axis=0).shape == [1, 2, 2]
    assert tf.raw_ops.Squeeze(input=x[:, :1], axis=[1]).shape == [2]
    with pytest.raises(TypeError, match="reduction_indices|axis"):
        tf.raw_ops.Sum(input=x, reduction_indices=0)


def test_ops_are_listed():
    assert {"MatMul", "Conv2D"} < set(dir(tf.raw_ops))


def test_several_outputs_have_names():
    result = tf.raw_ops.TopKV2(input=np.float32([3, 1, 2]), k=2)
    assert run(result.values).tolist() == [3, 2]
    assert run(result.indices).tolist() == [0, 2]


def test_generated_functions_take_positions():
    assert run(gen_math_ops.mat_mul([[1.0]], [[2.0]])).tolist() == [[2.0]]
    assert run(gen_nn_ops.relu_grad([1.0, 1.0], [-1.0, 1.0])).tolist() == [0, 1]
    assert [run(p).tolist() for p in gen_array_ops.split(0, [1, 2], 2)] == [[1], [2]]
    assert run(gen_array_ops.concat_v2([[1], [2]], 0)).tolist() == [1, 2]
    assert run(gen_math_ops._range(0, 3, 1)).tolist() == [0, 1, 2]
    assert run(gen_math_ops._sum([1, 2], 0, keep_dims=True)).tolist() == [3]


def test_training_ops_are_functions_too(session):
    from tensorfleet.python.training import training_ops

    v = tf.Variable([1.0, 2.0])
    step = training_ops.apply_gradient_descent(v._ref(), 0.5, [2.0, 2.0])
    session.run(v.initializer)
    assert session.run(step).tolist() == [0, 1]


def test_required_attributes_come_before_those_with_defaults(session):
    queue = gen_data_flow_ops.fifo_queue_v2([tf.int32], shapes=[[]], capacity=2, shared_name="q")
    put = gen_data_flow_ops.queue_enqueue_v2(queue, [7])
    got = gen_data_flow_ops.queue_dequeue_v2(queue, [tf.int32])
    session.run(put)
    assert session.run(got) == [7]


def test_messages_are_in_the_generated_modules():
    from tensorfleet.core.framework import types_pb2
    from tensorfleet.core.protobuf import config_pb2, queue_runner_pb2

    assert types_pb2.DT_FLOAT == 1 and types_pb2.DT_STRING_REF == 107
    options = config_pb2.RPCOptions(use_rpc_for_inprocess_master=True)
    assert config_pb2.ConfigProto(rpc_options=options).rpc_options.use_rpc_for_inprocess_master
    assert queue_runner_pb2.QueueRunnerDef(queue_name="q").queue_name == "q"
    with pytest.raises(AttributeError):
        config_pb2.NoSuchMessage  # noqa: B018


def test_functions_named_like_their_op_take_keywords_only():
    with pytest.raises(TypeError, match=r"only takes keyword args \(possible keys: \['x', 'y', 'name'\]\)"):
        tf.python.ops.gen_math_ops.Add(1.0, y=2.0)
    assert tf.python.ops.gen_math_ops.Add(x=1.0, y=2.0).op.type == "Add"
    assert tf.python.ops.gen_math_ops.add(1.0, 2.0).op.type == "Add"

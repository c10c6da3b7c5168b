"""Scripts that reach inside TensorFlow find the same objects here."""

import tensorfleet as tf


def test_modules_of_ops_hold_the_public_functions():
    from tensorfleet.python.framework import dtypes, errors, ops
    from tensorfleet.python.ops import array_ops, math_ops, variable_scope
    from tensorfleet.python.training import training_util

    assert ops.Graph is tf.Graph
    assert ops.GraphKeys is tf.GraphKeys
    assert dtypes.float32 is tf.float32
    assert errors.OutOfRangeError is tf.errors.OutOfRangeError
    assert array_ops.concat is tf.concat
    assert math_ops.add_n is tf.add_n
    assert variable_scope.get_variable is tf.get_variable
    assert training_util.get_or_create_global_step is tf.train.get_or_create_global_step


def test_a_name_can_be_imported_by_itself():
    from tensorfleet.python.framework.ops import colocate_with
    from tensorfleet.python.platform.tf_logging import info
    from tensorfleet.python.util.nest import flatten

    assert colocate_with is tf.colocate_with
    assert info is tf.logging.info
    assert flatten is tf.nest.flatten


def test_messages_come_from_generated_modules():
    from tensorfleet.core.framework import summary_pb2
    from tensorfleet.core.protobuf.config_pb2 import ConfigProto

    assert summary_pb2.Summary is tf.Summary
    assert ConfigProto is tf.ConfigProto

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


def test_event_files_can_be_written_by_hand(tmp_path):
    from tensorfleet.core.framework.summary_pb2 import Summary
    from tensorfleet.core.util.event_pb2 import Event
    from tensorfleet.python import pywrap_tensorflow
    from tensorfleet.python.util import compat

    writer = pywrap_tensorflow.EventsWriter(compat.as_bytes(str(tmp_path / "events")))
    writer.WriteEvent(Event(step=3, summary=Summary(value=[Summary.Value(tag="a", simple_value=2.0)])))
    writer.Flush()
    (path,) = tmp_path.glob("events.out.tfevents.*")
    assert writer.FileName().decode() == str(path)
    writer.Close()
    *_, event = tf.train.summary_iterator(str(path))
    assert (event.step, event.summary.value[0].simple_value) == (3, 2.0)


def test_small_parts_of_the_inside_are_there(caplog):
    from tensorfleet.core.protobuf.rewriter_config_pb2 import RewriterConfig
    from tensorfleet.python.framework import tensor_shape
    from tensorfleet.python.ops import control_flow_ops
    from tensorfleet.python.util import deprecation

    assert tensor_shape.scalar() == tf.TensorShape([])
    assert tensor_shape.unknown_shape(2).as_list() == [None, None]
    assert RewriterConfig.OFF == 2
    with tf.Graph().as_default():
        assert control_flow_ops.with_dependencies([tf.no_op()], tf.constant(1)).op.type == "Identity"

    @deprecation.deprecated("2030-01-01", "Use new().")
    def old():
        return 1

    assert old() == old() == 1


def test_modules_lend_public_names_they_did_not_publish():
    from tensorfleet.python.training import optimizer, saver

    assert saver.Saver is tf.train.Saver
    assert optimizer.Optimizer is tf.train.Optimizer
    assert not hasattr(saver, "NoSuchSaver")

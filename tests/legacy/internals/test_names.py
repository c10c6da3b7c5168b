"""Scripts that reach inside TensorFlow find the same objects here."""

import os

import pytest

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
    assert os.path.exists(writer.FileName())
    with pytest.raises(TypeError, match="no event"):
        writer.WriteEvent("no event")
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


def test_variables_of_the_inside():
    from tensorfleet.python.framework import ops, tensor_util
    from tensorfleet.python.ops import resource_variable_ops, variables

    with tf.Graph().as_default():
        a = variables.VariableV1([1.0], name="a")
        b = resource_variable_ops.ResourceVariable([2.0], name="b")
        assert isinstance(a, variables.RefVariable)
        assert resource_variable_ops.is_resource_variable(b)
        assert not resource_variable_ops.is_resource_variable(a)
        assert tensor_util.constant_value(tf.constant(3)) == 3
        with tf.name_scope("here"):
            assert ops.get_name_scope() == "here"
        one, two = ops.convert_n_to_tensor([1, 2.0], name="n")
        assert (one.op.name, two.dtype) == ("n_0", tf.float32)
        assert ops.get_gradient_function(tf.square(a).op) is not None
        assert ops.get_gradient_function(one.op) is None
    assert ops.strip_name_scope("x/y", "x") == "y"
    assert ops.prepend_name_scope("y", "x") == "x/y"
    assert ops.uid() != ops.uid()
    assert not ops.executing_eagerly_outside_functions()


def test_meta_graphs_of_the_inside():
    from tensorfleet.python.framework import meta_graph

    with tf.Graph().as_default() as graph:
        with tf.variable_scope("s"):
            tf.get_variable("v", [1])
        tf.constant(1, name="c")
        whole = meta_graph.create_meta_graph_def(graph=graph)
        part, by_name = meta_graph.export_scoped_meta_graph(graph=graph, export_scope="s")
    assert "c" in [n.name for n in whole.graph_def.node]
    assert [n.name for n in part.graph_def.node if n.op == "VariableV2"] == ["v"]
    assert list(by_name) == ["v:0"]


def test_the_global_step_of_the_inside():
    from tensorfleet.python.training import training_util

    with tf.Graph().as_default():
        with pytest.raises(ValueError, match="Global step"):
            training_util._increment_global_step(2)
        tf.train.create_global_step()
        more = training_util._increment_global_step(2)
        with tf.Session() as s:
            s.run(tf.global_variables_initializer())
            assert s.run(more) == 2


def test_what_replaces_a_logging_function_sees_the_messages(monkeypatch):
    from tensorfleet.python.platform import tf_logging
    from tensorfleet.python.training import basic_session_run_hooks, monitored_session

    seen = []
    monkeypatch.setattr(tf_logging, "info", lambda *args: seen.append(args))
    with tf.Graph().as_default(), tf.Session() as s:
        hook = basic_session_run_hooks.LoggingTensorHook({"x": tf.constant(4.0)}, every_n_iter=1)
        hook.begin()
        monitored_session._HookedSession(s, [hook]).run(tf.constant(1))
    assert "x = 4.0" in str(seen)
    assert tf_logging.INFO == tf.logging.INFO
    assert tf_logging.TaskLevelStatusMessage is tf.logging.TaskLevelStatusMessage


def test_random_numbers_without_state_have_their_contrib_names():
    assert tf.contrib.stateless.stateless_random_uniform is tf.random.stateless_uniform
    assert tf.contrib.stateless.stateless_truncated_normal is tf.random.stateless_truncated_normal
    assert tf.contrib.signal.stft is tf.signal.stft


def test_inner_modules_have_the_modules_they_import():
    from tensorfleet.python.framework import dtypes
    from tensorfleet.python.ops import variables

    assert variables.dtypes is dtypes
    with pytest.raises(AttributeError):
        variables.no_such_module  # noqa: B018


def test_what_is_called_v1_inside_is_the_public_name():
    inside = tf.python
    assert inside.ops.math_ops.reduce_sum_v1 is tf.reduce_sum
    assert inside.ops.string_ops.string_to_number_v1 is tf.string_to_number
    assert inside.framework.ops.name_scope_v1 is tf.name_scope
    assert inside.data.ops.dataset_ops.DatasetV1 is tf.data.Dataset
    assert inside.data.ops.readers.TFRecordDatasetV1 is tf.data.TFRecordDataset
    with pytest.raises(AttributeError):
        _ = tf.reduce_sum_v1


def test_the_gradient_of_an_operation_is_the_one_registered_last():
    from tensorfleet.python.framework import ops, tensor_util
    from tensorfleet.python.ops import op_selector

    @tf.RegisterGradient("SquareOfTheseTests")
    def own(op, grad):
        return grad

    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, [None])
        with graph.gradient_override_map({"Square": "SquareOfTheseTests"}):
            y = tf.square(x)
        with graph.gradient_override_map({"Square": "NobodyRegisteredThis"}):
            z = tf.square(x)
        assert ops.get_gradient_function(y.op) is own
        with pytest.raises(LookupError, match="NobodyRegisteredThis"):
            ops.get_gradient_function(z.op)
        tensor_util.maybe_set_static_shape(x, tf.constant([3]))
        assert x.shape == [3]
        assert op_selector.get_consuming_ops([x]) == [y.op, z.op]
        assert graph in ops._default_graph_stack.stack

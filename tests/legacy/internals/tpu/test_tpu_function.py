"""What libraries ask of TPUs where there are none."""

import pytest

import tensorfleet as tf
from tensorfleet.cli.scripts.alias import resolve


def test_modules_of_tpus_can_be_imported_and_tell_what_they_lack():
    for name in ("python.tpu.ops.tpu_ops", "python.tpu.tpu_feed", "contrib.tpu.python.tpu.device_assignment"):
        assert resolve(f"tensorflow.{name}") is not None
    with pytest.raises(AttributeError, match="no attribute 'rewrite'"):
        _ = tf.python.tpu.tpu.rewrite


def test_a_computation_is_divided_only_inside_its_context():
    inside = tf.python.tpu.tpu_function
    assert inside.get_tpu_context().number_of_shards is None
    with inside.tpu_shard_context(4):
        assert inside.get_tpu_context().number_of_shards == 4
        with pytest.raises(NotImplementedError, match="cannot be nested"), inside.tpu_shard_context(2):
            pass
    assert inside.get_tpu_context().number_of_shards is None


def test_variables_keep_float32_and_are_read_as_bfloat16():
    with tf.tpu.bfloat16_scope():
        narrow, wide = tf.get_variable("narrow", [2], tf.bfloat16), tf.get_variable("wide", [2])
    assert narrow.dtype == tf.bfloat16
    assert [v.dtype.base_dtype for v in tf.global_variables()] == [tf.float32, tf.float32]
    assert isinstance(wide, tf.Variable)


def test_libraries_for_both_kinds_of_execution_are_told_that_there_are_graphs():
    tfe = resolve("tensorflow.contrib.eager.python.tfe")
    assert not tfe.executing_eagerly()
    assert callable(tfe.run_test_in_graph_and_eager_modes)

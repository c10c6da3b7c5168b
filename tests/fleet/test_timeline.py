"""What a timeline tells of a traced step."""

import json

import numpy as np

import tensorfleet as tf


def test_the_memory_of_a_step_is_analyzed():
    a = tf.placeholder(tf.float32, [100], name="a")
    product = tf.square(a, name="b") + 1.0
    metadata = tf.RunMetadata()
    with tf.Session() as sess:
        sess.run(product, {a: np.ones(100)}, tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE), metadata)
    analysis = tf.fleet.Timeline(metadata.step_stats).analyze_step_stats()
    assert "traceEvents" in json.loads(analysis.chrome_trace.format_to_string())
    (most,) = analysis.allocator_maximums.values()
    assert most.num_bytes >= 400
    assert most.timestamp > 0
    assert most.tensors

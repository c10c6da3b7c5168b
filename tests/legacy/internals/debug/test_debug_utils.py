"""Which tensors `watch_graph` and the like ask for."""

import tensorfleet as tf

debug = tf.python.debug


def _names(options):
    return [watch.node_name for watch in options.debug_options.debug_tensor_watch_opts]


def test_a_graph_is_watched_whole_or_by_names_types_and_dtypes(graph):
    x = tf.placeholder(tf.float32, [], name="x")
    tf.cast(tf.multiply(x, x, name="square"), tf.int32, name="whole")
    tf.no_op(name="nothing")
    every, floats, squares, others = (tf.RunOptions() for _ in range(4))
    debug.watch_graph(every, graph, debug_urls=["file:///a", "file:///b"], global_step=7)
    debug.watch_graph(floats, graph, tensor_dtype_regex_whitelist="float")
    debug.watch_graph(squares, graph, node_name_regex_allowlist="sq", op_type_regex_allowlist="Mul")
    debug.watch_graph_with_blacklists(others, graph, node_name_regex_blacklist="sq")
    assert _names(every) == ["x", "square", "whole"]
    assert list(every.debug_options.debug_tensor_watch_opts[0].debug_urls) == ["file:///a", "file:///b"]
    assert every.debug_options.global_step == 7
    assert (_names(floats), _names(squares), _names(others)) == (["x", "square"], ["square"], ["x", "whole"])

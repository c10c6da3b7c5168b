"""A graph written out while other threads add to it."""

import threading

import tensorfleet as tf


def test_a_graph_def_taken_while_a_loop_is_being_built_holds_all_its_inputs():
    graph, done, problems = tf.Graph(), threading.Event(), []

    def watch():
        while not done.is_set():
            nodes = graph.as_graph_def().node
            names = {n.name for n in nodes}
            inputs = {i.lstrip("^").split(":")[0] for n in nodes for i in n.input}
            problems.extend(inputs - names)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        with graph.as_default():
            for _ in range(10):
                x = tf.placeholder(tf.float32)
                tf.gradients(tf.while_loop(lambda v: v < 9.0, lambda v: v * v, [x]), x)
    finally:
        done.set()
        watcher.join(60)
    assert not problems

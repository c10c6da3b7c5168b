"""Traced steps: with transfers between tasks, and with every operation by itself."""

import re

import numpy as np
import pytest

import tensorfleet as tf
from tensorfleet.runtime import recording, trace
from tensorfleet.runtime.trace import Recorder, runs_by_op
from tensorfleet.testing.cluster import ProcessCluster


def traced(session, fetches, feeds=None, by_op=False, graphs=False):
    """What a traced run gives, and its metadata."""
    options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE, output_partition_graphs=graphs)
    options.experimental.trace_by_op = by_op
    metadata = tf.RunMetadata()
    return session.run(fetches, feeds, options, metadata), metadata


def nodes(metadata):
    return [(d.device, n) for d in metadata.step_stats.dev_stats for n in d.node_stats]


def types(metadata):
    return [n.timeline_label.partition(" = ")[2].partition("(")[0] for _, n in nodes(metadata)]


# -- by op --------------------------------------------------------------------------------------------


def network():
    """A small network with what is run in different ways: rows, a loop, an update."""
    x = tf.placeholder(tf.float32, [8, 4])
    w = tf.get_variable("w", [4, 3], initializer=tf.ones_initializer())
    rows = tf.get_variable("rows", [40_000, 3], initializer=tf.ones_initializer())
    h = tf.tanh(tf.matmul(x, w)) + tf.nn.embedding_lookup(rows, [1, 2, 1, 3, 4, 5, 6, 7])
    _, total = tf.while_loop(lambda i, s: i < 4, lambda i, s: (i + 1, s * 1.5 + h), [tf.constant(0), h])
    loss = tf.reduce_mean(tf.square(total))
    train = tf.train.AdagradOptimizer(0.1).minimize(loss)
    return x, loss, train


def test_by_op_gives_the_same_values_up_to_rounding(session):
    x, loss, train = network()
    feeds = {x: np.arange(32, dtype=np.float32).reshape(8, 4) / 32}
    losses = []
    for by_op in (False, True):
        session.run(tf.global_variables_initializer())
        losses.append([traced(session, [loss, train], feeds, by_op)[0][0] for _ in range(5)])
    np.testing.assert_allclose(losses[0], losses[1], rtol=1e-5)
    assert losses[0][-1] < losses[0][0]


def test_by_op_every_operation_has_an_event_of_its_own(session):
    x, loss, _ = network()
    session.run(tf.global_variables_initializer())
    feeds = {x: np.ones((8, 4))}
    fused, single = (types(traced(session, loss, feeds, by_op)[1]) for by_op in (False, True))
    assert any(kind.startswith("Segment_of_") for kind in fused)
    assert {"MatMul", "Tanh", "Square", "Mean"} <= set(single)
    assert not any(kind.startswith("Segment_of_") and not kind.startswith("Segment_of_0") for kind in single)
    # The condition of the loop is computed once more than its body.
    assert single.count("Less") == 5
    assert single.count("Mul") == 4


def test_a_read_before_an_update_sees_the_old_value_by_op_too(session):
    v = tf.get_variable("v", [], initializer=tf.ones_initializer())
    read = v + 0.0
    with tf.control_dependencies([read]):
        add = tf.assign_add(v, 1.0)
    session.run(v.initializer)
    assert [traced(session, [read, add], by_op=True)[0] for _ in range(3)] == [[1, 2], [2, 3], [3, 4]]


def test_random_numbers_are_the_same_by_op():
    with tf.Session() as one, tf.Session() as other:
        x = tf.random_normal([5], seed=3) * 2.0
        for _ in range(3):
            np.testing.assert_array_equal(one.run(x), traced(other, x, by_op=True)[0])


def test_a_step_after_one_by_op_is_fused_again(session):
    x, loss, _ = network()
    session.run(tf.global_variables_initializer())
    feeds = {x: np.ones((8, 4))}
    before, _, after = (types(traced(session, loss, feeds, by_op)[1]) for by_op in (False, True, False))
    assert before == after


def test_messages_without_the_option_do_not_ask_for_it():
    assert not runs_by_op(tf.RunOptions())
    assert not runs_by_op(type("Options", (), {"experimental": object()})())


# -- several tasks ------------------------------------------------------------------------------------

PS, WORKER = (f"/job:{job}/replica:0/task:0/device:CPU:0" for job in ("ps", "worker"))


@pytest.fixture(scope="module")
def step():
    """A training step over two tasks as its metadata shows it; the same that TensorFlow 2.21 was asked for."""
    with tf.Graph().as_default(), ProcessCluster(ps=1, worker=1) as cluster:
        with tf.device("/job:ps/task:0"):
            w = tf.get_variable("w", [64, 32], initializer=tf.ones_initializer())
            joined = tf.strings.join(
                [tf.placeholder_with_default(["a", "bb"], [2]), ["c", "d"]], name="joined"
            )
        with tf.device("/job:worker/task:0"):
            x = tf.placeholder(tf.float32, [None, 64], name="x")
            loss = tf.reduce_mean(tf.square(tf.matmul(x, w, name="y")), name="loss")
            lengths = tf.strings.length(joined, name="lengths")
        train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
        with tf.Session(cluster.target("worker", 0)) as sess:
            sess.run(tf.global_variables_initializer())
            return traced(sess, [train, loss, w, lengths], {x: np.ones((8, 64))}, graphs=True)[1]


def received(step):
    return [(device, n) for device, n in nodes(step) if n.node_name == "RecvTensor"]


def test_values_from_other_tasks_are_nodes_as_in_tensorflow(step):
    found = {(device, n.timeline_label.split(" ")[2].split("_", 2)[2]) for device, n in received(step)}
    assert found == {
        (WORKER, "joined"),
        (WORKER, "w/read"),
        (WORKER, "w"),
        (PS, "gradients/y_grad/tuple/control_dependency_1"),
    }


def test_a_transfer_has_tensorflows_fields(step):
    (node,) = (n for device, n in received(step) if "w/read" in n.timeline_label)
    size, speed, edge, *places = node.timeline_label.split(" ")
    assert size == "[8192B]"
    assert speed[-6:] in ("Mb/s]", "4Mb/s]") or speed.endswith(("Mb/s]", "Gb/s]"))
    assert edge.startswith("edge_")
    assert places == ["from", PS, "to", WORKER]
    assert node.all_start_micros > 0
    assert node.all_end_rel_micros == node.op_end_rel_micros >= 1
    (output,) = node.output
    assert output.tensor_description.allocation_description.requested_bytes == 8192
    assert not node.all_start_nanos
    assert not node.thread_id


def test_a_transfer_of_megabytes_is_written_in_megabytes():
    with ProcessCluster(ps=1, worker=1) as cluster:
        with tf.device("/job:ps/task:0"):
            v = tf.get_variable("v", [1 << 20], initializer=tf.zeros_initializer())
        with tf.device("/job:worker/task:0"):
            total = tf.reduce_sum(v)
        with tf.Session(cluster.target("worker", 0)) as sess:
            sess.run(v.initializer)
            (label,) = (n.timeline_label for _, n in received(traced(sess, total)[1]))
    assert label.startswith("[4.0MB] [")


def test_a_step_of_one_task_has_no_transfers(server):
    v = tf.get_variable("v", [10], initializer=tf.zeros_initializer())
    with tf.Session(server.target) as sess:
        sess.run(v.initializer)
        assert not received(traced(sess, v + 1.0)[1])


def test_partition_graphs_have_sends_and_receives_as_in_tensorflow(step):
    graphs = {graph.node[0].device: {n.name: n for n in graph.node} for graph in step.partition_graphs}
    assert graphs.keys() == {PS, WORKER}
    sends = {n.attr["tensor_name"].s: n for n in graphs[PS].values() if n.op == "_Send"}
    receives = {n.attr["tensor_name"].s: n for n in graphs[WORKER].values() if n.op == "_Recv"}
    (name,) = (name for name in sends if name.endswith(b"_w/read"))
    send, receive = sends[name], receives[name]
    assert list(send.input) == ["w/read"]
    assert not receive.input
    assert send.attr["T"].type == receive.attr["tensor_type"].type == tf.float32.as_datatype_enum
    for node in (send, receive):
        assert node.attr["send_device"].s.decode() == PS
        assert node.attr["recv_device"].s.decode() == WORKER
        assert node.attr["client_terminated"].b is False
        assert (node.attr["_src"].s, node.attr["_dst"].s) == (b"w/read", b"y")
    assert receive.name in graphs[WORKER]["y"].input
    assert any(n.op == "_HostSend" for n in graphs[PS].values())
    assert any(n.op == "_HostRecv" for n in graphs[WORKER].values())


def test_what_is_fed_and_fetched_goes_by_the_task_of_the_session_as_in_tensorflow():
    with ProcessCluster(ps=1, worker=1) as cluster:
        with tf.device("/job:ps/task:0"):
            x = tf.placeholder(tf.float32, [4], name="x")
            b = tf.multiply(x, 2.0, name="b")
        with tf.Session(cluster.target("worker", 0)) as sess:
            _, metadata = traced(sess, [b, b], {x: np.ones(4)}, graphs=True)
    graphs = {
        graph.node[0].device: {(n.name, n.op) for n in graph.node} for graph in metadata.partition_graphs
    }
    numbers = {name[-1] for name, _ in graphs[PS] if "_S" in name}
    assert {re.sub("_S.$", "_S", name) for name, _ in graphs[WORKER]} == {
        "_recv_x_0",
        "_recv_x_0_S",
        "b_S",
        "_send_b_0",
    }
    assert {re.sub("_S.$", "_S", name) for name, _ in graphs[PS]} == {"_recv_x_0_S", "b", "b_S"}
    assert len(numbers) == 2
    edges = {(device, n.timeline_label.split(" ")[2].split("_", 2)[2]) for device, n in received(metadata)}
    assert edges == {(WORKER, "b"), (PS, "_recv_x_0")}


def test_a_step_on_the_task_of_the_session_alone_begins_and_ends_at_the_client():
    with ProcessCluster(worker=1) as cluster:
        x = tf.placeholder(tf.float32, [], name="x")
        y = tf.log(x, name="y")
        with tf.Session(cluster.target("worker", 0)) as sess:
            _, metadata = traced(sess, y, {x: 1.0}, graphs=True)
    (graph,) = metadata.partition_graphs
    nodes = {n.name: (n.op, list(n.input)) for n in graph.node}
    assert nodes == {"_recv_x_0": ("_Recv", []), "y": ("Log", ["_recv_x_0"]), "_send_y_0": ("_Send", ["y"])}


def test_what_is_fed_and_fetched_ends_at_the_client(step):
    worker = next(graph for graph in step.partition_graphs if graph.node[0].device == WORKER)
    client = {n.attr["tensor_name"].s: n for n in worker.node if n.attr["client_terminated"].b}
    assert client.keys() == {b"x:0", b"loss:0", b"w:0", b"lengths:0"}
    assert client[b"x:0"].op == "_Recv"
    assert client[b"x:0"].name == "_recv_x_0"
    assert client[b"loss:0"].op == "_Send"
    assert list(client[b"loss:0"].input) == ["loss"]


def test_every_value_that_a_partition_takes_from_another_device_has_a_receive(step):
    device_of = {n.name: graph.node[0].device for graph in step.partition_graphs for n in graph.node}
    for graph in step.partition_graphs:
        names = [n.name for n in graph.node]
        assert len(set(names)) == len(names)
        for node in graph.node:
            for text in node.input:
                source = text.lstrip("^").partition(":")[0]
                # A constant that was computed beforehand is in no partition.
                assert device_of.get(source, node.device) == node.device, (node.name, text)


class _OddItem:
    name, device, blocks, outs = "odd", "/device:CPU:0", False, (0,)

    def run(self, ctx, values):
        values[0] = _OddValue()


class _OddValue:
    @property
    def nbytes(self):
        raise ValueError("no size")


def test_a_part_that_cannot_be_recorded_runs_all_the_same(caplog):
    recorder, values = Recorder(recording.Recording(1, 1.0)), [None]
    recorder.run(_OddItem(), None, values)
    assert isinstance(values[0], _OddValue)
    assert "A part of a step is not in the trace" in caplog.text


def test_a_result_that_does_not_tell_its_size_is_recorded_without(monkeypatch):
    monkeypatch.setattr(trace, "_description", lambda item: ("op", "odd", {}))
    begun, values = recording.Recording(1, 1.0), [None]
    Recorder(begun).run(_OddItem(), None, values)
    begun.end()
    assert begun.piece(0, 9)[0][0][5] == {"bytes": 0}

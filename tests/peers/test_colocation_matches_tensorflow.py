"""Random graphs with devices, colocation groups and variables: both libraries place them alike, or refuse them alike."""

import random
import re

import pytest

import tensorfleet
from tensorfleet.testing.cluster import free_addresses

LOCAL = [
    None,
    None,
    "/cpu:0",
    "/cpu:1",
    "/cpu:2",
    "/device:CPU:*",
    "/job:localhost",
    "/gpu:0",
    "/task:0/cpu:1",
]
JOBS = ["/job:ps/task:0", "/job:ps/task:1", "/job:worker/task:0", "/job:ps", "/job:worker/task:0/cpu:0"]
_CONFLICT = re.compile(r"Cannot merge devices with incompatible \w+")
_ABSENT = re.compile("explicitly assigned to|Could not satisfy explicit device specification")


def said(message):
    """What a refusal is about. Which member of a group it names is up to the library."""
    conflict = _CONFLICT.search(message)
    assert conflict or _ABSENT.search(message), message
    return conflict[0] if conflict else "no such device"


def build(tf, seed, devices):
    """A graph of leaves and variables, some of which follow others; returns the operations."""
    choose = random.Random(seed)
    result = []
    for i in range(choose.randint(3, 8)):
        with tf.device(choose.choice(devices)):
            kind = choose.choice(["leaf", "leaf", "leaf", "reference", "resource"])
            if kind == "leaf":
                op = tf.placeholder_with_default(1.0, [], name=f"n{i}").op
            elif kind == "reference":
                op = tf.raw_ops.VariableV2(shape=[], dtype=tf.float32, name=f"n{i}").op
            else:
                op = tf.raw_ops.VarHandleOp(shape=[], dtype=tf.float32, shared_name=f"n{i}", name=f"n{i}").op
        groups = [f"n{j}" for j in range(8) if choose.random() < 0.12]
        if groups:
            listed = tf.AttrValue.ListValue(s=[f"loc:@{g}".encode() for g in groups])
            op._set_attr("_class", tf.AttrValue(list=listed))
        result.append(op)
        if kind != "leaf":
            with tf.device(choose.choice(devices)):
                result.append(assigned(tf, kind, op.outputs[0], f"n{i}_set"))
    return result


def assigned(tf, kind, variable, name):
    if kind == "reference":
        return tf.raw_ops.Assign(ref=variable, value=1.0, name=name).op
    return tf.raw_ops.AssignVariableOp(resource=variable, value=1.0, name=name)


def places(tf, seed, devices, soft, target=""):
    """Where a graph's operations are, or what is said of a device they cannot have."""
    with tf.Graph().as_default():
        result = build(tf, seed, devices)
        config = tf.ConfigProto(device_count={"CPU": 3}, allow_soft_placement=soft)
        config.graph_options.optimizer_options.opt_level = -1
        config.graph_options.rewrite_options.disable_meta_optimizer = True
        metadata = tf.RunMetadata()
        asking = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE, output_partition_graphs=True)
        with tf.Session(target, config=config) as session:
            try:
                session.run(result, options=asking, run_metadata=metadata)
            except tf.errors.InvalidArgumentError as e:
                return said(str(e))
            if tf is tensorfleet:  # also of what needs no running
                return {op.name: session._engine.placer.device_of(op) for op in result}
    names = {op.name for op in result}
    return {n.name: n.device for graph in metadata.partition_graphs for n in graph.node if n.name in names}


@pytest.mark.parametrize("soft", [False, True], ids=["hard", "soft"])
@pytest.mark.parametrize("first", range(0, 60, 20))
def test_groups_are_placed_or_refused_alike(tensorflow, first, soft):
    for seed in range(first, first + 20):
        ours, theirs = (places(tf, seed, LOCAL, soft) for tf in (tensorfleet, tensorflow))
        assert ours == theirs, f"seed {seed}"


@pytest.fixture(scope="module")
def targets(tensorflow):
    started = {}
    for tf in (tensorfleet, tensorflow):
        spec = free_addresses(ps=2, worker=1)
        tasks = (("ps", 0), ("ps", 1), ("worker", 0))
        started[tf] = [tf.train.Server(tf.train.ClusterSpec(spec), *task) for task in tasks]
    yield {tf: servers[-1].target for tf, servers in started.items()}
    for server in started[tensorfleet]:
        server.stop()


@pytest.mark.parametrize("soft", [False, True], ids=["hard", "soft"])
def test_so_they_are_on_a_cluster(tensorflow, targets, soft):
    for seed in range(20):
        ours, theirs = (places(tf, seed, JOBS, soft, targets[tf]) for tf in (tensorfleet, tensorflow))
        assert ours == theirs, f"seed {seed}"

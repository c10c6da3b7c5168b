"""Cutting a plan into stages, without a cluster."""

import tensorfleet as tf
from tensorfleet.passes.fold import fold
from tensorfleet.passes.partition import ends, partition
from tensorfleet.passes.place import Placer
from tensorfleet.passes.plan import Plan
from tensorfleet.passes.prune import prune

PS, WORKER = "/job:ps/replica:0/task:0", "/job:worker/replica:0/task:0"
DEVICES = [f"{WORKER}/device:CPU:0", f"{PS}/device:CPU:0"]


def stages(*fetches, feeds=()):
    tensors = [f for f in fetches if isinstance(f, tf.Tensor)]
    targets = [f for f in fetches if isinstance(f, tf.Operation)]
    plan = Plan(tf.get_default_graph(), tuple(tensors), tuple(targets), tuple(feeds))
    for one in (prune, fold, Placer(DEVICES).place):
        plan = one(plan)
    return partition(plan)


def names(tensors):
    return [t.name for t in tensors]


def test_one_task_is_one_stage():
    x = tf.placeholder(tf.float32, [])
    (only,) = stages(tf.square(x) + 1.0, feeds=[x])
    assert (only.task, names(only.inputs)) == (WORKER, ["Placeholder:0"])
    assert only.after == []


def test_a_training_step_is_read_compute_apply():
    with tf.device("/job:ps"):
        w = tf.get_variable("w", [3])
    x = tf.placeholder(tf.float32, [3])
    train = tf.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_sum(w * x))
    read, compute, apply = stages(train, feeds=[x])
    assert [s.task for s in (read, compute, apply)] == [PS, WORKER, PS]
    assert names(read.outputs) == ["w/read:0"]
    assert compute.after == [0] and apply.after == [1]
    assert not apply.outputs
    assert [op.type for op in ends(apply)] == ["NoOp"]


def test_work_that_needs_nobody_joins_the_stage_that_uses_it():
    with tf.device("/job:ps"):
        w = tf.get_variable("w", [3])
    x = tf.placeholder(tf.float32, [3])
    early = tf.exp(x)  # could run before w has come
    _, compute = stages(early * w, feeds=[x])
    assert early.op in compute.ops


def test_a_constant_is_never_sent_in_a_step():
    with tf.device("/job:ps"):
        c = tf.constant([1.0, 2.0])
    x = tf.placeholder(tf.float32, [2])
    (only,) = stages(x + c, feeds=[x])
    assert names(only.inputs) == ["Placeholder:0"]


def test_a_value_needed_twice_is_sent_once():
    with tf.device("/job:ps"):
        w = tf.get_variable("w", [3])
    read, compute = stages(tf.reduce_sum(w), tf.reduce_max(w))
    assert names(read.outputs) == ["w/read:0"] and names(compute.inputs) == ["w/read:0"]


def test_control_edges_between_tasks_order_stages():
    with tf.device("/job:ps"):
        w = tf.get_variable("w", [], initializer=tf.zeros_initializer())
        add = w.assign_add(1.0)
    with tf.control_dependencies([add]):
        done = tf.no_op()
    first, second = stages(done)
    assert (first.task, second.task, second.after) == (PS, WORKER, [0])
    assert not second.inputs


def test_a_later_stage_of_a_task_reads_a_variable_again():
    with tf.device("/job:ps"):
        w = tf.get_variable("w", [])
    y = tf.square(w)
    with tf.device("/job:ps"):
        z = w + y
    read, _, add = stages(z)
    assert names(read.outputs) == ["w/read:0"]
    assert names(add.inputs) == [y.name]


def test_a_fetched_reference_is_read_when_its_task_is_done():
    with tf.device("/job:ps"):
        w = tf.Variable(0.0, name="w", use_resource=False)
    y = tf.square(w)
    with tf.device("/job:ps"):
        add = tf.assign_add(w, y)
    found = stages(add.op, w._ref())
    assert names(found[-1].outputs) == ["w:0"]
    assert add.op in found[-1].ops

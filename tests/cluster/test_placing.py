"""Where the operations of a cluster go when they do not say it."""

import pytest

import tensorfleet as tf
from tensorfleet.testing.cluster import free_addresses


@pytest.fixture
def servers(serve):
    spec = free_addresses(ps=1, worker=2)
    return [serve(spec, job, i) for job, n in (("ps", 1), ("worker", 2)) for i in range(n)]


def devices(server, ops, **config):
    """Where a session of a server has operations."""
    told = tf.RunMetadata()
    asking = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE, output_partition_graphs=True)
    with tf.Session(server.target, config=tf.ConfigProto(**config)) as sess:
        sess.run(ops, options=asking, run_metadata=told)
    found = {node.name: node.device for graph in told.partition_graphs for node in graph.node}
    return {
        name: device.replace("/replica:0", "").rpartition("/device:")[0] for name, device in found.items()
    }


def test_variables_that_ask_for_no_task_are_the_same_for_all_sessions(servers):
    count = tf.Variable(0, name="count")
    add = count.assign_add(1)
    with tf.Session(servers[1].target) as chief, tf.Session(servers[2].target) as other:
        chief.run(count.initializer)
        chief.run(add)
        assert other.run(add) == 2


@pytest.mark.parametrize("resource", [False, True])
def test_variables_are_on_the_first_task_that_fits_what_they_ask_for(servers, resource):
    made = [tf.get_variable("plain", [], use_resource=resource)]
    with tf.device("/cpu:0"):
        made.append(tf.get_variable("cpu", [], use_resource=resource))
    with tf.device("/job:worker"):
        made.append(tf.get_variable("job", [], use_resource=resource))
    with tf.device("/gpu:0"):
        made.append(tf.get_variable("gpu", [], use_resource=resource))
    init = [v.initializer for v in made]
    found = devices(servers[2], init, allow_soft_placement=True)
    assert [found[v.op.name] for v in made] == ["/job:ps/task:0"] * 2 + [
        "/job:worker/task:0",
        "/job:ps/task:0",
    ]
    near = ["/job:ps", "/job:worker/task:1"]
    found = devices(servers[2], init, allow_soft_placement=True, device_filters=near)
    assert [found[v.op.name] for v in made] == ["/job:ps/task:0"] * 2 + [
        "/job:worker/task:1",
        "/job:ps/task:0",
    ]


def test_local_variables_and_what_computes_stay_with_the_session(servers):
    own = tf.get_variable("own", [], collections=[tf.GraphKeys.LOCAL_VARIABLES])
    total = tf.add(tf.random_uniform([]), 1.0, name="total")
    found = devices(servers[2], [own.initializer, total])
    assert found["own"] == found["total"] == "/job:worker/task:1"


def test_a_queue_with_a_name_to_be_shared_by_is_one_for_all_sessions(servers):
    q = tf.FIFOQueue(2, tf.int32, shapes=[[]], shared_name="tokens")
    put, take = q.enqueue(7), q.dequeue()
    ask = tf.ConfigProto(operation_timeout_in_ms=60_000)
    with tf.Session(servers[1].target, config=ask) as one, tf.Session(servers[2].target, config=ask) as other:
        one.run(put)
        assert other.run(take) == 7


def test_a_session_that_may_use_only_its_own_task_has_its_variables_there(servers):
    v = tf.Variable(0.0, name="v")
    assert (
        devices(servers[2], v.initializer, device_filters=["/job:worker/task:1"])["v"] == "/job:worker/task:1"
    )


@pytest.fixture
def workers(serve):
    spec = free_addresses(worker=3)
    return [serve(spec, "worker", i) for i in range(3)]


def test_python_functions_run_where_the_session_is(workers):
    x = tf.py_func(lambda: 5, [], tf.int64)
    with tf.Session(workers[1].target) as sess:
        assert sess.run(x + 1) == 6


def test_replicas_of_a_cluster_of_workers_alone_are_in_step(workers):
    step = tf.train.get_or_create_global_step()
    w = tf.Variable(0.0)
    opt = tf.train.SyncReplicasOptimizer(tf.train.GradientDescentOptimizer(1.0), 1, 1)
    train = opt.minimize(-w, global_step=step)
    hook = opt.make_session_run_hook(True)
    with tf.train.MonitoredTrainingSession(workers[0].target, hooks=[hook]) as sess:
        for _ in range(2):
            sess.run(train)
    with tf.Session(workers[2].target) as sess:
        assert sess.run(w) >= 1.0 and sess.run(step) >= 1


CLUSTER = ["/job:ps/replica:0/task:0", "/job:worker/replica:0/task:0", "/job:worker/replica:0/task:1"]


@pytest.mark.parametrize("device", ["/job:ps/task:5", "/job:nobody", "/job:worker/task:1/gpu:3", "/gpu:1"])
@pytest.mark.parametrize("soft", [False, True])
def test_a_device_that_is_absent_is_refused_with_all_devices_of_the_cluster(servers, device, soft):
    with tf.device(device):
        odd = tf.add(1.0, 2.0)
    config = tf.ConfigProto(allow_soft_placement=soft)
    with tf.Session(servers[1].target, config=config) as sess:
        if soft and "gpu" in device:
            assert sess.run(odd) == 3.0
            return
        with pytest.raises(tf.errors.InvalidArgumentError) as e:
            sess.run(odd)
    listed = ", ".join(f"{task}/device:CPU:0" for task in CLUSTER)
    assert f"available devices are [ {listed} ]" in str(e.value)
    assert ("allow_soft_placement" in str(e.value)) == ("gpu" in device)


def test_a_task_that_is_not_up_is_listed_with_the_device_that_every_task_has(serve):
    spec = free_addresses(ps=1, worker=2)
    server = serve(spec, "worker", 0)
    with tf.device("/job:nobody"):
        odd = tf.add(1.0, 2.0)
    with tf.Session(server.target) as sess, pytest.raises(tf.errors.InvalidArgumentError) as e:
        sess.run(odd)
    assert ", ".join(f"{task}/device:CPU:0" for task in CLUSTER) in str(e.value)


def test_a_group_on_a_cluster_asks_for_what_its_members_ask_for_together(servers):
    with tf.device("/job:worker"):
        a = tf.placeholder_with_default(1.0, [], name="a")
    with tf.colocate_with(a):
        b, c = (tf.identity(tf.random_uniform([]), name=name) for name in "bc")
    b.op._set_device("/task:1")
    c.op._set_device("/job:ps")
    with tf.Session(servers[1].target, config=tf.ConfigProto(allow_soft_placement=True)) as sess:
        sess.run([a, b, c])
        placed = {
            op: sess._engine.placer.device_of(op).rpartition("/device:")[0] for op in (a.op, b.op, c.op)
        }
    assert list(placed.values()) == [CLUSTER[2], CLUSTER[2], CLUSTER[0]]

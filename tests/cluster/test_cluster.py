"""Graphs over several processes: state in the servers, values where they are needed, results as in one process."""

import threading

import numpy as np
import pytest

import tensorfleet as tf
from tensorfleet.testing.cluster import ProcessCluster
from tests.support.waiting import in_background, together


@pytest.fixture(scope="module")
def cluster():
    with ProcessCluster(ps=2, worker=2) as made:
        yield made


@pytest.fixture(autouse=True)
def fresh(cluster):
    yield
    tf.Session.reset(cluster.target("ps", 0))


def test_two_clients_on_two_servers_share_a_variable(cluster, graph):
    with tf.device("/job:ps/task:0"):
        x = tf.Variable(0.0, name="x")
    more = x.assign_add(1.0)
    with tf.Session(cluster.target("worker", 0)) as a, tf.Session(cluster.target("worker", 1)) as b:
        a.run(x.initializer)
        a.run(more)
        b.run(more)
        assert a.run(x) == b.run(x) == 2.0
    with tf.Session(cluster.target("ps", 1)) as c:
        assert c.run(x) == 2.0  # it outlives the sessions that made it


def test_an_operation_runs_where_it_says_and_values_travel(cluster, graph):
    with tf.device("/job:ps/task:0"):
        a = tf.Variable([[1.0, 2.0]], name="a")
    with tf.device("/job:ps/task:1"):
        b = tf.Variable([[3.0], [4.0]], name="b")
    with tf.device("/job:worker/task:1"):
        c = tf.matmul(a, b)
    with tf.device("/job:worker/task:0"):
        d = c * 2.0
    with tf.Session(cluster.target("worker", 0)) as s:
        s.run(tf.global_variables_initializer())
        assert s.run(d) == [[22.0]]
        assert s.run([c, d, a.read_value()])[2].tolist() == [[1.0, 2.0]]


def test_containers_are_freed_one_by_one(cluster, graph):
    with tf.device("/job:ps/task:0"):
        with tf.container("mine"):
            a = tf.Variable(1.0, name="a")
        b = tf.Variable(2.0, name="b")
    with tf.Session(cluster.target("worker", 0)) as s:
        s.run(tf.global_variables_initializer())
    tf.Session.reset(cluster.target("worker", 0), ["mine"])
    with tf.Session(cluster.target("worker", 0)) as s:
        assert s.run(b) == 2.0
        with pytest.raises(tf.errors.FailedPreconditionError, match="uninitialized value a"):
            s.run(a)


def test_isolated_sessions_have_their_own_state(cluster, graph):
    with tf.device("/job:ps/task:0"):
        a = tf.Variable(1.0, name="a")
    config = tf.ConfigProto(isolate_session_state=True)
    with tf.Session(cluster.target("worker", 0), config=config) as s:
        s.run(a.initializer)
        assert s.run(a) == 1.0
    with tf.Session(cluster.target("worker", 0)) as s:
        assert not s.run(tf.is_variable_initialized(a))


def test_strings_and_other_types_travel(cluster, graph):
    with tf.device("/job:ps/task:0"):
        text = tf.Variable([b"one", b"", b"\xff\x00"], name="text")
        half = tf.Variable(np.array([[1.5]], np.float16), name="half")
        none = tf.Variable(np.zeros((0, 3), np.int64), name="none")
    with tf.device("/job:worker/task:1"):
        joined = tf.string_join([text, text])
        rest = tf.identity(half), tf.identity(none)
    with tf.Session(cluster.target("worker", 0)) as s:
        s.run(tf.global_variables_initializer())
        assert s.run(joined).tolist() == [b"oneone", b"", b"\xff\x00\xff\x00"]
        h, n = s.run(rest)
        assert h.dtype == np.float16 and h.tolist() == [[1.5]]
        assert n.dtype == np.int64 and n.shape == (0, 3)


def test_training_between_graphs_equals_one_process(cluster, graph):
    def model():
        tf.set_random_seed(1)
        x = tf.placeholder(tf.float32, [None, 20])
        y = tf.layers.dense(tf.layers.dense(x, 8, tf.nn.relu), 1)
        loss = tf.reduce_mean(tf.square(y - 1.0))
        step = tf.train.get_or_create_global_step()
        train = tf.train.AdamOptimizer(0.05).minimize(loss, step)
        return x, loss, train, step

    data = np.random.RandomState(0).rand(30, 20).astype("f")
    with tf.Graph().as_default(), tf.Session() as s:
        x, loss, train, step = model()
        s.run(tf.global_variables_initializer())
        alone = [s.run([loss, train], {x: data})[0] for _ in range(10)]
    spec = tf.train.ClusterSpec(cluster.cluster)
    with tf.device(tf.train.replica_device_setter(cluster=spec, worker_device="/job:worker/task:1")):
        x, loss, train, step = model()
    with tf.Session(cluster.target("worker", 1)) as s:
        s.run(tf.global_variables_initializer())
        together = [s.run([loss, train], {x: data})[0] for _ in range(10)]
        assert s.run(step) == 10
    np.testing.assert_allclose(together, alone, rtol=2e-4)


def test_rows_of_a_sharded_embedding(cluster, graph):
    with tf.device(tf.train.replica_device_setter(2)):
        table = tf.get_variable(
            "table",
            [100, 4],
            partitioner=tf.fixed_size_partitioner(2),
            initializer=tf.zeros_initializer(),
        )
    ids = tf.placeholder(tf.int64, [None])
    rows = tf.nn.embedding_lookup(table, ids, partition_strategy="div")
    train = tf.train.GradientDescentOptimizer(1.0).minimize(tf.reduce_sum(rows * 3.0))
    with tf.Session(cluster.target("worker", 0)) as s:
        s.run(tf.global_variables_initializer())
        s.run(train, {ids: [1, 99, 1]})
        assert s.run(rows, {ids: [0, 1, 99]})[:, 0].tolist() == [0.0, -6.0, -3.0]


def test_branches_and_loops_over_state_of_other_tasks(cluster, graph):
    with tf.device("/job:ps/task:0"):
        a = tf.Variable(2.0, name="a")
    flag = tf.placeholder(tf.bool, [])
    with tf.device("/job:worker/task:0"):
        either = tf.cond(flag, lambda: a * 10.0, lambda: a - 1.0)
        _, power = tf.while_loop(lambda i, x: i < 5, lambda i, x: (i + 1, x * a), [0, 1.0])
        slope = tf.gradients(power, a)[0]
    count = tf.cond(flag, lambda: tf.assign_add(a, 1.0), lambda: tf.identity(a))
    with tf.Session(cluster.target("worker", 0)) as s:
        s.run(a.initializer)
        assert s.run([either, power, slope], {flag: True}) == [20.0, 32.0, 80.0]
        assert s.run(either, {flag: False}) == 1.0
        assert s.run(count, {flag: True}) == 3.0
        assert s.run(count, {flag: False}) == 3.0


def test_a_recurrent_network_with_its_layers_on_different_tasks(cluster, graph):
    def model(devices):
        tf.set_random_seed(3)
        x = tf.placeholder(tf.float32, [4, 6, 3])
        h = x
        for i, device in enumerate(devices):
            with tf.device(device), tf.variable_scope(f"layer{i}"):
                h, _ = tf.nn.dynamic_rnn(tf.nn.rnn_cell.GRUCell(5), h, dtype=tf.float32)
        loss = tf.reduce_mean(tf.square(h))
        return x, loss, tf.train.GradientDescentOptimizer(0.5).minimize(loss)

    data = np.random.RandomState(0).rand(4, 6, 3).astype("f")
    results = []
    for target, devices in (("", [None, None]), (None, ["/job:worker/task:0", "/job:worker/task:1"])):
        with tf.Graph().as_default():
            x, loss, train = model(devices)
            with tf.Session(cluster.target("worker", 0) if target is None else target) as s:
                s.run(tf.global_variables_initializer())
                results.append([s.run([loss, train], {x: data})[0] for _ in range(4)])
    np.testing.assert_allclose(results[0], results[1], rtol=1e-4)


def test_many_threads_share_a_session(cluster, graph):
    with tf.device("/job:ps/task:0"):
        count = tf.Variable(0, name="count", dtype=tf.int64)
        more = count.assign_add(1, use_locking=True)
    with tf.Session(cluster.target("worker", 0)) as s:
        s.run(count.initializer)
        together(*[lambda: [s.run(more.op) for _ in range(25)]] * 4)
        assert s.run(count) == 100


def test_the_graph_grows_between_runs(cluster, graph):
    with tf.device("/job:ps/task:0"):
        a = tf.Variable(2.0, name="a")
    with tf.Session(cluster.target("worker", 0)) as s:
        s.run(a.initializer)
        assert s.run(a * 2.0) == 4.0
        with tf.device("/job:worker/task:1"):
            b = tf.square(a) + 1.0
        assert s.run(b) == 5.0


def test_a_tensor_is_fed_in_place_of_what_another_task_computes(cluster, graph):
    with tf.device("/job:ps/task:0"):
        a = tf.Variable(2.0, name="a")
        b = a * 3.0
    with tf.device("/job:worker/task:1"):
        c = b + 1.0
    with tf.Session(cluster.target("worker", 0)) as s:
        s.run(a.initializer)
        assert s.run(c) == 7.0
        assert s.run(c, {b: 10.0}) == 11.0
        assert s.run(c) == 7.0


def test_an_error_of_another_task_names_the_operation_and_the_line(cluster, graph):
    with tf.device("/job:ps/task:0"):
        a = tf.Variable([1.0, 2.0], name="a")
        i = tf.placeholder(tf.int32, [])
        bad = tf.gather(a, i, name="bad")
    with tf.Session(cluster.target("worker", 0)) as s:
        s.run(a.initializer)
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"indices = 5 is not in \[0, 2\)") as e:
            s.run(bad, {i: 5})
        assert e.value.op is bad.op
        assert "test_cluster.py" in str(e.value)
        assert s.run(bad, {i: 1}) == 2.0


def test_a_device_that_is_not_in_the_cluster(cluster, graph):
    with tf.device("/job:master/task:0"):
        a = tf.constant(1.0) + tf.placeholder_with_default(1.0, [])
    with tf.Session(cluster.target("worker", 0)) as s:
        with pytest.raises(tf.errors.InvalidArgumentError, match="Cannot assign a device"):
            s.run(a)


def test_devices_of_the_cluster_and_filters(cluster, graph):
    with tf.Session(cluster.target("worker", 0)) as s:
        assert len(s.list_devices()) == 4
    config = tf.ConfigProto(device_filters=["/job:ps"])
    with tf.Session(cluster.target("worker", 0), config=config) as s:
        names = [d.name for d in s.list_devices()]
    assert sorted(n.split("/device")[0] for n in names) == [
        "/job:ps/replica:0/task:0",
        "/job:ps/replica:0/task:1",
        "/job:worker/replica:0/task:0",
    ]


def test_a_trace_has_the_lanes_of_every_task(cluster, graph):
    with tf.device("/job:ps/task:0"):
        a = tf.Variable(2.0, name="a")
    with tf.device("/job:worker/task:1"):
        b = a * 2.0
    options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
    metadata = tf.RunMetadata()
    with tf.Session(cluster.target("worker", 0)) as s:
        s.run(a.initializer)
        assert s.run(b, options=options, run_metadata=metadata) == 4.0
    lanes = {d.device.split("/device")[0] for d in metadata.step_stats.dev_stats}
    # What is fetched goes to the task of the session, as in TensorFlow.
    assert lanes == {
        "/job:ps/replica:0/task:0",
        "/job:worker/replica:0/task:0",
        "/job:worker/replica:0/task:1",
    }
    from tensorfleet.fleet.timeline import Timeline

    assert "a/read" in Timeline(metadata.step_stats).generate_chrome_trace_format()


@pytest.mark.parametrize("own", ["worker", "elsewhere"])
def test_sixteen_bits_between_tasks_and_full_precision_everywhere_else(cluster, graph, own):
    exact = np.float32(1.00048828125)  # one and a bit that bfloat16 does not have
    with tf.device("/job:ps/task:0"):
        a = tf.Variable([exact], name="a")
    with tf.device("/job:worker/task:1"):
        b = a * 1.0
    with tf.device("/job:worker/task:0"):
        c = b + 0.0
    options = tf.GraphOptions(enable_bfloat16_sendrecv=True)
    config = tf.ConfigProto(graph_options=options)
    target = cluster.target("worker", 0) if own == "worker" else cluster.target("ps", 1)
    with tf.Session(target, config=config) as s:
        s.run(a.initializer)
        assert s.run(a) == exact  # stored as it is
        assert s.run(c) == 1.0
        assert s.run(c).dtype == np.float32
    with tf.Session(target) as s:
        assert s.run(c) == exact


def test_partial_runs(cluster, graph):
    with tf.device("/job:ps/task:0"):
        a = tf.placeholder(tf.float32, [])
        b = a * 2.0
    with tf.device("/job:worker/task:1"):
        c = tf.placeholder(tf.float32, [])
        d = b + c
    with tf.Session(cluster.target("worker", 0)) as s:
        handle = s.partial_run_setup([b, d], [a, c])
        assert s.partial_run(handle, b, {a: 3.0}) == 6.0
        assert s.partial_run(handle, d, {c: 1.0}) == 7.0


def test_a_task_not_up_yet_is_waited_for_up_to_the_deadline(graph):
    with ProcessCluster(here=[("ps", 0)], ps=1, worker=1) as cluster:
        with tf.device("/job:ps/task:0"):
            a = tf.Variable(2.0, name="a")
        config = tf.ConfigProto(operation_timeout_in_ms=500)
        with tf.Session(cluster.target("worker", 0), config=config) as s:
            with pytest.raises(tf.errors.DeadlineExceededError, match="/job:ps/replica:0/task:0"):
                s.run(a.initializer)
        threading.Timer(0.5, cluster.start, ["ps", 0]).start()
        with tf.Session(cluster.target("worker", 0)) as s:
            s.run(a.initializer)
            assert s.run(a) == 2.0


def test_a_session_needs_only_the_tasks_it_uses(graph):
    with ProcessCluster(here=[("ps", 1)], ps=2, worker=1) as cluster:
        with tf.device("/job:ps/task:0"):
            a = tf.Variable(2.0, name="a")
        with tf.Session(cluster.target("worker", 0)) as s:
            s.run(a.initializer)
            assert s.run(a) == 2.0


def test_a_killed_task_fails_the_steps_that_need_it_and_no_others(graph):
    with ProcessCluster(ps=2, worker=1) as cluster:
        with tf.device("/job:ps/task:0"):
            a = tf.Variable(1.0, name="a")
        with tf.device("/job:ps/task:1"):
            b = tf.Variable(2.0, name="b")
        with tf.Session(cluster.target("worker", 0)) as s:
            s.run(tf.global_variables_initializer())
            s.run(a + b)
            cluster.kill("ps", 1)
            with pytest.raises(
                (tf.errors.UnavailableError, tf.errors.AbortedError), match="/job:ps/replica:0/task:1"
            ):
                s.run(a + b.read_value())
            assert s.run(a.read_value()) == 1.0
            cluster.start("ps", 1)
            with pytest.raises((tf.errors.AbortedError, tf.errors.UnavailableError)):
                s.run(b.read_value())
        with tf.Session(cluster.target("worker", 0)) as s:
            s.run(b.initializer)
            assert s.run([a, b]) == [1.0, 2.0]


def test_a_python_function_runs_only_in_the_process_that_made_it(cluster, graph):
    with tf.device("/job:worker/task:1"):
        y = tf.py_func(lambda: np.float32(1.0), [], tf.float32)
    with tf.Session(cluster.target("worker", 0)) as s:
        with pytest.raises(tf.errors.InvalidArgumentError, match="lives in the process that built the graph"):
            s.run(y)


def test_a_variable_left_by_another_program_keeps_its_shape(cluster):
    target = cluster.target("worker", 0)

    def initialize(value, **kwargs):
        with tf.Graph().as_default(), tf.device("/job:ps/task:0"):
            v = tf.Variable(value, name="left_behind", **kwargs)
            with tf.Session(target) as s:
                s.run(v.initializer)
                return s.run(v).tolist()

    assert initialize([1, 2, 3]) == [1, 2, 3]
    assert initialize([4, 5, 6]) == [4, 5, 6]
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"lhs shape= \[3\] rhs shape= \[\]"):
        initialize(7)
    assert initialize([7, 8], validate_shape=False) == [7, 8]


@pytest.mark.parametrize(
    ("resource", "error", "text"),
    [
        (False, tf.errors.InternalError, "type float32_ref does not match declared output type int32_ref"),
        (True, tf.errors.InvalidArgumentError, "wrong dtype. Expected int32 got float32"),
    ],
)
def test_a_variable_left_by_another_program_keeps_its_type(cluster, resource, error, text):
    target = cluster.target("worker", 0)
    name = f"left_behind_{resource}"

    def made(value):
        with tf.device("/job:ps/task:0"):
            return tf.Variable(value, name=name, use_resource=resource)

    with tf.Graph().as_default(), tf.Session(target) as s:
        v = made(1.5)
        s.run(v.initializer)
    with tf.Graph().as_default(), tf.Session(target) as s:
        v = made(7)
        for use in (v.initializer, v, v.assign_add(1)):
            with pytest.raises(error, match=f"{text}.*'{name}' is there already.*Session.reset"):
                s.run(use)
    with tf.Graph().as_default(), tf.Session(target) as s:
        assert s.run(made(0.0)) == 1.5


def test_reset_of_a_server_that_is_not_there_gives_up_in_time():
    config = tf.ConfigProto(operation_timeout_in_ms=5)
    with pytest.raises(tf.errors.DeadlineExceededError):
        tf.Session.reset("grpc://localhost:0", ["mine"], config=config)
    with pytest.raises(tf.errors.NotFoundError):
        tf.Session.reset("nowhere", ["mine"])


def test_closing_a_session_cancels_what_waits_in_it(server):
    running = threading.Event()
    told = tf.py_func(lambda: running.set() or np.int32(0), [], tf.int32, stateful=True)
    with tf.control_dependencies([told]):
        taken = tf.FIFOQueue(1, tf.int32, shared_name="empty").dequeue()
    session = tf.Session(server.target)
    waiting = in_background(session.run, taken)
    assert running.wait(60)
    session.close()
    with pytest.raises(tf.errors.CancelledError, match="Session::Close"):
        waiting.result(60)

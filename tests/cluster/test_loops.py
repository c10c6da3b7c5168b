"""Loops that change, or read anew in every iteration, what several tasks hold."""

import numpy as np
import pytest

import tensorfleet as tf
from tensorfleet.cluster.transport import wire
from tensorfleet.testing.cluster import ProcessCluster, free_addresses
from tests.support.waiting import in_background

FOREVER = 1 << 30


@pytest.fixture(scope="module")
def cluster():
    with ProcessCluster(ps=2, worker=2) as made:
        yield made


@pytest.fixture(autouse=True)
def graph(cluster):
    with tf.Graph().as_default() as g:
        yield g
    tf.Session.reset(cluster.target("ps", 0))


@pytest.fixture(params=[False, True], ids=["reference", "resource"])
def pair(request):
    return variables(request.param)


def variables(use_resource=False):
    found = []
    for i, name in enumerate("ab"):
        with tf.device(f"/job:ps/task:{i}"):
            found.append(tf.get_variable(name, initializer=0.0, use_resource=use_resource))
    return found


@pytest.fixture
def session(cluster):
    with tf.Session(cluster.target("worker", 0)) as s:
        yield s


def count(pair, n, more=lambda: []):
    """A loop that adds 1 to one variable and 10 to the other, n times."""
    a, b = pair

    def body(i):
        with tf.control_dependencies([a.assign_add(1.0), b.assign_add(10.0), *more()]):
            return i + 1

    return tf.while_loop(lambda i: i < n, body, [0])


def test_a_loop_updates_variables_of_two_servers(pair, session):
    loop = count(pair, 3)
    session.run(tf.global_variables_initializer())
    assert session.run(loop) == 3
    assert session.run(pair) == [3.0, 30.0]
    assert session.run(loop) == 3
    assert session.run(pair) == [6.0, 60.0]


def test_a_loop_that_is_never_entered_changes_nothing(pair, session):
    n = tf.placeholder(tf.int32, [])
    loop = count(pair, n)
    session.run(tf.global_variables_initializer())
    assert session.run(loop, {n: 0}) == 0
    assert session.run(pair) == [0.0, 0.0]
    assert session.run(loop, {n: 2}) == 2
    assert session.run(pair) == [2.0, 20.0]


def test_values_go_from_server_to_server_in_every_iteration(pair, session):
    a, b = pair

    def body(i, seen):
        first = a.assign_add(1.0)
        with tf.control_dependencies([first]):
            second = b.assign_add(a.read_value())
        return i + 1, seen + second

    _, seen = tf.while_loop(lambda i, _: i < 4, body, [0, 0.0])
    session.run(tf.global_variables_initializer())
    assert session.run(seen) == 1 + 3 + 6 + 10
    assert session.run(pair) == [4.0, 10.0]


def test_the_condition_reads_a_server_anew(pair, session):
    a, b = pair

    def body(i):
        with tf.control_dependencies([a.assign_add(3.0), b.assign_add(1.0)]):
            return i + 1

    loop = tf.while_loop(lambda i: tf.less(a.read_value(), 10.0), body, [0], parallel_iterations=1)
    session.run(tf.global_variables_initializer())
    assert session.run(loop) == 4
    assert session.run(pair) == [12.0, 4.0]


def test_a_loop_feeds_a_queue_of_one_server_from_a_variable_of_another(pair, session):
    a, b = pair
    with tf.device(a.device):
        queue = tf.FIFOQueue(10, tf.float32, [])

    def body(i):
        with tf.control_dependencies([queue.enqueue(tf.identity(b.assign_add(1.0)))]):
            return i + 1

    loop = tf.while_loop(lambda i: i < 3, body, [0])
    session.run(tf.global_variables_initializer())
    session.run(loop)
    assert session.run(queue.dequeue_many(3)).tolist() == [1.0, 2.0, 3.0]


def test_a_branch_in_the_body_changes_one_server_or_the_other(pair, session):
    a, b = pair

    def body(i):
        even = tf.equal(i % 2, 0)
        changed = tf.cond(
            even, lambda: tf.identity(a.assign_add(1.0)), lambda: tf.identity(b.assign_add(1.0))
        )
        with tf.control_dependencies([changed]):
            return i + 1

    loop = tf.while_loop(lambda i: i < 5, body, [0])
    session.run(tf.global_variables_initializer())
    session.run(loop)
    assert session.run(pair) == [3.0, 2.0]


def test_a_loop_in_a_loop(pair, session):
    a, b = pair

    def outer(i, total):
        _, inner = tf.while_loop(
            lambda j, _: j < 3,
            lambda j, s: (j + 1, s + a.assign_add(1.0)),
            [0, tf.identity(b.assign_add(1.0))],
        )
        return i + 1, total + inner

    _, total = tf.while_loop(lambda i, _: i < 2, outer, [0, 0.0])
    session.run(tf.global_variables_initializer())
    assert session.run(total) == (1 + 1 + 2 + 3) + (2 + 4 + 5 + 6)
    assert session.run(pair) == [6.0, 2.0]


def test_a_loop_over_two_servers_in_a_loop_over_two_servers(pair, session):
    a, b = pair

    def outer(i):
        def inner(j):
            with tf.control_dependencies([a.assign_add(1.0), b.assign_add(1.0)]):
                return j + 1

        with tf.control_dependencies([tf.while_loop(lambda j: j < i, inner, [0])]):
            return i + 1

    loop = tf.while_loop(lambda i: i < 4, outer, [0])
    session.run(tf.global_variables_initializer())
    session.run(loop)
    assert session.run(pair) == [6.0, 6.0]


@pytest.mark.parametrize("place", ["/job:worker/task:0", "/job:worker/task:1", "/job:ps/task:1"])
def test_an_array_stays_with_its_task(pair, session, place):
    a, b = pair
    with tf.device(place):
        source = tf.TensorArray(tf.float32, 4).unstack([1.0, 2.0, 3.0, 4.0])
        made = tf.TensorArray(tf.float32, 4)

    def body(i, made):
        with tf.control_dependencies([a.assign_add(1.0)]):
            new = b.assign_add(source.read(i))
        return i + 1, made.write(i, new)

    _, made = tf.while_loop(lambda i, _: i < 4, body, [0, made])
    stacked = made.stack()
    session.run(tf.global_variables_initializer())
    for _ in range(2):
        session.run(tf.global_variables_initializer())
        assert session.run(stacked).tolist() == [1.0, 3.0, 6.0, 10.0]
    assert session.run(a) == 4.0


def test_the_gradient_of_a_loop_over_two_servers(pair, session):
    a, b = pair
    x = tf.placeholder(tf.float32, [])

    def body(i, y):
        with tf.control_dependencies([a.assign_add(1.0), b.assign_add(1.0)]):
            return i + 1, y * y

    _, y = tf.while_loop(lambda i, _: i < 3, body, [0, x])
    (slope,) = tf.gradients(y, x)
    session.run(tf.global_variables_initializer())
    value, found = session.run([y, slope], {x: 1.5})
    assert value == pytest.approx(1.5**8) and found == pytest.approx(8 * 1.5**7)
    assert session.run(pair) == [3.0, 3.0]


def test_a_loop_over_two_servers_in_a_branch(pair, session):
    flag = tf.placeholder(tf.bool, [])
    result = tf.cond(flag, lambda: count(pair, 3), lambda: tf.constant(-1))
    session.run(tf.global_variables_initializer())
    assert session.run(result, {flag: False}) == -1
    assert session.run(pair) == [0.0, 0.0]
    assert session.run(result, {flag: True}) == 3
    assert session.run(pair) == [3.0, 30.0]


def test_what_follows_the_loop_sees_all_it_did(pair, session):
    with tf.control_dependencies([count(pair, 3)]):
        both = []
        for v in pair:
            with tf.device(v.device):
                both.append(v.read_value())
    session.run(tf.global_variables_initializer())
    assert session.run(tf.add_n(both)) == 33.0


def test_two_loops_one_after_the_other_and_two_side_by_side(pair, session):
    first = count(pair, 2)
    second = count(pair, first + 1)
    third = count(pair, 2)
    session.run(tf.global_variables_initializer())
    assert session.run([second, third]) == [3, 2]
    assert session.run(pair) == [7.0, 70.0]


def test_a_session_beside_its_server_drives_the_loop(pair, serve):
    a, b = pair
    spec = free_addresses(ps=2, worker=1)
    with ProcessCluster(ps=2) as others:
        spec["ps"] = others.cluster["ps"]
        server = serve(spec, "worker", 0)
        seen = []

        def note(i):
            seen.append(int(i))
            return np.float32(i)

        def body(i, total):
            noted = tf.reshape(tf.py_func(note, [i], tf.float32), [])
            with tf.control_dependencies([a.assign_add(noted), b.assign_add(1.0)]):
                return i + 1, total + noted

        _, total = tf.while_loop(lambda i, _: i < 4, body, [0, 0.0])
        with tf.Session(server.target) as session:
            session.run(tf.global_variables_initializer())
            assert session.run(total) == 6.0
            assert session.run(pair) == [6.0, 4.0]
        assert seen == [0, 1, 2, 3]


def test_an_error_in_the_body_names_the_operation_and_its_line(pair, session):
    a, b = pair

    def body(i):
        with tf.device(b.device), tf.control_dependencies([a.assign_add(1.0)]):
            taken = tf.gather([1.0, 2.0], i, name="take")
        with tf.control_dependencies([b.assign_add(taken)]):
            return i + 1

    loop = tf.while_loop(lambda i: i < 9, body, [0])
    session.run(tf.global_variables_initializer())
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"indices = 2 is not in \[0, 2\)") as caught:
        session.run(loop)
    assert caught.value.op.name == "while/take"
    assert "test_loops.py" in str(caught.value)
    assert session.run(pair) == [3.0, 3.0]


def test_the_deadline_ends_the_loop(pair, session):
    loop = count(pair, FOREVER)
    session.run(tf.global_variables_initializer())
    with pytest.raises(tf.errors.DeadlineExceededError):
        session.run(loop, options=tf.RunOptions(timeout_in_ms=1000))
    done = session.run(pair)
    assert done[0] > 0
    assert session.run(pair) == done


def test_closing_the_session_ends_the_loop(pair, cluster):
    session = tf.Session(cluster.target("worker", 0))
    loop = count(pair, FOREVER)
    session.run(tf.global_variables_initializer())
    running = in_background(session.run, loop)
    with tf.Session(cluster.target("worker", 1)) as other:
        while other.run(pair[0]) < 3.0:
            pass
    session.close()
    with pytest.raises(tf.errors.CancelledError):
        running.result(60)


def test_a_server_that_dies_in_the_middle_ends_the_loop():
    with ProcessCluster(ps=2, worker=1) as made, tf.Session(made.target("worker", 0)) as session:
        pair = variables()
        loop = count(pair, FOREVER)
        session.run(tf.global_variables_initializer())
        running = in_background(session.run, loop)
        with tf.Session(made.target("worker", 0)) as other:
            while other.run(pair[0]) < 3.0:
                pass
        made.kill("ps", 1)
        lost = (tf.errors.UnavailableError, tf.errors.AbortedError)
        with pytest.raises(lost, match="/job:ps/replica:0/task:1"):
            running.result(60)


def test_what_a_task_kept_for_a_loop_is_freed_whatever_comes_of_it(serve):
    with ProcessCluster(here=[("ps", 1)], ps=2, worker=1) as made:
        server = serve(made.spec("ps", 1), "ps", 1)
        a, b = variables()
        with tf.device(b.device):
            array = tf.TensorArray(tf.float32, 3)
        n = tf.placeholder(tf.int32, [])

        def body(i, array):
            with tf.control_dependencies([a.assign_add(1.0)]):
                return i + 1, array.write(i, b.assign_add(1.0))

        stacked = tf.while_loop(lambda i, _: i < n, body, [0, array])[1].stack()
        with tf.Session(made.target("worker", 0)) as session:
            session.run(tf.global_variables_initializer())
            assert session.run(stacked, {n: 3}).tolist() == [1.0, 2.0, 3.0]
            with pytest.raises(tf.errors.InvalidArgumentError, match="Tried to write to index 3"):
                session.run(stacked, {n: 4})
            (kept,) = server.worker._sessions.values()
            assert not kept.handles and not kept.steps


def adding(pair, x, n):
    """A loop that adds the sum of what comes from outside to one variable and the greatest to the other, n times."""
    a, b = pair

    def body(i):
        with tf.device(a.device):
            one = a.assign_add(tf.reduce_sum(x) + tf.cast(i, tf.float32))
        with tf.device(b.device):
            other = b.assign_add(tf.reduce_max(x))
        with tf.control_dependencies([one, other]):
            return i + 1

    return tf.while_loop(lambda i: i < n, body, [0])


@pytest.mark.parametrize("wire_type", [None, "bfloat16"])
def test_what_comes_from_outside_is_sent_once(pair, cluster, monkeypatch, wire_type):
    if wire_type is not None:
        monkeypatch.setenv("TENSORFLEET_WIRE", wire_type)
    x = tf.placeholder(tf.float32, [None])
    with tf.device("/job:worker/task:1"):
        made = x * 2.0
    loop = adding(pair, made, 5)
    sent = []
    send = wire.Channel.send

    def counted(self, kind, fields=b"", values=(), along=()):
        sent.append(sum(np.size(v) >= 10_000 for v in values))
        return send(self, kind, fields, values, along)

    with tf.Session(cluster.target("worker", 0)) as session:
        session.run(tf.global_variables_initializer())
        monkeypatch.setattr(wire.Channel, "send", counted)
        for k in (1, 2):
            sent.clear()
            assert session.run(loop, {x: np.full(10_000, k)}) == 5
            assert sum(sent) == 3, "to the worker, and to each server once"
    with tf.Session(cluster.target("worker", 0)) as session:
        assert session.run(pair) == [300_020.0, 30.0]


def test_a_loop_in_a_loop_hears_of_what_is_new_to_it(pair, session):
    a, b = pair

    def outer(i, total):
        x = tf.fill([5000], tf.cast(i, tf.float32))
        with tf.control_dependencies([adding(pair, x, 2)]):
            return i + 1, total + 1.0

    loop = tf.while_loop(lambda i, _: i < 3, outer, [0, 0.0])
    session.run(tf.global_variables_initializer())
    session.run(loop)
    assert session.run(pair) == [3 * (0 + 1) + 2 * 5000.0 * (0 + 1 + 2), 2.0 * (0 + 1 + 2)]


def test_values_kept_for_a_loop_are_freed_with_its_step(serve):
    with ProcessCluster(here=[("ps", 1)], ps=2, worker=1) as made:
        server = serve(made.spec("ps", 1), "ps", 1)
        x = tf.placeholder(tf.float32, [None])
        with tf.Session(made.target("worker", 0)) as session:
            loop = adding(variables(), x, 3)
            session.run(tf.global_variables_initializer())
            session.run(loop, {x: np.ones(10_000)})
            (kept,) = server.worker._sessions.values()
            assert not kept.handles and not kept.steps


def test_what_is_known_of_a_loop_beforehand_is_known_inside_of_it(cluster):
    x = tf.placeholder(tf.float32, [None, 4, 2])
    outputs, _ = tf.nn.dynamic_rnn(tf.contrib.rnn.LayerNormBasicLSTMCell(3), x, dtype=tf.float32)
    train = tf.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_mean(tf.square(outputs - 1.0)))
    with tf.Session(cluster.target("worker", 0)) as sess:
        sess.run(tf.global_variables_initializer())
        for _ in range(3):
            sess.run(train, {x: np.ones([5, 4, 2])})

"""Loops over a cluster of two parameter servers and a worker, in both libraries: the same values, the same state after them."""

import pytest

import tensorfleet
from tensorfleet.testing.cluster import free_addresses

from .programs import same


def started(lib):
    spec = free_addresses(ps=2, worker=1)
    tasks = (("ps", 0), ("ps", 1), ("worker", 0))
    return [lib.train.Server(lib.train.ClusterSpec(spec), job, index) for job, index in tasks]


@pytest.fixture(scope="module")
def servers(tensorflow):
    ours = started(tensorfleet)
    yield {"ours": ours[-1].target, "theirs": started(tensorflow)[-1].target}
    for server in ours:
        server.stop()


def both_updated(tf, a, b):
    def body(i, total):
        with tf.control_dependencies([a.assign_add(1.0), b.assign_add(10.0)]):
            return i + 1, total * 2.0

    return tf.while_loop(lambda i, _: i < 5, body, [0, 1.0])


def chained(tf, a, b):
    def body(i, total):
        first = tf.identity(a.assign_add(2.0))
        return i + 1, total + b.assign_add(first * 3.0)

    return tf.while_loop(lambda i, _: i < 4, body, [0, 0.0], parallel_iterations=1)


def condition_of_a_server(tf, a, b):
    def body(i):
        with tf.control_dependencies([a.assign_add(3.0), b.assign_sub(1.0)]):
            return i + 1

    def go_on(i):
        with tf.device(a.device):
            return tf.less(a.read_value(), 10.0)

    return tf.while_loop(go_on, body, [0], parallel_iterations=1)


def queue_of_another(tf, a, b):
    with tf.device("/job:ps/task:0"):
        queue = tf.FIFOQueue(20, tf.float32, [])

    def body(i):
        with tf.control_dependencies([queue.enqueue(tf.identity(b.assign_add(1.0)))]):
            return i + 1

    loop = tf.while_loop(lambda i: i < 3, body, [0], parallel_iterations=1)
    with tf.control_dependencies([loop]):
        return queue.dequeue_many(3)


def branch_inside(tf, a, b):
    def body(i):
        changed = tf.cond(
            tf.equal(i % 3, 0),
            lambda: tf.identity(a.assign_add(1.0)),
            lambda: tf.identity(b.assign_add(tf.cast(i, tf.float32))),
        )
        with tf.control_dependencies([changed]):
            return i + 1

    return tf.while_loop(lambda i: i < 7, body, [0], parallel_iterations=1)


def nested(tf, a, b):
    def outer(i, total):
        with tf.control_dependencies([b.assign_add(1.0)]):
            start = tf.identity(total)
        _, inner = tf.while_loop(
            lambda j, _: j < i, lambda j, s: (j + 1, s + a.assign_add(1.0)), [0, start], parallel_iterations=1
        )
        return i + 1, inner

    return tf.while_loop(lambda i, _: i < 4, outer, [0, 0.5], parallel_iterations=1)


def arrays(tf, a, b):
    source = tf.TensorArray(tf.float32, 4).unstack([1.0, 2.0, 3.0, 4.0])

    def body(i, made):
        with tf.control_dependencies([a.assign_add(1.0)]):
            return i + 1, made.write(i, tf.identity(b.assign_add(source.read(i))))

    result = tf.while_loop(
        lambda i, _: i < 4, body, [0, tf.TensorArray(tf.float32, 4)], parallel_iterations=1
    )
    return result[1].stack()


def gradient(tf, a, b):
    x = tf.constant([1.1, 0.9])

    def body(i, y):
        with tf.control_dependencies([a.assign_add(1.0), b.assign_add(1.0)]):
            return i + 1, y * y + x

    y = tf.while_loop(lambda i, _: i < 3, body, [0, x])[1]
    return [y, *tf.gradients(y, [x])]


def loop_in_a_branch(tf, a, b):
    def taken():
        return both_updated(tf, a, b)[1]

    return tf.cond(tf.less(a, 1.0), taken, lambda: tf.constant(-1.0))


PROGRAMS = [both_updated, chained, condition_of_a_server, queue_of_another, branch_inside, nested, arrays]
PROGRAMS += [gradient, loop_in_a_branch]


def ran(tf, target, program, use_resource):
    with tf.Graph().as_default():
        pair = []
        for i, name in enumerate("ab"):
            with tf.device(f"/job:ps/task:{i}"):
                full = f"{program.__name__}_{name}_{use_resource}"
                pair.append(tf.get_variable(full, initializer=0.0, use_resource=use_resource))
        fetches = program(tf, *pair)
        with tf.Session(target) as session:
            session.run(tf.global_variables_initializer())
            result = []
            for _ in range(2):
                result += [session.run(fetches), session.run(pair)]
            return result


@pytest.mark.parametrize("use_resource", [False, True], ids=["reference", "resource"])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_a_loop_over_two_servers_gives_the_same(tensorflow, servers, program, use_resource):
    theirs = ran(tensorflow, servers["theirs"], program, use_resource)
    same(ran(tensorfleet, servers["ours"], program, use_resource), theirs)

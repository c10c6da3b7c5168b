"""Programs whose operations lie anywhere: every operation on a task chosen by lot, with the values of one process."""

import random

import numpy as np
import pytest

import tensorfleet as tf
from tensorfleet.testing.cluster import free_addresses

TASKS = [("ps", 0), ("ps", 1), ("worker", 0)]
LIMIT = tf.RunOptions(timeout_in_ms=60_000)


@pytest.fixture(scope="module")
def servers():
    spec = free_addresses(ps=2, worker=1)
    made = [tf.train.Server(spec, job, index) for job, index in TASKS]
    yield made
    for server in made:
        server.stop()


def name(task):
    return "/job:{}/task:{}".format(*task)


def test_a_task_that_was_asked_early_waits_for_what_the_session_itself_makes_possible(servers):
    with tf.device(name(TASKS[1])):
        v = tf.get_variable("v", initializer=1.0)
    with tf.device(name(TASKS[2])):
        doubled = v * 2.0
    with tf.device(name(TASKS[1])):
        more = doubled + v
    with tf.device(name(TASKS[0])):
        most = more * 10.0
    with tf.Session(servers[2].target) as session:
        session.run(tf.global_variables_initializer())
        assert session.run(most, options=LIMIT) == 30.0


def test_what_fills_a_queue_does_not_wait_for_what_is_taken_from_it(servers):
    with tf.device(name(TASKS[0])):
        queue = tf.FIFOQueue(10, tf.float32, [])
        v = tf.get_variable("v", initializer=1.0)
    with tf.device(name(TASKS[2])):
        fill = queue.enqueue(v + 1.0)  # computed on the task, and at the distance, of what follows
        taken = queue.dequeue() * 3.0
    with tf.Session(servers[1].target) as session:
        session.run(tf.global_variables_initializer())
        assert session.run([taken, fill], options=LIMIT)[0] == 6.0


def test_a_variable_of_another_task_is_read_once_and_for_all_who_follow(servers):
    with tf.device(name(TASKS[0])):
        v = tf.get_variable("v", initializer=1.0)
        more = v.assign_add(1.0)
    with tf.device(name(TASKS[2])), tf.control_dependencies([more]):
        read = v.read_value()
    with tf.device(name(TASKS[0])):
        far = tf.constant(5.0) * read
    with tf.device(name(TASKS[2])):
        total = far + read
    with tf.Session(servers[1].target) as session:
        session.run(tf.global_variables_initializer())
        assert session.run(total, options=LIMIT) in (
            6.0,
            12.0,
        )  # before the change or after it, but one of them


@pytest.mark.parametrize("master", [0, 1, 2])
def test_what_waits_for_a_variable_of_another_task_finds_it_standing(servers, master):
    with tf.device(name(TASKS[0])):
        v = tf.get_variable("v", initializer=1.0)
    with tf.device(name(TASKS[2])), tf.control_dependencies([v]):
        two = tf.placeholder_with_default(2.0, [])
    with tf.Session(servers[master].target) as session:
        session.run(tf.global_variables_initializer())
        assert session.run([two, two + v], options=LIMIT) == [2.0, 3.0]


def gradient(a, b):
    x = tf.constant([1.1, 0.9])

    def body(i, y):
        with tf.control_dependencies([a.assign_add(1.0), b.assign_add(1.0)]):
            return i + 1, tf.tanh(y * y + x) * tf.reduce_sum(y)

    y = tf.while_loop(lambda i, _: i < 3, body, [0, x])[1]
    return [y, *tf.gradients(y, [x])]


def recurrent(a, b):
    class Cell(tf.nn.rnn_cell.RNNCell):
        state_size = output_size = 2

        def call(self, inputs, state):
            with tf.control_dependencies([a.assign_add(1.0), b.assign_add(2.0)]):
                new = tf.tanh(inputs + state * 0.5)
            return new, new

    x = tf.constant(np.arange(12).reshape(2, 3, 2) / 10, tf.float32)
    outputs, state = tf.nn.dynamic_rnn(Cell(), x, [3, 2], dtype=tf.float32, parallel_iterations=1)
    return [outputs, state, *tf.gradients(outputs, [x])]


def loop_in_a_branch_in_a_loop(a, b):
    def body(i, total):
        def twice(j, s):
            with tf.control_dependencies([a.assign_add(1.0), b.assign_add(3.0)]):
                return j + 1, s * 2.0

        more = tf.cond(
            i % 2 > 0,
            lambda: tf.while_loop(lambda j, _: j < 2, twice, [0, total])[1],
            lambda: total + 1.0,
        )
        with tf.control_dependencies([more]):
            return i + 1, more

    return tf.while_loop(lambda i, _: i < 4, body, [0, 1.0], parallel_iterations=1)


def array_of_an_inner_loop(a, b):
    def outer(i, total):
        def inner(j, array):
            with tf.control_dependencies([b.assign_add(1.0)]):
                return j + 1, array.write(j, tf.identity(a.assign_add(1.0)))

        array = tf.TensorArray(tf.float32, 3)
        array = tf.while_loop(lambda j, _: j < 3, inner, [0, array], parallel_iterations=1)[1]
        return i + 1, total + tf.reduce_sum(array.stack() * [1.0, 2.0, 3.0])

    return tf.while_loop(lambda i, _: i < 2, outer, [0, 0.0], parallel_iterations=1)


def condition_with_an_effect(a, b):
    def body(i, text):
        with tf.control_dependencies([b.assign_add(1.0)]):
            return i + 1, tf.strings.join([text, tf.as_string(i)])

    def go_on(i, _):
        return tf.identity(a.assign_add(1.0)) < 5.0

    return tf.while_loop(go_on, body, [0, tf.constant("x")], parallel_iterations=1)


def values(target, program, use_resource, place):
    with tf.Graph().as_default(), tf.device(place):
        pair = []
        for name_of, task in zip("ab", TASKS, strict=False):
            with tf.device(name(task) if target else None):
                pair.append(tf.get_variable(name_of, initializer=0.0, use_resource=use_resource))
        fetches = program(*pair)
        with tf.Session(target) as session:
            session.run(tf.global_variables_initializer())
            return tf.contrib.framework.nest.flatten([session.run(fetches, options=LIMIT), session.run(pair)])


PROGRAMS = [gradient, recurrent, loop_in_a_branch_in_a_loop, array_of_an_inner_loop, condition_with_an_effect]


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_the_values_are_those_of_one_process(servers, program, seed):
    lot = random.Random(seed)
    wanted = values("", program, seed == 1, None)
    found = values(servers[2].target, program, seed == 1, lambda _: name(lot.choice(TASKS)))
    tf.Session.reset(servers[2].target)
    for one, other in zip(found, wanted, strict=True):
        if np.asarray(other).dtype.kind in "OS":
            assert one == other
        else:
            np.testing.assert_allclose(one, other, rtol=1e-5)

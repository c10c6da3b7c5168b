"""Branches whose two sides change what several tasks hold: each task does its share, or nothing."""

import pytest

import tensorfleet as tf
from tensorfleet.testing.cluster import ProcessCluster


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
    found = []
    for i, name in enumerate("ab"):
        with tf.device(f"/job:ps/task:{i}"):
            found.append(tf.get_variable(name, initializer=0.0, use_resource=request.param))
    return found


@pytest.fixture
def session(cluster):
    with tf.Session(cluster.target("worker", 0)) as s:
        yield s


def test_a_branch_updates_variables_of_two_servers_or_neither(pair, session):
    a, b = pair
    flag = tf.placeholder(tf.bool, [])

    def update():
        with tf.control_dependencies([a.assign_add(1.0), b.assign_add(10.0)]):
            return tf.constant(1)

    chosen = tf.cond(flag, update, lambda: tf.constant(0))
    session.run(tf.global_variables_initializer())
    assert session.run(chosen, {flag: True}) == 1
    assert session.run(pair) == [1.0, 10.0]
    assert session.run(chosen, {flag: False}) == 0
    assert session.run(pair) == [1.0, 10.0]


def test_a_value_goes_from_server_to_server_inside_a_branch(pair, session):
    a, b = pair
    flag = tf.placeholder(tf.bool, [])
    with tf.device("/job:worker/task:1"):
        result = tf.cond(
            flag,
            lambda: tf.identity(b.assign_add(a.assign_add(1.0) * 3.0)),
            lambda: tf.identity(b.assign_sub(100.0)),
        )
    session.run(tf.global_variables_initializer())
    assert session.run(result, {flag: True}) == 3.0
    assert session.run(result, {flag: False}) == -97.0
    assert session.run(pair) == [1.0, -97.0]


def test_the_condition_may_be_computed_on_a_third_task(pair, session):
    a, b = pair
    with tf.device("/job:worker/task:1"):
        few = tf.less(a + b, 3.0)
    both = tf.cond(
        few, lambda: tf.group(a.assign_add(1.0), b.assign_add(1.0)), lambda: tf.group(a.assign(0.0))
    )
    session.run(tf.global_variables_initializer())
    seen = []
    for _ in range(4):
        session.run(both)
        seen.append([float(v) for v in session.run(pair)])
    assert seen == [[1.0, 1.0], [2.0, 2.0], [0.0, 2.0], [1.0, 3.0]]


def test_a_branch_in_a_branch(pair, session):
    a, b = pair
    outer, inner = tf.placeholder(tf.bool, []), tf.placeholder(tf.bool, [])

    def more():
        return tf.cond(inner, lambda: tf.identity(a.assign_add(1.0)), lambda: tf.identity(b.assign_add(1.0)))

    result = tf.cond(outer, more, lambda: tf.constant(-1.0))
    session.run(tf.global_variables_initializer())
    assert session.run(result, {outer: True, inner: True}) == 1.0
    assert session.run(result, {outer: True, inner: False}) == 1.0
    assert session.run(result, {outer: False, inner: True}) == -1.0
    assert session.run(pair) == [1.0, 1.0]


def test_a_loop_in_a_branch_runs_only_if_the_branch_does(pair, session):
    a, b = pair
    flag = tf.placeholder(tf.bool, [])

    def update():
        _, total = tf.while_loop(lambda i, _: i < 4, lambda i, s: (i + 1, s + 2.0), (0, 0.0))
        return tf.group(a.assign_add(total), b.assign_sub(total))

    step = tf.cond(flag, update, tf.no_op)
    session.run(tf.global_variables_initializer())
    session.run(step, {flag: False})
    assert session.run(pair) == [0.0, 0.0]
    session.run(step, {flag: True})
    assert session.run(pair) == [8.0, -8.0]


def test_stale_gradients_are_dropped_with_variables_on_two_servers(pair, session):
    with tf.device("/job:ps/task:1"):
        count = tf.train.get_or_create_global_step()
    opt = tf.contrib.opt.DropStaleGradientOptimizer(tf.train.GradientDescentOptimizer(0.1), 1)
    train = opt.minimize(tf.add_n([tf.square(v - 1.0) for v in pair]), global_step=count)
    session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
    for _ in range(2):
        session.run(train)
    assert session.run([*pair, count]) == pytest.approx([0.36, 0.36, 2])


def test_a_loop_in_a_branch_on_one_server(pair, session):
    a, _ = pair
    flag = tf.placeholder(tf.bool, [])

    def update():
        _, total = tf.while_loop(lambda i, _: i < 4, lambda i, s: (i + 1, s + 2.0), (0, 0.0))
        return tf.identity(a.assign_add(total))

    result = tf.cond(flag, update, lambda: tf.constant(-1.0))
    session.run(tf.global_variables_initializer())
    assert session.run(result, {flag: False}) == -1.0
    assert session.run(result, {flag: True}) == 8.0
    assert session.run(a) == 8.0


@pytest.mark.parametrize("task", ["/job:worker/task:0", "/job:worker/task:1"], ids=["own", "other"])
@pytest.mark.parametrize("taken", [True, False])
@pytest.mark.parametrize("fed", [True, False], ids=["fed", "constant"])
def test_of_two_constants_the_one_of_the_taken_branch_comes_out(session, task, taken, fed):
    with tf.device(task):
        flag = tf.placeholder(tf.bool, []) if fed else tf.constant(taken)
        yes, no = tf.constant(7.0), tf.constant(6.0)
        chosen = tf.cond(flag, lambda: yes, lambda: no)
        doubled = tf.cond(flag, lambda: yes * 2.0, lambda: no * 2.0)
    feeds = {flag: taken} if fed else {}
    assert session.run([chosen, doubled], feeds) == ([7.0, 14.0] if taken else [6.0, 12.0])


def test_a_variable_that_begins_as_another_takes_its_value_of_now(pair, session):
    with tf.device("/job:worker/task:1"):
        copy = tf.Variable(pair[0].initialized_value())
    session.run(pair[0].assign(10.0))
    session.run(copy.initializer)
    assert session.run(copy) == 10.0

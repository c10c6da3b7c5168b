"""Critical sections: of the functions of one, only one runs at a time."""

import pytest

import tensorfleet as tf

PATIENT = tf.RunOptions(timeout_in_ms=60000)


def counter(name="v"):
    return tf.get_variable(name, initializer=0, use_resource=True)


def count_up(v):
    """Reads and adds one, which goes wrong when two do it at once."""
    before = v.read_value()
    with tf.control_dependencies([before]):
        after = v.assign(before + 1)
        with tf.control_dependencies([after]):
            return tf.identity(before)


def test_functions_run_one_at_a_time(session):
    v, section = counter(), tf.CriticalSection()
    outside = tf.identity(True)
    results = [section.execute(lambda: count_up(v)) for _ in range(8)]
    results += [
        tf.cond(outside, lambda: section.execute(lambda: count_up(v)), v.read_value) for _ in range(4)
    ]
    session.run(v.initializer)
    assert sorted(session.run(results, options=PATIENT)) == list(range(12))
    operation = section.execute(lambda: count_up(v).op)
    session.run(operation, options=PATIENT)
    assert session.run(v) == 13


def test_what_a_function_needs_is_there_before_it_locks(session):
    section = tf.CriticalSection()
    first = section.execute(lambda: tf.constant(1))
    second = section.execute(lambda: (first + 1, first + 2))
    assert session.run(second, options=PATIENT) == (2, 3)
    loop = tf.while_loop(lambda i, _: i < 9, lambda i, j: (i + 1, section.execute(lambda: j + 2)), [0, 0])
    assert session.run(loop, options=PATIENT) == (9, 18)


def test_a_step_that_fails_gives_the_lock_back(session):
    v, section = counter(), tf.CriticalSection()
    p = tf.placeholder(tf.float32)

    def checked():
        with tf.control_dependencies([tf.assert_positive(p)]):
            return v.read_value()

    result = section.execute(checked)
    session.run(v.initializer)
    for _ in range(3):
        with pytest.raises(tf.errors.InvalidArgumentError):
            session.run(result, {p: -1.0}, options=PATIENT)
        assert session.run(result, {p: 1.0}, options=PATIENT) == 0


def test_what_would_wait_for_ever_is_refused():
    v, one, other = counter(), tf.CriticalSection(shared_name="s"), tf.CriticalSection()
    with pytest.raises(
        ValueError, match="attempts to directly access the CriticalSection in which it would be"
    ):
        one.execute(lambda: tf.CriticalSection(shared_name="s").execute(lambda: tf.constant(1)))
    one.execute(lambda: v + 1)
    one.execute(lambda: v + 2)
    for exclusive in (True, False):
        with pytest.raises(ValueError, match="requested exclusive resource access"):
            other.execute(lambda: v + 1, exclusive_resource_access=exclusive)
    w = counter("w")
    for section in (one, other):
        section.execute(lambda: w + 1, exclusive_resource_access=False)


def test_what_follows_one_dequeue_does_not_wait_for_another(session):
    queue = tf.FIFOQueue(1, tf.int32, [[]])
    v, yes = counter(), tf.identity(True)

    def alone():
        token = queue.dequeue()
        with tf.control_dependencies([token]):
            output = count_up(v)
        with tf.control_dependencies([output]), tf.control_dependencies([queue.enqueue(token + 0)]):
            return tf.identity(output)

    results = [alone() for _ in range(3)] + [tf.cond(yes, alone, lambda: -1) for _ in range(3)]
    session.run([v.initializer, queue.enqueue(1)])
    for first in (0, 6):
        result = session.run(results, options=PATIENT)
        assert sorted(result) == list(range(first, first + 6))

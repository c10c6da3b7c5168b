"""Which updates of large variables are made in place."""

import numpy as np
import pytest

import tensorfleet as tf

SIZE = 1 << 15


def kinds(session, fetch) -> dict[str, str]:
    plan = session._engine.program([], [fetch], []).plan
    return {op.type: part.kind for part in plan.parts for op in part.ops}


def accumulated(name):
    v = tf.get_variable(name, [SIZE], initializer=tf.zeros_initializer())
    return v, tf.ConditionalAccumulator(tf.float32, [SIZE], shared_name=f"{name}/sum")


def test_an_update_with_what_accumulators_have_waits_for_all_of_them(session):
    (v, a), (w, b) = accumulated("v"), accumulated("w")
    taken = [a.take_grad(1), b.take_grad(1)]
    update = tf.train.GradientDescentOptimizer(1.0).apply_gradients(zip(taken, [v, w], strict=True))
    give = [c.apply_grad(tf.ones([SIZE]), local_step=0) for c in (a, b)]
    assert kinds(session, update)["ApplyGradientDescent"] == "chunks"
    session.run(tf.global_variables_initializer())
    session.run(give[0])
    with pytest.raises(tf.errors.DeadlineExceededError):
        session.run(update, options=tf.RunOptions(timeout_in_ms=200))
    assert not session.run(v).any()  # neither is updated before both can be
    session.run(give)
    session.run(update)
    for x in (v, w):
        np.testing.assert_array_equal(session.run(x), -np.ones(SIZE))


def test_updates_between_accumulators_are_no_obstacle(session):
    (v, a), (w, b) = accumulated("v"), accumulated("w")
    updates = []
    for c, x in ((a, v), (b, w)):
        with tf.control_dependencies(updates):
            updates.append(tf.assign_add(x, c.take_grad(1)).op)
    give = [c.apply_grad(tf.ones([SIZE]), local_step=0) for c in (a, b)]
    session.run(tf.global_variables_initializer())
    session.run(give)
    session.run(updates)
    for x in (v, w):
        np.testing.assert_array_equal(session.run(x), np.ones(SIZE))

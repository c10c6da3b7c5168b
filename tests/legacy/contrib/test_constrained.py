"""Objectives with constraints."""

import numpy as np
import pytest

import tensorfleet as tf

C = tf.contrib.constrained_optimization


class Nearest(C.ConstrainedMinimizationProblem):
    """The point nearest to (3, 2) whose coordinates are at most (1, 5)."""

    def __init__(self):
        self.x = tf.get_variable("x", initializer=[0.0, 0.0])

    @property
    def objective(self):
        return tf.reduce_sum(tf.square(self.x - [3.0, 2.0]))

    @property
    def constraints(self):
        return self.x - [1.0, 5.0]


def solved(make, steps=400):
    problem = Nearest()
    step = tf.train.get_or_create_global_step()
    train = make().minimize_constrained(problem, global_step=step)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        seen = []
        for _ in range(steps):
            sess.run(train)
            seen.append(sess.run(problem.x))
        states = [v for v in tf.global_variables() if "regret" in v.op.name]
        return np.mean(seen[steps // 2 :], 0), sess.run(states[0]), sess.run(step)


def test_multipliers_grow_until_the_constraint_holds():
    x, state, steps = solved(
        lambda: C.AdditiveExternalRegretOptimizer(tf.train.GradientDescentOptimizer(0.1))
    )
    np.testing.assert_allclose(x, [1, 2], atol=0.05)
    np.testing.assert_allclose(state, [4, 0], atol=0.3)  # the slope of the objective at the bound
    assert steps == 400


def test_multipliers_are_bounded():
    make = lambda: C.AdditiveExternalRegretOptimizer(  # noqa: E731
        tf.train.GradientDescentOptimizer(0.1), maximum_multiplier_radius=2.0
    )
    x, state, _ = solved(make)
    np.testing.assert_allclose(state, [2, 0], atol=1e-3)
    np.testing.assert_allclose(x, [2, 2], atol=0.05)
    with pytest.raises(ValueError, match="strictly positive"):
        C.AdditiveExternalRegretOptimizer(None, maximum_multiplier_radius=-1.0)


@pytest.mark.parametrize("kind", ["AdditiveSwapRegretOptimizer", "MultiplicativeSwapRegretOptimizer"])
def test_weights_that_a_matrix_keeps_hold_the_constraint(kind):
    def make():
        return getattr(C, kind)(
            tf.train.GradientDescentOptimizer(0.05),
            constraint_optimizer=tf.train.GradientDescentOptimizer(0.2),
        )

    x, state, _ = solved(make, 800)
    np.testing.assert_allclose(x, [1, 2], atol=0.15)
    matrix = state if "Additive" in kind else np.exp(state)
    np.testing.assert_allclose(matrix.sum(0), 1, atol=0.01)


def test_first_steps_may_be_without_constraints():
    problem, step = Nearest(), tf.train.get_or_create_global_step()
    optimizer = C.AdditiveExternalRegretOptimizer(tf.train.GradientDescentOptimizer(0.1))
    train = optimizer.minimize(problem, unconstrained_steps=30, global_step=step)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for _ in range(30):
            sess.run(train)
        np.testing.assert_allclose(sess.run(problem.x), [3, 2], atol=0.05)
        for _ in range(300):
            sess.run(train)
        np.testing.assert_allclose(sess.run(problem.x), [1, 2], atol=0.2)
    with pytest.raises(ValueError, match="global_step cannot be None"):
        optimizer.minimize(problem, unconstrained_steps=1)


def test_the_best_candidates():
    objectives = np.array([1.0, 2.0, 3.0])
    constraints = np.array([[2.0, 0.5, -1.0], [1.0, 0.5, -0.5]])
    assert C.find_best_candidate_index(objectives, constraints) == 2
    assert C.find_best_candidate_index(objectives, np.zeros([2, 3])) == 0
    mixture = C.find_best_candidate_distribution(objectives, constraints)
    # A third of the first candidate and the rest of the last meet both bounds.
    np.testing.assert_allclose(mixture, [1 / 3, 0, 2 / 3], atol=1e-6)
    worst = C.find_best_candidate_distribution(objectives, constraints + 2.0, epsilon=1e-6)
    np.testing.assert_allclose(worst, [0, 0, 1], atol=1e-3)
    with pytest.raises(ValueError, match="must have shape"):
        C.find_best_candidate_index(objectives[:2], constraints)

"""How programs are compiled for the CPU."""

import functools

import numpy as np
import pytest

import tensorfleet as tf
from tensorfleet.runtime.devices import load_jax
from tensorfleet.runtime.segments import xla_options
from tensorfleet.runtime.segments.xla_options import waits_for_itself

BATCH = np.random.RandomState(0).rand(20, 8, 8).astype(np.float32) + 8 * np.eye(8, dtype=np.float32)
TWICE = {
    "side by side": (lambda inv, a: (inv(a), inv(a + 1)), True),
    "joined": (lambda inv, a: inv(a) @ inv(a + 1), True),
    "one of one": (lambda inv, a: inv(inv(a)), False),
    "one alone": (lambda inv, a: inv(a) + a, False),
    "two of one": (lambda inv, a: (lambda b: (inv(b), inv(b + 1)))(inv(a)), True),
    "single matrices": (lambda inv, a: (inv(a[0]), inv(a[1])), False),
}


@pytest.mark.parametrize(("function", "known"), TWICE.values(), ids=TWICE)
def test_batches_of_matrices_may_wait_for_each_other_unless_each_needs_the_one_before(function, known):
    jax, jnp = load_jax()
    found = waits_for_itself(jax.make_jaxpr(lambda a: function(jnp.linalg.inv, a))(BATCH))
    assert found is known


def test_batches_in_a_loop_may_wait_for_each_other_too():
    jax, jnp = load_jax()

    def looped(a):
        return jax.lax.fori_loop(0, 3, lambda _, b: jnp.linalg.inv(b) + jnp.linalg.inv(b + 1), a)

    assert waits_for_itself(jax.make_jaxpr(looped)(BATCH))


def test_a_step_with_many_batches_of_matrices_beside_a_large_product_comes_to_an_end(session):
    x, wide = tf.placeholder(tf.float32, BATCH.shape), tf.placeholder(tf.float32, [512, 512])
    inverses = [tf.matrix_inverse(x + float(i)) for i in range(12)]
    fetches = [[tf.reduce_sum(y) for y in inverses], tf.reduce_sum(tf.matmul(wide, wide))]
    ones = np.ones([512, 512], np.float32)
    for _ in range(20):
        sums, product = session.run(fetches, {x: BATCH, wide: ones})
    np.testing.assert_allclose(sums, [np.linalg.inv(BATCH + i).sum() for i in range(12)], rtol=1e-3)
    assert product == 512.0**3


def test_a_step_that_changes_a_large_variable_has_batches_of_matrices_too(session):
    table = tf.Variable(tf.zeros([1024, 1024]))
    x = tf.placeholder(tf.float32, BATCH.shape)
    sums = [tf.reduce_sum(tf.matrix_inverse(x + float(i))) for i in range(3)]
    step = tf.assign_add(table, tf.ones([1024, 1024]) * tf.add_n(sums)).op
    session.run(table.initializer)
    for _ in range(20):
        session.run(step, {x: BATCH})
    known = 20 * sum(np.linalg.inv(BATCH + i).sum() for i in range(3))
    np.testing.assert_allclose(session.run(table[:2, :2]), np.full([2, 2], known), rtol=1e-3)


PRODUCTS = {
    "high and narrow": ([(1 << 16, 32, 32)], True),
    "as wide as long": ([(512, 512, 512)], False),
    "long": ([(1 << 16, 512, 32)], False),
    "more of the wide": ([(1 << 14, 16, 16), (512, 512, 512)], False),
    "more of the high": ([(1 << 17, 64, 64), (64, 64, 64)], True),
    "none": ([], False),
    "empty": ([(1 << 16, 8, 0)], False),
}


@pytest.mark.parametrize(("shapes", "known"), PRODUCTS.values(), ids=PRODUCTS)
def test_a_program_of_high_and_narrow_products_is_not_the_librarys(shapes, known, monkeypatch):
    pairs = [(np.ones((m, k)), np.ones((k, n))) for m, k, n in shapes]
    assert _goes_to_eigen(pairs, monkeypatch) is known


@pytest.mark.parametrize(("side", "known"), [(128, True), (64, False)])
def test_nor_is_one_of_batches_of_large_matrices(side, known, monkeypatch):
    batch = np.ones((4, side, side))
    assert _goes_to_eigen([(batch, batch)], monkeypatch) is known
    by_columns = functools.partial(load_jax()[1].einsum, "nij,nik->njk")
    assert not _goes_to_eigen([(batch, batch)], monkeypatch, by_columns)


def _goes_to_eigen(pairs, monkeypatch, product=lambda a, b: a @ b):
    jax, _ = load_jax()
    traced = jax.jit(lambda pairs: [product(a, b) for a, b in pairs]).trace(pairs)
    asked = []
    monkeypatch.setattr(xla_options, "_compile", lambda *given: asked.append(given[-1]))
    xla_options.compile_for_cpu(jax, traced, 1 << 20, False)
    return "DOT" not in asked[0][xla_options._LIBRARY]

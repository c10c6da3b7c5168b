"""Gamma and Poisson. Expected numbers are TensorFlow 2.21's, on a CPU, for seed=87654321 and seed2=5: two executions each."""

import numpy as np
import pytest

from tensorfleet.kernels import philox
from tensorfleet.kernels import philox_rejection as rejection
from tensorfleet.runtime.devices import load_jax

pytestmark = pytest.mark.slow  # left out by `make quick`

jax, jnp = load_jax()

SEEDS = (87654321, 5)


def executions(draw, reserved, count=2):
    state = philox.initial_state(*SEEDS)
    results = []
    for _ in range(count):
        results.append(draw(state))
        state = philox.skip(state, reserved)
    return results


def test_gamma_samples_are_tensorflows():
    got = executions(lambda s: rejection.random_gamma(np, s, (2,), np.array([0.5, 1, 3])), 6 * 256)
    # fmt: off
    np.testing.assert_allclose(got, [
        [[0.027734944165202, 0.568610327008016, 2.82331549329057],
         [0.0803769621374027, 0.591601253527739, 2.15339256829781]],
        [[0.0531472715463578, 1.15377534455451, 2.17352528008568],
         [0.254514752096445, 0.581758572962296, 2.39567558842759]],
    ], rtol=1e-14)
    # fmt: on


def test_poisson_samples_are_tensorflows():
    got = executions(
        lambda s: rejection.random_poisson(np, s, (3,), np.array([0.5, 4, 30]), np.int32), 9 * 256
    )
    assert [array.tolist() for array in got] == [
        [[0, 5, 27], [0, 4, 37], [0, 7, 33]],
        [[0, 4, 28], [0, 3, 28], [0, 4, 29]],
    ]


@pytest.mark.parametrize(
    "alpha", [[0.0, -1, np.nan, 1], [0.01, 0.3, 0.999], [1.001, 1.5, 50], [1e-9, np.inf]]
)
def test_both_lives_draw_the_same_gammas(alpha):
    state = philox.skip(philox.initial_state(*SEEDS), 2**64 - 1000)  # a carry on the way
    host = rejection.random_gamma(np, state, (500, 3), np.array(alpha))
    compiled = jax.jit(lambda s: rejection.random_gamma(jnp, s, (500, 3), jnp.array(alpha)))(state)
    np.testing.assert_allclose(compiled, host, rtol=1e-12, atol=1e-300)


def test_compiled_gammas_that_are_often_rejected_are_drawn_in_several_rounds(monkeypatch):
    monkeypatch.setattr(rejection, "_PIECE_OUTPUTS", 2)
    state, alpha = philox.initial_state(*SEEDS), np.full(20, 0.01)
    compiled = jax.jit(lambda s: rejection.random_gamma(jnp, s, (8,), jnp.array(alpha)))(state)
    np.testing.assert_allclose(
        compiled, rejection.random_gamma(np, state, (8,), alpha), rtol=1e-12, atol=1e-300
    )


@pytest.mark.parametrize("rate", [[0.0, 0.1, 2, 9.99], [10.0, 15, 400, 5e4], [-1.0, np.inf, np.nan, 3, 30]])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_both_lives_draw_the_same_poissons(rate, dtype):
    state = philox.skip(philox.initial_state(*SEEDS), 2**64 - 1000)
    with np.errstate(over="ignore"):
        host = rejection.random_poisson(np, state, (300, 2), np.array(rate), dtype)
    compiled = jax.jit(lambda s: rejection.random_poisson(jnp, s, (300, 2), jnp.array(rate), dtype))(state)
    np.testing.assert_array_equal(compiled, host)

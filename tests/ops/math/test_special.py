"""Special functions, once compiled, against SciPy's."""

import numpy as np
import pytest
from scipy import special

from tensorfleet.graph import registry
from tensorfleet.runtime.devices import load_jax


@pytest.mark.parametrize("kind", [np.float32, np.float16, np.float64])
def test_the_complementary_error_function_keeps_its_digits(kind):
    _, jnp = load_jax()
    x = np.linspace(-9, 9, 100_001).astype(kind)
    array = np.asarray(registry.get("Erfc").kernel(jnp, jnp.asarray(x)))
    assert array.dtype == kind
    known, eps = special.erfc(x.astype(np.float64)), np.finfo(kind).eps
    normal = known > np.finfo(kind).tiny
    # The square of x is rounded, which exp makes an error as many times larger.
    allowed = 8 * eps * np.maximum(1, x.astype(np.float64) ** 2)
    assert (np.abs(array / known - 1) <= allowed)[normal].all()


def test_the_complementary_error_function_at_its_ends():
    _, jnp = load_jax()
    x = np.array([0, -0.0, np.inf, -np.inf, 1e30, -1e30, np.nan], np.float32)
    array = np.asarray(registry.get("Erfc").kernel(jnp, jnp.asarray(x)))
    np.testing.assert_array_equal(array, np.array([1, 1, 0, 2, 0, 2, np.nan], np.float32))

"""Whether a bijector's methods fit together: `tensorflow.python.ops.distributions.bijector_test_util`."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorfleet.base.naming import find
from tensorfleet.graph.scopes import get_default_session


def assert_finite(array: Any) -> None:
    """Fails when a number is infinite or none."""
    if not np.isfinite(array).all():
        raise AssertionError(f"array was not all finite. {np.ravel(array)[:15]}")


def assert_strictly_increasing(array: Any) -> None:
    """Fails when a number is not greater than the one before it."""
    np.testing.assert_array_less(0.0, np.diff(array))


def assert_strictly_decreasing(array: Any) -> None:
    """Fails when a number is not less than the one before it."""
    np.testing.assert_array_less(np.diff(array), 0.0)


def assert_strictly_monotonic(array: Any) -> None:
    """Fails when the numbers do not all rise or all fall."""
    (assert_strictly_increasing if array[0] < array[-1] else assert_strictly_decreasing)(array)


def assert_scalar_congruency(
    bijector: Any, lower_x: Any, upper_x: Any, n: int = 10000, rtol: float = 0.01, sess: Any = None
) -> None:
    """Fails when a map of the real line between two numbers is not monotonic, not undone, or measured wrongly.

    The measure is right when the mean of how much `inverse` stretches, over points between the ends of the image,
    is as the lengths of the two intervals are.
    """
    run = (sess or get_default_session()).run
    points = np.linspace(lower_x, upper_x, 10).astype(
        np.float32 if bijector.dtype is None else bijector.dtype.as_numpy_dtype
    )
    assert_strictly_monotonic(run(bijector.forward(points)))
    low, high = sorted(run([bijector.forward(lower_x), bijector.forward(upper_x)]))
    uniform = find("distributions.Uniform")
    x = uniform(low=lower_x, high=upper_x).sample(n, seed=0)
    y = uniform(low=low, high=high).sample(n, seed=1)
    x_of_y = bijector.inverse(y)
    xs, xs_again, ys, ys_again, shrunk, stretched = run(
        [
            x,
            bijector.inverse(bijector.forward(x)),
            y,
            bijector.forward(x_of_y),
            find("exp")(bijector.inverse_log_det_jacobian(y, event_ndims=0)),
            find("exp")(bijector.forward_log_det_jacobian(x_of_y, event_ndims=0)),
        ]
    )
    np.testing.assert_allclose(xs_again, xs, atol=1e-5, rtol=1e-3)
    np.testing.assert_allclose(ys_again, ys, atol=1e-5, rtol=1e-3)
    np.testing.assert_allclose(upper_x - lower_x, (high - low) * np.mean(shrunk), rtol=rtol)
    np.testing.assert_allclose(shrunk, 1.0 / stretched, atol=1e-5, rtol=1e-3)


def assert_bijective_and_finite(
    bijector: Any, x: Any, y: Any, event_ndims: Any, atol: float = 0, rtol: float = 1e-5, sess: Any = None
) -> None:
    """Fails when the two ways do not undo each other at `x` and at `y`, or something there is not finite."""
    there, back = bijector.forward(x), bijector.inverse(y)
    asked = [
        bijector.inverse(there),
        bijector.forward(back),
        bijector.inverse_log_det_jacobian(there, event_ndims=event_ndims),
        bijector.forward_log_det_jacobian(x, event_ndims=event_ndims),
        bijector.inverse_log_det_jacobian(y, event_ndims=event_ndims),
        bijector.forward_log_det_jacobian(back, event_ndims=event_ndims),
        there,
        back,
    ]
    result = (sess or get_default_session()).run(asked)
    for array in (x, y, *result):
        assert_finite(array)
    x_again, y_again, shrunk_there, stretched_x, shrunk_y, stretched_back = result[:6]
    pairs = ((x_again, x), (y_again, y), (-shrunk_there, stretched_x), (-shrunk_y, stretched_back))
    for actual, expected in pairs:
        np.testing.assert_allclose(actual, expected, atol=atol, rtol=rtol)

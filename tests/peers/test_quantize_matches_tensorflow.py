"""Quantized tensors against TensorFlow: the same integers, the same ranges, the same floats back."""

from __future__ import annotations

import numpy as np
import pytest

import tensorfleet as tf

pytestmark = pytest.mark.peers

X = np.array([-7, -1.1, -0.5, 0, 0.2, 0.3, 0.5, 1.7, 9.3], np.float32)


def there_and_back(library, kind, mode, low, high):
    graph = library.Graph()
    with graph.as_default(), library.Session(graph=graph) as session:
        quantized, bottom, top = library.quantize(X, low, high, getattr(library, kind), mode=mode)
        floats = library.dequantize(quantized, bottom, top, mode=mode)
        return session.run([library.cast(quantized, library.int32), bottom, top, floats])


@pytest.mark.parametrize("kind", ["quint8", "qint8"])
@pytest.mark.parametrize("mode", ["MIN_COMBINED", "MIN_FIRST", "SCALED"])
@pytest.mark.parametrize("limits", [(-1.0, 2.0), (0.0, 3.0), (1.0, 2.0), (-0.001, 0.001)])
def test_integers_and_ranges_are_tensorflows(tensorflow, kind, mode, limits):
    ours = there_and_back(tf, kind, mode, *limits)
    theirs = there_and_back(tensorflow, kind, mode, *limits)
    np.testing.assert_array_equal(ours[0], theirs[0])
    for a, b in zip(ours[1:], theirs[1:], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-6)

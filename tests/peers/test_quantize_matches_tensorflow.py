"""Quantized tensors against TensorFlow: the same integers, the same ranges, the same floats back."""

import numpy as np
import pytest

import tensorfleet as tf

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


def quantized(library, x, low, high):
    return library.quantize(np.asarray(x, np.float32), low, high, library.quint8, mode="MIN_FIRST")


def picture(library):
    return quantized(library, np.arange(16).reshape(1, 4, 4, 1), -3.0, 20.0)


def joined(library):
    parts = [quantized(library, [[0, 1, 2, 3]], -4.0, 4.0), quantized(library, [[-1, 5, 2, 3]], -2.0, 6.0)]
    return library.quantized_concat(1, *[list(column) for column in zip(*parts, strict=True)])


def convolved(library, stride, padding):
    x, low, high = picture(library)
    w, filter_low, filter_high = quantized(library, np.arange(8).reshape(2, 2, 1, 2) * 0.5 - 1, -1.0, 3.0)
    ranges = low, high, filter_low, filter_high
    return library.nn.quantized_conv2d(x, w, *ranges, [1, stride, stride, 1], padding)


RANGES = (-1.0, 3.0), (-2.0, 4.0)


def pair(library, op, names, x, y, **attrs):
    """An op on two quantized tensors, given as (first, second) with their ranges."""
    (a, *first), (b, *second) = (quantized(library, v, *r) for v, r in zip((x, y), RANGES, strict=True))
    limits = [f"{side}_{name}" for name in names for side in ("min", "max")]
    ends = dict(zip(limits, (*first, *second), strict=True))
    return getattr(library.raw_ops, op)(**dict(zip(names, (a, b), strict=True)), **ends, **attrs)


def narrowed(library, op, **attrs):
    x, low, high = pair(library, "QuantizedMatMul", ("a", "b"), [[1, 2.5], [-1, 0.3]], [[3, -1.5], [0.7, 2]])
    given = {"input": x, "input_min": low, "input_max": high}
    return getattr(library.raw_ops, op)(**given, **attrs)


LAYERS = {
    "product": lambda library: pair(
        library, "QuantizedMatMul", ("a", "b"), [[1, 2.5, 0], [-1, 0.3, 2]], [[3, -1.5], [0.7, 2], [1, 1]]
    ),
    "turned product": lambda library: pair(
        library, "QuantizedMatMul", ("a", "b"), [[1, 2.5]], [[3], [-1.5]], transpose_a=True, transpose_b=True
    ),
    "times": lambda library: pair(library, "QuantizedMul", ("x", "y"), [[1, 2.5], [-1, 0.3]], [3, -1.5]),
    "plus": lambda library: pair(library, "QuantizedAdd", ("x", "y"), [[1, 2.5], [-1, 0.3]], [3, -1.5]),
    "bias": lambda library: pair(
        library,
        "QuantizedBiasAdd",
        ("input", "bias"),
        [[1, 2.5], [-1, 0.3]],
        [3, -1.5],
        out_type=library.qint32,
    ),
    "fewer bits": lambda library: narrowed(
        library,
        "Requantize",
        requested_output_min=-4.0,
        requested_output_max=12.0,
        out_type=library.quint8,
    ),
    "fewer bits for what is there": lambda library: narrowed(
        library, "QuantizeDownAndShrinkRange", out_type=library.quint8
    ),
    "reshape": lambda library: library.raw_ops.QuantizedReshape(
        **dict(zip(("tensor", "input_min", "input_max"), picture(library), strict=True)), shape=[2, 8]
    ),
    "concat": joined,
    "mean": lambda library: library.nn.quantized_avg_pool(
        *picture(library), [1, 2, 2, 1], [1, 2, 2, 1], "SAME"
    ),
    "mean at the edge": lambda library: library.nn.quantized_avg_pool(
        *picture(library), [1, 3, 3, 1], [1, 2, 2, 1], "SAME"
    ),
    "max": lambda library: library.nn.quantized_max_pool(
        *picture(library), [1, 3, 3, 1], [1, 2, 2, 1], "SAME"
    ),
    "convolution": lambda library: convolved(library, 1, "VALID"),
    "convolution with strides": lambda library: convolved(library, 2, "SAME"),
    "relu": lambda library: library.raw_ops.QuantizedRelu(
        **dict(zip(("features", "min_features", "max_features"), picture(library), strict=True)),
        out_type=library.quint8,
    ),
    "relu6": lambda library: library.raw_ops.QuantizedRelu6(
        **dict(zip(("features", "min_features", "max_features"), picture(library), strict=True)),
        out_type=library.quint8,
    ),
}


@pytest.mark.parametrize("layer", LAYERS)
def test_layers_give_tensorflows_integers_and_ranges(tensorflow, layer):
    def run(library):
        graph = library.Graph()
        with graph.as_default(), library.Session(graph=graph) as session:
            integers, low, high = LAYERS[layer](library)
            return session.run([library.cast(integers, library.int32), low, high])

    ours, theirs = run(tf), run(tensorflow)
    np.testing.assert_array_equal(ours[0], theirs[0])
    np.testing.assert_allclose(ours[1:], theirs[1:], rtol=1e-5)

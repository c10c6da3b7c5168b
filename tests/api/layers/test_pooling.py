"""Pooling layers against plain numpy."""

import numpy as np
import pytest

import tensorfleet as tf


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("kind", ["max", "average"])
@pytest.mark.parametrize("first", [False, True], ids=["channels_last", "channels_first"])
def test_windows_of_two_are_pooled(kind, rank, first, session):
    data = np.random.RandomState(0).rand(2, *[4] * rank, 3).astype(np.float32)
    shape = [2, *[2, 2] * rank, 3]
    axes = tuple(2 + 2 * i for i in range(rank))
    wanted = getattr(data.reshape(shape), "max" if kind == "max" else "mean")(axes)
    layout = "channels_first" if first else "channels_last"
    given = np.moveaxis(data, -1, 1) if first else data
    function = getattr(tf.layers, f"{kind}_pooling{rank}d")
    y = function(given, 2, 2, data_format=layout)
    assert y.name.startswith(f"{kind}_pooling{rank}d/")
    result = session.run(y)
    layer = getattr(tf.layers, f"{kind.capitalize()}Pooling{rank}D")(2, 2, data_format=layout)
    assert layer.compute_output_shape(given.shape).as_list() == list(result.shape)
    np.testing.assert_allclose(np.moveaxis(result, 1, -1) if first else result, wanted, rtol=1e-6)


def test_inputs_of_another_rank_are_refused():
    with tf.Graph().as_default(), pytest.raises(ValueError, match="expected ndim=4, found ndim=3"):
        tf.layers.max_pooling2d(tf.zeros([1, 2, 3]), 2, 2)

"""Images seen through projections are TensorFlow's."""

import numpy as np
import pytest

import tensorfleet as tf

RANDOM = np.random.RandomState(0)
IMAGES = RANDOM.uniform(0, 1, [3, 7, 9, 2]).astype(np.float32)
PROJECTIONS = np.array([1, 0, 0, 0, 1, 0, 0, 0]) + RANDOM.uniform(-0.3, 0.3, [3, 8]) * [
    1,
    1,
    9,
    1,
    1,
    9,
    0.1,
    0.1,
]


@pytest.mark.parametrize("kind", ["NEAREST", "BILINEAR"])
@pytest.mark.parametrize("size", [None, [5, 11]])
def test_projections_give_the_same(tensorflow, kind, size):
    flat = PROJECTIONS.astype(np.float32)
    with tensorflow.Graph().as_default(), tensorflow.Session() as session:
        expected = session.run(
            tensorflow.raw_ops.ImageProjectiveTransformV2(
                images=IMAGES, transforms=flat, output_shape=size or IMAGES.shape[1:3], interpolation=kind
            )
        )
    with tf.Graph().as_default(), tf.Session() as session:
        got = session.run(tf.contrib.image.transform(IMAGES, flat, kind, size))
    np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5)

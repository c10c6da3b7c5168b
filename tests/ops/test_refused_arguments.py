"""Arguments that are refused when a step runs, or as soon as that is known, in TensorFlow's words."""

import numpy as np
import pytest

import tensorfleet as tf


def late(value):
    """A tensor whose value and shape are known only in a run."""
    return tf.placeholder_with_default(tf.constant(value), None)


VOLUME = np.ones((1, 2, 2, 2, 1), np.float32)
SPARSE = [[0, 0]], [1.0]
RUN = {
    "axis in a list": (lambda: tf.cumsum([1.0], axis=[0]), "InvalidArgument", "axis must be a scalar, not"),
    "windows over depth": (
        lambda: tf.nn.max_pool3d(VOLUME, [1, 2, 2, 2, 2], [1] * 5, "SAME"),
        "Unimplemented",
        "not yet supported on the depth dimension",
    ),
    "windows over a batch": (
        lambda: tf.nn.avg_pool3d(VOLUME, [2, 2, 2, 2, 1], [1] * 5, "SAME"),
        "Unimplemented",
        "not yet supported on the batch dimension",
    ),
    "no such dimension": (
        lambda: tf.reduce_join([["a"]], late(-3)),
        "OutOfRange",
        "Invalid reduction dimension -3 for input with 2",
    ),
    "parts of negative size": (
        lambda: tf.split([1, 2, 3, 4], late([-2, 6]), num=2),
        "InvalidArgument",
        "Split size at index 0 must be >= 0. Got: -2",
    ),
    "parts of negative size that do not fit": (
        lambda: tf.split([1, 2, 3, 4], late([7, -2]), num=2),
        "InvalidArgument",
        "Determined shape must either match",
    ),
    "an axis to split that is not there": (
        lambda: tf.split([[1, 2]], 2, late(3)),
        "InvalidArgument",
        r"-input rank\(-2\) <= split_dim < input rank \(2\), but got 3",
    ),
    "an axis to insert that is not there": (
        lambda: tf.expand_dims([1], late(5)),
        "InvalidArgument",
        "Tried to expand dim index 5 for tensor with 1 dimensions",
    ),
    "a window larger than the whole": (
        lambda: tf.random_crop(late([1, 2, 3]), [4]),
        "InvalidArgument",
        "Need value.shape >= size",
    ),
    "fewer samples than none": (
        lambda: tf.multinomial([[1.0, 2.0]], late(-1)),
        "InvalidArgument",
        "num_samples should be nonnegative",
    ),
    "a matrix as a shape": (
        lambda: tf.random_normal(late([[1, 2]])),
        "InvalidArgument",
        r"shape must be a vector of {int32,int64}, got shape \[1,2\]",
    ),
}


@pytest.mark.parametrize(("make", "error", "message"), RUN.values(), ids=RUN.keys())
def test_what_is_refused_in_a_run(session, make, error, message):
    with pytest.raises(getattr(tf.errors, f"{error}Error"), match=message):
        session.run(make())


BUILD = {
    "argmax": (lambda: tf.argmax([[1.0]], axis=5), r"\[-2, 2\), where 2 is the number of dimensions"),
    "split": (lambda: tf.split([[1, 2]], 2, 3), r"given by scalar input 3 must be in range \[-2, 2\)"),
    "top_k": (lambda: tf.nn.top_k([1.0], -1), "given by scalar input 1, must be non-negative but is -1"),
    "pool": (lambda: tf.nn.pool(np.ones((1, 3, 3, 1)), [2], "MAX", "SAME"), "must have rank 3"),
    "pool of none": (lambda: tf.nn.pool(np.ones((1, 1)), [], "MAX", "SAME"), "1 <= num_spatial_dims <= 3"),
}


@pytest.mark.parametrize(("make", "message"), BUILD.values(), ids=BUILD.keys())
def test_what_is_refused_at_once(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ([-1, -1], "At most one dimension can be inferred"),
        ([-1, 7], r"30 elements to shape \[None, 7\] \(28 elements\)"),
        ([5, 7], r"30 elements to shape \[5, 7\] \(35 elements\)"),
    ],
)
def test_shapes_that_a_sparse_tensor_cannot_have(shape, message):
    with pytest.raises(ValueError, match=message):
        tf.sparse_reshape(tf.SparseTensor(*SPARSE, [5, 6]), shape)


def test_sparse_tensors_of_other_shapes_are_not_added():
    with pytest.raises(ValueError, match=r"Shapes \(1, 1\) and \(2, 2\) are incompatible"):
        tf.sparse_add(tf.SparseTensor(*SPARSE, [1, 1]), tf.SparseTensor(*SPARSE, [2, 2]))


def test_a_window_is_drawn_with_the_seed_that_tensorflow_gives_it():
    with tf.Graph().as_default() as graph:
        tf.set_random_seed(7)
        tf.random_crop(np.arange(100), [3])
        drawn = graph.get_operation_by_name("random_crop/random_uniform")
        assert (drawn.get_attr("seed"), drawn.get_attr("seed2")) == (7, 16)

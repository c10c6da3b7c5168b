"""Sets in the last dimension: TensorFlow's values and errors."""

import numpy as np

from tests.peers.programs import agree, refuse_alike, walk, walk_errors

A = np.array([[1, 9, 3, 3], [5, 1, 2, 0]])
B = np.array([[9, 1, 8], [5, 5, 0]])
FIRST = ([[0, 0], [0, 1], [1, 0]], np.array([1, 9, 3]), [2, 3])
SECOND = ([[0, 0], [0, 1], [1, 0]], np.array([9, 4, 3]), [2, 5])
UNORDERED = ([[0, 1], [0, 0]], np.array([3, 4]), [1, 2])
FUNCTIONS = ("intersection", "union", "difference", "set_intersection", "set_union", "set_difference")


def hidden(tf, value):
    if isinstance(value, tuple):
        return tf.SparseTensor(*value)
    return tf.placeholder_with_default(tf.constant(value), None)


def sets(name, a, b, **kwargs):
    return lambda tf: getattr(tf.sets, name)(hidden(tf, a), hidden(tf, b), **kwargs)


VALUES = {
    **{f"{f} dense": sets(f, A, B) for f in FUNCTIONS},
    **{f"{f} mixed": sets(f, A, FIRST) for f in FUNCTIONS},
    **{f"{f} mixed the other way": sets(f, FIRST, A) for f in FUNCTIONS},
    **{f"{f} sparse": sets(f, FIRST, SECOND) for f in FUNCTIONS},
    "b - a": sets("difference", A, B, aminusb=False),
    "b - a mixed": sets("difference", FIRST, A, aminusb=False),
    "words": sets("union", np.array([[b"b", b"a"]], object), np.array([[b"c"]], object)),
    "deep": sets("intersection", np.array([[[1, 2], [3, 4]]]), np.array([[[1, 5], [3, 3]]])),
    "nothing": sets("union", np.zeros((2, 0), np.int64), np.zeros((2, 0), np.int64)),
    "size": lambda tf: tf.sets.size(tf.SparseTensor([[0, 0], [0, 1], [2, 0]], np.array([3, 3, 4]), [3, 2])),
    "size unordered": lambda tf: tf.sets.set_size(tf.SparseTensor(*UNORDERED), validate_indices=False),
}


@walk(VALUES)
def test_values(tensorflow, program):
    agree(tensorflow, program)


ERRORS = {
    "types": (sets("union", A, B.astype(np.int32)), "Types don't match"),
    "floats": (sets("union", A.astype(np.float32), A.astype(np.float32)), "'a' has invalid dtype"),
    "shapes": (sets("union", A, B[:1]), "Mismatched shapes [2] vs [1]"),
    "rank": (sets("union", A, B[0]), "has rank 1 < 2"),
    "static rank": (lambda tf: tf.sets.union([1], [2]), "Shape must be at least rank 2 but is rank 1"),
    "unordered": (sets("union", UNORDERED, UNORDERED), "is out of order"),
    "size of dense": (lambda tf: tf.sets.size(A), "Expected `SparseTensor`, got"),
}


@walk_errors(ERRORS)
def test_errors(tensorflow, program, phrase):
    refuse_alike(tensorflow, program, phrase)

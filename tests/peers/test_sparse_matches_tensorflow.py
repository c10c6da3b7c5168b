"""Sparse tensors through every function that takes them: TensorFlow's values and errors."""

import numpy as np

from tests.peers.programs import agree, refuse_alike, walk, walk_errors

A = ([[0, 1], [1, 0], [2, 2]], [1.0, 2.0, 3.0], [3, 4])
B = ([[0, 1], [1, 1]], [-1.0, 5.0], [3, 4])
MIXED = ([[1, 0], [0, 1], [0, 0]], [1.0, 2.0, 3.0], [2, 2])
NOTHING = (np.zeros((0, 2), np.int64), np.zeros(0, np.float32), [3, 4])
IDS = ([[0, 0], [0, 1], [1, 0]], np.array([3, 1, 2], np.int32), [2, 2])
WEIGHTS = ([[0, 0], [0, 1], [1, 0]], [0.3, 0.1, 0.2], [2, 2])


def sparse(tf, indices, values, shape):
    """A sparse tensor nothing is known of while the graph is built."""
    hide = tf.placeholder_with_default
    return tf.SparseTensor(
        hide(tf.constant(np.array(indices, np.int64)), [None, None]),
        hide(tf.constant(values), [None]),
        hide(tf.constant(shape, tf.int64), [None]),
    )


def on(function, *args, a=A, **kwargs):
    """A program: a function of `tf.` of a sparse tensor."""

    def program(tf):
        f = tf
        for part in function.split("."):
            f = getattr(f, part)
        return f(sparse(tf, *a), *args, **kwargs)

    return program


def both(function, *args, a=A, b=B, **kwargs):
    def program(tf):
        return getattr(tf, function)(sparse(tf, *a), sparse(tf, *b), *args, **kwargs)

    return program


def joined(axis, *parts, **kwargs):
    return lambda tf: tf.sparse_concat(axis, [sparse(tf, *p) for p in parts], **kwargs)


def split(**kwargs):
    return lambda tf: tf.sparse_split(sp_input=sparse(tf, *A), **kwargs)


DENSE = np.arange(12, dtype=np.float32).reshape(3, 4)

VALUES = {
    "to_dense": on("sparse_tensor_to_dense"),
    "to_dense default": on("sparse_tensor_to_dense", 7.0),
    "to_dense unordered": on("sparse.to_dense", a=MIXED, validate_indices=False),
    "indicator": on("sparse_to_indicator", 5, a=IDS),
    "reduce_sum all": on("sparse_reduce_sum"),
    "reduce_sum": on("sparse_reduce_sum", 0),
    "reduce_sum kept": on("sparse_reduce_sum", [0, 1], keepdims=True),
    "reduce_sum old names": on("sparse_reduce_sum", reduction_axes=[-1], keep_dims=True),
    "reduce_sum none": on("sparse_reduce_sum", []),
    "reduce_sum nothing": on("sparse_reduce_sum", 1, a=NOTHING),
    "reduce_sum_sparse": on("sparse_reduce_sum_sparse", 0),
    "reduce_sum_sparse all": on("sparse.reduce_sum_sparse"),
    "reduce_sum_sparse nothing": on("sparse.reduce_sum_sparse", a=NOTHING),
    "reduce_max": on("sparse_reduce_max", 1, a=([[0, 1], [1, 0]], [-1.0, -2.0], [3, 4])),
    "reduce_max_sparse": on("sparse_reduce_max_sparse", 1, keepdims=True),
    "fill_empty_rows": on("sparse_fill_empty_rows", 7.0, a=([[0, 1], [3, 0], [0, 0]], [1.0, 2, 3], [5, 4])),
    "fill_empty_rows nothing": on("sparse_fill_empty_rows", 7.0, a=NOTHING),
    "concat": joined(1, A, ([[0, 0], [2, 1]], [8.0, 9.0], [3, 2])),
    "concat unordered": joined(-2, MIXED, MIXED),
    "concat expanded": joined(0, A, ([[0, 0]], [8.0], [3, 2]), expand_nonconcat_dim=True),
    "concat expanded last": joined(-1, A, ([[0, 0]], [8.0], [5, 2]), expand_nonconcat_dim=True),
    "concat one": joined(0, A),
    "split": split(num_split=2, axis=1),
    "split uneven": split(num_split=2, axis=-2),
    "slice": on("sparse_slice", [1, 0], [10, 10]),
    "slice beyond": on("sparse_slice", [5, 0], [1, 1]),
    "reshape": on("sparse_reshape", [2, 6]),
    "reshape flat": on("sparse_reshape", [-1]),
    "reorder": on("sparse_reorder", a=MIXED),
    "retain": on("sparse_retain", [True, False, True]),
    "reset_shape": on("sparse_reset_shape"),
    "reset_shape larger": on("sparse_reset_shape", [4, 5]),
    "reset_shape nothing": on("sparse_reset_shape", a=NOTHING),
    "transpose": on("sparse_transpose"),
    "transpose perm": on("sparse_transpose", [0, 1]),
    "add": both("sparse_add"),
    "add threshold": both("sparse_add", 1.5),
    "add dense": lambda tf: tf.sparse_add(sparse(tf, *A), DENSE),
    "add to dense": lambda tf: tf.sparse_add(DENSE, sparse(tf, *A)),
    "maximum": both("sparse_maximum"),
    "minimum": both("sparse_minimum"),
    "softmax": on("sparse_softmax", a=([[0, 0, 0], [0, 0, 1], [1, 1, 0]], [1.0, 2.0, 3.0], [2, 2, 2])),
    "times a row": lambda tf: sparse(tf, *A) * tf.constant([1.0, 2, 3, 4]),
    "times a number": lambda tf: sparse(tf, *A) * 2.0,
    "dense times sparse": lambda tf: tf.constant(DENSE) * sparse(tf, *A),
    "divided": lambda tf: sparse(tf, *A) / tf.constant([1.0, 2, 3, 4]),
    "integers divided": lambda tf: sparse(tf, [[0, 1]], [3], [1, 2]) / 2,
    "matmul": on("sparse_tensor_dense_matmul", DENSE.T),
    "matmul adjoint_a": on("sparse_tensor_dense_matmul", DENSE[:, :2], adjoint_a=True),
    "matmul adjoint_b": on("sparse.sparse_dense_matmul", DENSE, adjoint_b=True),
    "dense matmul sparse": lambda tf: tf.sparse_tensor_dense_matmul(DENSE[:, :3], sparse(tf, *A)),
    "merge": lambda tf: tf.sparse_merge(sparse(tf, *IDS), sparse(tf, *WEIGHTS), 5),
    "merge two": lambda tf: tf.sparse_merge([sparse(tf, *IDS)] * 2, sparse(tf, *WEIGHTS), [5, 6]),
    "mask": lambda tf: tf.sparse_mask(
        tf.IndexedSlices(tf.constant([[1, 2], [3, 4], [5, 6]]), tf.constant([4, 2, 7]), tf.constant([9, 2])),
        [2, 7],
    ),
    "expand_dims": lambda tf: [tf.sparse.expand_dims(tf.SparseTensor(*A), i) for i in (None, 0, 1, -2)],
    "from_dense": lambda tf: [tf.sparse.from_dense(DENSE), tf.sparse.from_dense([[b"", b"a"]])],
    "eye": lambda tf: [tf.sparse.eye(2, 3), tf.sparse.eye(3, dtype=tf.int32)],
    "serialize": on("serialize_sparse"),
    "serialize_many": on("serialize_many_sparse"),
    "serialize words": on("serialize_sparse", a=([[0, 1]], [b"x"], [2, 2])),
    "deserialize": lambda tf: tf.deserialize_many_sparse(
        tf.stack([tf.serialize_sparse(sparse(tf, *A)), tf.serialize_sparse(sparse(tf, *B))]), tf.float32
    ),
    "identity and cast": lambda tf: [tf.identity(sparse(tf, *A)), tf.cast(sparse(tf, *A), tf.int32)],
    "unary": lambda tf: [f(sparse(tf, *A)) for f in (tf.square, tf.abs, tf.negative, tf.tanh, tf.sign)],
    "queries": lambda tf: [f(sparse(tf, *A)) for f in (tf.shape, tf.size, tf.rank)],
}

WORDS = ([[0, 0], [1, 0], [1, 1]], [b"a", b"b", b"c"], [2, 2])
NUMBERS = ([[0, 0], [1, 0], [1, 1]], np.array([1, 2, -3]), [2, 2])


def crossed(*inputs, hashed=False, **kwargs):
    def program(tf):
        columns = [sparse(tf, *i) if isinstance(i, tuple) else tf.constant(i) for i in inputs]
        return (tf.sparse.cross_hashed if hashed else tf.sparse.cross)(columns, **kwargs)

    return program


VALUES |= {
    "cross": crossed(WORDS, WORDS),
    "cross dense": crossed(WORDS, [[b"x", b"y"], [b"z", b"w"]]),
    "cross numbers": crossed(NUMBERS, [[7], [8]]),
    "cross nothing": crossed(WORDS, ([[0, 0]], [b"q"], [2, 1])),
    "cross hashed": crossed(WORDS, WORDS, hashed=True),
    "cross hashed buckets": crossed(WORDS, WORDS, hashed=True, num_buckets=1000, hash_key=5),
    "cross hashed numbers": crossed(NUMBERS, [[7], [8]], hashed=True, num_buckets=1000),
    "cross hashed mixed": crossed(NUMBERS, WORDS, [[b"x", b"y"], [b"z", b"w"]], hashed=True),
}


@walk(VALUES)
def test_values(tensorflow, program):
    agree(tensorflow, program)


INVALID = {
    "repeated": (on("sparse_tensor_to_dense", a=([[0, 1], [0, 1]], [1.0, 2.0], [2, 2])), "is repeated"),
    "unordered": (on("sparse_tensor_to_dense", a=MIXED), "is out of order"),
    "outside": (
        on("sparse_tensor_to_dense", a=([[5, 1]], [1.0], [2, 2])),
        "is out of bounds: need 0 <= index",
    ),
    "indicator": (on("sparse_to_indicator", 2, a=IDS), "Indices are not valid"),
    "reduce": (on("sparse_reduce_sum", 5), "Invalid reduction dimension 5, for input with 2 dimensions."),
    "fill": (
        on("sparse_fill_empty_rows", 0.0, a=([[5, 1]], [1.0], [2, 2])),
        "indices(0, 0) is invalid: 5 >= 2",
    ),
    "fill no rows": (
        on("sparse_fill_empty_rows", 0.0, a=([[0, 1]], [1.0], [0, 2])),
        "dense_shape[0] = 0 but",
    ),
    "concat": (
        joined(0, A, ([[0, 0]], [8.0], [3, 2])),
        "Input shapes must match: expected 4 for dimension 1",
    ),
    "concat axis": (joined(5, A, A), "Concat dimension must be in range [-2, 2), got 5"),
    "concat ranks": (joined(0, A, ([[0]], [8.0], [3])), "Ranks of all input tensors must match"),
    "split": (split(num_split=5, axis=0), "Input num_split should be between 1"),
    "split axis": (split(num_split=1, axis=5), "Input axis should be in range [-2, 2), got 5"),
    "slice": (on("sparse_slice", [0], [1, 1]), "Expected start to be a vector of length 2 but got length 1"),
    "reshape": (on("sparse_reshape", [2, 5]), "but the requested shape has 10"),
    "reshape -1": (on("sparse_reshape", [5, -1]), "but the requested shape requires a multiple of 5"),
    "reshape twice": (
        on("sparse_reshape", [-1, -1]),
        "only one output dimension may be -1, not both 0 and 1",
    ),
    "reset_shape": (on("sparse_reset_shape", [2, 5]), "assertion failed"),
    "add": (both("sparse_add", b=([[0, 1]], [1.0], [3, 5])), "Operands' shapes do not match"),
    "add ranks": (both("sparse_add", b=([[0]], [1.0], [3])), "Input indices must have the same dimension"),
    "add dense": (lambda tf: tf.sparse_add(sparse(tf, *A), DENSE[:, :1]), "no broadcasting is supported"),
    "add dense rank": (
        lambda tf: tf.sparse_add(sparse(tf, *A), DENSE[0]),
        "Two operands have different ranks",
    ),
    "maximum": (both("sparse_maximum", b=([[0, 1]], [1.0], [3, 5])), "Operands' shapes do not match"),
    "times": (lambda tf: sparse(tf, *A) * np.ones(5, np.float32), "broadcasts dense to sparse only"),
    "matmul": (
        lambda tf: tf.sparse_tensor_dense_matmul(sparse(tf, *A), tf.placeholder_with_default(DENSE, None)),
        "Cannot multiply A and B because inner dimension does not match: 4 vs. 3.  Did you forget a transpose?",
    ),
    "matmul k": (
        on("sparse_tensor_dense_matmul", DENSE.T, a=([[0, 5]], [1.0], [3, 4])),
        "k (5) from index[0,1] out of bounds (>=4)",
    ),
    "matmul m": (
        on("sparse_tensor_dense_matmul", DENSE.T, a=([[5, 0]], [1.0], [3, 4])),
        "m (5) from index[0,0] out of bounds (>=3)",
    ),
    "softmax": (on("sparse_softmax", a=([[0]], [1.0], [2])), "Input should have rank >= 2"),
    "deserialize": (
        lambda tf: tf.deserialize_many_sparse(tf.constant([[b"a", b"b", b"c"]]), tf.float32),
        "Could not parse serialized proto",
    ),
    "deserialize type": (
        lambda tf: tf.deserialize_many_sparse(tf.serialize_many_sparse(sparse(tf, *A)), tf.int32),
        "Requested SparseTensor of type int32 but SparseTensor[0].values.dtype() == float",
    ),
}
AT_ONCE = {
    "cross": (lambda tf: tf.sparse.cross([3.5]), "All inputs must be Tensor or SparseTensor."),
    "cross one": (lambda tf: tf.sparse.cross(tf.SparseTensor(*WORDS)), "Inputs must be a list"),
    "cross rows": (crossed(WORDS, [[b"x"]]), "Expected batch size 2 got 1 at dense tensor 0"),
    "to_dense": (lambda tf: tf.sparse_tensor_to_dense(3), "Input must be a SparseTensor."),
    "add": (lambda tf: tf.sparse_add(1, 2), "At least one input should be SparseTensor"),
    "retain": (lambda tf: tf.sparse_retain(tf.SparseTensor(*A), [True]), "are not compatible"),
    "split": (lambda tf: tf.sparse_split(tf.SparseTensor(*A), 2, 0), "Keyword arguments are required"),
    "split axis": (lambda tf: tf.sparse_split(sp_input=tf.SparseTensor(*A), num_split=2), "axis is required"),
    "reshape": (lambda tf: tf.sparse_reshape(tf.SparseTensor(*A), [5, 5]), "Cannot reshape a tensor with 12"),
    "merge": (
        lambda tf: tf.sparse_merge(sparse(tf, *IDS), sparse(tf, *WEIGHTS), [5]),
        "vocab_size has to be a",
    ),
    "matmul": (
        lambda tf: tf.sparse_tensor_dense_matmul(tf.SparseTensor(*A), DENSE),
        "Dimensions must be equal, but are 4 and 3",
    ),
}


@walk_errors(INVALID | AT_ONCE)
def test_errors(tensorflow, program, phrase):
    refuse_alike(tensorflow, program, phrase)


def _chained(f):
    """The gradient of a function of the values of a sparse tensor (and of something dense)."""

    def program(tf):
        values, dense = tf.constant([1.0, 2.0, 3.0]), tf.constant(DENSE + 1)
        y = f(tf, tf.SparseTensor(A[0], values, A[2]), dense)
        y = y.values if isinstance(y, tf.SparseTensor) else y
        weights = tf.reshape(tf.cast(tf.range(tf.size(y)), tf.float32) + 1, tf.shape(y))
        return [g for g in tf.gradients(y * weights, [values, dense]) if g is not None]

    return program


GRADIENTS = {
    "to_dense": _chained(lambda tf, s, d: tf.sparse_tensor_to_dense(s)),
    "reduce_sum": _chained(lambda tf, s, d: tf.sparse_reduce_sum(s, 1)),
    "reduce_sum kept": _chained(lambda tf, s, d: tf.sparse_reduce_sum(s, [-2], keepdims=True)),
    "reduce_sum all": _chained(lambda tf, s, d: tf.sparse_reduce_sum(s)),
    "add": _chained(lambda tf, s, d: tf.sparse_add(s, tf.SparseTensor(*B))),
    "add threshold": _chained(lambda tf, s, d: tf.sparse_add(s, tf.SparseTensor(*B), 1.0)),
    "add dense": _chained(lambda tf, s, d: tf.sparse_add(s, d)),
    "matmul": _chained(lambda tf, s, d: tf.sparse_tensor_dense_matmul(s, d, adjoint_b=True)),
    "matmul adjoint": _chained(lambda tf, s, d: tf.sparse_tensor_dense_matmul(s, d, adjoint_a=True)),
    "times": _chained(lambda tf, s, d: s * d),
    "times a row": _chained(lambda tf, s, d: s * d[0]),
    "divided": _chained(lambda tf, s, d: s / d[:, :1]),
    "softmax": _chained(lambda tf, s, d: tf.sparse_softmax(s)),
    "slice": _chained(lambda tf, s, d: tf.sparse_slice(s, [1, 0], [2, 4])),
    "transpose": _chained(lambda tf, s, d: tf.sparse_transpose(s)),
    "fill_empty_rows": _chained(lambda tf, s, d: tf.sparse_fill_empty_rows(s, d[0, 0])[0]),
    "reshape": _chained(lambda tf, s, d: tf.sparse_reshape(s, [-1])),
    "retain": _chained(lambda tf, s, d: tf.sparse_retain(s, [True, False, True])),
}


@walk(GRADIENTS)
def test_gradients(tensorflow, program):
    agree(tensorflow, program)

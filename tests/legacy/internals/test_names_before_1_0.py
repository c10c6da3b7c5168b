"""Names from before 1.0 work, and say once what they are called now."""

import numpy as np

import tensorfleet as tf
from tensorfleet_legacy.internals import names_before_1_0 as renamed


def test_old_names_give_what_the_new_ones_do(session):
    a, b = tf.constant([1.0, 2.0]), tf.constant([3.0, 4.0])
    pairs = [
        (tf.mul(a, b), [3, 8]),
        (tf.sub(a, b), [-2, -2]),
        (tf.neg(a), [-1, -2]),
        (tf.inv(a), [1, 0.5]),
        (tf.pack([a, b]), [[1, 2], [3, 4]]),
        (tf.unpack(a)[1], 2),
        (tf.select([True, False], t=a, e=b), [1, 4]),
        (tf.batch_matmul(x=[[1.0, 2.0]], y=[[3.0, 4.0]], adj_y=True), [[11]]),
        (tf.complex_abs(tf.constant(3 + 4j)), 5),
        (tf.concat_v2([a, b], 0), [1, 2, 3, 4]),
        (tf.split_v(value=a, size_splits=[1, 1], split_dim=0)[1], [2]),
        (tf.batch_svd([[[3.0]], [[4.0]]], compute_uv=False), [[3], [4]]),
    ]
    for got, wanted in pairs:
        np.testing.assert_allclose(session.run(got), wanted)


def test_each_warns_once(caplog):
    renamed._warned.clear()
    tf.mul(1, 2)
    tf.mul(1, 2)
    tf.sub(1, 2)
    assert [r.getMessage() for r in caplog.records] == [
        "tf.mul is now tf.multiply.",
        "tf.sub is now tf.subtract.",
    ]
    assert caplog.records[0].filename == "test_names_before_1_0.py"


def test_arguments_from_before_1_0_are_taken(session):
    sparse = tf.SparseTensor(indices=[[0, 1]], values=[5], shape=[1, 3])
    opt = tf.train.SyncReplicasOptimizer(tf.train.GradientDescentOptimizer(0.1), 2, replica_id=0)
    assert isinstance(opt, tf.train.Optimizer)
    assert session.run(tf.sparse.to_dense(sparse)).tolist() == [[0, 5, 0]]


def test_xla_compile_gives_the_computations_tensors(session):
    (total,) = tf.xla.experimental.compile(lambda a, b: a + b, [1.0, 2.0])
    assert session.run(total) == 3


def test_a_variable_gives_what_holds_its_value(session):
    v = tf.get_variable("v", initializer=2.0)
    assert v.ref() is v._ref()
    (grad,) = tf.gradients(v * v, [v.ref()])
    session.run(v.initializer)
    assert session.run([grad, tf.assign_add(v.ref(), 1.0)]) == [4.0, 3.0]

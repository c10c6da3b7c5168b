"""Ten steps of every optimizer, and the graph it builds, against TensorFlow's."""

import warnings

import numpy as np
import pytest

import tensorfleet

OPTIMIZERS = {
    "descent": lambda tf, step: tf.train.GradientDescentOptimizer(0.1),
    "descent_by_callable": lambda tf, step: tf.train.GradientDescentOptimizer(lambda: 0.1, use_locking=True),
    "proximal_descent": lambda tf, step: tf.train.ProximalGradientDescentOptimizer(0.1, 0.02, 0.03),
    "momentum": lambda tf, step: tf.train.MomentumOptimizer(0.1, 0.9),
    "nesterov": lambda tf, step: tf.train.MomentumOptimizer(0.1, 0.9, use_nesterov=True, name="Nest"),
    "adagrad": lambda tf, step: tf.train.AdagradOptimizer(0.1),
    "proximal_adagrad": lambda tf, step: tf.train.ProximalAdagradOptimizer(0.1, 0.2, 0.02, 0.03),
    "adagrad_da": lambda tf, step: tf.train.AdagradDAOptimizer(0.1, step, 0.2, 0.02, 0.03),
    "adadelta": lambda tf, step: tf.train.AdadeltaOptimizer(0.5),
    "adam": lambda tf, step: tf.train.AdamOptimizer(0.1),
    "adam_with_betas": lambda tf, step: tf.train.AdamOptimizer(0.1, 0.8, 0.9, 1e-3, name="Eve"),
    "rmsprop": lambda tf, step: tf.train.RMSPropOptimizer(0.1),
    "rmsprop_with_momentum": lambda tf, step: tf.train.RMSPropOptimizer(0.1, 0.8, 0.7, 1e-3),
    "centered_rmsprop": lambda tf, step: tf.train.RMSPropOptimizer(
        0.05, momentum=0.5, epsilon=1e-2, centered=True
    ),
    "ftrl": lambda tf, step: tf.train.FtrlOptimizer(0.1, -0.6, 0.2, 0.02, 0.03),
    "ftrl_with_shrinkage": lambda tf, step: tf.train.FtrlOptimizer(
        0.1, l2_shrinkage_regularization_strength=0.05, accum_name="acc", linear_name="lin"
    ),
}
START = np.linspace(-1, 1, 10).reshape(5, 2).astype(np.float32)


def _loss(tf, sparse, resource):
    w = tf.get_variable("net/w", initializer=START, use_resource=resource)
    b = tf.get_variable("b", initializer=np.float32(0.3), use_resource=resource)
    if sparse:
        rows = tf.gather(w, tf.constant([1, 3, 1, 4]))
        return tf.reduce_sum(tf.square(rows) * [[1.0], [2.0], [3.0], [-0.5]]) + b * 0.1
    return tf.reduce_sum(tf.square(w - 0.5)) + b * b


def _train(tf, make, sparse, resource, counted):
    with tf.Graph().as_default() as graph, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        step = tf.train.get_or_create_global_step()
        loss = _loss(tf, sparse, resource)
        before = len(graph.get_operations())
        optimizer = make(tf, step)
        train = optimizer.minimize(loss, global_step=step if counted else None)
        names = [
            (o.name, o.type) for o in graph.get_operations()[before:] if not o.name.startswith("gradients/")
        ]
        described = {
            "train": train.name,
            "slot names": optimizer.get_slot_names(),
            "variables": [v.name for v in optimizer.variables()],
            "global": [v.name for v in tf.global_variables()],
            "trainable": [v.name for v in tf.trainable_variables()],
            "train op": [o.name for o in tf.get_collection("train_op")],
            "slots": [
                optimizer.get_slot(v, s).name
                for v in tf.trainable_variables()
                for s in optimizer.get_slot_names()
            ],
        }
        init = tf.global_variables_initializer()
        with tf.Session() as session:
            session.run(init)
            history = []
            for _ in range(10):
                session.run(train)
                history.append(session.run(tf.global_variables()))
    return names, described, history


@pytest.mark.parametrize("resource", [False, True], ids=["ref", "resource"])
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_ten_steps_and_names_equal(tensorflow, name, sparse, resource):
    make = OPTIMIZERS[name]
    counted = "descent" not in name
    names, described, history = _train(tensorfleet, make, sparse, resource, counted)
    their_names, their_description, their_history = _train(tensorflow, make, sparse, resource, counted)
    assert described == their_description
    if not name.startswith("ftrl"):  # TensorFlow 2 has a parameter more there, which 1.15 has not
        assert names == their_names
    for ours, others in zip(history, their_history, strict=True):
        for a, b in zip(ours, others, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)

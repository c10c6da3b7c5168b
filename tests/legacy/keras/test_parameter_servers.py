"""Keras models train on parameter servers: variables there, batches here."""

import numpy as np

import tensorfleet as tf
from tensorfleet.testing.cluster import ProcessCluster

K, layers = tf.keras.backend, tf.keras.layers
X = np.random.RandomState(0).rand(32, 3).astype("float32")
Y = X.sum(1)


def built(task):
    setter = tf.train.replica_device_setter(ps_tasks=2, worker_device=f"/job:worker/task:{task}")
    with tf.device(setter):
        model = tf.keras.Sequential([layers.Dense(1, input_shape=(3,), kernel_initializer="zeros")])
        model.compile(tf.keras.optimizers.SGD(0.1, momentum=0.9), "mse", metrics=["mae"])
    return model


def test_two_workers_train_one_model_on_two_parameter_servers():
    with ProcessCluster(ps=2, worker=2) as cluster:
        with tf.Graph().as_default():
            first = built(0)
            assert [v.device for v in first.weights] == ["/job:ps/task:0", "/job:ps/task:1"]
            session = tf.Session(cluster.target("worker", 0))
            K.set_session(session)
            history = first.fit(X, Y, epochs=8, batch_size=8, verbose=0)
            slot = first.optimizer.get_slot(first.weights[0], "momentum")
            assert slot.device == "/job:ps/task:0"
            assert history.history["loss"][-1] < history.history["loss"][0] / 4
            trained, loss = first.get_weights(), first.evaluate(X, Y, verbose=0)
        with tf.Graph().as_default():
            second = built(1)
            K.set_session(tf.Session(cluster.target("worker", 1)))
            for ours, theirs in zip(second.get_weights(), trained, strict=True):
                np.testing.assert_array_equal(ours, theirs)
            np.testing.assert_allclose(second.evaluate(X, Y, verbose=0), loss, rtol=1e-4)
            second.fit(X, Y, epochs=1, batch_size=8, verbose=0)
            moved = second.get_weights()
            K.get_session().close()
        with tf.Graph().as_default(), session.graph.as_default():
            K.set_session(session)
            np.testing.assert_array_equal(first.get_weights()[0], moved[0])
            session.close()

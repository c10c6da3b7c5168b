"""A convolutional network of layers learns."""

import numpy as np

import tensorfleet as tf


def _stripes(count):
    """Images of horizontal or vertical stripes under noise, and which they are."""
    random = np.random.RandomState(0)
    labels = random.randint(0, 2, count)
    wave = np.sin(np.arange(12) * 2.0)
    images = np.where(labels[:, None, None], wave[:, None], wave[None, :]) + random.randn(count, 12, 12) * 0.5
    return images[..., None].astype(np.float32), labels


def _network(images, training):
    net = tf.layers.conv2d(images, 8, 3, padding="same", use_bias=False)
    net = tf.nn.relu(tf.layers.batch_normalization(net, training=training, momentum=0.8))
    net = tf.layers.max_pooling2d(net, 2, 2)
    net = tf.layers.conv2d(net, 8, 3, activation=tf.nn.relu, kernel_regularizer=tf.nn.l2_loss)
    net = tf.layers.dropout(tf.layers.flatten(net), 0.2, training=training)
    return tf.layers.dense(net, 2)


def test_a_network_of_layers_learns_to_tell_stripes_apart():
    images, labels = _stripes(64)
    with tf.Graph().as_default():
        tf.set_random_seed(1)
        x, y = tf.placeholder(tf.float32, [None, 12, 12, 1]), tf.placeholder(tf.int64, [None])
        training = tf.placeholder_with_default(False, [])
        logits = _network(x, training)
        loss = tf.losses.sparse_softmax_cross_entropy(y, logits)
        assert tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES)
        with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
            step = tf.train.AdamOptimizer(0.01).minimize(loss)
        accuracy, update = tf.metrics.accuracy(y, tf.argmax(logits, 1))
        with tf.Session() as session:
            session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
            for _ in range(40):
                session.run(step, {x: images, y: labels, training: True})
            assert session.run(loss, {x: images, y: labels}) < 0.1
            session.run(update, {x: images, y: labels})
            assert session.run(accuracy) > 0.95

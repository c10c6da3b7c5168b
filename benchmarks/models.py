"""Whole models, for works.py: each function builds one on the given library and gives its training step, its loss and feeds.

A step is given another batch than the step before, as in a real training: batches differ in their words, in how many of
them are different, and in the length of their sentences, which no fixed feed would show.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

_BATCHES = 64


def stepping(tf: Any, optimizer: Any, loss: Any, feeds: Iterable[dict]) -> Callable[[], Any]:
    """A step that updates every variable and gives the loss, on one batch after the other."""
    train = optimizer.minimize(loss)
    sess = tf.Session()
    sess.run([tf.global_variables_initializer(), tf.tables_initializer()])
    following = itertools.cycle(list(feeds))
    return lambda: sess.run([train, loss], next(following))


def dense(tf: Any, x: Any, units: int, name: str, activation: Any = None) -> Any:
    """A layer over the last dimension."""
    with tf.variable_scope(name):
        kernel = tf.get_variable("kernel", [int(x.shape[-1]), units])
        bias = tf.get_variable("bias", [units], initializer=tf.zeros_initializer())
        flat = tf.matmul(tf.reshape(x, [-1, int(x.shape[-1])]), kernel) + bias
        made = tf.reshape(flat, [-1, *x.shape.as_list()[1:-1], units])
        return made if activation is None else activation(made)


def mean_loss(tf: Any, labels: Any, logits: Any) -> Any:
    """The mean cross-entropy of classes."""
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))


def resnet(tf: Any) -> Callable[[], Any]:
    """The residual network of 20 layers for pictures of 32 x 32."""
    pictures, labels = tf.placeholder(tf.float32, [None, 32, 32, 3]), tf.placeholder(tf.int64, [None])

    def convolved(x: Any, filters: int, size: int, stride: int, name: str) -> Any:
        start = tf.variance_scaling_initializer()
        kernel = tf.get_variable(name, [size, size, int(x.shape[-1]), filters], initializer=start)
        return tf.nn.conv2d(x, kernel, [1, stride, stride, 1], "SAME")

    def normal(x: Any, name: str) -> Any:
        with tf.variable_scope(name):
            scale = tf.get_variable("scale", [int(x.shape[-1])], initializer=tf.ones_initializer())
            shift = tf.get_variable("shift", [int(x.shape[-1])], initializer=tf.zeros_initializer())
            return tf.nn.fused_batch_norm(x, scale, shift)[0]

    maps = convolved(pictures, 16, 3, 1, "first")
    for stage, block in itertools.product(range(3), range(3)):
        filters, stride = 16 << stage, 2 if stage and not block else 1
        with tf.variable_scope(f"block{stage}{block}"):
            inner = tf.nn.relu(normal(convolved(maps, filters, 3, stride, "a"), "na"))
            inner = normal(convolved(inner, filters, 3, 1, "b"), "nb")
            around = maps if stride == 1 else convolved(maps, filters, 1, 2, "around")
            maps = tf.nn.relu(inner + around)
    loss = mean_loss(tf, labels, dense(tf, tf.reduce_mean(maps, [1, 2]), 10, "logits"))
    random = np.random.default_rng(7)
    one = {pictures: random.random((32, 32, 32, 3), np.float32), labels: random.integers(0, 10, 32)}
    return stepping(tf, tf.train.MomentumOptimizer(0.1, 0.9), loss, [one])


def transformer(tf: Any) -> Callable[[], Any]:
    """Four layers of attention over 64 words, 256 wide, 2,000 words, with dropout."""
    length, width, heads, words = 64, 256, 4, 2000
    given, wanted = (tf.placeholder(tf.int32, [None, length]) for _ in range(2))
    state = tf.nn.embedding_lookup(tf.get_variable("words", [words, width]), given)

    def normal(x: Any, name: str) -> Any:
        mean, variance = tf.nn.moments(x, [-1], keepdims=True)
        scale = tf.get_variable(name, [width], initializer=tf.ones_initializer())
        return (x - mean) * tf.rsqrt(variance + 1e-6) * scale

    def split(x: Any) -> Any:
        return tf.transpose(tf.reshape(x, [-1, length, heads, width // heads]), [0, 2, 1, 3])

    for layer in range(4):
        with tf.variable_scope(f"layer{layer}"):
            seen = normal(state, "before")
            query, key, value = (split(dense(tf, seen, width, name)) for name in ("query", "key", "value"))
            weights = tf.nn.softmax(tf.matmul(query, key, transpose_b=True) / 8.0)
            mixed = tf.matmul(tf.nn.dropout(weights, rate=0.1), value)
            joined = tf.reshape(tf.transpose(mixed, [0, 2, 1, 3]), [-1, length, width])
            state += dense(tf, joined, width, "joined")
            inner = dense(tf, normal(state, "between"), 4 * width, "inner", tf.nn.relu)
            state += dense(tf, inner, width, "outer")
    loss = mean_loss(tf, wanted, dense(tf, state, words, "logits"))
    random = np.random.default_rng(7)
    feeds = [{p: random.integers(0, words, (16, length)) for p in (given, wanted)} for _ in range(_BATCHES)]
    return stepping(tf, tf.train.AdamOptimizer(1e-3), loss, feeds)


def wide_and_deep(tf: Any) -> Callable[[], Any]:
    """Twenty columns of words, hashed, each embedded and weighed, two layers, a batch of 512."""
    columns, numbers = 20, tf.placeholder(tf.float32, [None, 10])
    words = [tf.placeholder(tf.string, [None]) for _ in range(columns)]
    clicked = tf.placeholder(tf.float32, [None, 1])
    features = {f"c{i}": w for i, w in enumerate(words)} | {"numbers": numbers}
    of = tf.feature_column
    hashed = [of.categorical_column_with_hash_bucket(f"c{i}", 10_000) for i in range(columns)]
    deep = of.input_layer(
        features,
        [*(of.embedding_column(c, 16) for c in hashed), of.numeric_column("numbers", shape=[10])],
    )
    for i, units in enumerate((256, 128)):
        deep = dense(tf, deep, units, f"layer{i}", tf.nn.relu)
    logits = dense(tf, deep, 1, "logits") + of.linear_model(features, hashed)
    loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=clicked, logits=logits))
    random = np.random.default_rng(7)
    vocabulary = np.array([b"word%d" % i for i in range(5000)], object)

    def batch() -> dict:
        some = {w: vocabulary[random.integers(0, 5000, 512)] for w in words}
        return some | {numbers: random.random((512, 10)), clicked: random.integers(0, 2, (512, 1))}

    return stepping(tf, tf.train.AdagradOptimizer(0.05), loss, [batch() for _ in range(_BATCHES)])


def sentences(tf: Any) -> Callable[[], Any]:
    """A recurrent network of 128 units over 32 sentences of 10 to 40 words, the next word of 1,000 to be told."""
    units, words = 128, 1000
    given, wanted = (tf.placeholder(tf.int32, [None, 32]) for _ in range(2))
    length = tf.shape(given)[0]
    inputs = tf.TensorArray(tf.float32, length).unstack(
        tf.nn.embedding_lookup(tf.get_variable("words", [words, units]), given)
    )
    gates = tf.get_variable("gates", [2 * units, 4 * units])

    def step(i: Any, output: Any, memory: Any, outputs: Any) -> tuple:
        together = tf.matmul(tf.concat([inputs.read(i), output], 1), gates)
        write, new, keep, show = tf.split(together, 4, axis=1)
        memory = memory * tf.sigmoid(keep + 1.0) + tf.sigmoid(write) * tf.tanh(new)
        output = tf.sigmoid(show) * tf.tanh(memory)
        return i + 1, output, memory, outputs.write(i, output)

    empty = tf.zeros([32, units])
    start = (0, empty, empty, tf.TensorArray(tf.float32, length))
    outputs = tf.while_loop(lambda i, *_: i < length, step, start)[3].stack()
    loss = mean_loss(tf, wanted, dense(tf, tf.reshape(outputs, [-1, 32, units]), words, "logits"))
    random = np.random.default_rng(7)
    lengths = random.integers(10, 40, _BATCHES)
    feeds = [{p: random.integers(0, words, (n, 32)) for p in (given, wanted)} for n in lengths]
    return stepping(tf, tf.train.AdamOptimizer(1e-3), loss, feeds)

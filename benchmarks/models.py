"""The models of works.py: each function builds one on the given library, at a size, and returns its training step.

Some steps are given another batch than the step before, as in a real training: batches differ in their words, in how many
of them are different, and in the length of their sentences, which no fixed feed would show.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import batches
from batches import Arrays, Embedding, Sentences, Transformer, WideDeep, forever, scaled


@dataclass
class Training:
    """A step that updates every variable and gives the loss, on one batch after the other."""

    session: Any
    fetches: list[Any]
    feeds: Any

    def __call__(self) -> float:
        return self.session.run(self.fetches, next(self.feeds))[1]


def training(
    tf: Any, optimizer: Any, loss: Any, given: Sequence[Any], all_batches: Sequence[Arrays]
) -> Training:
    """The training step of a loss, which takes its batches by the placeholders `given`."""
    train = optimizer.minimize(loss)
    sess = tf.Session()
    sess.run([tf.global_variables_initializer(), tf.tables_initializer()])
    feeds = [dict(zip(given, batch, strict=True)) for batch in all_batches]
    return Training(sess, [train, loss], forever(feeds))


def zeros(tf: Any, name: str, size: int) -> Any:
    """A bias."""
    return tf.get_variable(name, [size], initializer=tf.zeros_initializer())


def cross_entropy(tf: Any, labels: Any, logits: Any) -> Any:
    """The mean loss of a batch with one-hot labels."""
    return tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits_v2(labels=labels, logits=logits))


def mean_loss(tf: Any, labels: Any, logits: Any) -> Any:
    """The mean cross-entropy of classes."""
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))


def dense(tf: Any, x: Any, units: int, name: str, activation: Any = None) -> Any:
    """A layer over the last dimension."""
    with tf.variable_scope(name):
        kernel = tf.get_variable("kernel", [int(x.shape[-1]), units])
        bias = zeros(tf, "bias", units)
        flat = tf.matmul(tf.reshape(x, [-1, int(x.shape[-1])]), kernel) + bias
        made = tf.reshape(flat, [-1, *x.shape.as_list()[1:-1], units])
        return made if activation is None else activation(made)


def digits(tf: Any, count: int | None = None) -> list[Any]:
    """Placeholders of images and one-hot labels."""
    return [tf.placeholder(tf.float32, [count, 784]), tf.placeholder(tf.float32, [count, 10])]


def perceptron(tf: Any, size: float, units: int, adam: bool) -> Training:
    """784 pixels, one hidden layer, ten classes, a batch of 100."""
    hidden = scaled(units, size)
    given = pixels, labels = digits(tf)
    layer = tf.nn.relu(tf.matmul(pixels, tf.get_variable("w1", [784, hidden])) + zeros(tf, "b1", hidden))
    logits = tf.matmul(layer, tf.get_variable("w2", [hidden, 10])) + zeros(tf, "b2", 10)
    optimizer = tf.train.AdamOptimizer() if adam else tf.train.GradientDescentOptimizer(0.01)
    return training(tf, optimizer, cross_entropy(tf, labels, logits), given, [batches.images(100)])


def cnn(tf: Any, size: float) -> Training:
    """LeNet: two convolutions of 32 and 64 filters, a layer of 512."""
    filters, hidden = (scaled(32, size), scaled(64, size)), scaled(512, size)
    given = pixels, labels = digits(tf)
    maps, depth = tf.reshape(pixels, [-1, 28, 28, 1]), 1
    for i, count in enumerate(filters):
        kernel = tf.get_variable(f"kernel{i}", [5, 5, depth, count])
        maps = tf.nn.conv2d(maps, kernel, strides=[1, 1, 1, 1], padding="SAME")
        maps = tf.nn.relu(tf.nn.bias_add(maps, zeros(tf, f"bias{i}", count)))
        maps = tf.nn.max_pool(maps, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="SAME")
        depth = count
    flat = tf.reshape(maps, [-1, 49 * depth])
    layer = tf.nn.relu(tf.matmul(flat, tf.get_variable("w1", [49 * depth, hidden])) + zeros(tf, "b1", hidden))
    logits = tf.matmul(layer, tf.get_variable("w2", [hidden, 10])) + zeros(tf, "b2", 10)
    optimizer = tf.train.GradientDescentOptimizer(0.01)
    return training(tf, optimizer, cross_entropy(tf, labels, logits), given, [batches.images(64)])


def embedding(tf: Any, size: float, rows: int, sampled: tuple | None = None) -> Training:
    """Two tables of `rows` x 128, a batch of 128 words, 64 sampled classes: drawn in each step, or those given."""
    config = Embedding.of(rows, size)
    words = tf.placeholder(tf.int32, [config.batch])
    following = tf.placeholder(tf.int64, [config.batch, 1])
    vectors = tf.nn.embedding_lookup(tf.get_variable("vectors", [rows, config.width]), words)
    losses = tf.nn.sampled_softmax_loss(
        weights=tf.get_variable("weights", [rows, config.width]),
        biases=zeros(tf, "biases", rows),
        labels=following,
        inputs=vectors,
        num_sampled=config.samples,
        num_classes=rows,
        sampled_values=sampled,
    )
    optimizer, batch = tf.train.GradientDescentOptimizer(0.1), batches.pairs_of_words(config)
    return training(tf, optimizer, tf.reduce_mean(losses), [words, following], [batch])


def lstm(tf: Any, size: float) -> Training:
    """An LSTM that reads an image row by row, cell by cell."""
    units = scaled(128, size)
    given = pixels, _ = digits(tf, 128)
    gates = tf.get_variable("gates", [28 + units, 4 * units])
    biases = zeros(tf, "biases", 4 * units)
    memory = output = tf.zeros([128, units])
    for row in tf.split(pixels, 28, axis=1):
        together = tf.matmul(tf.concat([row, output], axis=1), gates) + biases
        write, new, keep, show = tf.split(together, 4, axis=1)
        memory = memory * tf.sigmoid(keep + 1.0) + tf.sigmoid(write) * tf.tanh(new)
        output = tf.sigmoid(show) * tf.tanh(memory)
    return read_out(tf, output, units, given)


def lstm_block(tf: Any, size: float) -> Training:
    """The same by one op for all rows."""
    units = scaled(128, size)
    given = pixels, _ = digits(tf, 128)
    empty, unused = tf.zeros([128, units]), tf.zeros([units])
    outputs = tf.raw_ops.BlockLSTM(
        seq_len_max=tf.constant(28, tf.int64),
        x=tf.transpose(tf.reshape(pixels, [128, 28, 28]), [1, 0, 2]),
        cs_prev=empty,
        h_prev=empty,
        w=tf.get_variable("gates", [28 + units, 4 * units]),
        wci=unused,
        wcf=unused,
        wco=unused,
        b=zeros(tf, "biases", 4 * units),
        forget_bias=1.0,
        cell_clip=0.0,  # no limit, as in `lstm`
    )
    return read_out(tf, outputs.h[-1], units, given)


def read_out(tf: Any, output: Any, units: int, given: list[Any]) -> Training:
    """The classes from the last output of an LSTM."""
    logits = tf.matmul(output, tf.get_variable("w", [units, 10])) + zeros(tf, "b", 10)
    optimizer = tf.train.GradientDescentOptimizer(0.1)
    return training(tf, optimizer, cross_entropy(tf, given[1], logits), given, [batches.images(128)])


def resnet(tf: Any, size: float) -> Training:
    """The residual network of 20 layers for pictures of 32 x 32."""
    width = scaled(16, size)
    pictures, labels = tf.placeholder(tf.float32, [None, 32, 32, 3]), tf.placeholder(tf.int64, [None])

    def convolved(x: Any, filters: int, size: int, stride: int, name: str) -> Any:
        start = tf.variance_scaling_initializer()
        kernel = tf.get_variable(name, [size, size, int(x.shape[-1]), filters], initializer=start)
        return tf.nn.conv2d(x, kernel, [1, stride, stride, 1], "SAME")

    def normal(x: Any, name: str) -> Any:
        with tf.variable_scope(name):
            scale = tf.get_variable("scale", [int(x.shape[-1])], initializer=tf.ones_initializer())
            shift = zeros(tf, "shift", int(x.shape[-1]))
            return tf.nn.fused_batch_norm(x, scale, shift)[0]

    maps = convolved(pictures, width, 3, 1, "first")
    for name, _, filters, stride in batches.resnet_blocks(width):
        with tf.variable_scope(name):
            inner = tf.nn.relu(normal(convolved(maps, filters, 3, stride, "a"), "na"))
            inner = normal(convolved(inner, filters, 3, 1, "b"), "nb")
            around = maps if stride == 1 else convolved(maps, filters, 1, 2, "around")
            maps = tf.nn.relu(inner + around)
    loss = mean_loss(tf, labels, dense(tf, tf.reduce_mean(maps, [1, 2]), 10, "logits"))
    optimizer = tf.train.MomentumOptimizer(0.1, 0.9)
    return training(tf, optimizer, loss, [pictures, labels], [batches.pictures()])


def transformer(tf: Any, size: float, config: Transformer | None = None) -> Training:
    """Four layers of attention over 64 words, 256 wide, 2,000 words, with dropout."""
    config = config or Transformer.of(size)
    length, width, heads = config.length, config.width, config.heads
    given, wanted = (tf.placeholder(tf.int32, [None, length]) for _ in range(2))
    state = tf.nn.embedding_lookup(tf.get_variable("words", [config.words, width]), given)

    def normal(x: Any, name: str) -> Any:
        mean, variance = tf.nn.moments(x, [-1], keepdims=True)
        scale = tf.get_variable(name, [width], initializer=tf.ones_initializer())
        return (x - mean) * tf.rsqrt(variance + 1e-6) * scale

    def split(x: Any) -> Any:
        return tf.transpose(tf.reshape(x, [-1, length, heads, width // heads]), [0, 2, 1, 3])

    for layer in range(config.layers):
        with tf.variable_scope(f"layer{layer}"):
            seen = normal(state, "before")
            query, key, value = (split(dense(tf, seen, width, name)) for name in ("query", "key", "value"))
            weights = tf.nn.softmax(tf.matmul(query, key, transpose_b=True) / (width / heads) ** 0.5)
            mixed = tf.matmul(tf.nn.dropout(weights, rate=config.dropout), value)
            joined = tf.reshape(tf.transpose(mixed, [0, 2, 1, 3]), [-1, length, width])
            state += dense(tf, joined, width, "joined")
            inner = dense(tf, normal(state, "between"), 4 * width, "inner", tf.nn.relu)
            state += dense(tf, inner, width, "outer")
    loss = mean_loss(tf, wanted, dense(tf, state, config.words, "logits"))
    return training(tf, tf.train.AdamOptimizer(1e-3), loss, [given, wanted], batches.texts(config))


def wide_and_deep(tf: Any, size: float, hashed: bool) -> Training:
    """Twenty columns, each embedded and weighed, two layers, a batch of 512: columns of words, or of numbers if `hashed`."""
    config = WideDeep.of(size)
    names = [f"c{i}" for i in range(config.columns)]
    kind = tf.int64 if hashed else tf.string
    words = [tf.placeholder(kind, [None]) for _ in names]
    numbers = tf.placeholder(tf.float32, [None, config.numbers])
    clicked = tf.placeholder(tf.float32, [None, 1])
    features = dict(zip(names, words, strict=True)) | {"numbers": numbers}
    of = tf.feature_column
    column = of.categorical_column_with_identity if hashed else of.categorical_column_with_hash_bucket
    columns = [column(name, batches.BUCKETS) for name in names]
    embedded = [of.embedding_column(c, config.width) for c in columns]
    deep = of.input_layer(features, [*embedded, of.numeric_column("numbers", shape=[config.numbers])])
    for i, units in enumerate(config.layers):
        deep = dense(tf, deep, units, f"layer{i}", tf.nn.relu)
    logits = dense(tf, deep, 1, "logits") + of.linear_model(features, columns)
    loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=clicked, logits=logits))
    given = [*words, numbers, clicked]
    return training(tf, tf.train.AdagradOptimizer(0.05), loss, given, batches.clicks(config, hashed))


def sentences(tf: Any, size: float) -> Training:
    """A recurrent network of 128 units over 32 sentences of 10 to 40 words, the next word of 1,000 to be told."""
    config = Sentences.of(size)
    units, count = config.units, config.batch
    given, wanted = (tf.placeholder(tf.int32, [None, count]) for _ in range(2))
    length = tf.shape(given)[0]
    inputs = tf.TensorArray(tf.float32, length).unstack(
        tf.nn.embedding_lookup(tf.get_variable("words", [config.words, units]), given)
    )
    gates = tf.get_variable("gates", [2 * units, 4 * units])

    def step(i: Any, output: Any, memory: Any, outputs: Any) -> tuple:
        together = tf.matmul(tf.concat([inputs.read(i), output], 1), gates)
        write, new, keep, show = tf.split(together, 4, axis=1)
        memory = memory * tf.sigmoid(keep + 1.0) + tf.sigmoid(write) * tf.tanh(new)
        output = tf.sigmoid(show) * tf.tanh(memory)
        return i + 1, output, memory, outputs.write(i, output)

    empty = tf.zeros([count, units])
    start = (0, empty, empty, tf.TensorArray(tf.float32, length))
    outputs = tf.while_loop(lambda i, *_: i < length, step, start)[3].stack()
    logits = dense(tf, tf.reshape(outputs, [-1, count, units]), config.words, "logits")
    loss = mean_loss(tf, wanted, logits)
    return training(tf, tf.train.AdamOptimizer(1e-3), loss, [given, wanted], batches.sentences(config))

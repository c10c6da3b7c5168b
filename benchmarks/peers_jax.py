"""The works of works.py in plain JAX, with its default settings: one jitted function for the whole step.

The arithmetic is that of models.py: same shapes, same batches, same updates. Weights have the names and the layout of
TensorFlow's variables, so that a test can start all libraries from the same ones. `WORKS` maps the name of a work to its
builder: given the size, one step that returns the loss.

The step function takes NumPy arrays that were made before, as a TensorFlow step takes its feeds. It gives its old weights
to XLA to write the new ones there (`donate_argnums`), and ends when the loss is a Python number.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import batches
import jax
import jax.numpy as jnp
import numpy as np
from batches import Arrays, Candidates, Embedding, Sentences, Transformer, WideDeep, forever, scaled
from jax import Array, lax
from jax.nn import log_softmax, relu, sigmoid

Weights = dict[str, Array]
#: what a builder may be given instead of weights of its own
Given = Mapping[str, np.ndarray] | None


# -- optimizers, by TensorFlow's formulas ------------------------------------------------------------------


@dataclass(frozen=True)
class Optimizer:
    """`start` makes the state for the weights; `update` gives the new weights and state."""

    start: Callable[[Weights], Any]
    update: Callable[[Weights, Weights, Any], tuple[Weights, Any]]


def sgd(rate: float) -> Optimizer:
    return Optimizer(
        lambda weights: (),
        lambda weights, grads, state: (jax.tree.map(lambda w, g: w - rate * g, weights, grads), state),
    )


def momentum(rate: float, share: float) -> Optimizer:
    def update(weights: Weights, grads: Weights, state: Any) -> tuple[Weights, Any]:
        state = jax.tree.map(lambda v, g: share * v + g, state, grads)
        return jax.tree.map(lambda w, v: w - rate * v, weights, state), state

    return Optimizer(lambda weights: jax.tree.map(jnp.zeros_like, weights), update)


def adam(rate: float = 1e-3, first: float = 0.9, second: float = 0.999) -> Optimizer:
    def update(weights: Weights, grads: Weights, state: Any) -> tuple[Weights, Any]:
        count, means, squares = state
        count += 1
        means = jax.tree.map(lambda m, g: first * m + (1 - first) * g, means, grads)
        squares = jax.tree.map(lambda v, g: second * v + (1 - second) * g * g, squares, grads)
        step = rate * jnp.sqrt(1 - second**count) / (1 - first**count)
        new = jax.tree.map(lambda w, m, v: w - step * m / (jnp.sqrt(v) + 1e-8), weights, means, squares)
        return new, (count, means, squares)

    def start(weights: Weights) -> Any:
        return jnp.zeros(()), jax.tree.map(jnp.zeros_like, weights), jax.tree.map(jnp.zeros_like, weights)

    return Optimizer(start, update)


def adagrad(rate: float) -> Optimizer:
    def update(weights: Weights, grads: Weights, state: Any) -> tuple[Weights, Any]:
        state = jax.tree.map(lambda a, g: a + g * g, state, grads)
        return jax.tree.map(lambda w, g, a: w - rate * g / jnp.sqrt(a), weights, grads, state), state

    return Optimizer(lambda weights: jax.tree.map(lambda w: jnp.full_like(w, 0.1), weights), update)


# -- steps -------------------------------------------------------------------------------------------------


def loaded(shapes: batches.Shapes, given: Given) -> Weights:
    return {name: jnp.array(value) for name, value in (given or batches.weights(shapes)).items()}


def training(
    weights: Weights, optimizer: Optimizer, loss: Callable[..., Array], following: Iterator[Arrays]
) -> Callable[[], float]:
    """A step that updates the weights and gives the loss, on one batch after the other."""

    @functools.partial(jax.jit, donate_argnums=(0, 1))
    def update(weights: Weights, state: Any, batch: Arrays) -> tuple[Weights, Any, Array]:
        value, grads = jax.value_and_grad(loss)(weights, *batch)
        return *optimizer.update(weights, grads, state), value

    kept = [weights, optimizer.start(weights)]

    def step() -> float:
        *kept[:], value = update(*kept, next(following))
        return float(value)

    return step


def dense(w: Weights, x: Array, name: str) -> Array:
    return x @ w[f"{name}/kernel"] + w[f"{name}/bias"]


def cross_entropy(logits: Array, labels: Array) -> Array:
    """The mean loss of one-hot labels."""
    return -(labels * log_softmax(logits)).sum(-1).mean()


def mean_loss(logits: Array, labels: Array) -> Array:
    """The mean loss of classes."""
    return -jnp.take_along_axis(log_softmax(logits), labels[..., None], -1).mean()


def convolved(x: Array, kernel: Array, stride: int = 1) -> Array:
    numbers = ("NHWC", "HWIO", "NHWC")
    return lax.conv_general_dilated(x, kernel, (stride, stride), "SAME", dimension_numbers=numbers)


# -- perceptron and LeNet ----------------------------------------------------------------------------------


def perceptron(size: float, units: int, optimizer: Optimizer, given: Given = None) -> Callable[[], float]:
    def loss(w: Weights, pixels: Array, labels: Array) -> Array:
        layer = relu(pixels @ w["w1"] + w["b1"])
        return cross_entropy(layer @ w["w2"] + w["b2"], labels)

    weights = loaded(batches.mlp_shapes(scaled(units, size)), given)
    return training(weights, optimizer, loss, forever([batches.images(100)]))


def cnn(size: float, given: Given = None) -> Callable[[], float]:
    def loss(w: Weights, pixels: Array, labels: Array) -> Array:
        maps = pixels.reshape(-1, 28, 28, 1)
        for i in range(2):
            maps = relu(convolved(maps, w[f"kernel{i}"]) + w[f"bias{i}"])
            maps = lax.reduce_window(maps, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "SAME")
        layer = relu(maps.reshape(len(maps), -1) @ w["w1"] + w["b1"])
        return cross_entropy(layer @ w["w2"] + w["b2"], labels)

    shapes = batches.cnn_shapes((scaled(32, size), scaled(64, size)), scaled(512, size))
    return training(loaded(shapes, given), sgd(0.01), loss, forever([batches.images(64)]))


# -- recurrent networks ------------------------------------------------------------------------------------


def cell(gates: Array, biases: Array | float, x: Array, output: Array, memory: Array) -> tuple[Array, Array]:
    """One step of an LSTM."""
    write, new, keep, show = jnp.split(jnp.concatenate([x, output], 1) @ gates + biases, 4, 1)
    memory = memory * sigmoid(keep + 1.0) + sigmoid(write) * jnp.tanh(new)
    return sigmoid(show) * jnp.tanh(memory), memory


def scanned(gates: Array, biases: Array | float, inputs: Array) -> tuple[Array, Array]:
    """An LSTM as one loop (`lax.scan`) over the first dimension: the last output, and all of them."""
    empty = jnp.zeros((inputs.shape[1], gates.shape[1] // 4))

    def step(state: tuple[Array, Array], x: Array) -> tuple[tuple[Array, Array], Array]:
        state = cell(gates, biases, x, *state)
        return state, state[0]

    (output, _), outputs = lax.scan(step, (empty, empty), inputs)
    return output, outputs


def lstm(size: float, given: Given = None) -> Callable[[], float]:
    """Cell by cell: XLA sees all 28."""
    units = scaled(128, size)

    def loss(w: Weights, pixels: Array, labels: Array) -> Array:
        output = memory = jnp.zeros((len(pixels), units))
        for row in jnp.split(pixels, 28, 1):
            output, memory = cell(w["gates"], w["biases"], row, output, memory)
        return cross_entropy(output @ w["w"] + w["b"], labels)

    weights = loaded(batches.lstm_shapes(units), given)
    return training(weights, sgd(0.1), loss, forever([batches.images(128)]))


def lstm_fused(size: float, given: Given = None) -> Callable[[], float]:
    """By `lax.scan`, JAX's nearest to a fused op."""

    def loss(w: Weights, pixels: Array, labels: Array) -> Array:
        rows = pixels.reshape(-1, 28, 28).transpose(1, 0, 2)
        output, _ = scanned(w["gates"], w["biases"], rows)
        return cross_entropy(output @ w["w"] + w["b"], labels)

    weights = loaded(batches.lstm_shapes(scaled(128, size)), given)
    return training(weights, sgd(0.1), loss, forever([batches.images(128)]))


def sentences(size: float, given: Given = None) -> Callable[[], float]:
    """By `lax.scan`: `jax.jit` compiles one program for each length."""
    config = Sentences.of(size)

    def loss(w: Weights, words: Array, wanted: Array) -> Array:
        _, outputs = scanned(w["gates"], 0.0, w["words"][words])
        return mean_loss(dense(w, outputs, "logits"), wanted)

    weights = loaded(batches.sentences_shapes(config), given)
    return training(weights, adam(), loss, forever(batches.sentences(config)))


# -- resnet and transformer --------------------------------------------------------------------------------


def resnet(size: float, given: Given = None) -> Callable[[], float]:
    width = scaled(16, size)
    blocks = batches.resnet_blocks(width)

    def normal(w: Weights, x: Array, name: str) -> Array:
        mean, variance = x.mean((0, 1, 2)), x.var((0, 1, 2))
        return (x - mean) * lax.rsqrt(variance + 1e-3) * w[f"{name}/scale"] + w[f"{name}/shift"]

    def loss(w: Weights, pictures: Array, labels: Array) -> Array:
        maps = convolved(pictures, w["first"])
        for name, _, _, stride in blocks:
            inner = relu(normal(w, convolved(maps, w[f"{name}/a"], stride), f"{name}/na"))
            inner = normal(w, convolved(inner, w[f"{name}/b"]), f"{name}/nb")
            around = maps if stride == 1 else convolved(maps, w[f"{name}/around"], 2)
            maps = relu(inner + around)
        return mean_loss(dense(w, maps.mean((1, 2)), "logits"), labels)

    weights = loaded(batches.resnet_shapes(width), given)
    return training(weights, momentum(0.1, 0.9), loss, forever([batches.pictures()]))


def transformer(size: float, given: Given = None, config: Transformer | None = None) -> Callable[[], float]:
    config = config or Transformer.of(size)
    width, heads = config.width, config.heads

    def normal(x: Array, scale: Array) -> Array:
        mean, variance = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
        return (x - mean) * lax.rsqrt(variance + 1e-6) * scale

    def split(x: Array) -> Array:
        return x.reshape(*x.shape[:2], heads, width // heads).transpose(0, 2, 1, 3)

    def dropped(x: Array, key: Array) -> Array:
        if not config.dropout:
            return x
        kept = jax.random.bernoulli(key, 1 - config.dropout, x.shape)
        return jnp.where(kept, x / (1 - config.dropout), 0.0)

    def attention(w: Weights, x: Array, layer: str, key: Array) -> Array:
        query, keys, value = (split(dense(w, x, f"{layer}/{name}")) for name in ("query", "key", "value"))
        shares = jax.nn.softmax(query @ keys.transpose(0, 1, 3, 2) / (width / heads) ** 0.5)
        mixed = (dropped(shares, key) @ value).transpose(0, 2, 1, 3)
        return dense(w, mixed.reshape(x.shape), f"{layer}/joined")

    def loss(w: Weights, words: Array, wanted: Array, number: Array) -> Array:
        state = w["words"][words]
        keys = jax.random.split(jax.random.key(number), config.layers)
        for i, key in enumerate(keys):
            layer = f"layer{i}"
            state += attention(w, normal(state, w[f"{layer}/before"]), layer, key)
            inner = relu(dense(w, normal(state, w[f"{layer}/between"]), f"{layer}/inner"))
            state += dense(w, inner, f"{layer}/outer")
        return mean_loss(dense(w, state, "logits"), wanted)

    # Each step has a number, from which it makes its random numbers.
    numbered = ((*batch, np.int32(i)) for i, batch in enumerate(forever(batches.texts(config))))
    return training(loaded(batches.transformer_shapes(config), given), adam(), loss, numbered)


# -- words -------------------------------------------------------------------------------------------------


def embedding(size: float, rows: int, given: Given = None, sampled: Any = None) -> Callable[[], float]:
    """Sampled softmax. NumPy draws the classes, and only the rows of a batch have gradients.

    `jax.grad` of a whole table would be as large as the table, so the step takes its rows out first and adds their
    updates to the table afterwards.
    """
    config = Embedding.of(rows, size)
    candidates = Candidates(config)

    def loss(some: Weights, labels: Array, drawn: Array, offsets: Array) -> Array:
        count = len(labels)
        biases = some["biases"] - offsets
        right = (some["vectors"] * some["weights"][:count]).sum(1) + biases[:count]
        others = some["vectors"] @ some["weights"][count:].T + biases[count:]
        hits = labels[:, None] == drawn  # the right answer may be among the samples
        others = jnp.where(hits, jnp.finfo(jnp.float32).min, others)
        return -log_softmax(jnp.concatenate([right[:, None], others], 1))[:, 0].mean()

    @functools.partial(jax.jit, donate_argnums=0)
    def update(w: Weights, words: Array, labels: Array, drawn: Array, offsets: Array) -> tuple:
        both = jnp.concatenate([labels, drawn])
        ids = {"vectors": words, "weights": both, "biases": both}
        some = {name: w[name][ids[name]] for name in w}
        value, grads = jax.value_and_grad(loss)(some, labels, drawn, offsets)
        return {name: w[name].at[ids[name]].add(-0.1 * grads[name]) for name in w}, value

    weights = loaded(batches.embedding_shapes(config), given)
    words, following = batches.pairs_of_words(config)
    labels = following[:, 0]

    def step() -> float:
        nonlocal weights
        drawn, tries = sampled or candidates.draw()
        offsets = candidates.log_expected(np.concatenate([labels, drawn]), tries)
        weights, value = update(weights, words, labels, drawn, offsets)
        return float(value)

    return step


def wide_and_deep(size: float, hashed: bool, given: Given = None) -> Callable[[], float]:
    """Words become numbers by CRC-32 in a Python loop (`batches.buckets`), in each step; or come as numbers."""
    config = WideDeep.of(size)
    order = config.in_order()

    def loss(w: Weights, *batch: Array) -> Array:
        *columns, numbers, clicked = batch
        parts = [w[f"input_layer/c{i}_embedding/embedding_weights"][columns[i]] for i in order]
        deep = jnp.concatenate([*parts, numbers], 1)
        for i in range(len(config.layers)):
            deep = relu(dense(w, deep, f"layer{i}"))
        wide = sum(w[f"linear_model/c{i}/weights"][column] for i, column in enumerate(columns))
        logits = dense(w, deep, "logits") + wide + w["linear_model/bias_weights"]
        return (relu(logits) - logits * clicked + jnp.log1p(jnp.exp(-jnp.abs(logits)))).mean()

    weights = loaded(batches.wide_deep_shapes(config), given)
    return training(weights, adagrad(0.05), loss, batches.forever_as_numbers(config, hashed))


WORKS: dict[str, Callable[[float], Callable[[], float]]] = {
    "mlp100": functools.partial(perceptron, units=100, optimizer=sgd(0.01)),
    "mlp100adam": functools.partial(perceptron, units=100, optimizer=adam()),
    "mlp1024": functools.partial(perceptron, units=1024, optimizer=sgd(0.01)),
    "mlp1024adam": functools.partial(perceptron, units=1024, optimizer=adam()),
    "cnn": cnn,
    "embed": functools.partial(embedding, rows=50_000),
    "embed_large": functools.partial(embedding, rows=500_000),
    "lstm": lstm,
    "lstm_fused": lstm_fused,
    "lstm_block": lstm_fused,
    "resnet": resnet,
    "transformer": transformer,
    "wide_deep": functools.partial(wide_and_deep, hashed=False),
    "wide_deep_ids": functools.partial(wide_and_deep, hashed=True),
    "sentences": sentences,
    "start": functools.partial(perceptron, units=100, optimizer=adam()),
}

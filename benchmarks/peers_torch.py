"""The works of works.py in PyTorch, with its default settings: eager, all cores, optimizers of `torch.optim`.

The arithmetic is that of models.py: same shapes, same batches, same updates. Weights have the names of TensorFlow's
variables and PyTorch's layout, so that a test can start all libraries from the same ones. `WORKS` maps the name of a work to
its builder: given the size, one step that returns the loss.

Each step takes NumPy arrays that were made before, as a TensorFlow step takes its feeds, and ends with `item()`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import batches
import numpy as np
import torch
import torch.nn.functional as F
from batches import Arrays, Candidates, Embedding, Sentences, Transformer, WideDeep, forever, scaled
from torch import Tensor

Weights = dict[str, Tensor]
Optimizer = Callable[[Iterable[Tensor]], torch.optim.Optimizer]
#: what a builder may be given instead of weights of its own
Given = Mapping[str, np.ndarray] | None

sgd = functools.partial(torch.optim.SGD, lr=0.01)
fast_sgd = functools.partial(torch.optim.SGD, lr=0.1)
momentum = functools.partial(torch.optim.SGD, lr=0.1, momentum=0.9)
adam = functools.partial(torch.optim.Adam, lr=1e-3)
# TensorFlow's accumulators begin at 0.1.
adagrad = functools.partial(torch.optim.Adagrad, lr=0.05, initial_accumulator_value=0.1)


def loaded(shapes: batches.Shapes, given: Given, tables: Sequence[str] = ()) -> Weights:
    """Weights in PyTorch's layout: a layer's output first. Tables of rows stay as they are."""
    made = {}
    for name, value in (given or batches.weights(shapes)).items():
        if name not in tables:
            value = value.transpose(3, 2, 0, 1) if value.ndim == 4 else value.T
        weight = torch.tensor(np.ascontiguousarray(value))
        if weight.ndim == 4:
            # The layout that PyTorch recommends for convolutions on the CPU; pictures come in it anyway.
            weight = weight.to(memory_format=torch.channels_last)
        made[name] = weight.requires_grad_()
    return made


def training(
    weights: Weights, optimizer: Optimizer, loss: Callable[..., Tensor], following: Iterator[Arrays]
) -> Callable[[], float]:
    """A step that updates the weights and gives the loss, on one batch after the other."""
    update = optimizer([w for w in weights.values() if w.requires_grad])

    def step() -> float:
        update.zero_grad()
        value = loss(weights, *map(torch.from_numpy, next(following)))
        value.backward()
        update.step()
        return value.item()

    return step


def dense(w: Weights, x: Tensor, name: str) -> Tensor:
    return F.linear(x, w[f"{name}/kernel"], w[f"{name}/bias"])


# -- perceptron and LeNet --------------------------------------------------------------------------------


def perceptron(size: float, units: int, optimizer: Optimizer, given: Given = None) -> Callable[[], float]:
    def loss(w: Weights, pixels: Tensor, labels: Tensor) -> Tensor:
        layer = F.relu(F.linear(pixels, w["w1"], w["b1"]))
        return F.cross_entropy(F.linear(layer, w["w2"], w["b2"]), labels)

    weights = loaded(batches.mlp_shapes(scaled(units, size)), given)
    return training(weights, optimizer, loss, forever([batches.images(100)]))


def cnn(size: float, given: Given = None) -> Callable[[], float]:
    def loss(w: Weights, pixels: Tensor, labels: Tensor) -> Tensor:
        maps = pixels.reshape(-1, 1, 28, 28)
        for i in range(2):
            maps = F.max_pool2d(F.relu(F.conv2d(maps, w[f"kernel{i}"], w[f"bias{i}"], padding=2)), 2)
        flat = maps.permute(0, 2, 3, 1).flatten(1)  # channels last, as the weights are ordered
        layer = F.relu(F.linear(flat, w["w1"], w["b1"]))
        return F.cross_entropy(F.linear(layer, w["w2"], w["b2"]), labels)

    shapes = batches.cnn_shapes((scaled(32, size), scaled(64, size)), scaled(512, size))
    return training(loaded(shapes, given), sgd, loss, forever([batches.images(64)]))


# -- recurrent networks ----------------------------------------------------------------------------------


def lstm(size: float, given: Given = None) -> Callable[[], float]:
    """Cell by cell."""
    units = scaled(128, size)

    def loss(w: Weights, pixels: Tensor, labels: Tensor) -> Tensor:
        memory = output = pixels.new_zeros(len(pixels), units)
        for row in pixels.split(28, 1):
            together = F.linear(torch.cat([row, output], 1), w["gates"], w["biases"])
            write, new, keep, show = together.chunk(4, 1)
            memory = memory * torch.sigmoid(keep + 1.0) + torch.sigmoid(write) * torch.tanh(new)
            output = torch.sigmoid(show) * torch.tanh(memory)
        return F.cross_entropy(F.linear(output, w["w"], w["b"]), labels)

    return training(loaded(batches.lstm_shapes(units), given), fast_sgd, loss, forever([batches.images(128)]))


def fused_cell(gates: Tensor, biases: Tensor, inputs: int) -> torch.nn.LSTM:
    """`nn.LSTM` with the weights of ours: its gates come in another order, and the 1 for keeping is in its bias.

    It has two biases. Only one of them is trained: both would move the sum twice as far.
    """
    units = gates.shape[0] // 4
    order = torch.cat([torch.arange(units) + gate * units for gate in (0, 2, 1, 3)])
    cell = torch.nn.LSTM(inputs, units)
    with torch.no_grad():
        cell.weight_ih_l0.copy_(gates[order, :inputs])
        cell.weight_hh_l0.copy_(gates[order, inputs:])
        cell.bias_ih_l0.copy_(biases[order])
        cell.bias_hh_l0.zero_()
        cell.bias_hh_l0[units : 2 * units] = 1.0
    cell.bias_hh_l0.requires_grad_(False)
    return cell


def lstm_fused(size: float, given: Given = None) -> Callable[[], float]:
    """By `nn.LSTM`."""
    weights = loaded(batches.lstm_shapes(scaled(128, size)), given)
    cell = fused_cell(weights.pop("gates"), weights.pop("biases"), 28)
    weights |= dict(cell.named_parameters())

    def loss(w: Weights, pixels: Tensor, labels: Tensor) -> Tensor:
        outputs, _ = cell(pixels.reshape(-1, 28, 28).transpose(0, 1))
        return F.cross_entropy(F.linear(outputs[-1], w["w"], w["b"]), labels)

    return training(weights, fast_sgd, loss, forever([batches.images(128)]))


def sentences(size: float, given: Given = None) -> Callable[[], float]:
    """By `nn.LSTM`, which takes any length. A batch has sentences of one length, so none are padded or packed."""
    config = Sentences.of(size)
    weights = loaded(batches.sentences_shapes(config), given, tables=["words"])
    gates = weights.pop("gates")
    cell = fused_cell(gates, torch.zeros(len(gates)), config.units)
    cell.bias_ih_l0.requires_grad_(False)  # these gates have no biases
    weights |= dict(cell.named_parameters())

    def loss(w: Weights, words: Tensor, wanted: Tensor) -> Tensor:
        outputs, _ = cell(F.embedding(words, w["words"]))
        return F.cross_entropy(dense(w, outputs, "logits").flatten(0, 1), wanted.flatten())

    return training(weights, adam, loss, forever(batches.sentences(config)))


# -- resnet and transformer ------------------------------------------------------------------------------


def resnet(size: float, given: Given = None) -> Callable[[], float]:
    width = scaled(16, size)
    blocks = batches.resnet_blocks(width)

    def convolved(x: Tensor, kernel: Tensor, stride: int = 1) -> Tensor:
        if stride == 1 or kernel.shape[-1] == 1:
            return F.conv2d(x, kernel, stride=stride, padding=kernel.shape[-1] // 2)
        # TensorFlow's SAME pads an even picture below and at the right only.
        return F.conv2d(F.pad(x, (0, 1, 0, 1)), kernel, stride=stride)

    def normal(w: Weights, x: Tensor, name: str) -> Tensor:
        scale, shift = w[f"{name}/scale"], w[f"{name}/shift"]
        return F.batch_norm(x, None, None, scale, shift, training=True, eps=1e-3)

    def loss(w: Weights, pictures: Tensor, labels: Tensor) -> Tensor:
        maps = convolved(pictures.permute(0, 3, 1, 2), w["first"])
        for name, _, _, stride in blocks:
            inner = F.relu(normal(w, convolved(maps, w[f"{name}/a"], stride), f"{name}/na"))
            inner = normal(w, convolved(inner, w[f"{name}/b"]), f"{name}/nb")
            around = maps if stride == 1 else convolved(maps, w[f"{name}/around"], 2)
            maps = F.relu(inner + around)
        return F.cross_entropy(dense(w, maps.mean((2, 3)), "logits"), labels)

    return training(
        loaded(batches.resnet_shapes(width), given), momentum, loss, forever([batches.pictures()])
    )


def transformer(size: float, given: Given = None, config: Transformer | None = None) -> Callable[[], float]:
    config = config or Transformer.of(size)
    width, heads = config.width, config.heads

    def split(x: Tensor) -> Tensor:
        return x.unflatten(-1, (heads, width // heads)).transpose(1, 2)

    def attention(w: Weights, x: Tensor, layer: str) -> Tensor:
        query, key, value = (split(dense(w, x, f"{layer}/{name}")) for name in ("query", "key", "value"))
        shares = F.softmax(query @ key.transpose(-1, -2) / (width / heads) ** 0.5, -1)
        mixed = F.dropout(shares, config.dropout) @ value
        return dense(w, mixed.transpose(1, 2).flatten(2), f"{layer}/joined")

    def loss(w: Weights, words: Tensor, wanted: Tensor) -> Tensor:
        state = F.embedding(words, w["words"])
        for layer in (f"layer{i}" for i in range(config.layers)):
            state = state + attention(
                w, F.layer_norm(state, (width,), w[f"{layer}/before"], None, 1e-6), layer
            )
            seen = F.layer_norm(state, (width,), w[f"{layer}/between"], None, 1e-6)
            state = state + dense(w, F.relu(dense(w, seen, f"{layer}/inner")), f"{layer}/outer")
        return F.cross_entropy(dense(w, state, "logits").flatten(0, 1), wanted.flatten())

    weights = loaded(batches.transformer_shapes(config), given, tables=["words"])
    return training(weights, adam, loss, forever(batches.texts(config)))


# -- words -----------------------------------------------------------------------------------------------


def embedding(size: float, rows: int, given: Given = None, sampled: Any = None) -> Callable[[], float]:
    """Sampled softmax; only the rows of a batch have gradients (`sparse=True`). NumPy draws the classes."""
    config = Embedding.of(rows, size)
    shapes = batches.embedding_shapes(config)
    start = dict(given or batches.weights(shapes))
    start["biases"] = start["biases"][:, None]  # a table of rows for F.embedding
    weights = loaded(shapes, start, tables=list(shapes))
    candidates = Candidates(config)

    def loss(w: Weights, words: Tensor, following: Tensor) -> Tensor:
        labels = following[:, 0]
        drawn, tries = sampled or candidates.draw()
        both = torch.cat([labels, torch.from_numpy(drawn)])
        offsets = torch.from_numpy(candidates.log_expected(both.numpy(), tries))
        vectors = F.embedding(words, w["vectors"], sparse=True)
        rows_of = F.embedding(both, w["weights"], sparse=True)
        biases = F.embedding(both, w["biases"], sparse=True)[:, 0] - offsets
        count = len(labels)
        right = (vectors * rows_of[:count]).sum(1) + biases[:count]
        others = vectors @ rows_of[count:].T + biases[count:]
        hits = labels[:, None] == both[count:]  # the right answer may be among the samples
        others = others.masked_fill(hits, torch.finfo(torch.float32).min)
        logits = torch.cat([right[:, None], others], 1)
        return F.cross_entropy(logits, torch.zeros(count, dtype=torch.int64))

    return training(weights, fast_sgd, loss, forever([batches.pairs_of_words(config)]))


def wide_and_deep(size: float, hashed: bool, given: Given = None) -> Callable[[], float]:
    """Words become numbers by CRC-32 in a Python loop (`batches.buckets`), in each step; or come as numbers.

    Gradients of the tables are dense, PyTorch's default: at this size a step takes 7.3 ms, with sparse ones 8.1 ms.
    """
    config = WideDeep.of(size)
    embedded = [f"input_layer/c{i}_embedding/embedding_weights" for i in range(config.columns)]
    weighed = [f"linear_model/c{i}/weights" for i in range(config.columns)]
    order = config.in_order()
    weights = loaded(batches.wide_deep_shapes(config), given, tables=embedded + weighed)

    def loss(w: Weights, *batch: Tensor) -> Tensor:
        *columns, numbers, clicked = batch
        parts = [F.embedding(columns[i], w[embedded[i]]) for i in order]
        deep = torch.cat([*parts, numbers], 1)
        for i in range(len(config.layers)):
            deep = F.relu(dense(w, deep, f"layer{i}"))
        wide = sum(F.embedding(c, w[name]) for c, name in zip(columns, weighed, strict=True))
        logits = dense(w, deep, "logits") + wide + w["linear_model/bias_weights"]
        return F.binary_cross_entropy_with_logits(logits, clicked)

    return training(weights, adagrad, loss, batches.forever_as_numbers(config, hashed))


WORKS: dict[str, Callable[[float], Callable[[], float]]] = {
    "mlp100": functools.partial(perceptron, units=100, optimizer=sgd),
    "mlp100adam": functools.partial(perceptron, units=100, optimizer=adam),
    "mlp1024": functools.partial(perceptron, units=1024, optimizer=sgd),
    "mlp1024adam": functools.partial(perceptron, units=1024, optimizer=adam),
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
    "start": functools.partial(perceptron, units=100, optimizer=adam),
}

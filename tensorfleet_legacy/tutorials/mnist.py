"""`tf.examples.tutorials.mnist.mnist`: the tutorial's network of two hidden layers."""

from __future__ import annotations

import math
from typing import Any

from tensorfleet.base.naming import export, find, publish
from tensorfleet.graph.operation import Tensor

_PATH = "examples.tutorials.mnist.mnist"
NUM_CLASSES = 10
IMAGE_SIZE = 28
IMAGE_PIXELS = IMAGE_SIZE * IMAGE_SIZE

publish(NUM_CLASSES, f"{_PATH}.NUM_CLASSES")
publish(IMAGE_SIZE, f"{_PATH}.IMAGE_SIZE")
publish(IMAGE_PIXELS, f"{_PATH}.IMAGE_PIXELS")


@export(f"{_PATH}.inference")
def inference(images: Any, hidden1_units: int, hidden2_units: int) -> Tensor:
    """The logits of a batch of images, one row of pixels each."""
    relu = find("nn.relu")
    hidden1 = relu(_layer("hidden1", images, IMAGE_PIXELS, hidden1_units))
    hidden2 = relu(_layer("hidden2", hidden1, hidden1_units, hidden2_units))
    return _layer("softmax_linear", hidden2, hidden2_units, NUM_CLASSES)


def _layer(name: str, inputs: Any, fan_in: int, units: int) -> Tensor:
    variable = find("Variable")
    with find("name_scope")(name):
        start = find("truncated_normal")([fan_in, units], stddev=1.0 / math.sqrt(float(fan_in)))
        weights = variable(start, name="weights")
        biases = variable(find("zeros")([units]), name="biases")
        return find("matmul")(inputs, weights) + biases


@export(f"{_PATH}.loss")
def loss(logits: Any, labels: Any) -> Tensor:
    """The mean cross entropy of logits and class numbers."""
    labels = find("cast")(labels, find("int64"))
    return find("losses.sparse_softmax_cross_entropy")(labels=labels, logits=logits)


@export(f"{_PATH}.training")
def training(loss: Any, learning_rate: float) -> Any:
    """An operation that makes one step of gradient descent and counts it."""
    find("summary.scalar")("loss", loss)
    optimizer = find("train.GradientDescentOptimizer")(learning_rate)
    global_step = find("Variable")(0, name="global_step", trainable=False)
    return optimizer.minimize(loss, global_step=global_step)


@export(f"{_PATH}.evaluation")
def evaluation(logits: Any, labels: Any) -> Tensor:
    """How many of a batch were classified right."""
    correct = find("nn.in_top_k")(logits, labels, 1)
    return find("reduce_sum")(find("cast")(correct, find("int32")))

"""`tf.keras.backend`: functions of one operation, with the arguments that Keras gives them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tensorfleet import dtypes
from tensorfleet.api import find
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Tensor
from tensorfleet.keras.state import floatx


def _named(name: str, what: str) -> Callable[[Any], Tensor]:
    """A function of one tensor."""

    def call(x: Any) -> Tensor:
        return find(name)(x)

    call.__name__, call.__doc__ = name.rpartition(".")[2], what
    return call


abs = _named("abs", "Numbers without their signs.")
cos = _named("cos", "Cosines.")
exp = _named("exp", "e to the power of the numbers.")
log = _named("log", "Natural logarithms.")
round = _named("round", "The nearest integers, of two the even one.")
shape = _named("shape", "The shape as a tensor.")
sigmoid = _named("sigmoid", "1 / (1 + exp(-x)).")
sign = _named("sign", "-1, 0 or 1.")
sin = _named("sin", "Sines.")
softplus = _named("nn.softplus", "log(exp(x) + 1).")
softsign = _named("nn.softsign", "x / (abs(x) + 1).")
square = _named("square", "Squares.")
tanh = _named("tanh", "Hyperbolic tangents.")
transpose = _named("transpose", "The tensor with its dimensions the other way round.")


def sqrt(x: Any) -> Tensor:
    """Square roots, zero of what is negative."""
    x = to_tensor(x)
    return find("sqrt")(find("clip_by_value")(x, to_tensor(0.0, x.dtype), to_tensor(np.inf, x.dtype)))


def pow(x: Any, a: Any) -> Tensor:
    """The numbers to a power."""
    return find("pow")(x, a)


def cast(x: Any, dtype: Any) -> Tensor:
    """The numbers in another type."""
    return find("cast")(x, dtype)


def _reduced(name: str, what: str) -> Callable[..., Tensor]:
    def call(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
        return find(f"reduce_{name}")(x, axis, keepdims)

    call.__name__, call.__doc__ = name, what
    return call


max = _reduced("max", "The largest numbers along dimensions.")
min = _reduced("min", "The smallest numbers along dimensions.")
sum = _reduced("sum", "Sums along dimensions.")
prod = _reduced("prod", "Products along dimensions.")


def mean(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Means along dimensions; of truth values the shares of the true ones."""
    x = to_tensor(x)
    x = find("cast")(x, floatx()) if x.dtype.base_dtype == dtypes.bool_ else x
    return find("reduce_mean")(x, axis, keepdims)


def argmax(x: Any, axis: int = -1) -> Tensor:
    """Where the largest number along a dimension is."""
    return find("argmax")(x, axis)


def argmin(x: Any, axis: int = -1) -> Tensor:
    """Where the smallest number along a dimension is."""
    return find("argmin")(x, axis)


def cumsum(x: Any, axis: int = 0) -> Tensor:
    """Sums of all numbers so far along a dimension."""
    return find("cumsum")(x, axis=axis)


def cumprod(x: Any, axis: int = 0) -> Tensor:
    """Products of all numbers so far along a dimension."""
    return find("cumprod")(x, axis=axis)


def l2_normalize(x: Any, axis: Any = None) -> Tensor:
    """The numbers divided by their norm along a dimension."""
    return find("nn.l2_normalize")(x, axis=axis)


def gather(reference: Any, indices: Any) -> Tensor:
    """Rows of a tensor."""
    return find("gather")(reference, indices)


def reshape(x: Any, shape: Any) -> Tensor:
    """The same numbers in another shape."""
    return find("reshape")(x, shape)


def permute_dimensions(x: Any, pattern: Any) -> Tensor:
    """The tensor with its dimensions in another order."""
    return find("transpose")(x, pattern)


def tile(x: Any, n: Any) -> Tensor:
    """The tensor several times along each dimension."""
    return find("tile")(x, [n] if isinstance(n, int) else n)


def expand_dims(x: Any, axis: int = -1) -> Tensor:
    """The tensor with one more dimension of 1, by default at the end."""
    return find("expand_dims")(x, axis)


def stack(x: Any, axis: int = 0) -> Tensor:
    """Several tensors in one, along a new dimension."""
    return find("stack")(x, axis=axis)


def one_hot(indices: Any, num_classes: int) -> Tensor:
    """A row for each index, with a one in its place."""
    return find("one_hot")(indices, num_classes, axis=-1)


def reverse(x: Any, axes: Any) -> Tensor:
    """The tensor backwards along some dimensions."""
    return find("reverse")(x, [axes] if isinstance(axes, int) else axes)


def stop_gradient(variables: Any) -> Any:
    """The same values, which count as constants for gradients; of a list, an iterator over each."""
    if isinstance(variables, (list, tuple)):
        return map(find("stop_gradient"), variables)
    return find("stop_gradient")(variables)


def map_fn(fn: Callable, elems: Any, name: str | None = None, dtype: Any = None) -> Any:
    """What a function gives for each row."""
    return find("map_fn")(fn, elems, name=name, dtype=dtype)


def _probabilities(output: Any, made_by: str) -> tuple[Tensor, bool]:
    """What a loss takes: the logits, where probabilities were just made of them, else clipped probabilities."""
    output = to_tensor(output)
    if output.op.type == made_by:
        return output.op.inputs[0], True
    return output, False


def _clipped(output: Tensor) -> Tensor:
    small = find("keras.backend.epsilon")()
    return find("clip_by_value")(output, to_tensor(small, output.dtype), to_tensor(1.0 - small, output.dtype))


def binary_crossentropy(target: Any, output: Any, from_logits: bool = False) -> Tensor:
    """The cross entropy of each yes-or-no answer."""
    output, found = _probabilities(output, "Sigmoid") if not from_logits else (output, True)
    if found:
        return find("nn.sigmoid_cross_entropy_with_logits")(labels=target, logits=output)
    safe, small, log_of = _clipped(output), find("keras.backend.epsilon")(), find("log")
    return -(target * log_of(safe + small) + (1 - target) * log_of(1 - safe + small))


def categorical_crossentropy(target: Any, output: Any, from_logits: bool = False, axis: int = -1) -> Tensor:
    """The cross entropy of classes, given as rows of probabilities."""
    output, found = _probabilities(output, "Softmax") if not from_logits else (output, True)
    if found:
        return find("nn.softmax_cross_entropy_with_logits_v2")(labels=target, logits=output, axis=axis)
    safe = _clipped(output / find("reduce_sum")(output, axis, keepdims=True))
    return -find("reduce_sum")(target * find("log")(safe), axis)


def sparse_categorical_crossentropy(
    target: Any, output: Any, from_logits: bool = False, axis: int = -1
) -> Tensor:
    """The cross entropy of classes, given as numbers."""
    output, found = _probabilities(output, "Softmax") if not from_logits else (to_tensor(output), True)
    logits = output if found else find("log")(_clipped(output))
    labels = find("cast")(target, dtypes.int64)
    rank, labels_rank = logits.shape.ndims, labels.shape.ndims
    if axis not in (-1, (rank or 0) - 1):
        order = [a for a in range(rank or 0) if a != axis % (rank or 1)]
        logits = find("transpose")(logits, [*order, axis % (rank or 1)])
    if rank is not None and labels_rank == rank:
        labels = find("squeeze")(labels, [-1])
    return find("nn.sparse_softmax_cross_entropy_with_logits")(labels=labels, logits=logits)

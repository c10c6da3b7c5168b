"""The functions of `tf.keras.backend` that are the graph's own under other arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorfleet.base import dtypes
from tensorfleet.base.arguments import function, signature_of
from tensorfleet.base.naming import find
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Tensor
from tensorfleet_legacy.keras import backend as state

# -- of each element --------------------------------------------------------------------------------------


def _of_one(name: str, inner: str, does: str) -> Callable:
    def body(given: dict[str, Any]) -> Tensor:
        return find(inner)(given["x"])

    return function(signature_of("x"), name, body, does)


def _of_two(name: str, does: str) -> Callable:
    def body(given: dict[str, Any]) -> Tensor:
        return find(name)(given["x"], given["y"])

    return function(signature_of("x, y"), name, body, does)


abs = _of_one("abs", "abs", "The size of each element.")
cos = _of_one("cos", "cos", "The cosine.")
exp = _of_one("exp", "exp", "e to the x.")
log = _of_one("log", "log", "The natural logarithm.")
round = _of_one("round", "round", "The nearest whole number.")
sigmoid = _of_one("sigmoid", "nn.sigmoid", "`1 / (1 + exp(-x))`.")
sign = _of_one("sign", "sign", "-1, 0 or 1.")
sin = _of_one("sin", "sin", "The sine.")
softplus = _of_one("softplus", "nn.softplus", "`log(exp(x) + 1)`.")
softsign = _of_one("softsign", "nn.softsign", "`x / (abs(x) + 1)`.")
square = _of_one("square", "square", "The square.")
tanh = _of_one("tanh", "nn.tanh", "The hyperbolic tangent.")
selu = _of_one("selu", "nn.selu", "A scaled `elu` that keeps means and deviations.")
shape = _of_one("shape", "shape", "The shape, as a tensor.")
transpose = _of_one("transpose", "transpose", "The axes in the opposite order.")
equal = _of_two("equal", "Whether elements are equal.")
not_equal = _of_two("not_equal", "Whether elements differ.")
greater = _of_two("greater", "Whether elements of the first are greater.")
greater_equal = _of_two("greater_equal", "Whether elements of the first are greater or equal.")
less = _of_two("less", "Whether elements of the first are less.")
less_equal = _of_two("less_equal", "Whether elements of the first are less or equal.")
maximum = _of_two("maximum", "The greater of each pair.")
minimum = _of_two("minimum", "The less of each pair.")


def sqrt(x: Any) -> Tensor:
    """The square root, of zero for what is below it."""
    x = to_tensor(x)
    return find("sqrt")(find("maximum")(x, find("cast")(0.0, x.dtype.base_dtype)))


def pow(x: Any, a: Any) -> Tensor:
    """Elements to a power."""
    return find("pow")(x, a)


def cast(x: Any, dtype: Any) -> Tensor:
    """A tensor in another type."""
    return find("cast")(x, dtype)


def identity(x: Any, name: str | None = None) -> Tensor:
    """A tensor with the same elements."""
    return find("identity")(x, name=name)


def l2_normalize(x: Any, axis: Any = None) -> Tensor:
    """Vectors of length one, along an axis."""
    return find("nn.l2_normalize")(x, axis=axis)


# -- over axes --------------------------------------------------------------------------------------------


def _numbers(x: Any) -> Tensor:
    """A tensor, of Keras's type if it says what is true."""
    x = to_tensor(x)
    return find("cast")(x, state.floatx()) if x.dtype.base_dtype == dtypes.bool_ else x


def sum(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The sum."""
    return find("reduce_sum")(x, axis, keepdims)


def prod(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The product."""
    return find("reduce_prod")(x, axis, keepdims)


def max(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The greatest."""
    return find("reduce_max")(x, axis, keepdims)


def min(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The least."""
    return find("reduce_min")(x, axis, keepdims)


def mean(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The mean; of what is true or false, the share that is true."""
    return find("reduce_mean")(_numbers(x), axis, keepdims)


def var(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The variance."""
    x = _numbers(x)
    middle = find("reduce_mean")(x, axis, keepdims=True)
    return find("reduce_mean")(find("square")(x - middle), axis, keepdims=keepdims)


def std(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The standard deviation."""
    return find("sqrt")(var(x, axis, keepdims))


def logsumexp(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The logarithm of the sum of exponentials."""
    return find("reduce_logsumexp")(x, axis, keepdims)


def any(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Whether any element is true."""
    return find("reduce_any")(find("cast")(x, "bool"), axis, keepdims=keepdims)


def all(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Whether all elements are true."""
    return find("reduce_all")(find("cast")(x, "bool"), axis, keepdims=keepdims)


def argmax(x: Any, axis: int = -1) -> Tensor:
    """Where the greatest is."""
    return find("argmax")(x, axis)


def argmin(x: Any, axis: int = -1) -> Tensor:
    """Where the least is."""
    return find("argmin")(x, axis)


def cumsum(x: Any, axis: int = 0) -> Tensor:
    """The sums up to each element."""
    return find("cumsum")(x, axis=axis)


def cumprod(x: Any, axis: int = 0) -> Tensor:
    """The products up to each element."""
    return find("cumprod")(x, axis=axis)


# -- shapes and places ------------------------------------------------------------------------------------


def expand_dims(x: Any, axis: int = -1) -> Tensor:
    """A tensor with one more axis."""
    return find("expand_dims")(x, axis)


def reshape(x: Any, shape: Any) -> Tensor:
    """The same elements in another shape."""
    return find("reshape")(x, shape)


def permute_dimensions(x: Any, pattern: Any) -> Tensor:
    """The axes in another order."""
    return find("transpose")(x, perm=pattern)


def reverse(x: Any, axes: Any) -> Tensor:
    """Elements in the opposite order along axes."""
    return find("reverse")(x, [axes] if isinstance(axes, int) else axes)


def tile(x: Any, n: Any) -> Tensor:
    """A tensor several times along its axes."""
    return find("tile")(x, [n] if isinstance(n, int) else n)


def stack(x: Any, axis: int = 0) -> Tensor:
    """Tensors of one shape as one with one more axis."""
    return find("stack")(x, axis=axis)


def gather(reference: Any, indices: Any) -> Tensor:
    """Rows by their numbers."""
    return find("gather")(reference, indices)


def one_hot(indices: Any, num_classes: int) -> Tensor:
    """Numbers as rows with a single one."""
    return find("one_hot")(indices, depth=num_classes, axis=-1)


def stop_gradient(variables: Any) -> Any:
    """Tensors through which no gradient flows."""
    if isinstance(variables, (list, tuple)):
        return [find("stop_gradient")(v) for v in variables]
    return find("stop_gradient")(variables)


def map_fn(fn: Callable, elems: Any, name: str | None = None, dtype: Any = None) -> Any:
    """A function of each element along the first axis."""
    return find("map_fn")(fn, elems, name=name, dtype=dtype)


# -- cross entropies, of each element or row ---------------------------------------------------------------


def _behind(output: Tensor, kind: str) -> Tensor | None:
    """What a softmax or a sigmoid was taken of: its cross entropy is exact where the probabilities are not."""
    return output.op.inputs[0] if output.op.type == kind else None


def _clipped(x: Tensor) -> Tensor:
    return find("clip_by_value")(x, state.epsilon(), 1.0 - state.epsilon())


def binary_crossentropy(target: Any, output: Any, from_logits: bool = False) -> Tensor:
    """The cross entropy of each yes-or-no answer."""
    output = to_tensor(output)
    target = find("cast")(target, output.dtype.base_dtype)
    logits = output if from_logits else _behind(output, "Sigmoid")
    if logits is not None:
        return find("nn.sigmoid_cross_entropy_with_logits")(labels=target, logits=logits)
    safe, small = _clipped(output), state.epsilon()
    logarithm = find("log")
    return -(target * logarithm(safe + small) + (1 - target) * logarithm(1 - safe + small))


def categorical_crossentropy(target: Any, output: Any, from_logits: bool = False, axis: int = -1) -> Tensor:
    """The cross entropy of classes, given as rows of probabilities."""
    output = to_tensor(output)
    target = find("cast")(target, output.dtype.base_dtype)
    logits = output if from_logits else _behind(output, "Softmax")
    if logits is not None:
        return find("nn.softmax_cross_entropy_with_logits_v2")(labels=target, logits=logits, axis=axis)
    output = _clipped(output / find("reduce_sum")(output, axis, keepdims=True))
    return -find("reduce_sum")(target * find("log")(output), axis)


def sparse_categorical_crossentropy(
    target: Any, output: Any, from_logits: bool = False, axis: int = -1
) -> Tensor:
    """The cross entropy of classes, given as numbers."""
    output = to_tensor(output)
    logits = output if from_logits else _behind(output, "Softmax")
    if logits is None:
        logits = find("log")(_clipped(output))
    labels, rank = find("cast")(target, dtypes.int64), logits.shape.ndims
    if rank is not None and axis % rank != rank - 1:
        logits = find("transpose")(logits, [*(a for a in range(rank) if a != axis % rank), axis % rank])
    elif rank is None and axis != -1:
        raise ValueError(
            f"Cannot compute sparse categorical crossentropy with `axis={axis}` on an output tensor with unknown rank"
        )
    entropy, shape = find("nn.sparse_softmax_cross_entropy_with_logits"), find("shape")(logits)
    if rank is None or labels.shape.ndims in (None, rank - 1):
        return entropy(labels=labels, logits=logits)
    flat = entropy(labels=find("reshape")(labels, [-1]), logits=find("reshape")(logits, [-1, shape[-1]]))
    return find("reshape")(flat, shape[:-1]) if rank >= 3 else flat

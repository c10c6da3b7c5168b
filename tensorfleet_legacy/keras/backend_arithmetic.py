"""The functions of `tf.keras.backend` that are the graph's own under other arguments."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from tensorfleet.base import dtypes
from tensorfleet.base.arguments import function, signature_of
from tensorfleet.base.naming import find
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Tensor
from tensorfleet_legacy.keras import backend as state
from tensorfleet_legacy.quick_arguments import binder

# -- of each element --------------------------------------------------------------------------------------


def forwarding(name: str, arguments: str, inner: str, does: str) -> Callable[..., Any]:
    """A function that gives its arguments, in their order, to one of the graph's."""
    own = signature_of(arguments)
    bind = binder(own, name)

    @functools.wraps(function(own, name, lambda given: given, does))
    def forward(*args: Any, **kwargs: Any) -> Any:
        return find(inner)(*bind(args, kwargs).values())

    return forward


abs = forwarding("abs", "x", "abs", "The size of each element.")
cos = forwarding("cos", "x", "cos", "The cosine.")
exp = forwarding("exp", "x", "exp", "e to the x.")
log = forwarding("log", "x", "log", "The natural logarithm.")
round = forwarding("round", "x", "round", "The nearest whole number.")
sigmoid = forwarding("sigmoid", "x", "nn.sigmoid", "`1 / (1 + exp(-x))`.")
sign = forwarding("sign", "x", "sign", "-1, 0 or 1.")
sin = forwarding("sin", "x", "sin", "The sine.")
softplus = forwarding("softplus", "x", "nn.softplus", "`log(exp(x) + 1)`.")
softsign = forwarding("softsign", "x", "nn.softsign", "`x / (abs(x) + 1)`.")
square = forwarding("square", "x", "square", "The square.")
tanh = forwarding("tanh", "x", "nn.tanh", "The hyperbolic tangent.")
selu = forwarding("selu", "x", "nn.selu", "A scaled `elu` that keeps means and deviations.")
shape = forwarding("shape", "x", "shape", "The shape, as a tensor.")
transpose = forwarding("transpose", "x", "transpose", "The axes in the opposite order.")
equal = forwarding("equal", "x, y", "equal", "Whether elements are equal.")
not_equal = forwarding("not_equal", "x, y", "not_equal", "Whether elements differ.")
greater = forwarding("greater", "x, y", "greater", "Whether elements of the first are greater.")
greater_equal = forwarding(
    "greater_equal", "x, y", "greater_equal", "Whether elements of the first are greater or equal."
)
less = forwarding("less", "x, y", "less", "Whether elements of the first are less.")
less_equal = forwarding(
    "less_equal", "x, y", "less_equal", "Whether elements of the first are less or equal."
)
maximum = forwarding("maximum", "x, y", "maximum", "The greater of each pair.")
minimum = forwarding("minimum", "x, y", "minimum", "The less of each pair.")
pow = forwarding("pow", "x, a", "pow", "Elements to a power.")
cast = forwarding("cast", "x, dtype", "cast", "A tensor in another type.")
identity = forwarding("identity", "x, name=None", "identity", "A tensor with the same elements.")
l2_normalize = forwarding(
    "l2_normalize", "x, axis=None", "nn.l2_normalize", "Vectors of length one, along an axis."
)


def sqrt(x: Any) -> Tensor:
    """The square root, of zero for what is below it."""
    x = to_tensor(x)
    return find("sqrt")(find("maximum")(x, find("cast")(0.0, x.dtype.base_dtype)))


# -- over axes --------------------------------------------------------------------------------------------

_AXES = "x, axis=None, keepdims=False"
argmax = forwarding("argmax", "x, axis=-1", "argmax", "Where the greatest is.")
argmin = forwarding("argmin", "x, axis=-1", "argmin", "Where the least is.")
cumsum = forwarding("cumsum", "x, axis=0", "cumsum", "The sums up to each element.")
cumprod = forwarding("cumprod", "x, axis=0", "cumprod", "The products up to each element.")
sum = forwarding("sum", _AXES, "reduce_sum", "The sum.")
prod = forwarding("prod", _AXES, "reduce_prod", "The product.")
max = forwarding("max", _AXES, "reduce_max", "The greatest.")
min = forwarding("min", _AXES, "reduce_min", "The least.")
logsumexp = forwarding("logsumexp", _AXES, "reduce_logsumexp", "The logarithm of the sum of exponentials.")


def _numbers(x: Any) -> Tensor:
    """A tensor, of Keras's type if it says what is true."""
    x = to_tensor(x)
    return find("cast")(x, state.floatx()) if x.dtype.base_dtype == dtypes.bool_ else x


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


def any(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Whether any element is true."""
    return find("reduce_any")(find("cast")(x, "bool"), axis, keepdims=keepdims)


def all(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Whether all elements are true."""
    return find("reduce_all")(find("cast")(x, "bool"), axis, keepdims=keepdims)


# -- shapes and places ------------------------------------------------------------------------------------

expand_dims = forwarding("expand_dims", "x, axis=-1", "expand_dims", "A tensor with one more axis.")
reshape = forwarding("reshape", "x, shape", "reshape", "The same elements in another shape.")
stack = forwarding("stack", "x, axis=0", "stack", "Tensors of one shape as one with one more axis.")
gather = forwarding("gather", "reference, indices", "gather", "Rows by their numbers.")
permute_dimensions = forwarding("permute_dimensions", "x, pattern", "transpose", "The axes in another order.")


def reverse(x: Any, axes: Any) -> Tensor:
    """Elements in the opposite order along axes."""
    return find("reverse")(x, [axes] if isinstance(axes, int) else axes)


def tile(x: Any, n: Any) -> Tensor:
    """A tensor several times along its axes."""
    return find("tile")(x, [n] if isinstance(n, int) else n)


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
    """The logits of a softmax or sigmoid: their cross entropy is exact where that of the probabilities is not."""
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

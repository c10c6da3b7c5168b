"""`tf.contrib.quantize`: rewrites a graph so that it computes as with numbers of eight bits.

After Jacob et al. 2018: batch normalizations become part of the weights before them; weights are rounded to the range they
have, activations to a moving average of theirs. Gradients pass the rounding.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from tensorfleet.api.train.moving_averages import assign_moving_average
from tensorfleet.base.naming import export, find
from tensorfleet.graph.apply import apply_any
from tensorfleet.graph.operation import Operation, Tensor

_LAYERS = {"Conv2D", "DepthwiseConv2dNative", "MatMul"}
_BIASES, _ACTIVATIONS = {"BiasAdd", "Add", "AddV2"}, {"Relu", "Relu6", "Identity"}
_NORMS = {"FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3"}
_DECAY = 0.999


@dataclass
class _Options:
    """How a graph is rewritten."""

    training: bool
    weight_bits: int = 8
    activation_bits: int = 8
    symmetric: bool = False
    quant_delay: int | None = None
    scope: str | None = None


@dataclass
class _Layer:
    """A layer's operation, and those that follow it, where they do."""

    op: Operation
    norm: Operation | None
    last: Operation

    @property
    def scope(self) -> str:
        return self.op.name.rpartition("/")[0]


def _is_variable(tensor: Tensor) -> bool:
    """Whether a tensor is the value of a variable, read or passed on."""
    op = tensor.op
    while op.type in ("Identity", "ReadVariableOp") and op.inputs:
        op = op.inputs[0].op
    return op.type in ("VariableV2", "Variable", "VarHandleOp")


def _next(op: Operation, types: set[str]) -> Operation | None:
    """The one operation of some types that takes the first output of another."""
    items = [c for c in op.outputs[0].consumers() if c.type in types and c.inputs[0] is op.outputs[0]]
    return items[0] if len(items) == 1 else None


def _layers(graph: Any, scope: str | None) -> Iterator[_Layer]:
    for op in graph.get_operations():
        if op.type not in _LAYERS or not _is_variable(op.inputs[1]):
            continue
        if scope and not op.name.startswith(scope if scope.endswith("/") else f"{scope}/"):
            continue
        norm = _next(op, _NORMS)
        bias = _next(op, _BIASES)
        last = norm or (bias if bias is not None and _is_variable(bias.inputs[1]) else op)
        yield _Layer(op, norm, _next(last, _ACTIVATIONS) or last)


def _reroute(old: Tensor, new: Tensor, users: list[Operation]) -> None:
    """Gives operations another input."""
    for op in users:
        for place, tensor in enumerate(op.inputs):
            if tensor is old:
                op._update_input(place, new)


@contextmanager
def _named(layer: _Layer, what: str) -> Iterator[None]:
    title = f"{layer.scope}/{what}" if layer.scope else what
    scope = find("variable_scope")
    with scope("", reuse=False, auxiliary_name_scope=False), scope(None, default_name=title):
        yield


def _limits(x: Tensor, options: _Options, moving: bool, bits: int, narrow: bool) -> tuple[Any, Any]:
    """The range to round to; in training it is brought up to date first."""

    def variable(name: str, start: float) -> Any:
        initial = find("constant_initializer")(start)
        return find("get_variable")(name, [], initializer=initial, trainable=False)

    low, high = variable("min", -6.0), variable("max", 6.0)
    if not options.training:
        return low, high
    least = find("minimum")(find("reduce_min")(x), 0.0)
    most = find("maximum")(find("reduce_max")(x), 0.0)
    if options.symmetric:
        ratio = -1.0 if narrow else -(2.0**bits) / (2.0**bits - 2)
        least, most = find("minimum")(least, most * ratio), find("maximum")(most, least / ratio)
    if moving:
        return (
            assign_moving_average(low, least, _DECAY, name="AssignMinEma"),
            assign_moving_average(high, most, _DECAY, name="AssignMaxEma"),
        )
    return find("assign")(low, least, name="AssignMinLast"), find("assign")(high, most, name="AssignMaxLast")


def _rounded(layer: _Layer, x: Tensor, what: str, options: _Options) -> Tensor:
    """A tensor as it is with few bits, once the delay is over."""
    moving, narrow = what == "act_quant", what == "weights_quant"
    bits = options.activation_bits if moving else options.weight_bits
    with _named(layer, what):
        low, high = _limits(x, options, moving, bits, narrow)
        result = find("fake_quant_with_min_max_vars")(x, low, high, bits, narrow)
        if options.quant_delay:
            step = find("train.get_or_create_global_step")()
            begun = find("greater_equal")(step, options.quant_delay, name="activate_quant")
            result = find("cond")(begun, lambda: result, lambda: x, name="delayed_quant")
            result.set_shape(x.shape)
    return result


def _statistics(norm: Operation) -> tuple[Tensor, Tensor]:
    """The mean and the variance that a normalization uses."""
    x = norm.inputs[0]
    if not norm.get_attr("is_training"):
        return norm.inputs[3], norm.inputs[4]
    # The variance it gives is meant for moving averages, of all batches.
    count = find("cast")(find("size")(x) // find("size")(norm.outputs[1]), x.dtype.base_dtype)
    return norm.outputs[1], norm.outputs[2] * (count - 1) / count


def _fold(layer: _Layer, options: _Options) -> None:
    """Puts a normalization into rounded weights of a layer of its own, whose output takes its place."""
    op, norm = layer.op, layer.norm
    assert norm is not None
    users = norm.outputs[0].consumers()
    with find("name_scope")(f"{layer.scope}/fold" if layer.scope else "fold") as inside:
        mean, variance = _statistics(norm)
        times = norm.inputs[1] * find("rsqrt")(variance + norm.get_attr("epsilon"))
        shift = norm.inputs[2] - mean * times
        weights = op.inputs[1]
        wide = op.type == "DepthwiseConv2dNative"
        scaled = weights * (find("reshape")(times, weights.shape.as_list()[2:]) if wide else times)
    scaled = _rounded(layer, scaled, "weights_quant", options)
    with find("name_scope")(inside):
        kept = ("strides", "padding", "data_format", "dilations", "transpose_a", "transpose_b")
        attributes = {name: op.get_attr(name) for name in kept if name in op.node_def.attr}
        output = apply_any(op.type, op.inputs[0], scaled, **attributes)
        layout = attributes.get("data_format", b"NHWC")
        layout = layout.decode() if isinstance(layout, bytes) else layout
        output = find("nn.bias_add")(output, shift, data_format=layout)
    _reroute(norm.outputs[0], output, users)
    if layer.last is norm:
        layer.last = output.op


def _rewrite(graph: Any, options: _Options) -> None:
    graph = graph or find("get_default_graph")()
    with graph.as_default():
        for layer in list(_layers(graph, options.scope)):
            if layer.norm is not None:
                _fold(layer, options)
            else:
                weights = layer.op.inputs[1]
                rounded = _rounded(layer, weights, "weights_quant", options)
                _reroute(weights, rounded, [layer.op])
            output = layer.last.outputs[0]
            users = output.consumers()
            _reroute(output, _rounded(layer, output, "act_quant", options), users)


@export("contrib.quantize.create_training_graph")
def create_training_graph(input_graph: Any = None, quant_delay: int = 0) -> None:
    """Rewrites a graph for training: call it before the optimizer makes its gradients."""
    experimental_create_training_graph(input_graph, quant_delay=quant_delay)


@export("contrib.quantize.create_eval_graph")
def create_eval_graph(input_graph: Any = None) -> None:
    """Rewrites a graph for evaluation, with the ranges that training found."""
    experimental_create_eval_graph(input_graph)


@export("contrib.quantize.experimental_create_training_graph")
def experimental_create_training_graph(
    input_graph: Any = None,
    weight_bits: int = 8,
    activation_bits: int = 8,
    symmetric: bool = False,
    quant_delay: int = 0,
    freeze_bn_delay: int | None = None,
    scope: str | None = None,
) -> None:
    """The same with other numbers of bits, ranges around zero if `symmetric`, or only in a scope."""
    if freeze_bn_delay is not None:
        raise ValueError("Batch normalization is not frozen here: build it with training=False instead.")
    _rewrite(input_graph, _Options(True, weight_bits, activation_bits, symmetric, quant_delay, scope))


@export("contrib.quantize.experimental_create_eval_graph")
def experimental_create_eval_graph(
    input_graph: Any = None,
    weight_bits: int = 8,
    activation_bits: int = 8,
    symmetric: bool = False,
    quant_delay: int | None = None,
    scope: str | None = None,
) -> None:
    """The same with other numbers of bits, or only in a scope."""
    _rewrite(input_graph, _Options(False, weight_bits, activation_bits, symmetric, quant_delay, scope))

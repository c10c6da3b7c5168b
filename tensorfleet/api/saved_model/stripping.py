"""Smaller graphs for inference: `strip_unused_lib` and `optimize_for_inference_lib` of `tensorflow.python.tools`."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from tensorfleet.base import logging
from tensorfleet.base.files import GFile, exists, whole_file
from tensorfleet.base.naming import export
from tensorfleet.graph.subgraph import extract_sub_graph, remove_training_nodes
from tensorfleet.graph.tensor_proto import make_ndarray, make_tensor_proto

if TYPE_CHECKING:
    from tensorfleet.api.train.types import PathLike
    from tensorfleet.base.protos import GraphDef, NodeDef

_STRIP = "python.tools.strip_unused_lib."
_OPTIMIZE = "python.tools.optimize_for_inference_lib."
_CONVOLUTIONS = ("Conv2D", "DepthwiseConv2dNative")
# Where a normalization takes the convolution, the mean, the variance, the offset and the scale from.
_INPUTS = {
    "BatchNormWithGlobalNormalization": (0, 1, 2, 3, 4),
    "FusedBatchNorm": (0, 3, 4, 2, 1),
    "FusedBatchNormV3": (0, 3, 4, 2, 1),
}
_EPSILON = {"BatchNormWithGlobalNormalization": "variance_epsilon"}


@export(_STRIP + "strip_unused")
def strip_unused(
    input_graph_def: GraphDef,
    input_node_names: Sequence[str],
    output_node_names: Sequence[str],
    placeholder_type_enum: int | list[int] | tuple[int, ...],
) -> GraphDef:
    """The nodes that the outputs need, with placeholders for the inputs: of one type, or of a type each."""
    for name in input_node_names:
        if ":" in name:
            raise ValueError(
                f"Name '{name}' appears to refer to a Tensor, not an Operation. Leave out the colon and the number."
            )
    missing = set(input_node_names) - {node.name for node in input_graph_def.node}
    if missing:
        raise KeyError(f"The following input nodes were not found: {sorted(missing)}")
    inputs = type(input_graph_def)()
    for node in input_graph_def.node:
        copy = inputs.node.add()
        if node.name not in input_node_names:
            copy.CopyFrom(node)
            continue
        copy.op, copy.name = "Placeholder", node.name
        kind = placeholder_type_enum
        if isinstance(kind, (list, tuple)):
            kind = kind[list(input_node_names).index(node.name)]
        copy.attr["dtype"].type = int(kind)  # type: ignore[assignment]  # the message's number
        if "_output_shapes" in node.attr:
            copy.attr["_output_shapes"].CopyFrom(node.attr["_output_shapes"])
        if "shape" in node.attr:
            copy.attr["shape"].CopyFrom(node.attr["shape"])
    _keep_versions(input_graph_def, inputs)
    return extract_sub_graph(inputs, output_node_names)


def _keep_versions(given: GraphDef, made: GraphDef) -> None:
    if given.HasField("versions"):
        made.versions.CopyFrom(given.versions)


@export(_STRIP + "strip_unused_from_files")
def strip_unused_from_files(
    input_graph: PathLike,
    input_binary: bool,
    output_graph: PathLike,
    output_binary: bool,
    input_node_names: str,
    output_node_names: str,
    placeholder_type_enum: int | list[int] | tuple[int, ...],
) -> None:
    """`strip_unused` from one file to another; names are separated by commas."""
    from google.protobuf import text_format

    from tensorfleet.base.protos import GraphDef

    if not exists(input_graph):
        logging.error("Input graph file '%s' does not exist!", input_graph)
        return
    if not output_node_names:
        logging.error("You need to supply the name of a node to --output_node_names.")
        return
    graph_def = GraphDef()
    content = whole_file(input_graph)
    if input_binary:
        graph_def.ParseFromString(content)
    else:
        text_format.Parse(content.decode(), graph_def)
    stripped = strip_unused(
        graph_def, input_node_names.split(","), output_node_names.split(","), placeholder_type_enum
    )
    text = stripped.SerializeToString() if output_binary else text_format.MessageToString(stripped).encode()
    with GFile(output_graph, "wb") as f:
        f.write(text)
    logging.info("%d ops in the final graph.", len(stripped.node))


@export(_OPTIMIZE + "optimize_for_inference")
def optimize_for_inference(
    input_graph_def: GraphDef,
    input_node_names: Sequence[str],
    output_node_names: Sequence[str],
    placeholder_type_enum: int | list[int] | tuple[int, ...],
    toco_compatible: bool = False,
) -> GraphDef:
    """A frozen graph without the nodes that only training needs, its normalizations folded into convolutions."""
    ensure_graph_is_valid(input_graph_def)
    optimized = strip_unused(input_graph_def, input_node_names, output_node_names, placeholder_type_enum)
    optimized = fold_batch_norms(remove_training_nodes(optimized, output_node_names))
    if not toco_compatible:
        optimized = fuse_resize_and_conv(optimized, output_node_names)
    ensure_graph_is_valid(optimized)
    return optimized


@export(_OPTIMIZE + "ensure_graph_is_valid")
def ensure_graph_is_valid(graph_def: GraphDef) -> None:
    """Refuses a graph with two nodes of one name, or an input that is not there."""
    names: set[str] = set()
    for node in graph_def.node:
        if node.name in names:
            raise ValueError(f"Duplicate node names detected for {node.name}. Rename one.")
        names.add(node.name)
    for node in graph_def.node:
        for text in node.input:
            if node_name_from_input(text) not in names:
                raise ValueError(f"Input for {node.name} not found: {node_name_from_input(text)}")


@export(_OPTIMIZE + "node_name_from_input")
def node_name_from_input(node_name: str) -> str:
    """The name of a node without a mark of control before it or a number behind."""
    return node_name.removeprefix("^").partition(":")[0]


@export(_OPTIMIZE + "node_from_map")
def node_from_map(node_map: dict[str, NodeDef], name: str) -> NodeDef:
    """The node that an input names."""
    plain = node_name_from_input(name)
    if plain not in node_map:
        raise ValueError(f"No node named '{name}' found in map.")
    return node_map[plain]


@export(_OPTIMIZE + "values_from_const")
def values_from_const(node_def: NodeDef) -> np.ndarray:
    """The value of a constant."""
    if node_def.op != "Const":
        raise ValueError(f"Can not extract constant value from a node that is not Const. Got: {node_def.op}")
    return make_ndarray(node_def.attr["value"].tensor)


@export(_OPTIMIZE + "scale_after_normalization")
def scale_after_normalization(node: NodeDef) -> bool:
    """Whether a normalization multiplies by its scale."""
    if node.op == "BatchNormWithGlobalNormalization":
        return node.attr["scale_after_normalization"].b
    return True


@export(_OPTIMIZE + "fold_batch_norms")
def fold_batch_norms(input_graph_def: GraphDef) -> GraphDef:
    """Convolutions with other weights and an offset, instead of those that a normalization with constants follows."""
    nodes = {node.name: node for node in input_graph_def.node}
    replaced: dict[str, list[NodeDef]] = {}
    folded: set[str] = set()
    for node in input_graph_def.node:
        match = _foldable(node, nodes)
        if match is not None:
            conv, weights, *constants = match
            replaced[node.name] = _folded(node, conv, weights, constants, nodes)
            folded |= {conv.name, weights.name, *(c.name for c in constants)}
    result = type(input_graph_def)()
    _keep_versions(input_graph_def, result)
    rest = [n for node in input_graph_def.node for n in replaced.get(node.name, [node])]
    used = {node_name_from_input(text) for node in rest if node.name not in folded for text in node.input}
    result.node.extend(node for node in rest if node.name not in folded or node.name in used)
    return result


def _foldable(node: NodeDef, nodes: dict[str, NodeDef]) -> list[NodeDef] | None:
    """The convolution before a normalization, its weights and the constants of the normalization; None if it cannot be folded."""
    if node.op not in _INPUTS or node.attr["is_training"].b:
        return None
    conv, *constants = (node_from_map(nodes, node.input[i]) for i in _INPUTS[node.op])
    if conv.op not in _CONVOLUTIONS:
        logging.warning("Didn't find expected Conv2D or DepthwiseConv2dNative input to '%s'", node.name)
        return None
    weights = node_from_map(nodes, conv.input[1])
    # Variables have no value here: the graph must have been frozen.
    if any(c.op != "Const" for c in (weights, *constants)):
        logging.warning("Didn't find expected constants around '%s'. Freeze the graph first.", node.name)
        return None
    return [conv, weights, *constants]


def _folded(
    node: NodeDef, conv: NodeDef, weights: NodeDef, constants: list[NodeDef], nodes: dict[str, NodeDef]
) -> list[NodeDef]:
    mean, variance, offset, scale = map(values_from_const, constants)
    epsilon = node.attr[_EPSILON.get(node.op, "epsilon")].f
    # TensorFlow's own expression: the folded weights are the same to the last bit.
    factor = 1.0 / np.vectorize(math.sqrt)(variance + epsilon)
    if scale_after_normalization(node):
        factor = factor * scale
    old = values_from_const(weights)
    # A depthwise filter has an output for each input channel and multiplier.
    shape = old.shape[2:] if conv.op == "DepthwiseConv2dNative" else (old.shape[3],)
    new = _constant(f"{node.name}_weights", old * factor.reshape(shape).astype(old.dtype))
    shift = _constant(f"{node.name}_offset", (offset - mean * factor).astype(old.dtype))
    folded = type(node)()
    folded.CopyFrom(conv)
    folded.name, folded.input[1] = f"{node.name}_conv", new.name
    bias = type(node)(op="BiasAdd", name=node.name, input=[folded.name, shift.name], device=node.device)
    bias.attr["T"].CopyFrom(conv.attr["T"])
    bias.attr["data_format"].CopyFrom(conv.attr["data_format"])
    return [new, shift, folded, bias]


# -- resizing, padding and convolution in one ------------------------------------------------------------


@export(_OPTIMIZE + "fuse_resize_and_conv")
def fuse_resize_and_conv(input_graph_def: GraphDef, output_node_names: Sequence[str]) -> GraphDef:
    """One node for each convolution with the padding and the resize before it, which nothing else then needs."""
    nodes = {node.name: node for node in input_graph_def.node}
    users = Counter(node_name_from_input(text) for node in input_graph_def.node for text in node.input)
    users.update(output_node_names)
    result = type(input_graph_def)()
    _keep_versions(input_graph_def, result)
    gone: set[str] = set()
    fused: list[NodeDef] = []
    for conv in input_graph_def.node:
        before = _before(conv, nodes, users) if conv.op == "Conv2D" else {}
        if before:
            gone |= {conv.name, *(node.name for node in before.values())}
            fused += _fused(conv, before)
    result.node.extend(node for node in input_graph_def.node if node.name not in gone)
    result.node.extend(fused)
    return result


def _before(conv: NodeDef, nodes: dict[str, NodeDef], users: Counter[str]) -> dict[str, NodeDef]:
    """The padding and the resize of which a convolution is the only use, by their kinds."""
    before: dict[str, NodeDef] = {}
    source = node_from_map(nodes, conv.input[0])
    for kind in ("MirrorPad", "ResizeBilinear"):
        if source.op == kind and users[source.name] == 1:
            before[kind] = source
            source = node_from_map(nodes, source.input[0])
    return before


def _fused(conv: NodeDef, before: dict[str, NodeDef]) -> list[NodeDef]:
    node = type(conv)(name=conv.name, op="FusedPadConv2D")
    source, extra = conv.input[0], []
    if "MirrorPad" in before:
        pad = before["MirrorPad"]
        source, paddings, mode = pad.input[0], pad.input[1], pad.attr["mode"].s
    else:
        # The fused op pads always: with zeros, not at all.
        extra = [_constant(f"{conv.name}_dummy_paddings", np.zeros((4, 2), np.int32))]
        paddings, mode = extra[0].name, b"REFLECT"
    inputs = [source, paddings, conv.input[1]]
    if "ResizeBilinear" in before:
        resize = before["ResizeBilinear"]
        node.op = "FusedResizeAndPadConv2D"
        inputs[:1] = [resize.input[0], resize.input[1]]
        node.attr["resize_align_corners"].CopyFrom(resize.attr["align_corners"])
    node.input.extend(inputs)
    node.attr["mode"].s = mode
    for name in ("T", "strides", "padding"):
        node.attr[name].CopyFrom(conv.attr[name])
    return [*extra, node]


def _constant(name: str, value: np.ndarray) -> NodeDef:
    from tensorfleet.base.protos import NodeDef

    node: NodeDef = NodeDef(op="Const", name=name)
    tensor = make_tensor_proto(value)
    node.attr["dtype"].type = tensor.dtype
    node.attr["value"].tensor.CopyFrom(tensor)
    return node

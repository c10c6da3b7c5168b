"""`tf.keras.utils.plot_model`: a model as a picture of its layers. Needs the packages pydot and graphviz."""

from __future__ import annotations

import importlib
import itertools
import os
from typing import Any

from tensorfleet.base import nest
from tensorfleet_legacy.keras.engine.base_layer import InputLayer
from tensorfleet_legacy.keras.engine.network import Model, Sequential
from tensorfleet_legacy.keras.engine.network_graph import Nodes
from tensorfleet_legacy.keras.layers.wrappers import Wrapper

_MISSING = "Failed to import pydot. You must install pydot and graphviz for `pydotprint` to work."


def _pydot() -> Any:
    for name in ("pydot", "pydotplus", "pydot_ng"):
        try:
            return importlib.import_module(name)
        except ImportError:
            continue
    return None


def is_wrapped_model(layer: Any) -> bool:
    """Whether a layer is one around a model."""
    return isinstance(layer, Wrapper) and isinstance(layer.layer, Model)


def add_edge(dot: Any, src: str, dst: str) -> None:
    """Draws an arrow, once."""
    if not dot.get_edge(src, dst):
        dot.add_edge(_pydot().Edge(src, dst))


def model_to_dot(
    model: Any,
    show_shapes: bool = False,
    show_layer_names: bool = True,
    rankdir: str = "TB",
    expand_nested: bool = False,
    dpi: int = 96,
    subgraph: bool = False,
) -> Any:
    """The layers and their connections, as a graph of pydot."""
    pydot = _pydot()
    if pydot is None:
        raise ImportError(_MISSING)
    if subgraph:
        dot = pydot.Cluster(style="dashed", graph_name=model.name)
        dot.set("label", model.name)
        dot.set("labeljust", "l")
    else:
        dot = pydot.Dot()
        dot.set("rankdir", rankdir)
        dot.set("concentrate", True)
        dot.set("dpi", dpi)
        dot.set_node_defaults(shape="record")
    if isinstance(model, Sequential) and not model.built:
        model.build()
    nested = {id(m): m for m in model.layers if expand_nested and isinstance(m, Model)}
    for inner in nested.values():
        options = (show_shapes, show_layer_names, rankdir, expand_nested)
        dot.add_subgraph(model_to_dot(inner, *options, subgraph=True))
    layers = _drawn(model)
    for layer in layers:
        if id(layer) not in nested:
            dot.add_node(pydot.Node(str(id(layer)), label=_label(layer, show_shapes, show_layer_names)))
    for giver, taker in _arrows(model, layers):
        source = giver.layers[-1] if id(giver) in nested else giver
        target = taker.layers[0] if id(taker) in nested else taker
        add_edge(dot, str(id(source)), str(id(target)))
    return dot


def _drawn(model: Any) -> list:
    """The layers, with the input of a chain before them."""
    layers = list(model.layers)
    source = getattr(model.inputs[0], "_keras_input", None) if model.inputs else None
    if isinstance(model, Sequential) and source is not None and source not in layers:
        return [source, *layers]
    return layers


def _label(layer: Any, shapes: bool, names: bool) -> str:
    kind = type(layer).__name__
    if isinstance(layer, Wrapper):
        kind = f"{kind}({type(layer.layer).__name__})"
    label = f"{layer.name}: {kind}" if names else kind
    if not shapes:
        return label

    def shape(what: str) -> str:
        try:
            return str(getattr(layer, f"{what}_shape"))
        except AttributeError:
            return "multiple"

    return f"{label}\n|{{input:|output:}}|{{{{{shape('input')}}}|{{{shape('output')}}}}}"


def _arrows(model: Any, layers: list) -> list[tuple[Any, Any]]:
    if isinstance(model, Sequential):
        return list(itertools.pairwise(layers))
    nodes = Nodes(model.outputs)
    result = []
    for layer in layers:
        if isinstance(layer, InputLayer):
            continue
        for call in nodes.of(layer):
            for tensor in nest.flatten(call.inputs):
                name = nodes.place(tensor)[0]
                giver = next((other for other in layers if other.name == name), None)
                if giver is not None:
                    result.append((giver, layer))
    return result


def plot_model(
    model: Any,
    to_file: str = "model.png",
    show_shapes: bool = False,
    show_layer_names: bool = True,
    rankdir: str = "TB",
    expand_nested: bool = False,
    dpi: int = 96,
) -> Any:
    """Writes the layers and their connections to an image file; in a notebook, shows it."""
    dot = model_to_dot(model, show_shapes, show_layer_names, rankdir, expand_nested, dpi)
    ending = os.path.splitext(to_file)[1][1:]
    to_file = to_file if ending else f"{to_file}.png"
    dot.write(to_file, format=ending or "png")
    try:
        return importlib.import_module("IPython.display").Image(filename=to_file)
    except ImportError:
        return None

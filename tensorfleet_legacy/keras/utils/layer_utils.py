"""`Model.summary`: the table of layers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from tensorfleet.base import nest
from tensorfleet_legacy.keras.engine.network_graph import Nodes


def print_summary(model: Any, line_length: int | None, positions: Any, print_fn: Callable) -> None:
    """Prints the table: of three columns for a chain of layers, of four with connections for other models."""
    nodes = Nodes(model.outputs) if model.outputs else None
    chain = nodes is None or not hasattr(model, "_result") or _is_chain(model, nodes)
    width = line_length or (65 if chain else 98)
    shares = positions or ([0.45, 0.85, 1.0] if chain else [0.33, 0.55, 0.67, 1.0])
    columns = [int(width * p) for p in shares] if shares[-1] <= 1 else list(shares)
    heads = ["Layer (type)", "Output Shape", "Param #"] + ([] if chain else ["Connected to"])

    def row(fields: list) -> None:
        line = ""
        for i, (field, end) in enumerate(zip(fields, columns, strict=True)):
            if i:
                line = line[:-1] + " "
            line = (line + str(field))[:end]
            line += " " * (end - len(line))
        print_fn(line)

    print_fn(f'Model: "{model.name}"')
    print_fn("_" * width)
    row(heads)
    print_fn("=" * width)
    layers = model.layers
    for i, layer in enumerate(layers):
        first = [f"{layer.name} ({type(layer).__name__})", _shape(layer), _count(layer.weights)]
        if chain or nodes is None:
            row(first)
        else:
            sources = _sources(layer, nodes)
            row([*first, sources[0] if sources else ""])
            for source in sources[1:]:
                row(["", "", "", source])
        print_fn(("=" if i == len(layers) - 1 else "_") * width)
    trained, fixed = _count(model.trainable_weights), _count(model.non_trainable_weights)
    print_fn(f"Total params: {trained + fixed:,}")
    print_fn(f"Trainable params: {trained:,}")
    print_fn(f"Non-trainable params: {fixed:,}")
    print_fn("_" * width)


def _count(weights: list) -> int:
    return sum(math.prod(v.shape.as_list()) for v in {id(v): v for v in weights}.values())


def _shape(layer: Any) -> Any:
    try:
        result = layer.output_shape
    except (AttributeError, ValueError):
        return "multiple"
    return [result] if type(layer).__name__ == "InputLayer" else result


def _sources(layer: Any, nodes: Nodes) -> list[str]:
    return [
        "{}[{}][{}]".format(*nodes.place(t)) for call in nodes.of(layer) for t in nest.flatten(call.inputs)
    ]


def _is_chain(model: Any, nodes: Nodes) -> bool:
    for layer in model.layers:
        uses = nodes.of(layer)
        if len(uses) > 1 or any(len(nest.flatten(c.inputs)) > 1 for c in uses):
            return False
    taken = [
        nodes.place(t)[0] for layer in model.layers for c in nodes.of(layer) for t in nest.flatten(c.inputs)
    ]
    return len(taken) == len(set(taken)) and len(model.outputs) == 1

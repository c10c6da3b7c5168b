"""Models from configurations: the layers and their connections as dictionaries, and back."""

from __future__ import annotations

import json
from typing import Any

from tensorfleet.base import nest
from tensorfleet.base.naming import find
from tensorfleet_legacy.keras.engine.base_layer import Input, InputLayer
from tensorfleet_legacy.keras.engine.base_layer_operations import TensorFlowOpLayer
from tensorfleet_legacy.keras.engine.network import Model, Sequential
from tensorfleet_legacy.keras.engine.network_graph import Nodes
from tensorfleet_legacy.keras.utils.generic_utils import CustomObjectScope, custom


def config_of(model: Any) -> dict[str, Any]:
    """The configuration of a model, as TensorFlow writes it."""
    if isinstance(model, Sequential):
        result: dict[str, Any] = {"name": model.name, "layers": [_layer(layer) for layer in model.layers]}
        if model.inputs and model.layers and model.layers[0]._batch_input_shape is None:
            result["build_input_shape"] = tuple(model.inputs[0].shape.as_list())
        return result
    if not model.outputs or type(model).call is not Model.call:
        raise ValueError(
            f"{type(model).__name__} is a model by subclass, which has no configuration: define get_config, or save its "
            "weights alone."
        )
    nodes = Nodes(model.outputs)
    layers = []
    for layer in model.layers:
        uses = [
            [[*nodes.place(t), _options(call)] for t in nest.flatten(call.inputs)] for call in nodes.of(layer)
        ]
        layers.append({"name": layer.name, **_layer(layer), "inbound_nodes": uses})
    return {
        "name": model.name,
        "layers": layers,
        "input_layers": [nodes.place(t) for t in model.inputs],
        "output_layers": [nodes.place(t) for t in model.outputs],
    }


def _layer(layer: Any) -> dict[str, Any]:
    return {"class_name": type(layer).__name__, "config": layer.get_config()}


def _options(call: Any) -> dict[str, Any]:
    """The arguments of a call that a configuration can hold."""
    return {k: v for k, v in call.kwargs.items() if isinstance(v, (bool, int, float, str, type(None)))}


def layer_from(config: dict[str, Any], custom_objects: dict[str, Any] | None = None) -> Any:
    """A layer from what `serialize` gave: `tf.keras.layers.deserialize`."""
    name = config["class_name"]
    result: Any = custom(name, custom_objects) or {"Model": Model, "Sequential": Sequential}.get(name)
    if result is None:
        if name == "Functional":
            result = Model
        elif name == "TensorFlowOpLayer":
            result = TensorFlowOpLayer
        else:
            try:
                result = find(f"keras.layers.{name}")
            except KeyError:
                raise ValueError(f"Unknown layer: {name}") from None
    with CustomObjectScope(custom_objects or {}):
        if issubclass(result, Model):
            return built_from(result, config["config"], custom_objects)
        return result.from_config(dict(config["config"]))


def built_from(kind: Any, config: Any, custom_objects: dict[str, Any] | None = None) -> Any:
    """A model from its configuration, with new weights."""
    if issubclass(kind, Sequential):
        given = config if isinstance(config, dict) else {"layers": config, "name": None}
        model = kind(name=given.get("name"))
        for layer in given["layers"]:
            model.add(layer_from(layer, custom_objects))
        if not model.inputs and given.get("build_input_shape"):
            model.build(given["build_input_shape"])
        return model
    if "layers" not in config:
        return kind(**config)
    return _connected(kind, config, lambda layer: layer_from(layer, custom_objects))


def _connected(kind: Any, config: dict[str, Any], make: Any) -> Any:
    """Makes the layers, and applies each as soon as what it needs is there."""
    layers: dict[str, Any] = {}
    by_name: dict[tuple[str, int], list] = {}
    waiting: list[tuple[str, int, list]] = []
    for item in config["layers"]:
        layer = layers[item["name"]] = make(item)
        if isinstance(layer, InputLayer):
            by_name[item["name"], 0] = [layer.output]
        waiting += [(item["name"], i, _uses(use)) for i, use in enumerate(item["inbound_nodes"])]
    while waiting:
        left = []
        for name, number, use in waiting:
            ready = all((u[0], u[1]) in by_name for u in use) and (
                number == 0 or (name, number - 1) in by_name
            )
            if not ready:
                left.append((name, number, use))
                continue
            inputs = [by_name[u[0], u[1]][u[2]] for u in use]
            options = use[0][3] if use and len(use[0]) > 3 else {}
            several = len(inputs) > 1 or _takes_list(layers[name])
            outputs = layers[name](inputs if several else inputs[0], **options)
            by_name[name, number] = nest.flatten(outputs)
        if len(left) == len(waiting):
            raise ValueError(f"The configuration is not connected: nothing gives the inputs of {left[0][0]}.")
        waiting = left
    ends = [
        [by_name[place[0], place[1]][place[2]] for place in _places(config[key])]
        for key in ("input_layers", "output_layers")
    ]
    return kind(*(e if len(e) > 1 else e[0] for e in ends), name=config.get("name"))


def _uses(use: Any) -> list:
    """The tensors of one use: a list of them, or one alone."""
    return [use] if use and isinstance(use[0], str) else list(use)


def _places(places: Any) -> list:
    return [places] if places and isinstance(places[0], str) else list(places)


def _takes_list(layer: Any) -> bool:
    from tensorfleet_legacy.keras.layers.merge import _Merge

    return isinstance(layer, _Merge)


def serialize_layer(layer: Any) -> dict[str, Any]:
    """A layer as a dictionary: `tf.keras.layers.serialize`."""
    return _layer(layer)


def model_from_config(config: dict[str, Any], custom_objects: dict[str, Any] | None = None) -> Any:
    """A model from a dictionary with its class and configuration."""
    if isinstance(config, list):
        raise TypeError(
            f"`model_from_config` expects a dictionary, not a list. Maybe you meant to use `Sequential.from_config("
            f"config)`? Got {config}"
        )
    return layer_from(config, custom_objects)


def model_from_json(json_string: str, custom_objects: dict[str, Any] | None = None) -> Any:
    """A model from what `to_json` gave."""
    return layer_from(json.loads(json_string), custom_objects)


def model_from_yaml(yaml_string: str, custom_objects: dict[str, Any] | None = None) -> Any:
    """A model from what `to_yaml` gave."""
    import yaml

    return layer_from(yaml.safe_load(yaml_string), custom_objects)


def clone_model(model: Any, input_tensors: Any = None, clone_function: Any = None) -> Any:
    """A model of new layers with new weights, for the same inputs or for `input_tensors`."""
    copy = clone_function or (lambda layer: type(layer).from_config(layer.get_config()))
    tensors = [] if input_tensors is None else nest.flatten(input_tensors)
    given = [t if hasattr(t, "_keras_history") else Input(tensor=t) for t in tensors]
    if isinstance(model, Sequential):
        result = Sequential(name=model.name)
        if given:
            result.add(given[0]._keras_input)
        for layer in model.layers:
            result.add(copy(layer))
        if not result.inputs and model.inputs:
            result.build(model.inputs[0].shape)
        return result
    config = config_of(model)
    by_name = dict(zip(model.input_names, given, strict=False))
    originals = {layer.name: layer for layer in model.layers}

    def make(item: dict[str, Any]) -> Any:
        if item["name"] in by_name:
            return by_name[item["name"]]._keras_input
        layer = originals[item["name"]]
        return layer_from(item) if isinstance(layer, InputLayer) else copy(layer)

    return _connected(Model, config, make)

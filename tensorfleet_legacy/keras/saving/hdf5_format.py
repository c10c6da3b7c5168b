"""Models in HDF5 files, laid out as TensorFlow does. Needs the package h5py."""

from __future__ import annotations

import importlib
import itertools
import json
import os
import shutil
from typing import Any

import numpy as np

from tensorfleet.base import logging
from tensorfleet_legacy.keras import backend as state
from tensorfleet_legacy.keras.saving.save import is_hdf5, plain


def h5py_module() -> Any:
    """The package h5py, or an error that says what to do."""
    try:
        h5py = importlib.import_module("h5py")
    except ImportError:
        raise ImportError(
            "HDF5 files need the package h5py, which is not installed: `pip install h5py`. Weights can be saved without "
            "it: model.save_weights(path) with a path that does not end in .h5."
        ) from None
    return h5py


def _open_new(path: str, overwrite: bool) -> Any:
    h5py = h5py_module()
    if not overwrite and os.path.exists(path):
        raise OSError(f"{path} exists. Give overwrite=True to replace it.")
    return h5py.File(path, "w")


def _weights_of(layer: Any) -> list:
    return [*layer.trainable_weights, *layer.non_trainable_weights]


def _names(names: list[str]) -> Any:
    return np.array([n.encode() for n in names]) if names else np.array([], "S1")


def save_attributes_to_hdf5_group(group: Any, name: str, data: list[str]) -> None:
    """Writes a list of names, in parts where one would be too long for the format."""
    whole = _names(data)
    if whole.nbytes <= _MAX_HEADER_BYTES:
        group.attrs[name] = whole
        return
    for i, part in enumerate(np.array_split(whole, -(-whole.nbytes // _MAX_HEADER_BYTES))):
        group.attrs[f"{name}{i}"] = part


_MAX_HEADER_BYTES = 64512  # bytes that the header of an object has room for


def save_weights_to_hdf5_group(f: Any, layers: list) -> None:
    """Writes the weights of layers into a group of a file."""
    group = f
    save_attributes_to_hdf5_group(group, "layer_names", [layer.name for layer in layers])
    group.attrs["backend"] = b"tensorflow"
    group.attrs["keras_version"] = state.VERSION.encode()
    session = state.get_session()
    for layer in layers:
        part = group.create_group(layer.name)
        weights = _weights_of(layer)
        names = [w.name for w in weights]
        save_attributes_to_hdf5_group(part, "weight_names", names)
        for name, value in zip(names, session.run(weights) if weights else [], strict=True):
            result = part.create_dataset(name, np.shape(value), dtype=value.dtype)
            result[() if np.ndim(value) == 0 else slice(None)] = value


def _texts(values: Any) -> list[str]:
    return [v.decode() if isinstance(v, bytes) else str(v) for v in values]


def _stored(group: Any) -> dict[str, list]:
    """The weights of each layer in a group of a file."""
    saved = {name: group[name] for name in load_attributes_from_hdf5_group(group, "layer_names")}
    return {
        name: [part[w] for w in load_attributes_from_hdf5_group(part, "weight_names")]
        for name, part in saved.items()
    }


def load_weights_from_hdf5_group(f: Any, layers: list) -> None:
    """Gives layers the weights of a group of a file, in their order."""
    stored = {name: parts for name, parts in _stored(f).items() if parts}
    layers = [layer for layer in layers if _weights_of(layer)]
    if len(stored) != len(layers):
        raise ValueError(
            f"You are trying to load a weight file containing {len(stored)} layers into a model with {len(layers)} "
            "layers."
        )
    pairs: list[tuple[Any, Any]] = []
    for layer, (name, parts) in zip(layers, stored.items(), strict=True):
        pairs += _matched(layer, parts, name)
    state.batch_set_value(pairs)


def load_weights_from_hdf5_group_by_name(f: Any, layers: list) -> None:
    """Gives layers the weights of those of the same name in a group of a file."""
    stored, pairs = _stored(f), []
    for layer in layers:
        if stored.get(layer.name):
            pairs += _matched(layer, stored[layer.name], layer.name)
    state.batch_set_value(pairs)


def load_attributes_from_hdf5_group(group: Any, name: str) -> list[str]:
    """A list of names in a group; a long one is in several parts."""
    if name in group.attrs:
        return _texts(group.attrs[name])
    parts = itertools.takewhile(lambda key: key in group.attrs, (f"{name}{i}" for i in itertools.count()))
    return [text for part in parts for text in _texts(group.attrs[part])]


def _matched(layer: Any, values: list, name: str) -> list[tuple[Any, Any]]:
    weights = _weights_of(layer)
    if len(weights) != len(values):
        raise ValueError(
            f'Layer "{layer.name}" expects {len(weights)} weights, but the saved layer "{name}" has {len(values)}.'
        )
    for weight, value in zip(weights, values, strict=True):
        if tuple(weight.shape.as_list()) != tuple(value.shape):
            raise ValueError(
                f'Layer "{layer.name}": the weight {weight.name} has shape {tuple(weight.shape.as_list())}, but the saved '
                f"weight has shape {tuple(value.shape)}."
            )
    return [(w, np.asarray(v)) for w, v in zip(weights, values, strict=True)]


def save_weights(model: Any, path: str, overwrite: bool) -> None:
    """Writes the weights of a model."""
    with _open_new(path, overwrite) as file:
        save_weights_to_hdf5_group(file, model.layers)


def load_weights(model: Any, path: str, by_name: bool) -> None:
    """Reads weights into a model: in the order of its layers, or by their names."""
    if not model.built:
        raise ValueError(
            "Unable to load weights saved in HDF5 format into a subclassed Model which has not created its variables yet. "
            "Call the Model first, then load the weights."
        )
    with h5py_module().File(path, "r") as file:
        whole = "model_weights" in file
        group = file["model_weights"] if whole and "layer_names" not in file.attrs else file
        load = load_weights_from_hdf5_group_by_name if by_name else load_weights_from_hdf5_group
        load(group, model.layers)


def save_model(
    model: Any,
    filepath: Any,
    overwrite: bool = True,
    include_optimizer: bool = True,
    save_format: str | None = None,
    signatures: Any = None,
) -> None:
    """Writes the layers, the weights, and how the model is trained: to an HDF5 file, or with "tf" to a SavedModel."""
    if not is_hdf5(str(filepath), save_format or "h5"):
        from tensorfleet_legacy.keras.saving.saved_model_experimental import export_saved_model

        export_saved_model(model, _free(str(filepath), overwrite))
        return
    text = json.dumps({"class_name": type(model).__name__, "config": model.get_config()}, default=plain)
    with _open_new(str(filepath), overwrite) as file:
        file.attrs["keras_version"] = state.VERSION.encode()
        file.attrs["backend"] = b"tensorflow"
        file.attrs["model_config"] = text.encode()
        save_weights_to_hdf5_group(file.create_group("model_weights"), model.layers)
        if include_optimizer and model._options is not None:
            _write_training(file, model)


def _free(path: str, overwrite: bool) -> str:
    """A folder to save to: what is there is replaced if it may be."""
    if os.path.isdir(path):
        if not overwrite:
            raise OSError(f"{path} exists. Give overwrite=True to replace it.")
        shutil.rmtree(path)
    return path


def training_of(model: Any) -> dict[str, Any] | None:
    """How a model is trained, as files have it; None for an optimizer that cannot be written."""
    from tensorfleet_legacy.keras.optimizer_v2.optimizer_v2 import TFOptimizer

    optimizer = model.optimizer
    if isinstance(optimizer, TFOptimizer):
        logging.warning(
            "TensorFlow optimizers do not make it possible to access optimizer attributes or optimizer state after "
            "instantiation. As a result, we cannot save the optimizer as part of the model save file."
        )
        return None
    return {
        "optimizer_config": {"class_name": type(optimizer).__name__, "config": optimizer.get_config()},
        "loss": _described(model.loss),
        "metrics": _described(model._compile_metrics),
        "weighted_metrics": _described(model._compile_weighted_metrics),
        "sample_weight_mode": model.sample_weight_mode,
        "loss_weights": model.loss_weights,
    }


def _write_training(file: Any, model: Any) -> None:
    training = training_of(model)
    if training is None:
        return
    file.attrs["training_config"] = json.dumps(training, default=plain).encode()
    weights = model.optimizer.weights
    if weights:
        part = file.create_group("optimizer_weights")
        save_attributes_to_hdf5_group(part, "weight_names", [w.name for w in weights])
        for weight, value in zip(weights, state.get_session().run(weights), strict=True):
            part.create_dataset(weight.name, data=value)


def _described(value: Any) -> Any:
    """Losses and metrics by name, or as dictionaries."""
    if isinstance(value, dict):
        return {k: _described(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_described(v) for v in value]
    if hasattr(value, "get_config"):
        return {"class_name": type(value).__name__, "config": value.get_config()}
    return getattr(value, "__name__", value)


def load_model(filepath: Any, custom_objects: dict[str, Any] | None = None, compile: bool = True) -> Any:
    """A model as `save` wrote it, compiled as it was unless `compile` is False."""
    from tensorfleet_legacy.keras.saving.model_config import model_from_config
    from tensorfleet_legacy.keras.utils.generic_utils import CustomObjectScope

    path = str(filepath)
    if not os.path.exists(path):
        raise OSError(f"SavedModel file does not exist at: {path}")
    if os.path.isdir(path):
        from tensorfleet_legacy.keras.saving.saved_model_experimental import loaded

        return loaded(path, custom_objects, compile)
    with h5py_module().File(path, "r") as file:
        if "model_config" not in file.attrs:
            raise ValueError("No model found in config file.")
        model = model_from_config(json.loads(_text(file.attrs["model_config"])), custom_objects)
        load_weights_from_hdf5_group(file["model_weights"], model.layers)
        if not compile:
            return model
        training = file.attrs.get("training_config")
        if training is None:
            logging.warning(
                "No training configuration found in save file: the model was *not* compiled. Compile it manually."
            )
            return model
        with CustomObjectScope(custom_objects or {}):
            compile_as(model, json.loads(_text(training)))
        if "optimizer_weights" in file:
            _restore_optimizer(model, file["optimizer_weights"])
    return model


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def compile_as(model: Any, training: dict[str, Any]) -> None:
    """Compiles a model as a file says."""
    from tensorfleet_legacy.keras import losses as penalties
    from tensorfleet_legacy.keras import optimizers as optimizing

    def loss_of(value: Any) -> Any:
        if isinstance(value, dict) and "class_name" not in value:
            return {k: loss_of(v) for k, v in value.items()}
        return [loss_of(v) for v in value] if isinstance(value, list) else penalties.get(value)

    model.compile(
        optimizer=optimizing.deserialize(training["optimizer_config"]),
        loss=loss_of(training.get("loss")),
        metrics=training.get("metrics"),
        weighted_metrics=training.get("weighted_metrics"),
        loss_weights=training.get("loss_weights"),
        sample_weight_mode=training.get("sample_weight_mode"),
    )


def _restore_optimizer(model: Any, part: Any) -> None:
    model._fetches("train")  # makes the optimizer's variables
    values = [np.asarray(part[name]) for name in load_attributes_from_hdf5_group(part, "weight_names")]
    try:
        model.optimizer.set_weights(values)
    except ValueError:
        logging.warning(
            "Error in loading the saved optimizer state. As a result, your model is starting with a freshly initialized "
            "optimizer."
        )

"""`tf.keras.experimental.export_saved_model`: a model as a SavedModel that servers load, and Keras again."""

from __future__ import annotations

import json
import os
from typing import Any

from tensorfleet.base.naming import find
from tensorfleet_legacy.keras import backend as state
from tensorfleet_legacy.keras.saving.save import plain

# Inside the folder of the SavedModel.
_CONFIG, _WEIGHTS, _TRAINING = "assets/saved_model.json", "assets/weights", "assets/training.json"


def export_saved_model(
    model: Any,
    saved_model_path: str,
    custom_objects: dict[str, Any] | None = None,
    as_text: bool = False,
    input_signature: Any = None,
    serving_only: bool = False,
) -> None:
    """Writes a SavedModel whose signature is the model's inputs and outputs, and beside it what Keras reads again."""
    if not model.outputs:
        raise ValueError(
            f"The model {model.name} has no inputs and outputs yet: call it on data, or fit it, before it is saved."
        )
    session = state.get_session()
    with session.graph.as_default():
        names = (model.input_names, model.output_names)
        tensors = [
            dict(zip(n, t, strict=True)) for n, t in zip(names, (model.inputs, model.outputs), strict=True)
        ]
        builder = find("saved_model.builder.SavedModelBuilder")(saved_model_path)
        signature = find("saved_model.predict_signature_def")(*tensors)
        builder.add_meta_graph_and_variables(
            session, [find("saved_model.tag_constants.SERVING")], {_DEFAULT: signature}
        )
        builder.save(as_text)
    folder = os.path.join(saved_model_path, "assets")
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(saved_model_path, _CONFIG), "w") as file:
        file.write(model.to_json())
    if not serving_only:
        _write_training(model, saved_model_path)
    model.save_weights(os.path.join(saved_model_path, _WEIGHTS), save_format="tf")


_DEFAULT = "serving_default"


def _write_training(model: Any, path: str) -> None:
    """How the model is trained, if that can be written."""
    from tensorfleet_legacy.keras.saving.hdf5_format import training_of

    config = None if model._options is None else training_of(model)
    if config is not None:
        with open(os.path.join(path, _TRAINING), "w") as file:
            json.dump(config, file, default=plain)


def load_from_saved_model(saved_model_path: str, custom_objects: dict[str, Any] | None = None) -> Any:
    """A model that `export_saved_model` wrote, with its weights, compiled if it was."""
    return loaded(saved_model_path, custom_objects, True)


def loaded(path: str, custom_objects: dict[str, Any] | None, compile: bool) -> Any:
    """A model from a folder."""
    from tensorfleet_legacy.keras.saving.hdf5_format import compile_as
    from tensorfleet_legacy.keras.saving.model_config import model_from_json
    from tensorfleet_legacy.keras.utils.generic_utils import CustomObjectScope

    config = os.path.join(path, _CONFIG)
    if not os.path.isfile(config):
        raise OSError(
            f"{path} is not a Keras SavedModel: it has no {_CONFIG}. Load its graph with tf.saved_model.loader.load."
        )
    with open(config) as file:
        model = model_from_json(file.read(), custom_objects)
    training = os.path.join(path, _TRAINING)
    if compile and os.path.isfile(training):
        with open(training) as file, CustomObjectScope(custom_objects or {}):
            compile_as(model, json.load(file))
    model.load_weights(os.path.join(path, _WEIGHTS))
    return model

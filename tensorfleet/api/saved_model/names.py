"""The names that SavedModels use: directories, files, collections, tags and keys of signatures."""

from __future__ import annotations

from typing import Any

from tensorfleet.base.naming import publish

SCHEMA_VERSION = 1
MODEL_FILE = "saved_model.pb"
MODEL_TEXT_FILE = "saved_model.pbtxt"
ASSETS_DIRECTORY = "assets"
VARIABLES_DIRECTORY = "variables"
VARIABLES_FILE = "variables"
ASSETS_COLLECTION = "saved_model_assets"
MAIN_OP_COLLECTION = "saved_model_main_op"
LEGACY_INIT_OP_COLLECTION = "legacy_init_op"
INIT_OP_SIGNATURE = "__saved_model_init_op"
TRAIN_OP_SIGNATURE = "__saved_model_train_op"
TRAIN_OP_COLLECTION = "saved_model_train_op"
SERVING = "serve"
DEFAULT_SIGNATURE = "serving_default"
CLASSIFY_METHOD = "tensorflow/serving/classify"
PREDICT_METHOD = "tensorflow/serving/predict"
REGRESS_METHOD = "tensorflow/serving/regress"
INPUTS, OUTPUTS, CLASSES, SCORES = "inputs", "outputs", "classes", "scores"

_PUBLIC: dict[str, dict[str, Any]] = {
    "constants": {
        "ASSETS_DIRECTORY": ASSETS_DIRECTORY,
        "ASSETS_KEY": ASSETS_COLLECTION,
        "LEGACY_INIT_OP_KEY": LEGACY_INIT_OP_COLLECTION,
        "MAIN_OP_KEY": MAIN_OP_COLLECTION,
        "SAVED_MODEL_FILENAME_PB": MODEL_FILE,
        "SAVED_MODEL_FILENAME_PBTXT": MODEL_TEXT_FILE,
        "SAVED_MODEL_SCHEMA_VERSION": SCHEMA_VERSION,
        "VARIABLES_DIRECTORY": VARIABLES_DIRECTORY,
        "VARIABLES_FILENAME": VARIABLES_FILE,
    },
    "signature_constants": {
        "CLASSIFY_INPUTS": INPUTS,
        "CLASSIFY_METHOD_NAME": CLASSIFY_METHOD,
        "CLASSIFY_OUTPUT_CLASSES": CLASSES,
        "CLASSIFY_OUTPUT_SCORES": SCORES,
        "DEFAULT_SERVING_SIGNATURE_DEF_KEY": DEFAULT_SIGNATURE,
        "PREDICT_INPUTS": INPUTS,
        "PREDICT_METHOD_NAME": PREDICT_METHOD,
        "PREDICT_OUTPUTS": OUTPUTS,
        "REGRESS_INPUTS": INPUTS,
        "REGRESS_METHOD_NAME": REGRESS_METHOD,
        "REGRESS_OUTPUTS": OUTPUTS,
    },
    "tag_constants": {"GPU": "gpu", "SERVING": SERVING, "TPU": "tpu", "TRAINING": "train"},
}
for _module, _values in _PUBLIC.items():
    for _name, _value in _values.items():
        publish(
            _value,
            f"saved_model.{_name}",
            f"saved_model.{_module}.{_name}",
            f"python.saved_model.{_module}.{_name}",
        )
publish(INIT_OP_SIGNATURE, "python.saved_model.constants.INIT_OP_SIGNATURE_KEY")
publish(TRAIN_OP_SIGNATURE, "python.saved_model.constants.TRAIN_OP_SIGNATURE_KEY")
publish(TRAIN_OP_COLLECTION, "python.saved_model.constants.TRAIN_OP_KEY")

"""`tensorflow.python.saved_model.model_utils`: what models of Keras and estimators give when they are exported."""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator, Mapping
from typing import Any

from tensorfleet.base.naming import export, publish
from tensorfleet.base.platform.compat import as_bytes, as_text
from tensorfleet_legacy.lazy_names import publish_from

_PLACE = "python.saved_model.model_utils."
_KEYS = f"{_PLACE}mode_keys."
for _mode in ("train", "eval"):
    publish(_mode, f"python.saved_model.signature_constants.DEFAULT_{_mode.upper()}_SIGNATURE_DEF_KEY")


_OUTPUT = "estimator.export_output"
_OUTPUTS = """
    ExportOutput ClassificationOutput RegressionOutput PredictOutput _SupervisedOutput=SupervisedOutput TrainOutput
    EvalOutput
"""
_UTILS = "export_outputs_for_mode=outputs_for_mode export_utils.export_outputs_for_mode=outputs_for_mode"
publish_from(_OUTPUT, _OUTPUTS, f"{_PLACE}export_output")
publish_from(_OUTPUT, f"{_UTILS} export_utils.get_export_outputs=checked_outputs", _PLACE.rstrip("."))


@export(f"{_PLACE}export_utils.build_all_signature_defs", f"{_PLACE}build_all_signature_defs")
def build_all_signature_defs(
    receiver_tensors: Any,
    export_outputs: Any,
    receiver_tensors_alternatives: Any = None,
    serving_only: bool = True,
) -> dict:
    """The signatures of what a model gives, by name; those that serving cannot use are left out of `serving_only`."""
    make = importlib.import_module("tensorfleet_legacy.estimator.export_output").signatures
    return make(receiver_tensors, export_outputs, receiver_tensors_alternatives, serving_only)


@export(f"{_PLACE}export_utils.get_timestamped_export_dir", f"{_PLACE}get_timestamped_export_dir")
def get_timestamped_export_dir(export_dir_base: Any) -> bytes:
    """A folder that is not there yet, named by the time in seconds."""
    saving = importlib.import_module("tensorfleet_legacy.estimator.estimator_export")
    return as_bytes(saving.timestamped_folder(as_text(export_dir_base)))


@export(f"{_PLACE}export_utils.get_temp_export_dir", f"{_PLACE}get_temp_export_dir")
def get_temp_export_dir(timestamped_export_dir: Any) -> bytes:
    """Where a model is written before it gets its name."""
    folder, name = os.path.split(as_text(timestamped_export_dir))
    return as_bytes(os.path.join(folder, f"temp-{name}"))


@export(f"{_KEYS}KerasModeKeys")
class KerasModeKeys:
    """The modes of a model of Keras."""

    TRAIN, TEST, PREDICT = "train", "test", "predict"


@export(f"{_KEYS}EstimatorModeKeys")
class EstimatorModeKeys:
    """The modes of a model of an estimator."""

    TRAIN, EVAL, PREDICT = "train", "eval", "infer"


@export(f"{_KEYS}is_predict")
def is_predict(mode: Any) -> bool:
    """Whether a mode is prediction."""
    return mode in (KerasModeKeys.PREDICT, EstimatorModeKeys.PREDICT)


@export(f"{_KEYS}is_eval")
def is_eval(mode: Any) -> bool:
    """Whether a mode is evaluation."""
    return mode in (KerasModeKeys.TEST, EstimatorModeKeys.EVAL)


@export(f"{_KEYS}is_train")
def is_train(mode: Any) -> bool:
    """Whether a mode is training."""
    return mode in (KerasModeKeys.TRAIN, EstimatorModeKeys.TRAIN)


@export(f"{_KEYS}ModeKeyMap")
class ModeKeyMap(Mapping):
    """Values by mode, whichever of its names a mode is asked for by."""

    def __init__(self, **kwargs: Any) -> None:
        self._names = list(kwargs)
        self._values: dict[str, Any] = {}
        for name, value in kwargs.items():
            mode = self._mode(name)
            if mode in self._values:
                raise ValueError(f"Error creating ModeKeyMap. Multiple keys/values found for {mode} mode.")
            self._values[mode] = value

    @staticmethod
    def _mode(name: Any) -> str:
        for mode, means in (("train", is_train), ("test", is_eval), ("predict", is_predict)):
            if means(name):
                return mode
        raise ValueError(f"Invalid mode key: {name}.")

    def __getitem__(self, key: Any) -> Any:
        return self._values[self._mode(key)]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

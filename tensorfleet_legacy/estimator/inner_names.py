"""Where libraries and TensorFlow's own tests import parts of `tf.estimator` and `tf.contrib.learn` from inside."""

from __future__ import annotations

import functools
import importlib
from typing import Any

from tensorfleet.base.naming import publish_lazily, publish_module

_ESTIMATOR = "python.estimator"
_LEARN = "contrib.learn.python.learn"

# Modules that have all names of public ones.
_MODULES = {
    ("estimator", "estimator.experimental"): """
        canned.kmeans canned.linear_optimizer.python.utils.sdca_ops canned.parsing_utils canned.saved_model_estimator
        early_stopping extenders head.base_head head.binary_class_head head.multi_class_head head.multi_head
        head.multi_label_head head.regression_head hooks.hooks mode_keys
    """,
    ("train",): "hooks.basic_session_run_hooks hooks.session_run_hook",
    ("estimator.tpu",): "tpu.tpu_config tpu.tpu_estimator",
    ("keras.estimator",): "keras",
}
_LEARN_MODULES = {
    ("contrib.learn",): """
        estimators estimators.constants estimators.dnn estimators.dnn_linear_combined estimators.linear estimators.prediction_key
        learn_io.graph_io
    """,
    ("train",): "basic_session_run_hooks monitored_session session_run_hook",
    ("contrib.learn.models",): "models",
    ("contrib.learn.preprocessing",): "preprocessing.categorical_vocabulary preprocessing.text",
}
# Single names: the module here that has them, and what they are called in it.
_NAMES = {
    "canned.metric_keys.MetricKeys": ("estimator.canned.metric_keys", "MetricKeys"),
    "canned.prediction_keys.PredictionKeys": ("estimator.canned.metric_keys", "PredictionKeys"),
    "estimator.EstimatorV2": (
        "estimator.estimator",
        "Estimator",
    ),  # below the other in 1.15, with the same methods
    "early_stopping.read_eval_metrics": ("estimator.early_stopping", "evaluations"),
    "exporter._SavedModelExporter": ("estimator.exporter", "_SavedModelExporter"),
    "exporter._loss_smaller": ("estimator.exporter", "_loss_smaller"),
    "exporter._verify_compare_fn_args": ("estimator.exporter", "_check_comparison"),
    "model_fn.LOSS_METRIC_KEY": ("estimator.head.base_head", "LOSS"),
    "model_fn.AVERAGE_LOSS_METRIC_KEY": ("estimator.head.base_head", "LOSS_MEAN"),
    "canned.dnn.dnn_logit_fn_builder": ("estimator.canned.dnn", "dnn_logit_fn_builder"),
    "canned.linear.linear_logit_fn_builder": ("estimator.canned.dnn", "linear_logit_fn_builder"),
    "export.export_output.TrainOutput": ("estimator.export_output", "TrainOutput"),
    "export.export_output.EvalOutput": ("estimator.export_output", "EvalOutput"),
    "export.export_output._SupervisedOutput": ("estimator.export_output", "SupervisedOutput"),
    "export.export.SupervisedInputReceiver": ("estimator.export", "SupervisedInputReceiver"),
    "export.export.build_raw_supervised_input_receiver_fn": (
        "estimator.export",
        "build_raw_supervised_input_receiver_fn",
    ),
}
# The functions that say which exports are kept; the estimators have them with an underscore.
_KEEPING = """
    largest_export_versions one_of_every_n_export_versions mod_export_version union negation get_paths
"""


def _found(module: str, name: str, full: str) -> Any:
    return getattr(importlib.import_module(f"tensorfleet_legacy.{module}"), name)


for _place, _table in ((_ESTIMATOR, _MODULES), (_LEARN, _LEARN_MODULES)):
    for _lenders, _modules in _table.items():
        for _module in _modules.split():
            publish_module(f"{_place}.{_module}", *_lenders)
for _name in [
    "DataFeeder",
    "StreamingDataFeeder",
    "check_array",
    "setup_predict_data_feeder",
    "setup_processor_data_feeder",
    "setup_train_data_feeder",
]:
    publish_lazily(
        functools.partial(_found, "contrib.learn.data_feeder", _name),
        f"{_LEARN}.learn_io.data_feeder.{_name}",
    )
# Names with an underscore from before the heads were public.
for _name in ["regression", "poisson_regression", "multi_class", "binary_svm", "multi_label", "multi"]:
    _home = ("contrib.learn.head_functions", f"{_name}_head")
    publish_lazily(functools.partial(_found, *_home), f"{_LEARN}.estimators.head._{_name}_head")
for _full, _home in _NAMES.items():
    publish_lazily(functools.partial(_found, *_home), f"{_ESTIMATOR}.{_full}")
for _name in ("Path", *_KEEPING.split()):
    _called = _name if _name == "Path" else f"_{_name}"
    _places = (
        f"{_LEARN}.utils.gc.{_name}",
        f"contrib.session_bundle.gc.{_name}",
        f"{_ESTIMATOR}.gc.{_called}",
    )
    publish_lazily(functools.partial(_found, "estimator.gc", _name), *_places)

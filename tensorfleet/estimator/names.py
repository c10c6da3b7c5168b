"""The names under `tf.estimator`; the modules are loaded when one of them is first used."""

from __future__ import annotations

import importlib
from typing import Any

from tensorfleet.api import publish_lazily

_MODULES = {
    "run_config": "RunConfig",
    "spec": "ModeKeys EstimatorSpec",
    "estimator": "Estimator",
    "warm_starting": "WarmStartSettings",
    "training": "TrainSpec EvalSpec train_and_evaluate",
    "canned": """
        DNNClassifier DNNRegressor LinearClassifier LinearRegressor DNNLinearCombinedClassifier
        DNNLinearCombinedRegressor BaselineClassifier BaselineRegressor classifier_parse_example_spec
        regressor_parse_example_spec
    """,
    "early_stopping": """
        experimental.make_early_stopping_hook experimental.stop_if_higher_hook experimental.stop_if_lower_hook
        experimental.stop_if_no_increase_hook experimental.stop_if_no_decrease_hook
        experimental.make_stop_at_checkpoint_step_hook
    """,
    "in_memory": "experimental.InMemoryEvaluatorHook",
    "input_functions": "inputs.numpy_input_fn inputs.pandas_input_fn",
    "exporters": "Exporter FinalExporter LatestExporter BestExporter",
    "outputs": "export.ExportOutput export.ClassificationOutput export.RegressionOutput export.PredictOutput",
    "receivers": """
        export.ServingInputReceiver export.TensorServingInputReceiver export.build_parsing_serving_input_receiver_fn
        export.build_raw_serving_input_receiver_fn experimental.build_raw_supervised_input_receiver_fn
    """,
}
# Names of `tf.contrib.learn`.
_LEARN = {"RunConfig": "learn_config", "ModeKeys": "learn_config", "TaskType": "learn_config"}
_HOME = {name: module for module, names in _MODULES.items() for name in names.split()}


def _find(full: str) -> Any:
    module = importlib.import_module(f"tensorfleet.estimator.{_HOME[full.removeprefix('estimator.')]}")
    return getattr(module, full.rpartition(".")[2])


def _find_learn(full: str) -> Any:
    name = full.rpartition(".")[2]
    return getattr(importlib.import_module(f"tensorfleet.estimator.{_LEARN[name]}"), name)


publish_lazily(_find, *(f"estimator.{name}" for name in _HOME))
publish_lazily(_find_learn, *(f"contrib.learn.{name}" for name in _LEARN))

"""The names under `tf.estimator`; the modules are loaded when one of them is first used."""

from __future__ import annotations

import importlib
from typing import Any

from tensorfleet.base.naming import homes, publish_lazily
from tensorfleet_legacy.lazy_names import publish_from

_MODULES = {
    "estimator.run_config": "RunConfig",
    "estimator.model_fn": "ModeKeys EstimatorSpec",
    "estimator.estimator": "Estimator",
    "estimator.estimator_warm_start": "WarmStartSettings",
    "estimator.training": "TrainSpec EvalSpec train_and_evaluate",
    "estimator.canned.dnn_linear_combined": """
        DNNClassifier DNNRegressor LinearClassifier LinearRegressor DNNLinearCombinedClassifier
        DNNLinearCombinedRegressor BaselineClassifier BaselineRegressor DNNEstimator LinearEstimator
        DNNLinearCombinedEstimator BaselineEstimator classifier_parse_example_spec
        regressor_parse_example_spec
    """,
    "estimator.head.base_head": "Head",
    "estimator.head.multi_class_head": "BinaryClassHead MultiClassHead MultiLabelHead",
    "estimator.head.regression_head": "RegressionHead PoissonRegressionHead LogisticRegressionHead",
    "estimator.head.multi_head": "MultiHead",
    "estimator.canned.kmeans": "experimental.KMeans",
    "estimator.canned.linear_sdca": "experimental.LinearSDCA",
    "estimator.early_stopping": """
        experimental.make_early_stopping_hook experimental.stop_if_higher_hook experimental.stop_if_lower_hook
        experimental.stop_if_no_increase_hook experimental.stop_if_no_decrease_hook
        experimental.make_stop_at_checkpoint_step_hook
    """,
    "estimator.canned.dnn": """
        experimental.dnn_logit_fn_builder experimental.linear_logit_fn_builder experimental.call_logit_fn
    """,
    "estimator.extenders": "add_metrics",
    "estimator.hooks": "experimental.InMemoryEvaluatorHook",
    "estimator.numpy_io": "inputs.numpy_input_fn inputs.pandas_input_fn",
    "estimator.exporter": "Exporter FinalExporter LatestExporter BestExporter",
    "estimator.export_output": "export.ExportOutput export.ClassificationOutput export.RegressionOutput export.PredictOutput",
    "estimator.export": """
        export.ServingInputReceiver export.TensorServingInputReceiver export.build_parsing_serving_input_receiver_fn
        export.build_raw_serving_input_receiver_fn experimental.build_raw_supervised_input_receiver_fn
    """,
    "estimator.tpu_estimator": "tpu.RunConfig tpu.TPUConfig tpu.InputPipelineConfig tpu.TPUEstimator tpu.TPUEstimatorSpec",
}
# Heads of `tf.contrib.estimator`.
_CONTRIB_HEADS = """
    binary_classification_head logistic_regression_head multi_class_head regression_head poisson_regression_head
    multi_label_head multi_head
"""
# Names of `tf.contrib.tpu`, and the modules inside of it that have them too.
_TPU = {
    "python.tpu.tpu_config": "RunConfig TPUConfig InputPipelineConfig",
    "python.tpu.tpu_estimator": "TPUEstimator TPUEstimatorSpec",
    "python.tpu.tpu_optimizer": "CrossShardOptimizer",
}
# Names of `tf.contrib.learn`, and the modules of it that have them too.
_LEARN_MODULES = {
    "contrib.learn.run_config": "RunConfig ModeKeys TaskType",
    "contrib.learn.model_fn": """
        ModelFnOps MetricSpec PredictionKey ProblemType InputFnOps build_parsing_serving_input_fn
        utils.input_fn_utils.InputFnOps utils.input_fn_utils.build_parsing_serving_input_fn
    """,
    "contrib.learn.estimator": """
        Estimator DNNClassifier DNNRegressor LinearClassifier LinearRegressor DNNLinearCombinedClassifier
        DNNLinearCombinedRegressor
    """,
    "contrib.learn.head": "Head",
    "contrib.learn.dnn_linear_combined": "DNNEstimator DNNLinearCombinedEstimator LinearEstimator LogisticRegressor SVM",
    "contrib.learn.metric_key": "MetricKey",
    "contrib.learn.head_functions": """
        multi_class_head multi_label_head binary_svm_head regression_head poisson_regression_head multi_head
        loss_only_head no_op_train_fn
    """,
    "contrib.learn.graph_actions": """
        train evaluate infer run_feeds run_n graph_actions.train graph_actions.evaluate graph_actions.infer
        graph_actions.run_feeds graph_actions.run_feeds_iter graph_actions.run_n graph_actions.get_summary_writer
        graph_actions.clear_summary_writers graph_actions._run_with_monitors
    """,
    "contrib.learn.estimator_sklearn": """
        SKCompat Trainable Evaluable NotFittedError infer_real_valued_columns_from_input_fn
    """,
    "contrib.learn.data_feeder": """
        extract_pandas_data extract_pandas_labels extract_pandas_matrix io.extract_pandas_data io.extract_pandas_labels
        io.extract_pandas_matrix
    """,
    "contrib.learn.experiment": """
        Experiment ExportStrategy make_export_strategy learn_runner.run utils.make_export_strategy
        utils.saved_model_export_utils.make_export_strategy
    """,
    "contrib.learn.monitors": """
        monitors.BaseMonitor monitors.EveryN monitors.StopAtStep monitors.PrintTensor monitors.NanLoss
        NanLossDuringTrainingError monitors.NanLossDuringTrainingError monitors.ValidationMonitor monitors.RunHookAdapterForMonitors
        monitors.replace_monitors_with_hooks
    """,
    "contrib.learn.monitors_saving": """
        monitors.CaptureVariable monitors.CheckpointSaver monitors.GraphDump monitors.LoggingTrainable
        monitors.StepCounter monitors.SummarySaver monitors.get_default_monitors
    """,
    "contrib.learn.models": """
        models.logistic_regression models.logistic_regression_zero_init models.linear_regression
        models.linear_regression_zero_init
    """,
    "contrib.learn.generator_io": "io.generator_input_fn",
    "contrib.learn.text": """
        read_batch_features io.read_batch_features io.numpy_input_fn io.pandas_input_fn infer_real_valued_columns_from_input
        preprocessing.VocabularyProcessor preprocessing.CategoricalVocabulary preprocessing.tokenizer
        preprocessing.ByteProcessor
    """,
}
_LEARN = homes((name, module) for module, names in _LEARN_MODULES.items() for name in names.split())
# Where scripts import the same from inside.
_INSIDE = {
    "estimators.run_config": "RunConfig TaskType",
    "estimators.model_fn": "ModelFnOps ModeKeys",
    "estimators.estimator": "Estimator",
    "estimators.head": f"Head {_LEARN_MODULES['contrib.learn.head_functions']}",
    "estimators.metric_key": "MetricKey",
    "estimators.logistic_regressor": "LogisticRegressor",
    "estimators.svm": "SVM",
    "estimators._sklearn": "NotFittedError",
    "evaluable": "Evaluable",
    "trainable": "Trainable",
    "graph_actions": " ".join(n for n in _LEARN_MODULES["contrib.learn.graph_actions"].split() if "." in n),
    "experiment": "Experiment",
    "metric_spec": "MetricSpec",
    "monitors": _LEARN_MODULES["contrib.learn.monitors"] + _LEARN_MODULES["contrib.learn.monitors_saving"],
    "preprocessing": """
        preprocessing.VocabularyProcessor preprocessing.CategoricalVocabulary preprocessing.tokenizer
        preprocessing.ByteProcessor
    """,
    "preprocessing.text": "preprocessing.VocabularyProcessor preprocessing.tokenizer",
    "preprocessing.categorical_vocabulary": "preprocessing.CategoricalVocabulary",
    "export_strategy": "ExportStrategy",
    "learn_io.generator_io": "io.generator_input_fn",
    "learn_io.numpy_io": "io.numpy_input_fn",
    "learn_io.pandas_io": "io.pandas_input_fn",
    "learn_runner": "learn_runner.run",
    "utils.saved_model_export_utils": "make_export_strategy",
    "utils.input_fn_utils": "utils.input_fn_utils.InputFnOps utils.input_fn_utils.build_parsing_serving_input_fn",
}


def _find_learn(full: str) -> Any:
    last = full.rpartition(".")[2]
    name = next(n for n in _LEARN if n.rpartition(".")[2] == last)
    return getattr(importlib.import_module(f"tensorfleet_legacy.{_LEARN[name]}"), last)


for _module, _names in _MODULES.items():
    publish_from(_module, _names, "estimator")
publish_from("estimator.training", "_DELAY_SECS_PER_WORKER _MAX_DELAY_SECS", "python.estimator.training")
for _module, _names in _TPU.items():
    publish_from("estimator.tpu_estimator", _names, "contrib.tpu", f"contrib.tpu.{_module}")
_CANNED = "head._Head optimizers.get_optimizer_instance"
publish_from("estimator.canned.optimizers", _CANNED, "python.estimator.canned")
publish_from("contrib.estimator.head", _CONTRIB_HEADS, "contrib.estimator")
publish_from("estimator.canned.linear_sdca", "SDCAOptimizer", "contrib.linear_optimizer")
publish_from("estimator.canned.kmeans", "KMeansClustering=ContribKMeansClustering", "contrib.factorization")
publish_from("estimator.distribute_config", "DistributeConfig", "contrib.distribute")
publish_from("estimator.run_config", "TaskType", "python.estimator.run_config")
for _module, _names in _LEARN_MODULES.items():
    publish_from(_module, _names, "contrib.learn")
for _module, _names in _INSIDE.items():
    _lasts = dict.fromkeys(name.rpartition(".")[2] for name in _names.split())
    publish_lazily(_find_learn, *(f"contrib.learn.python.learn.{_module}.{name}" for name in _lasts))

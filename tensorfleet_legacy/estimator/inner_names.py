"""Where libraries and TensorFlow's own tests import parts of `tf.estimator` and `tf.contrib.learn` from inside."""

from __future__ import annotations

from tensorfleet.base.naming import publish_module
from tensorfleet_legacy.lazy_names import publish_from

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
# Single names, by the module here that has them; `=` tells what they are called in it.
_NAMES = {
    "estimator.canned.metric_keys": "canned.metric_keys.MetricKeys canned.prediction_keys.PredictionKeys",
    # In 1.15 it is below the other, with the same methods.
    "estimator.estimator": "estimator.EstimatorV2=Estimator",
    "estimator.early_stopping": "early_stopping.read_eval_metrics=evaluations",
    "estimator.exporter": """
        exporter._SavedModelExporter exporter._loss_smaller exporter._verify_compare_fn_args=_check_comparison
    """,
    "estimator.head.base_head": "model_fn.LOSS_METRIC_KEY=LOSS model_fn.AVERAGE_LOSS_METRIC_KEY=LOSS_MEAN",
    "estimator.canned.dnn": "canned.dnn.dnn_logit_fn_builder canned.linear.linear_logit_fn_builder",
    "estimator.export_output": """
        export.export_output.TrainOutput export.export_output.EvalOutput
        export.export_output._SupervisedOutput=SupervisedOutput
    """,
    "estimator.export": """
        export.export.SupervisedInputReceiver export.export.build_raw_supervised_input_receiver_fn
    """,
}
_FEEDERS = """
    DataFeeder StreamingDataFeeder check_array setup_predict_data_feeder setup_processor_data_feeder
    setup_train_data_feeder
"""
# Names with an underscore from before the heads were public.
_HEADS = "regression poisson_regression multi_class binary_svm multi_label multi"
# The functions that say which exports are kept; the estimators have them with an underscore.
_KEEPING = """
    largest_export_versions one_of_every_n_export_versions mod_export_version union negation get_paths
"""


for _place, _table in ((_ESTIMATOR, _MODULES), (_LEARN, _LEARN_MODULES)):
    for _lenders, _modules in _table.items():
        for _module in _modules.split():
            publish_module(f"{_place}.{_module}", *_lenders)
publish_from("contrib.learn.data_feeder", _FEEDERS, f"{_LEARN}.learn_io.data_feeder")
_HEADS = " ".join(f"_{head}_head={head}_head" for head in _HEADS.split())
publish_from("contrib.learn.head_functions", _HEADS, f"{_LEARN}.estimators.head")
for _module, _names in _NAMES.items():
    publish_from(_module, _names, _ESTIMATOR)
publish_from("estimator.gc", f"Path {_KEEPING}", f"{_LEARN}.utils.gc", "contrib.session_bundle.gc")
_UNDERSCORED = " ".join(f"_{name}={name}" for name in _KEEPING.split())
publish_from("estimator.gc", f"Path {_UNDERSCORED}", f"{_ESTIMATOR}.gc")

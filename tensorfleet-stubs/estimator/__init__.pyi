# Written by tools/make_stubs.py.
from tensorfleet.api.train.hooks import FeedFnHook as FeedFnHook
from tensorfleet.api.train.hooks import FinalOpsHook as FinalOpsHook
from tensorfleet.api.train.hooks import GlobalStepWaiterHook as GlobalStepWaiterHook
from tensorfleet.api.train.hooks import LoggingTensorHook as LoggingTensorHook
from tensorfleet.api.train.hooks import NanLossDuringTrainingError as NanLossDuringTrainingError
from tensorfleet.api.train.hooks import NanTensorHook as NanTensorHook
from tensorfleet.api.train.hooks import SecondOrStepTimer as SecondOrStepTimer
from tensorfleet.api.train.hooks import StopAtStepHook as StopAtStepHook
from tensorfleet.api.train.hooks_saving import CheckpointSaverHook as CheckpointSaverHook
from tensorfleet.api.train.hooks_saving import CheckpointSaverListener as CheckpointSaverListener
from tensorfleet.api.train.hooks_saving import StepCounterHook as StepCounterHook
from tensorfleet.api.train.hooks_saving import SummarySaverHook as SummarySaverHook
from tensorfleet.api.train.session_run_hook import SessionRunArgs as SessionRunArgs
from tensorfleet.api.train.session_run_hook import SessionRunContext as SessionRunContext
from tensorfleet.api.train.session_run_hook import SessionRunHook as SessionRunHook
from tensorfleet.api.train.session_run_hook import SessionRunValues as SessionRunValues
from tensorfleet.api.train.warm_start import VocabInfo as VocabInfo
from tensorfleet.estimator import experimental as experimental
from tensorfleet.estimator import export as export
from tensorfleet.estimator import inputs as inputs
from tensorfleet.estimator import tpu as tpu
from tensorfleet.fleet.profiler_hook import ProfilerHook as ProfilerHook
from tensorfleet_legacy.estimator.canned.dnn_linear_combined import BaselineClassifier as _BaselineClassifier
from tensorfleet_legacy.estimator.canned.dnn_linear_combined import BaselineEstimator as _BaselineEstimator
from tensorfleet_legacy.estimator.canned.dnn_linear_combined import BaselineRegressor as _BaselineRegressor
from tensorfleet_legacy.estimator.canned.dnn_linear_combined import DNNClassifier as _DNNClassifier
from tensorfleet_legacy.estimator.canned.dnn_linear_combined import DNNEstimator as _DNNEstimator
from tensorfleet_legacy.estimator.canned.dnn_linear_combined import DNNLinearCombinedClassifier as _DNNLinearCombinedClassifier
from tensorfleet_legacy.estimator.canned.dnn_linear_combined import DNNLinearCombinedEstimator as _DNNLinearCombinedEstimator
from tensorfleet_legacy.estimator.canned.dnn_linear_combined import DNNLinearCombinedRegressor as _DNNLinearCombinedRegressor
from tensorfleet_legacy.estimator.canned.dnn_linear_combined import DNNRegressor as _DNNRegressor
from tensorfleet_legacy.estimator.canned.dnn_linear_combined import LinearClassifier as _LinearClassifier
from tensorfleet_legacy.estimator.canned.dnn_linear_combined import LinearEstimator as _LinearEstimator
from tensorfleet_legacy.estimator.canned.dnn_linear_combined import LinearRegressor as _LinearRegressor
from tensorfleet_legacy.estimator.canned.dnn_linear_combined import classifier_parse_example_spec as classifier_parse_example_spec
from tensorfleet_legacy.estimator.canned.dnn_linear_combined import regressor_parse_example_spec as regressor_parse_example_spec
from tensorfleet_legacy.estimator.estimator import Estimator as Estimator
from tensorfleet_legacy.estimator.estimator_warm_start import WarmStartSettings as WarmStartSettings
from tensorfleet_legacy.estimator.exporter import BestExporter as BestExporter
from tensorfleet_legacy.estimator.exporter import Exporter as Exporter
from tensorfleet_legacy.estimator.exporter import FinalExporter as FinalExporter
from tensorfleet_legacy.estimator.exporter import LatestExporter as LatestExporter
from tensorfleet_legacy.estimator.extenders import add_metrics as add_metrics
from tensorfleet_legacy.estimator.head.base_head import Head as Head
from tensorfleet_legacy.estimator.head.multi_class_head import BinaryClassHead as BinaryClassHead
from tensorfleet_legacy.estimator.head.multi_class_head import MultiClassHead as MultiClassHead
from tensorfleet_legacy.estimator.head.multi_class_head import MultiLabelHead as MultiLabelHead
from tensorfleet_legacy.estimator.head.multi_head import MultiHead as MultiHead
from tensorfleet_legacy.estimator.head.regression_head import LogisticRegressionHead as LogisticRegressionHead
from tensorfleet_legacy.estimator.head.regression_head import PoissonRegressionHead as PoissonRegressionHead
from tensorfleet_legacy.estimator.head.regression_head import RegressionHead as RegressionHead
from tensorfleet_legacy.estimator.model_fn import EstimatorSpec as EstimatorSpec
from tensorfleet_legacy.estimator.model_fn import ModeKeys as ModeKeys
from tensorfleet_legacy.estimator.run_config import RunConfig as RunConfig
from tensorfleet_legacy.estimator.training import EvalSpec as EvalSpec
from tensorfleet_legacy.estimator.training import TrainSpec as TrainSpec
from tensorfleet_legacy.estimator.training import train_and_evaluate as train_and_evaluate
import typing
class BaselineClassifier(_BaselineClassifier):
    def __init__(self, model_dir: typing.Any = ..., n_classes: typing.Any = ..., weight_column: typing.Any = ..., label_vocabulary: typing.Any = ..., optimizer: typing.Any = ..., config: typing.Any = ..., loss_reduction: typing.Any = ...) -> None: ...
class BaselineEstimator(_BaselineEstimator):
    def __init__(self, head: typing.Any, model_dir: typing.Any = ..., optimizer: typing.Any = ..., config: typing.Any = ...) -> None: ...
class BaselineRegressor(_BaselineRegressor):
    def __init__(self, model_dir: typing.Any = ..., label_dimension: typing.Any = ..., weight_column: typing.Any = ..., optimizer: typing.Any = ..., config: typing.Any = ..., loss_reduction: typing.Any = ...) -> None: ...
class DNNClassifier(_DNNClassifier):
    def __init__(self, hidden_units: typing.Any, feature_columns: typing.Any, model_dir: typing.Any = ..., n_classes: typing.Any = ..., weight_column: typing.Any = ..., label_vocabulary: typing.Any = ..., optimizer: typing.Any = ..., activation_fn: typing.Any = ..., dropout: typing.Any = ..., input_layer_partitioner: typing.Any = ..., config: typing.Any = ..., warm_start_from: typing.Any = ..., loss_reduction: typing.Any = ..., batch_norm: typing.Any = ...) -> None: ...
class DNNEstimator(_DNNEstimator):
    def __init__(self, head: typing.Any, hidden_units: typing.Any, feature_columns: typing.Any, model_dir: typing.Any = ..., optimizer: typing.Any = ..., activation_fn: typing.Any = ..., dropout: typing.Any = ..., input_layer_partitioner: typing.Any = ..., config: typing.Any = ..., warm_start_from: typing.Any = ..., batch_norm: typing.Any = ...) -> None: ...
class DNNLinearCombinedClassifier(_DNNLinearCombinedClassifier):
    def __init__(self, model_dir: typing.Any = ..., linear_feature_columns: typing.Any = ..., linear_optimizer: typing.Any = ..., dnn_feature_columns: typing.Any = ..., dnn_optimizer: typing.Any = ..., dnn_hidden_units: typing.Any = ..., dnn_activation_fn: typing.Any = ..., dnn_dropout: typing.Any = ..., n_classes: typing.Any = ..., weight_column: typing.Any = ..., label_vocabulary: typing.Any = ..., input_layer_partitioner: typing.Any = ..., config: typing.Any = ..., warm_start_from: typing.Any = ..., loss_reduction: typing.Any = ..., batch_norm: typing.Any = ..., linear_sparse_combiner: typing.Any = ...) -> None: ...
class DNNLinearCombinedEstimator(_DNNLinearCombinedEstimator):
    def __init__(self, head: typing.Any, model_dir: typing.Any = ..., linear_feature_columns: typing.Any = ..., linear_optimizer: typing.Any = ..., dnn_feature_columns: typing.Any = ..., dnn_optimizer: typing.Any = ..., dnn_hidden_units: typing.Any = ..., dnn_activation_fn: typing.Any = ..., dnn_dropout: typing.Any = ..., input_layer_partitioner: typing.Any = ..., config: typing.Any = ..., linear_sparse_combiner: typing.Any = ...) -> None: ...
class DNNLinearCombinedRegressor(_DNNLinearCombinedRegressor):
    def __init__(self, model_dir: typing.Any = ..., linear_feature_columns: typing.Any = ..., linear_optimizer: typing.Any = ..., dnn_feature_columns: typing.Any = ..., dnn_optimizer: typing.Any = ..., dnn_hidden_units: typing.Any = ..., dnn_activation_fn: typing.Any = ..., dnn_dropout: typing.Any = ..., label_dimension: typing.Any = ..., weight_column: typing.Any = ..., input_layer_partitioner: typing.Any = ..., config: typing.Any = ..., warm_start_from: typing.Any = ..., loss_reduction: typing.Any = ..., batch_norm: typing.Any = ..., linear_sparse_combiner: typing.Any = ...) -> None: ...
class DNNRegressor(_DNNRegressor):
    def __init__(self, hidden_units: typing.Any, feature_columns: typing.Any, model_dir: typing.Any = ..., label_dimension: typing.Any = ..., weight_column: typing.Any = ..., optimizer: typing.Any = ..., activation_fn: typing.Any = ..., dropout: typing.Any = ..., input_layer_partitioner: typing.Any = ..., config: typing.Any = ..., warm_start_from: typing.Any = ..., loss_reduction: typing.Any = ..., batch_norm: typing.Any = ...) -> None: ...
class LinearClassifier(_LinearClassifier):
    def __init__(self, feature_columns: typing.Any, model_dir: typing.Any = ..., n_classes: typing.Any = ..., weight_column: typing.Any = ..., label_vocabulary: typing.Any = ..., optimizer: typing.Any = ..., config: typing.Any = ..., partitioner: typing.Any = ..., warm_start_from: typing.Any = ..., loss_reduction: typing.Any = ..., sparse_combiner: typing.Any = ...) -> None: ...
class LinearEstimator(_LinearEstimator):
    def __init__(self, head: typing.Any, feature_columns: typing.Any, model_dir: typing.Any = ..., optimizer: typing.Any = ..., config: typing.Any = ..., partitioner: typing.Any = ..., sparse_combiner: typing.Any = ...) -> None: ...
class LinearRegressor(_LinearRegressor):
    def __init__(self, feature_columns: typing.Any, model_dir: typing.Any = ..., label_dimension: typing.Any = ..., weight_column: typing.Any = ..., optimizer: typing.Any = ..., config: typing.Any = ..., partitioner: typing.Any = ..., warm_start_from: typing.Any = ..., loss_reduction: typing.Any = ..., sparse_combiner: typing.Any = ...) -> None: ...

# Written by tools/make_stubs.py.
from tensorfleet.contrib.learn import datasets as datasets
from tensorfleet.contrib.learn import graph_actions as graph_actions
from tensorfleet.contrib.learn import io as io
from tensorfleet.contrib.learn import learn_runner as learn_runner
from tensorfleet.contrib.learn import models as models
from tensorfleet.contrib.learn import monitors as monitors
from tensorfleet.contrib.learn import preprocessing as preprocessing
from tensorfleet.contrib.learn import python as python
from tensorfleet.contrib.learn import utils as utils
from tensorfleet_legacy.contrib.learn.data_feeder import extract_pandas_data as extract_pandas_data
from tensorfleet_legacy.contrib.learn.data_feeder import extract_pandas_labels as extract_pandas_labels
from tensorfleet_legacy.contrib.learn.data_feeder import extract_pandas_matrix as extract_pandas_matrix
from tensorfleet_legacy.contrib.learn.dnn_linear_combined import DNNEstimator as DNNEstimator
from tensorfleet_legacy.contrib.learn.dnn_linear_combined import DNNLinearCombinedEstimator as DNNLinearCombinedEstimator
from tensorfleet_legacy.contrib.learn.dnn_linear_combined import LinearEstimator as LinearEstimator
from tensorfleet_legacy.contrib.learn.dnn_linear_combined import LogisticRegressor as LogisticRegressor
from tensorfleet_legacy.contrib.learn.dnn_linear_combined import SVM as SVM
from tensorfleet_legacy.contrib.learn.estimator import DNNClassifier as _DNNClassifier
from tensorfleet_legacy.contrib.learn.estimator import DNNLinearCombinedClassifier as _DNNLinearCombinedClassifier
from tensorfleet_legacy.contrib.learn.estimator import DNNLinearCombinedRegressor as _DNNLinearCombinedRegressor
from tensorfleet_legacy.contrib.learn.estimator import DNNRegressor as _DNNRegressor
from tensorfleet_legacy.contrib.learn.estimator import Estimator as Estimator
from tensorfleet_legacy.contrib.learn.estimator import LinearClassifier as _LinearClassifier
from tensorfleet_legacy.contrib.learn.estimator import LinearRegressor as _LinearRegressor
from tensorfleet_legacy.contrib.learn.estimator_sklearn import Evaluable as Evaluable
from tensorfleet_legacy.contrib.learn.estimator_sklearn import NotFittedError as NotFittedError
from tensorfleet_legacy.contrib.learn.estimator_sklearn import SKCompat as SKCompat
from tensorfleet_legacy.contrib.learn.estimator_sklearn import Trainable as Trainable
from tensorfleet_legacy.contrib.learn.estimator_sklearn import infer_real_valued_columns_from_input_fn as infer_real_valued_columns_from_input_fn
from tensorfleet_legacy.contrib.learn.experiment import Experiment as Experiment
from tensorfleet_legacy.contrib.learn.experiment import ExportStrategy as ExportStrategy
from tensorfleet_legacy.contrib.learn.experiment import make_export_strategy as make_export_strategy
from tensorfleet_legacy.contrib.learn.graph_actions import evaluate as evaluate
from tensorfleet_legacy.contrib.learn.graph_actions import infer as infer
from tensorfleet_legacy.contrib.learn.graph_actions import run_feeds as run_feeds
from tensorfleet_legacy.contrib.learn.graph_actions import run_n as run_n
from tensorfleet_legacy.contrib.learn.graph_actions import train as train
from tensorfleet_legacy.contrib.learn.head import Head as Head
from tensorfleet_legacy.contrib.learn.head_functions import binary_svm_head as binary_svm_head
from tensorfleet_legacy.contrib.learn.head_functions import loss_only_head as loss_only_head
from tensorfleet_legacy.contrib.learn.head_functions import multi_class_head as multi_class_head
from tensorfleet_legacy.contrib.learn.head_functions import multi_head as multi_head
from tensorfleet_legacy.contrib.learn.head_functions import multi_label_head as multi_label_head
from tensorfleet_legacy.contrib.learn.head_functions import no_op_train_fn as no_op_train_fn
from tensorfleet_legacy.contrib.learn.head_functions import poisson_regression_head as poisson_regression_head
from tensorfleet_legacy.contrib.learn.head_functions import regression_head as regression_head
from tensorfleet_legacy.contrib.learn.metric_key import MetricKey as MetricKey
from tensorfleet_legacy.contrib.learn.model_fn import InputFnOps as InputFnOps
from tensorfleet_legacy.contrib.learn.model_fn import MetricSpec as MetricSpec
from tensorfleet_legacy.contrib.learn.model_fn import ModelFnOps as ModelFnOps
from tensorfleet_legacy.contrib.learn.model_fn import PredictionKey as PredictionKey
from tensorfleet_legacy.contrib.learn.model_fn import ProblemType as ProblemType
from tensorfleet_legacy.contrib.learn.model_fn import build_parsing_serving_input_fn as build_parsing_serving_input_fn
from tensorfleet_legacy.contrib.learn.monitors import NanLossDuringTrainingError as NanLossDuringTrainingError
from tensorfleet_legacy.contrib.learn.run_config import ModeKeys as ModeKeys
from tensorfleet_legacy.contrib.learn.run_config import RunConfig as RunConfig
from tensorfleet_legacy.contrib.learn.run_config import TaskType as TaskType
from tensorfleet_legacy.contrib.learn.text import infer_real_valued_columns_from_input as infer_real_valued_columns_from_input
from tensorfleet_legacy.contrib.learn.text import read_batch_features as read_batch_features
import typing
class DNNClassifier(_DNNClassifier):
    def __init__(self, hidden_units: typing.Any, feature_columns: typing.Any, model_dir: typing.Any = ..., n_classes: typing.Any = ..., weight_column_name: typing.Any = ..., optimizer: typing.Any = ..., activation_fn: typing.Any = ..., dropout: typing.Any = ..., gradient_clip_norm: typing.Any = ..., enable_centered_bias: typing.Any = ..., config: typing.Any = ..., feature_engineering_fn: typing.Any = ..., embedding_lr_multipliers: typing.Any = ..., input_layer_min_slice_size: typing.Any = ..., label_keys: typing.Any = ...) -> None: ...
class DNNLinearCombinedClassifier(_DNNLinearCombinedClassifier):
    def __init__(self, model_dir: typing.Any = ..., n_classes: typing.Any = ..., weight_column_name: typing.Any = ..., linear_feature_columns: typing.Any = ..., linear_optimizer: typing.Any = ..., _joint_linear_weights: typing.Any = ..., dnn_feature_columns: typing.Any = ..., dnn_optimizer: typing.Any = ..., dnn_hidden_units: typing.Any = ..., dnn_activation_fn: typing.Any = ..., dnn_dropout: typing.Any = ..., gradient_clip_norm: typing.Any = ..., enable_centered_bias: typing.Any = ..., config: typing.Any = ..., feature_engineering_fn: typing.Any = ..., embedding_lr_multipliers: typing.Any = ..., input_layer_min_slice_size: typing.Any = ..., label_keys: typing.Any = ..., fix_global_step_increment_bug: typing.Any = ...) -> None: ...
class DNNLinearCombinedRegressor(_DNNLinearCombinedRegressor):
    def __init__(self, model_dir: typing.Any = ..., weight_column_name: typing.Any = ..., linear_feature_columns: typing.Any = ..., linear_optimizer: typing.Any = ..., _joint_linear_weights: typing.Any = ..., dnn_feature_columns: typing.Any = ..., dnn_optimizer: typing.Any = ..., dnn_hidden_units: typing.Any = ..., dnn_activation_fn: typing.Any = ..., dnn_dropout: typing.Any = ..., gradient_clip_norm: typing.Any = ..., enable_centered_bias: typing.Any = ..., label_dimension: typing.Any = ..., config: typing.Any = ..., feature_engineering_fn: typing.Any = ..., embedding_lr_multipliers: typing.Any = ..., input_layer_min_slice_size: typing.Any = ..., fix_global_step_increment_bug: typing.Any = ...) -> None: ...
class DNNRegressor(_DNNRegressor):
    def __init__(self, hidden_units: typing.Any, feature_columns: typing.Any, model_dir: typing.Any = ..., weight_column_name: typing.Any = ..., optimizer: typing.Any = ..., activation_fn: typing.Any = ..., dropout: typing.Any = ..., gradient_clip_norm: typing.Any = ..., enable_centered_bias: typing.Any = ..., config: typing.Any = ..., feature_engineering_fn: typing.Any = ..., label_dimension: typing.Any = ..., embedding_lr_multipliers: typing.Any = ..., input_layer_min_slice_size: typing.Any = ...) -> None: ...
class LinearClassifier(_LinearClassifier):
    def __init__(self, feature_columns: typing.Any, model_dir: typing.Any = ..., n_classes: typing.Any = ..., weight_column_name: typing.Any = ..., optimizer: typing.Any = ..., gradient_clip_norm: typing.Any = ..., enable_centered_bias: typing.Any = ..., _joint_weight: typing.Any = ..., config: typing.Any = ..., feature_engineering_fn: typing.Any = ..., label_keys: typing.Any = ...) -> None: ...
class LinearRegressor(_LinearRegressor):
    def __init__(self, feature_columns: typing.Any, model_dir: typing.Any = ..., weight_column_name: typing.Any = ..., optimizer: typing.Any = ..., gradient_clip_norm: typing.Any = ..., enable_centered_bias: typing.Any = ..., label_dimension: typing.Any = ..., _joint_weights: typing.Any = ..., config: typing.Any = ..., feature_engineering_fn: typing.Any = ...) -> None: ...

# Written by tools/make_stubs.py.
from tensorfleet_legacy.estimator.canned.dnn import call_logit_fn as call_logit_fn
from tensorfleet_legacy.estimator.canned.dnn import dnn_logit_fn_builder as dnn_logit_fn_builder
from tensorfleet_legacy.estimator.canned.dnn import linear_logit_fn_builder as linear_logit_fn_builder
from tensorfleet_legacy.estimator.canned.kmeans import KMeansClustering as _KMeans
from tensorfleet_legacy.estimator.canned.linear_sdca import LinearSDCA as LinearSDCA
from tensorfleet_legacy.estimator.early_stopping import make_early_stopping_hook as make_early_stopping_hook
from tensorfleet_legacy.estimator.early_stopping import make_stop_at_checkpoint_step_hook as make_stop_at_checkpoint_step_hook
from tensorfleet_legacy.estimator.export import build_raw_supervised_input_receiver_fn as build_raw_supervised_input_receiver_fn
from tensorfleet_legacy.estimator.hooks import InMemoryEvaluatorHook as InMemoryEvaluatorHook
import typing
KMeans = _KMeans
def stop_if_higher_hook(estimator: typing.Any, metric_name: typing.Any, threshold: typing.Any, eval_dir: typing.Any = ..., min_steps: typing.Any = ..., run_every_secs: typing.Any = ..., run_every_steps: typing.Any = ...) -> typing.Any: ...
def stop_if_lower_hook(estimator: typing.Any, metric_name: typing.Any, threshold: typing.Any, eval_dir: typing.Any = ..., min_steps: typing.Any = ..., run_every_secs: typing.Any = ..., run_every_steps: typing.Any = ...) -> typing.Any: ...
def stop_if_no_decrease_hook(estimator: typing.Any, metric_name: typing.Any, max_steps_without_decrease: typing.Any, eval_dir: typing.Any = ..., min_steps: typing.Any = ..., run_every_secs: typing.Any = ..., run_every_steps: typing.Any = ...) -> typing.Any: ...
def stop_if_no_increase_hook(estimator: typing.Any, metric_name: typing.Any, max_steps_without_increase: typing.Any, eval_dir: typing.Any = ..., min_steps: typing.Any = ..., run_every_secs: typing.Any = ..., run_every_steps: typing.Any = ...) -> typing.Any: ...

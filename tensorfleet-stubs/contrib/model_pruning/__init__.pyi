# Written by tools/make_stubs.py.
from tensorfleet.contrib.model_pruning import python as python
from tensorfleet_legacy.contrib.model_pruning.layers import MaskedBasicLSTMCell as _MaskedBasicLSTMCell
from tensorfleet_legacy.contrib.model_pruning.layers import MaskedLSTMCell as _MaskedLSTMCell
from tensorfleet_legacy.contrib.model_pruning.learning import graph_def_from_checkpoint as graph_def_from_checkpoint
from tensorfleet_legacy.contrib.model_pruning.learning import strip_pruning_vars_fn as strip_pruning_vars_fn
from tensorfleet_legacy.contrib.model_pruning.pruning import Pruning as Pruning
from tensorfleet_legacy.contrib.model_pruning.pruning import apply_mask as apply_mask
from tensorfleet_legacy.contrib.model_pruning.pruning import get_masked_weights as get_masked_weights
from tensorfleet_legacy.contrib.model_pruning.pruning import get_masks as get_masks
from tensorfleet_legacy.contrib.model_pruning.pruning import get_pruning_hparams as get_pruning_hparams
from tensorfleet_legacy.contrib.model_pruning.pruning import get_thresholds as get_thresholds
from tensorfleet_legacy.contrib.model_pruning.pruning import get_weight_sparsity as get_weight_sparsity
from tensorfleet_legacy.contrib.model_pruning.pruning import get_weights as get_weights
import builtins
import typing
class MaskedBasicLSTMCell(_MaskedBasicLSTMCell):
    def __init__(self, num_units: builtins.int, forget_bias: builtins.float = ..., state_is_tuple: builtins.bool = ..., activation: typing.Any = ..., reuse: builtins.bool | None = ..., name: builtins.str | None = ...) -> None: ...
class MaskedLSTMCell(_MaskedLSTMCell):
    def __init__(self, num_units: builtins.int, use_peepholes: builtins.bool = ..., cell_clip: builtins.float | None = ..., initializer: typing.Any = ..., num_proj: builtins.int | None = ..., proj_clip: builtins.float | None = ..., num_unit_shards: builtins.int | None = ..., num_proj_shards: builtins.int | None = ..., forget_bias: builtins.float = ..., state_is_tuple: builtins.bool = ..., activation: typing.Any = ..., reuse: builtins.bool | None = ...) -> None: ...
def masked_conv2d(inputs: typing.Any, num_outputs: builtins.int, kernel_size: typing.Any, stride: typing.Any = ..., padding: builtins.str = ..., data_format: builtins.str | None = ..., rate: typing.Any = ..., activation_fn: typing.Any = ..., normalizer_fn: typing.Any = ..., normalizer_params: typing.Any = ..., weights_initializer: typing.Any = ..., weights_regularizer: typing.Any = ..., biases_initializer: typing.Any = ..., biases_regularizer: typing.Any = ..., reuse: typing.Any = ..., variables_collections: typing.Any = ..., outputs_collections: typing.Any = ..., trainable: builtins.bool = ..., scope: typing.Any = ...) -> typing.Any: ...
def masked_convolution(inputs: typing.Any, num_outputs: builtins.int, kernel_size: typing.Any, stride: typing.Any = ..., padding: builtins.str = ..., data_format: builtins.str | None = ..., rate: typing.Any = ..., activation_fn: typing.Any = ..., normalizer_fn: typing.Any = ..., normalizer_params: typing.Any = ..., weights_initializer: typing.Any = ..., weights_regularizer: typing.Any = ..., biases_initializer: typing.Any = ..., biases_regularizer: typing.Any = ..., reuse: typing.Any = ..., variables_collections: typing.Any = ..., outputs_collections: typing.Any = ..., trainable: builtins.bool = ..., scope: typing.Any = ...) -> typing.Any: ...
def masked_fully_connected(inputs: typing.Any, num_outputs: builtins.int, activation_fn: typing.Any = ..., normalizer_fn: typing.Any = ..., normalizer_params: typing.Any = ..., weights_initializer: typing.Any = ..., weights_regularizer: typing.Any = ..., biases_initializer: typing.Any = ..., biases_regularizer: typing.Any = ..., reuse: typing.Any = ..., variables_collections: typing.Any = ..., outputs_collections: typing.Any = ..., trainable: builtins.bool = ..., scope: typing.Any = ...) -> typing.Any: ...
def train(train_op: typing.Any, logdir: typing.Any, mask_update_op: typing.Any, train_step_fn: typing.Any = ..., train_step_kwargs: typing.Any = ..., log_every_n_steps: typing.Any = ..., graph: typing.Any = ..., master: typing.Any = ..., is_chief: typing.Any = ..., global_step: typing.Any = ..., number_of_steps: typing.Any = ..., init_op: typing.Any = ..., init_feed_dict: typing.Any = ..., local_init_op: typing.Any = ..., init_fn: typing.Any = ..., ready_op: typing.Any = ..., summary_op: typing.Any = ..., save_summaries_secs: typing.Any = ..., summary_writer: typing.Any = ..., startup_delay_steps: typing.Any = ..., saver: typing.Any = ..., save_interval_secs: typing.Any = ..., sync_optimizer: typing.Any = ..., session_config: typing.Any = ..., trace_every_n_steps: typing.Any = ...) -> typing.Any: ...

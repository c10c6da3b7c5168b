# Written by tools/make_stubs.py.
from tensorfleet.api.layers.rnn import bidirectional_dynamic_rnn as bidirectional_dynamic_rnn
from tensorfleet.api.layers.rnn import dynamic_rnn as dynamic_rnn
from tensorfleet.api.layers.rnn import raw_rnn as raw_rnn
from tensorfleet.api.layers.rnn_static import static_bidirectional_rnn as static_bidirectional_rnn
from tensorfleet.api.layers.rnn_static import static_rnn as static_rnn
from tensorfleet.api.layers.rnn_static import static_state_saving_rnn as static_state_saving_rnn
from tensorfleet.api.nn.convolutions import atrous_conv2d as atrous_conv2d
from tensorfleet.api.nn.convolutions import atrous_conv2d_transpose as atrous_conv2d_transpose
from tensorfleet.api.nn.convolutions import conv1d as conv1d
from tensorfleet.api.nn.convolutions import conv1d_transpose as conv1d_transpose
from tensorfleet.api.nn.convolutions import conv_transpose as conv_transpose
from tensorfleet.api.nn.convolutions import convolution as convolution
from tensorfleet.api.nn.convolutions import depthwise_conv2d as depthwise_conv2d
from tensorfleet.api.nn.convolutions import pool as pool
from tensorfleet.api.nn.convolutions import separable_conv2d as separable_conv2d
from tensorfleet.api.nn.convolutions import with_space_to_batch as with_space_to_batch
from tensorfleet.api.nn.embedding import embedding_lookup as embedding_lookup
from tensorfleet.api.nn.embedding_sparse import embedding_lookup_sparse as embedding_lookup_sparse
from tensorfleet.api.nn.embedding_sparse import safe_embedding_lookup_sparse as safe_embedding_lookup_sparse
from tensorfleet.api.nn.normalization import batch_norm_with_global_normalization as batch_norm_with_global_normalization
from tensorfleet.api.nn.normalization import batch_normalization as batch_normalization
from tensorfleet.api.nn.normalization import dropout as dropout
from tensorfleet.api.nn.normalization import l2_normalize as l2_normalize
from tensorfleet.api.nn.normalization import moments as moments
from tensorfleet.api.nn.normalization import normalize_moments as normalize_moments
from tensorfleet.api.nn.normalization import sufficient_statistics as sufficient_statistics
from tensorfleet.api.nn.normalization import weighted_moments as weighted_moments
from tensorfleet.api.nn.normalization import zero_fraction as zero_fraction
from tensorfleet.api.nn.pooling import avg_pool as _avg_pool2d
from tensorfleet.api.nn.pooling import avg_pool as avg_pool
from tensorfleet.api.nn.pooling import avg_pool1d as avg_pool1d
from tensorfleet.api.nn.pooling import avg_pool3d as avg_pool3d
from tensorfleet.api.nn.pooling import avg_pool_v2 as avg_pool_v2
from tensorfleet.api.nn.pooling import max_pool as max_pool
from tensorfleet.api.nn.pooling import max_pool1d as max_pool1d
from tensorfleet.api.nn.pooling import max_pool2d as max_pool2d
from tensorfleet.api.nn.pooling import max_pool3d as max_pool3d
from tensorfleet.api.nn.pooling import max_pool_v2 as max_pool_v2
from tensorfleet.api.nn.pooling import max_pool_with_argmax as max_pool_with_argmax
from tensorfleet.api.nn.scaling import compute_average_loss as compute_average_loss
from tensorfleet.api.nn.scaling import scale_regularization_loss as scale_regularization_loss
from tensorfleet.nn import rnn_cell as rnn_cell
from tensorfleet.nn import seq2seq as seq2seq
from tensorfleet.ops.array.space_blocks import depth_to_space as depth_to_space
from tensorfleet.ops.array.space_blocks import space_to_batch as space_to_batch
from tensorfleet.ops.array.space_blocks import space_to_depth as space_to_depth
from tensorfleet.ops.math.sorting import in_top_k as in_top_k
from tensorfleet.ops.math.sorting import top_k as top_k
from tensorfleet.ops.math.sums import l2_loss as l2_loss
from tensorfleet.ops.nn.activations import bias_add as bias_add
from tensorfleet.ops.nn.activations import crelu as crelu
from tensorfleet.ops.nn.activations import leaky_relu as leaky_relu
from tensorfleet.ops.nn.activations import relu6 as relu6
from tensorfleet.ops.nn.activations import relu_layer as relu_layer
from tensorfleet.ops.nn.activations import swish as swish
from tensorfleet.ops.nn.activations import xw_plus_b as xw_plus_b
from tensorfleet.ops.nn.conv import conv2d as conv2d
from tensorfleet.ops.nn.conv import conv2d_backprop_filter as conv2d_backprop_filter
from tensorfleet.ops.nn.conv import conv2d_backprop_input as conv2d_backprop_input
from tensorfleet.ops.nn.conv import conv2d_transpose as conv2d_transpose
from tensorfleet.ops.nn.conv import conv3d as conv3d
from tensorfleet.ops.nn.conv import conv3d_backprop_filter_v2 as _conv3d_backprop_filter
from tensorfleet.ops.nn.conv import conv3d_backprop_filter_v2 as conv3d_backprop_filter_v2
from tensorfleet.ops.nn.conv import conv3d_transpose as conv3d_transpose
from tensorfleet.ops.nn.ctc import collapse_repeated as collapse_repeated
from tensorfleet.ops.nn.ctc import ctc_beam_search_decoder as ctc_beam_search_decoder
from tensorfleet.ops.nn.ctc import ctc_beam_search_decoder_v2 as ctc_beam_search_decoder_v2
from tensorfleet.ops.nn.ctc import ctc_greedy_decoder as ctc_greedy_decoder
from tensorfleet.ops.nn.ctc import ctc_loss_v2 as ctc_loss_v2
from tensorfleet.ops.nn.ctc import ctc_unique_labels as ctc_unique_labels
from tensorfleet.ops.nn.losses import log_poisson_loss as log_poisson_loss
from tensorfleet.ops.nn.losses import log_softmax as log_softmax
from tensorfleet.ops.nn.losses import softmax as softmax
from tensorfleet.ops.nn.losses import softmax_cross_entropy_with_logits_v2 as softmax_cross_entropy_with_logits_v2
from tensorfleet.ops.nn.losses import weighted_cross_entropy_with_logits as weighted_cross_entropy_with_logits
from tensorfleet.ops.nn.morphology import dilation2d as dilation2d
from tensorfleet.ops.nn.morphology import erosion2d as erosion2d
from tensorfleet.ops.nn.norm import fused_batch_norm as fused_batch_norm
from tensorfleet.ops.nn.sampling import all_candidate_sampler as all_candidate_sampler
from tensorfleet.ops.nn.sampling import compute_accidental_hits as compute_accidental_hits
from tensorfleet.ops.nn.sampling import fixed_unigram_candidate_sampler as fixed_unigram_candidate_sampler
from tensorfleet.ops.quantized.nn import quantized_conv2d as quantized_conv2d
import builtins
import typing
avg_pool2d = _avg_pool2d
def bidirectional_rnn(cell_fw: typing.Any, cell_bw: typing.Any, inputs: typing.Any, initial_state_fw: typing.Any = ..., initial_state_bw: typing.Any = ..., dtype: typing.Any = ..., sequence_length: typing.Any = ..., scope: typing.Any = ...) -> typing.Any: ...
conv3d_backprop_filter = _conv3d_backprop_filter
def ctc_loss(labels: typing.Any, inputs: typing.Any = ..., sequence_length: typing.Any = ..., preprocess_collapse_repeated: builtins.bool = ..., ctc_merge_repeated: builtins.bool = ..., ignore_longer_outputs_than_inputs: builtins.bool = ..., time_major: builtins.bool = ..., logits: typing.Any = ...) -> typing.Any: ...
def depthwise_conv2d_backprop_filter(input: typing.Any, filter_sizes: typing.Any, out_backprop: typing.Any, strides: typing.Any, padding: typing.Any, data_format: typing.Any = ..., dilations: typing.Any = ..., name: typing.Any = ...) -> typing.Any: ...
def depthwise_conv2d_backprop_input(input_sizes: typing.Any, filter: typing.Any, out_backprop: typing.Any, strides: typing.Any, padding: typing.Any, data_format: typing.Any = ..., dilations: typing.Any = ..., name: typing.Any = ...) -> typing.Any: ...
def depthwise_conv2d_native(input: typing.Any, filter: typing.Any, strides: typing.Any, padding: typing.Any, data_format: typing.Any = ..., dilations: typing.Any = ..., name: typing.Any = ...) -> typing.Any: ...
def depthwise_conv2d_native_backprop_filter(input: typing.Any, filter_sizes: typing.Any, out_backprop: typing.Any, strides: typing.Any, padding: typing.Any, data_format: typing.Any = ..., dilations: typing.Any = ..., name: typing.Any = ...) -> typing.Any: ...
def depthwise_conv2d_native_backprop_input(input_sizes: typing.Any, filter: typing.Any, out_backprop: typing.Any, strides: typing.Any, padding: typing.Any, data_format: typing.Any = ..., dilations: typing.Any = ..., name: typing.Any = ...) -> typing.Any: ...
def elu(features: typing.Any, name: builtins.str | None = ...) -> typing.Any: ...
def fractional_avg_pool(value: typing.Any, pooling_ratio: typing.Any, pseudo_random: builtins.bool = ..., overlapping: builtins.bool = ..., deterministic: builtins.bool = ..., seed: builtins.int = ..., seed2: builtins.int = ..., name: builtins.str | None = ...) -> typing.Any: ...
def fractional_max_pool(value: typing.Any, pooling_ratio: typing.Any, pseudo_random: builtins.bool = ..., overlapping: builtins.bool = ..., deterministic: builtins.bool = ..., seed: builtins.int = ..., seed2: builtins.int = ..., name: builtins.str | None = ...) -> typing.Any: ...
def learned_unigram_candidate_sampler(true_classes: typing.Any, num_true: builtins.int, num_sampled: builtins.int, unique: builtins.bool, range_max: builtins.int, seed: builtins.int | None = ..., name: builtins.str | None = ...) -> typing.Any: ...
def local_response_normalization(input: typing.Any, depth_radius: typing.Any = ..., bias: typing.Any = ..., alpha: typing.Any = ..., beta: typing.Any = ..., name: typing.Any = ...) -> typing.Any: ...
def log_uniform_candidate_sampler(true_classes: typing.Any, num_true: builtins.int, num_sampled: builtins.int, unique: builtins.bool, range_max: builtins.int, seed: builtins.int | None = ..., name: builtins.str | None = ...) -> typing.Any: ...
def lrn(input: typing.Any, depth_radius: typing.Any = ..., bias: typing.Any = ..., alpha: typing.Any = ..., beta: typing.Any = ..., name: typing.Any = ...) -> typing.Any: ...
def nce_loss(weights: typing.Any, biases: typing.Any, labels: typing.Any, inputs: typing.Any, num_sampled: builtins.int, num_classes: builtins.int, num_true: builtins.int = ..., sampled_values: typing.Any = ..., remove_accidental_hits: builtins.bool = ..., partition_strategy: builtins.str = ..., name: builtins.str = ...) -> typing.Any: ...
def quantized_avg_pool(input: typing.Any, min_input: typing.Any, max_input: typing.Any, ksize: typing.Any, strides: typing.Any, padding: typing.Any, name: typing.Any = ...) -> typing.Any: ...
def quantized_max_pool(input: typing.Any, min_input: typing.Any, max_input: typing.Any, ksize: typing.Any, strides: typing.Any, padding: typing.Any, name: typing.Any = ...) -> typing.Any: ...
def quantized_relu_x(features: typing.Any, max_value: typing.Any, min_features: typing.Any, max_features: typing.Any, out_type: typing.Any = ..., name: typing.Any = ...) -> typing.Any: ...
def relu(features: typing.Any, name: builtins.str | None = ...) -> typing.Any: ...
def rnn(cell: typing.Any, inputs: typing.Any, initial_state: typing.Any = ..., dtype: typing.Any = ..., sequence_length: typing.Any = ..., scope: typing.Any = ...) -> typing.Any: ...
def sampled_softmax_loss(weights: typing.Any, biases: typing.Any, labels: typing.Any, inputs: typing.Any, num_sampled: builtins.int, num_classes: builtins.int, num_true: builtins.int = ..., sampled_values: typing.Any = ..., remove_accidental_hits: builtins.bool = ..., partition_strategy: builtins.str = ..., name: builtins.str = ..., seed: builtins.int | None = ...) -> typing.Any: ...
def selu(features: typing.Any, name: builtins.str | None = ...) -> typing.Any: ...
def sigmoid(x: typing.Any, name: builtins.str | None = ...) -> typing.Any: ...
def sigmoid_cross_entropy_with_logits(_sentinel: typing.Any = ..., labels: typing.Any = ..., logits: typing.Any = ..., name: builtins.str | None = ...) -> typing.Any: ...
def softmax_cross_entropy_with_logits(_sentinel: typing.Any = ..., labels: typing.Any = ..., logits: typing.Any = ..., dim: typing.Any = ..., name: builtins.str | None = ..., axis: typing.Any = ...) -> typing.Any: ...
def softplus(features: typing.Any, name: builtins.str | None = ...) -> typing.Any: ...
def softsign(features: typing.Any, name: builtins.str | None = ...) -> typing.Any: ...
def sparse_softmax_cross_entropy_with_logits(_sentinel: typing.Any = ..., labels: typing.Any = ..., logits: typing.Any = ..., name: builtins.str | None = ...) -> typing.Any: ...
def state_saving_rnn(cell: typing.Any, inputs: typing.Any, state_saver: typing.Any, state_name: typing.Any, sequence_length: typing.Any = ..., scope: typing.Any = ...) -> typing.Any: ...
def tanh(x: typing.Any, name: builtins.str | None = ...) -> typing.Any: ...
def uniform_candidate_sampler(true_classes: typing.Any, num_true: builtins.int, num_sampled: builtins.int, unique: builtins.bool, range_max: builtins.int, seed: builtins.int | None = ..., name: builtins.str | None = ...) -> typing.Any: ...

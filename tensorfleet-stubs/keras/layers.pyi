# Written by tools/make_stubs.py.
from tensorfleet.api.layers.specs import InputSpec as InputSpec
from tensorfleet_legacy.keras.engine.base_layer import Input as Input
from tensorfleet_legacy.keras.engine.base_layer import InputLayer as InputLayer
from tensorfleet_legacy.keras.engine.base_layer import Layer as Layer
from tensorfleet_legacy.keras.engine.base_layer import Layer as _AveragePooling1D
from tensorfleet_legacy.keras.engine.base_layer import Layer as _AveragePooling2D
from tensorfleet_legacy.keras.engine.base_layer import Layer as _AveragePooling3D
from tensorfleet_legacy.keras.engine.base_layer import Layer as _AvgPool1D
from tensorfleet_legacy.keras.engine.base_layer import Layer as _AvgPool2D
from tensorfleet_legacy.keras.engine.base_layer import Layer as _AvgPool3D
from tensorfleet_legacy.keras.engine.base_layer import Layer as _MaxPool1D
from tensorfleet_legacy.keras.engine.base_layer import Layer as _MaxPool2D
from tensorfleet_legacy.keras.engine.base_layer import Layer as _MaxPool3D
from tensorfleet_legacy.keras.engine.base_layer import Layer as _MaxPooling1D
from tensorfleet_legacy.keras.engine.base_layer import Layer as _MaxPooling2D
from tensorfleet_legacy.keras.engine.base_layer import Layer as _MaxPooling3D
from tensorfleet_legacy.keras.layers.advanced_activations import ActivityRegularization as ActivityRegularization
from tensorfleet_legacy.keras.layers.advanced_activations import AlphaDropout as AlphaDropout
from tensorfleet_legacy.keras.layers.advanced_activations import PReLU as PReLU
from tensorfleet_legacy.keras.layers.advanced_activations import SpatialDropout1D as SpatialDropout1D
from tensorfleet_legacy.keras.layers.advanced_activations import SpatialDropout2D as SpatialDropout2D
from tensorfleet_legacy.keras.layers.advanced_activations import SpatialDropout3D as SpatialDropout3D
from tensorfleet_legacy.keras.layers.advanced_activations import ThresholdedReLU as ThresholdedReLU
from tensorfleet_legacy.keras.layers.convolutional import BatchNormalization as _BatchNormalization
from tensorfleet_legacy.keras.layers.convolutional import Conv1D as _Conv1D
from tensorfleet_legacy.keras.layers.convolutional import Conv1D as _Convolution1D
from tensorfleet_legacy.keras.layers.convolutional import Conv2D as _Conv2D
from tensorfleet_legacy.keras.layers.convolutional import Conv2D as _Convolution2D
from tensorfleet_legacy.keras.layers.convolutional import Conv2DTranspose as Conv2DTranspose
from tensorfleet_legacy.keras.layers.convolutional import Conv2DTranspose as _Convolution2DTranspose
from tensorfleet_legacy.keras.layers.convolutional import Conv3D as _Conv3D
from tensorfleet_legacy.keras.layers.convolutional import Conv3D as _Convolution3D
from tensorfleet_legacy.keras.layers.convolutional import Conv3DTranspose as Conv3DTranspose
from tensorfleet_legacy.keras.layers.convolutional import Conv3DTranspose as _Convolution3DTranspose
from tensorfleet_legacy.keras.layers.convolutional import GlobalAveragePooling1D as _GlobalAveragePooling1D
from tensorfleet_legacy.keras.layers.convolutional import GlobalAveragePooling1D as _GlobalAvgPool1D
from tensorfleet_legacy.keras.layers.convolutional import GlobalAveragePooling2D as GlobalAveragePooling2D
from tensorfleet_legacy.keras.layers.convolutional import GlobalAveragePooling2D as _GlobalAvgPool2D
from tensorfleet_legacy.keras.layers.convolutional import GlobalAveragePooling3D as GlobalAveragePooling3D
from tensorfleet_legacy.keras.layers.convolutional import GlobalAveragePooling3D as _GlobalAvgPool3D
from tensorfleet_legacy.keras.layers.convolutional import GlobalMaxPooling1D as _GlobalMaxPool1D
from tensorfleet_legacy.keras.layers.convolutional import GlobalMaxPooling1D as _GlobalMaxPooling1D
from tensorfleet_legacy.keras.layers.convolutional import GlobalMaxPooling2D as GlobalMaxPooling2D
from tensorfleet_legacy.keras.layers.convolutional import GlobalMaxPooling2D as _GlobalMaxPool2D
from tensorfleet_legacy.keras.layers.convolutional import GlobalMaxPooling3D as GlobalMaxPooling3D
from tensorfleet_legacy.keras.layers.convolutional import GlobalMaxPooling3D as _GlobalMaxPool3D
from tensorfleet_legacy.keras.layers.convolutional import LayerNormalization as LayerNormalization
from tensorfleet_legacy.keras.layers.convolutional import SeparableConv1D as _SeparableConv1D
from tensorfleet_legacy.keras.layers.convolutional import SeparableConv1D as _SeparableConvolution1D
from tensorfleet_legacy.keras.layers.convolutional import SeparableConv2D as _SeparableConv2D
from tensorfleet_legacy.keras.layers.convolutional import SeparableConv2D as _SeparableConvolution2D
from tensorfleet_legacy.keras.layers.convolutional import UpSampling2D as UpSampling2D
from tensorfleet_legacy.keras.layers.convolutional_padding import Cropping1D as Cropping1D
from tensorfleet_legacy.keras.layers.convolutional_padding import Cropping2D as Cropping2D
from tensorfleet_legacy.keras.layers.convolutional_padding import Cropping3D as Cropping3D
from tensorfleet_legacy.keras.layers.convolutional_padding import UpSampling1D as UpSampling1D
from tensorfleet_legacy.keras.layers.convolutional_padding import UpSampling3D as UpSampling3D
from tensorfleet_legacy.keras.layers.convolutional_padding import ZeroPadding1D as ZeroPadding1D
from tensorfleet_legacy.keras.layers.convolutional_padding import ZeroPadding2D as ZeroPadding2D
from tensorfleet_legacy.keras.layers.convolutional_padding import ZeroPadding3D as ZeroPadding3D
from tensorfleet_legacy.keras.layers.convolutional_recurrent import ConvLSTM2D as ConvLSTM2D
from tensorfleet_legacy.keras.layers.core import Activation as Activation
from tensorfleet_legacy.keras.layers.core import Dense as _Dense
from tensorfleet_legacy.keras.layers.core import Dropout as _Dropout
from tensorfleet_legacy.keras.layers.core import ELU as ELU
from tensorfleet_legacy.keras.layers.core import Embedding as Embedding
from tensorfleet_legacy.keras.layers.core import Flatten as _Flatten
from tensorfleet_legacy.keras.layers.core import GaussianDropout as GaussianDropout
from tensorfleet_legacy.keras.layers.core import GaussianNoise as GaussianNoise
from tensorfleet_legacy.keras.layers.core import LeakyReLU as LeakyReLU
from tensorfleet_legacy.keras.layers.core import Masking as Masking
from tensorfleet_legacy.keras.layers.core import Permute as Permute
from tensorfleet_legacy.keras.layers.core import ReLU as ReLU
from tensorfleet_legacy.keras.layers.core import RepeatVector as RepeatVector
from tensorfleet_legacy.keras.layers.core import Reshape as Reshape
from tensorfleet_legacy.keras.layers.core import Softmax as Softmax
from tensorfleet_legacy.keras.layers.core_lambda import Lambda as Lambda
from tensorfleet_legacy.keras.layers.dense_attention import AdditiveAttention as AdditiveAttention
from tensorfleet_legacy.keras.layers.dense_attention import Attention as Attention
from tensorfleet_legacy.keras.layers.dense_features import DenseFeatures as DenseFeatures
from tensorfleet_legacy.keras.layers.local import DepthwiseConv2D as DepthwiseConv2D
from tensorfleet_legacy.keras.layers.local import LocallyConnected1D as _LocallyConnected1D
from tensorfleet_legacy.keras.layers.local import LocallyConnected2D as LocallyConnected2D
from tensorfleet_legacy.keras.layers.merge import Add as Add
from tensorfleet_legacy.keras.layers.merge import Average as Average
from tensorfleet_legacy.keras.layers.merge import Concatenate as Concatenate
from tensorfleet_legacy.keras.layers.merge import Dot as Dot
from tensorfleet_legacy.keras.layers.merge import Maximum as Maximum
from tensorfleet_legacy.keras.layers.merge import Minimum as Minimum
from tensorfleet_legacy.keras.layers.merge import Multiply as Multiply
from tensorfleet_legacy.keras.layers.merge import Subtract as Subtract
from tensorfleet_legacy.keras.layers.merge import concatenate as concatenate
from tensorfleet_legacy.keras.layers.merge import dot as dot
from tensorfleet_legacy.keras.layers.recurrent import CuDNNGRU as CuDNNGRU
from tensorfleet_legacy.keras.layers.recurrent import CuDNNLSTM as CuDNNLSTM
from tensorfleet_legacy.keras.layers.recurrent import GRU as GRU
from tensorfleet_legacy.keras.layers.recurrent import LSTM as LSTM
from tensorfleet_legacy.keras.layers.recurrent import RNN as RNN
from tensorfleet_legacy.keras.layers.recurrent import SimpleRNN as SimpleRNN
from tensorfleet_legacy.keras.layers.recurrent_cells import AbstractRNNCell as AbstractRNNCell
from tensorfleet_legacy.keras.layers.recurrent_cells import GRUCell as GRUCell
from tensorfleet_legacy.keras.layers.recurrent_cells import LSTMCell as LSTMCell
from tensorfleet_legacy.keras.layers.recurrent_cells import SimpleRNNCell as SimpleRNNCell
from tensorfleet_legacy.keras.layers.recurrent_cells import StackedRNNCells as StackedRNNCells
from tensorfleet_legacy.keras.layers.wrappers import Bidirectional as Bidirectional
from tensorfleet_legacy.keras.layers.wrappers import TimeDistributed as TimeDistributed
from tensorfleet_legacy.keras.layers.wrappers import Wrapper as Wrapper
from tensorfleet_legacy.keras.saving.model_config import layer_from as _deserialize
from tensorfleet_legacy.keras.saving.model_config import serialize_layer as _serialize
import builtins
import typing
class AveragePooling1D(_AveragePooling1D):
    def __init__(self, pool_size: typing.Any = ..., strides: typing.Any = ..., padding: builtins.str = ..., data_format: builtins.str | None = ..., **kwargs: typing.Any) -> None: ...
class AveragePooling2D(_AveragePooling2D):
    def __init__(self, pool_size: typing.Any = ..., strides: typing.Any = ..., padding: builtins.str = ..., data_format: builtins.str | None = ..., **kwargs: typing.Any) -> None: ...
class AveragePooling3D(_AveragePooling3D):
    def __init__(self, pool_size: typing.Any = ..., strides: typing.Any = ..., padding: builtins.str = ..., data_format: builtins.str | None = ..., **kwargs: typing.Any) -> None: ...
class AvgPool1D(_AvgPool1D):
    def __init__(self, pool_size: typing.Any = ..., strides: typing.Any = ..., padding: builtins.str = ..., data_format: builtins.str | None = ..., **kwargs: typing.Any) -> None: ...
class AvgPool2D(_AvgPool2D):
    def __init__(self, pool_size: typing.Any = ..., strides: typing.Any = ..., padding: builtins.str = ..., data_format: builtins.str | None = ..., **kwargs: typing.Any) -> None: ...
class AvgPool3D(_AvgPool3D):
    def __init__(self, pool_size: typing.Any = ..., strides: typing.Any = ..., padding: builtins.str = ..., data_format: builtins.str | None = ..., **kwargs: typing.Any) -> None: ...
class BatchNormalization(_BatchNormalization):
    def __init__(self, axis: typing.Any = ..., momentum: builtins.float = ..., epsilon: builtins.float = ..., center: builtins.bool = ..., scale: builtins.bool = ..., beta_initializer: typing.Any = ..., gamma_initializer: typing.Any = ..., moving_mean_initializer: typing.Any = ..., moving_variance_initializer: typing.Any = ..., beta_regularizer: typing.Any = ..., gamma_regularizer: typing.Any = ..., beta_constraint: typing.Any = ..., gamma_constraint: typing.Any = ..., renorm: builtins.bool = ..., renorm_clipping: typing.Any = ..., renorm_momentum: builtins.float = ..., fused: builtins.bool | None = ..., trainable: builtins.bool = ..., virtual_batch_size: builtins.int | None = ..., adjustment: typing.Any = ..., name: builtins.str | None = ..., **kwargs: typing.Any) -> None: ...
class Conv1D(_Conv1D):
    def __init__(self, filters: builtins.int, kernel_size: typing.Any, strides: typing.Any = ..., padding: builtins.str = ..., data_format: builtins.str = ..., dilation_rate: typing.Any = ..., activation: typing.Any = ..., use_bias: builtins.bool = ..., kernel_initializer: typing.Any = ..., bias_initializer: typing.Any = ..., kernel_regularizer: typing.Any = ..., bias_regularizer: typing.Any = ..., activity_regularizer: typing.Any = ..., kernel_constraint: typing.Any = ..., bias_constraint: typing.Any = ..., **kwargs: typing.Any) -> None: ...
class Conv2D(_Conv2D):
    def __init__(self, filters: builtins.int, kernel_size: typing.Any, strides: typing.Any = ..., padding: builtins.str = ..., data_format: builtins.str = ..., dilation_rate: typing.Any = ..., activation: typing.Any = ..., use_bias: builtins.bool = ..., kernel_initializer: typing.Any = ..., bias_initializer: typing.Any = ..., kernel_regularizer: typing.Any = ..., bias_regularizer: typing.Any = ..., activity_regularizer: typing.Any = ..., kernel_constraint: typing.Any = ..., bias_constraint: typing.Any = ..., **kwargs: typing.Any) -> None: ...
class Conv3D(_Conv3D):
    def __init__(self, filters: builtins.int, kernel_size: typing.Any, strides: typing.Any = ..., padding: builtins.str = ..., data_format: builtins.str = ..., dilation_rate: typing.Any = ..., activation: typing.Any = ..., use_bias: builtins.bool = ..., kernel_initializer: typing.Any = ..., bias_initializer: typing.Any = ..., kernel_regularizer: typing.Any = ..., bias_regularizer: typing.Any = ..., activity_regularizer: typing.Any = ..., kernel_constraint: typing.Any = ..., bias_constraint: typing.Any = ..., **kwargs: typing.Any) -> None: ...
class Convolution1D(_Convolution1D):
    def __init__(self, filters: builtins.int, kernel_size: typing.Any, strides: typing.Any = ..., padding: builtins.str = ..., data_format: builtins.str = ..., dilation_rate: typing.Any = ..., activation: typing.Any = ..., use_bias: builtins.bool = ..., kernel_initializer: typing.Any = ..., bias_initializer: typing.Any = ..., kernel_regularizer: typing.Any = ..., bias_regularizer: typing.Any = ..., activity_regularizer: typing.Any = ..., kernel_constraint: typing.Any = ..., bias_constraint: typing.Any = ..., **kwargs: typing.Any) -> None: ...
class Convolution2D(_Convolution2D):
    def __init__(self, filters: builtins.int, kernel_size: typing.Any, strides: typing.Any = ..., padding: builtins.str = ..., data_format: builtins.str = ..., dilation_rate: typing.Any = ..., activation: typing.Any = ..., use_bias: builtins.bool = ..., kernel_initializer: typing.Any = ..., bias_initializer: typing.Any = ..., kernel_regularizer: typing.Any = ..., bias_regularizer: typing.Any = ..., activity_regularizer: typing.Any = ..., kernel_constraint: typing.Any = ..., bias_constraint: typing.Any = ..., **kwargs: typing.Any) -> None: ...
Convolution2DTranspose = _Convolution2DTranspose
class Convolution3D(_Convolution3D):
    def __init__(self, filters: builtins.int, kernel_size: typing.Any, strides: typing.Any = ..., padding: builtins.str = ..., data_format: builtins.str = ..., dilation_rate: typing.Any = ..., activation: typing.Any = ..., use_bias: builtins.bool = ..., kernel_initializer: typing.Any = ..., bias_initializer: typing.Any = ..., kernel_regularizer: typing.Any = ..., bias_regularizer: typing.Any = ..., activity_regularizer: typing.Any = ..., kernel_constraint: typing.Any = ..., bias_constraint: typing.Any = ..., **kwargs: typing.Any) -> None: ...
Convolution3DTranspose = _Convolution3DTranspose
class Dense(_Dense):
    def __init__(self, units: builtins.int, activation: typing.Any = ..., use_bias: builtins.bool = ..., kernel_initializer: typing.Any = ..., bias_initializer: typing.Any = ..., kernel_regularizer: typing.Any = ..., bias_regularizer: typing.Any = ..., activity_regularizer: typing.Any = ..., kernel_constraint: typing.Any = ..., bias_constraint: typing.Any = ..., **kwargs: typing.Any) -> None: ...
class Dropout(_Dropout):
    def __init__(self, rate: typing.Any, noise_shape: typing.Any = ..., seed: builtins.int | None = ..., **kwargs: typing.Any) -> None: ...
class Flatten(_Flatten):
    def __init__(self, data_format: builtins.str | None = ..., **kwargs: typing.Any) -> None: ...
class GlobalAveragePooling1D(_GlobalAveragePooling1D):
    def __init__(self, data_format: builtins.str | None = ..., **kwargs: typing.Any) -> None: ...
class GlobalAvgPool1D(_GlobalAvgPool1D):
    def __init__(self, data_format: builtins.str | None = ..., **kwargs: typing.Any) -> None: ...
GlobalAvgPool2D = _GlobalAvgPool2D
GlobalAvgPool3D = _GlobalAvgPool3D
class GlobalMaxPool1D(_GlobalMaxPool1D):
    def __init__(self, data_format: builtins.str | None = ..., **kwargs: typing.Any) -> None: ...
GlobalMaxPool2D = _GlobalMaxPool2D
GlobalMaxPool3D = _GlobalMaxPool3D
class GlobalMaxPooling1D(_GlobalMaxPooling1D):
    def __init__(self, data_format: builtins.str | None = ..., **kwargs: typing.Any) -> None: ...
class LocallyConnected1D(_LocallyConnected1D):
    def __init__(self, filters: builtins.int, kernel_size: typing.Any, strides: typing.Any = ..., padding: builtins.str = ..., data_format: builtins.str | None = ..., activation: typing.Any = ..., use_bias: builtins.bool = ..., kernel_initializer: typing.Any = ..., bias_initializer: typing.Any = ..., kernel_regularizer: typing.Any = ..., bias_regularizer: typing.Any = ..., activity_regularizer: typing.Any = ..., kernel_constraint: typing.Any = ..., bias_constraint: typing.Any = ..., implementation: builtins.int = ..., **kwargs: typing.Any) -> None: ...
class MaxPool1D(_MaxPool1D):
    def __init__(self, pool_size: typing.Any = ..., strides: typing.Any = ..., padding: builtins.str = ..., data_format: builtins.str | None = ..., **kwargs: typing.Any) -> None: ...
class MaxPool2D(_MaxPool2D):
    def __init__(self, pool_size: typing.Any = ..., strides: typing.Any = ..., padding: builtins.str = ..., data_format: builtins.str | None = ..., **kwargs: typing.Any) -> None: ...
class MaxPool3D(_MaxPool3D):
    def __init__(self, pool_size: typing.Any = ..., strides: typing.Any = ..., padding: builtins.str = ..., data_format: builtins.str | None = ..., **kwargs: typing.Any) -> None: ...
class MaxPooling1D(_MaxPooling1D):
    def __init__(self, pool_size: typing.Any = ..., strides: typing.Any = ..., padding: builtins.str = ..., data_format: builtins.str | None = ..., **kwargs: typing.Any) -> None: ...
class MaxPooling2D(_MaxPooling2D):
    def __init__(self, pool_size: typing.Any = ..., strides: typing.Any = ..., padding: builtins.str = ..., data_format: builtins.str | None = ..., **kwargs: typing.Any) -> None: ...
class MaxPooling3D(_MaxPooling3D):
    def __init__(self, pool_size: typing.Any = ..., strides: typing.Any = ..., padding: builtins.str = ..., data_format: builtins.str | None = ..., **kwargs: typing.Any) -> None: ...
class SeparableConv1D(_SeparableConv1D):
    def __init__(self, filters: builtins.int, kernel_size: typing.Any, strides: typing.Any = ..., padding: builtins.str = ..., data_format: builtins.str = ..., dilation_rate: typing.Any = ..., depth_multiplier: builtins.int = ..., activation: typing.Any = ..., use_bias: builtins.bool = ..., depthwise_initializer: typing.Any = ..., pointwise_initializer: typing.Any = ..., bias_initializer: typing.Any = ..., depthwise_regularizer: typing.Any = ..., pointwise_regularizer: typing.Any = ..., bias_regularizer: typing.Any = ..., activity_regularizer: typing.Any = ..., depthwise_constraint: typing.Any = ..., pointwise_constraint: typing.Any = ..., bias_constraint: typing.Any = ..., **kwargs: typing.Any) -> None: ...
class SeparableConv2D(_SeparableConv2D):
    def __init__(self, filters: builtins.int, kernel_size: typing.Any, strides: typing.Any = ..., padding: builtins.str = ..., data_format: builtins.str = ..., dilation_rate: typing.Any = ..., depth_multiplier: builtins.int = ..., activation: typing.Any = ..., use_bias: builtins.bool = ..., depthwise_initializer: typing.Any = ..., pointwise_initializer: typing.Any = ..., bias_initializer: typing.Any = ..., depthwise_regularizer: typing.Any = ..., pointwise_regularizer: typing.Any = ..., bias_regularizer: typing.Any = ..., activity_regularizer: typing.Any = ..., depthwise_constraint: typing.Any = ..., pointwise_constraint: typing.Any = ..., bias_constraint: typing.Any = ..., **kwargs: typing.Any) -> None: ...
class SeparableConvolution1D(_SeparableConvolution1D):
    def __init__(self, filters: builtins.int, kernel_size: typing.Any, strides: typing.Any = ..., padding: builtins.str = ..., data_format: builtins.str = ..., dilation_rate: typing.Any = ..., depth_multiplier: builtins.int = ..., activation: typing.Any = ..., use_bias: builtins.bool = ..., depthwise_initializer: typing.Any = ..., pointwise_initializer: typing.Any = ..., bias_initializer: typing.Any = ..., depthwise_regularizer: typing.Any = ..., pointwise_regularizer: typing.Any = ..., bias_regularizer: typing.Any = ..., activity_regularizer: typing.Any = ..., depthwise_constraint: typing.Any = ..., pointwise_constraint: typing.Any = ..., bias_constraint: typing.Any = ..., **kwargs: typing.Any) -> None: ...
class SeparableConvolution2D(_SeparableConvolution2D):
    def __init__(self, filters: builtins.int, kernel_size: typing.Any, strides: typing.Any = ..., padding: builtins.str = ..., data_format: builtins.str = ..., dilation_rate: typing.Any = ..., depth_multiplier: builtins.int = ..., activation: typing.Any = ..., use_bias: builtins.bool = ..., depthwise_initializer: typing.Any = ..., pointwise_initializer: typing.Any = ..., bias_initializer: typing.Any = ..., depthwise_regularizer: typing.Any = ..., pointwise_regularizer: typing.Any = ..., bias_regularizer: typing.Any = ..., activity_regularizer: typing.Any = ..., depthwise_constraint: typing.Any = ..., pointwise_constraint: typing.Any = ..., bias_constraint: typing.Any = ..., **kwargs: typing.Any) -> None: ...
def add(inputs: typing.Any, **kwargs: typing.Any) -> typing.Any: ...
def average(inputs: typing.Any, **kwargs: typing.Any) -> typing.Any: ...
deserialize = _deserialize
def maximum(inputs: typing.Any, **kwargs: typing.Any) -> typing.Any: ...
def minimum(inputs: typing.Any, **kwargs: typing.Any) -> typing.Any: ...
def multiply(inputs: typing.Any, **kwargs: typing.Any) -> typing.Any: ...
serialize = _serialize
def subtract(inputs: typing.Any, **kwargs: typing.Any) -> typing.Any: ...

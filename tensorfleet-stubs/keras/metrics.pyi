# Written by tools/make_stubs.py.
from tensorfleet_legacy.keras.losses import binary_accuracy as binary_accuracy
from tensorfleet_legacy.keras.losses import binary_crossentropy as binary_crossentropy
from tensorfleet_legacy.keras.losses import categorical_accuracy as categorical_accuracy
from tensorfleet_legacy.keras.losses import categorical_crossentropy as categorical_crossentropy
from tensorfleet_legacy.keras.losses import categorical_hinge as categorical_hinge
from tensorfleet_legacy.keras.losses import hinge as hinge
from tensorfleet_legacy.keras.losses import kullback_leibler_divergence as _KLD
from tensorfleet_legacy.keras.losses import kullback_leibler_divergence as _kld
from tensorfleet_legacy.keras.losses import kullback_leibler_divergence as kullback_leibler_divergence
from tensorfleet_legacy.keras.losses import logcosh as logcosh
from tensorfleet_legacy.keras.losses import mean_absolute_error as _MAE
from tensorfleet_legacy.keras.losses import mean_absolute_error as _mae
from tensorfleet_legacy.keras.losses import mean_absolute_error as mean_absolute_error
from tensorfleet_legacy.keras.losses import mean_absolute_percentage_error as _MAPE
from tensorfleet_legacy.keras.losses import mean_absolute_percentage_error as _mape
from tensorfleet_legacy.keras.losses import mean_absolute_percentage_error as mean_absolute_percentage_error
from tensorfleet_legacy.keras.losses import mean_squared_error as _MSE
from tensorfleet_legacy.keras.losses import mean_squared_error as _mse
from tensorfleet_legacy.keras.losses import mean_squared_error as mean_squared_error
from tensorfleet_legacy.keras.losses import mean_squared_logarithmic_error as _MSLE
from tensorfleet_legacy.keras.losses import mean_squared_logarithmic_error as _msle
from tensorfleet_legacy.keras.losses import mean_squared_logarithmic_error as mean_squared_logarithmic_error
from tensorfleet_legacy.keras.losses import poisson as poisson
from tensorfleet_legacy.keras.losses import sparse_categorical_accuracy as sparse_categorical_accuracy
from tensorfleet_legacy.keras.losses import sparse_categorical_crossentropy as sparse_categorical_crossentropy
from tensorfleet_legacy.keras.losses import squared_hinge as squared_hinge
from tensorfleet_legacy.keras.metrics import MeanIoU as MeanIoU
from tensorfleet_legacy.keras.metrics import MeanRelativeError as MeanRelativeError
from tensorfleet_legacy.keras.metrics import MeanTensor as MeanTensor
from tensorfleet_legacy.keras.metrics import RootMeanSquaredError as _RootMeanSquaredError
from tensorfleet_legacy.keras.metrics import cosine_proximity as _cosine
from tensorfleet_legacy.keras.metrics import cosine_proximity as cosine_proximity
from tensorfleet_legacy.keras.metrics import deserialize as deserialize
from tensorfleet_legacy.keras.metrics import get as get
from tensorfleet_legacy.keras.metrics import serialize as serialize
from tensorfleet_legacy.keras.metrics import sparse_top_k_categorical_accuracy as sparse_top_k_categorical_accuracy
from tensorfleet_legacy.keras.metrics import top_k_categorical_accuracy as top_k_categorical_accuracy
from tensorfleet_legacy.keras.metrics_base import Mean as _Mean
from tensorfleet_legacy.keras.metrics_base import MeanMetricWrapper as _Accuracy
from tensorfleet_legacy.keras.metrics_base import MeanMetricWrapper as _BinaryAccuracy
from tensorfleet_legacy.keras.metrics_base import MeanMetricWrapper as _BinaryCrossentropy
from tensorfleet_legacy.keras.metrics_base import MeanMetricWrapper as _CategoricalAccuracy
from tensorfleet_legacy.keras.metrics_base import MeanMetricWrapper as _CategoricalCrossentropy
from tensorfleet_legacy.keras.metrics_base import MeanMetricWrapper as _CategoricalHinge
from tensorfleet_legacy.keras.metrics_base import MeanMetricWrapper as _CosineSimilarity
from tensorfleet_legacy.keras.metrics_base import MeanMetricWrapper as _Hinge
from tensorfleet_legacy.keras.metrics_base import MeanMetricWrapper as _KLDivergence
from tensorfleet_legacy.keras.metrics_base import MeanMetricWrapper as _LogCoshError
from tensorfleet_legacy.keras.metrics_base import MeanMetricWrapper as _MeanAbsoluteError
from tensorfleet_legacy.keras.metrics_base import MeanMetricWrapper as _MeanAbsolutePercentageError
from tensorfleet_legacy.keras.metrics_base import MeanMetricWrapper as _MeanSquaredError
from tensorfleet_legacy.keras.metrics_base import MeanMetricWrapper as _MeanSquaredLogarithmicError
from tensorfleet_legacy.keras.metrics_base import MeanMetricWrapper as _Poisson
from tensorfleet_legacy.keras.metrics_base import MeanMetricWrapper as _SparseCategoricalAccuracy
from tensorfleet_legacy.keras.metrics_base import MeanMetricWrapper as _SparseCategoricalCrossentropy
from tensorfleet_legacy.keras.metrics_base import MeanMetricWrapper as _SparseTopKCategoricalAccuracy
from tensorfleet_legacy.keras.metrics_base import MeanMetricWrapper as _SquaredHinge
from tensorfleet_legacy.keras.metrics_base import MeanMetricWrapper as _TopKCategoricalAccuracy
from tensorfleet_legacy.keras.metrics_base import Metric as Metric
from tensorfleet_legacy.keras.metrics_base import Sum as _Sum
from tensorfleet_legacy.keras.metrics_confusion import AUC as AUC
from tensorfleet_legacy.keras.metrics_confusion import FalseNegatives as FalseNegatives
from tensorfleet_legacy.keras.metrics_confusion import FalsePositives as FalsePositives
from tensorfleet_legacy.keras.metrics_confusion import Precision as Precision
from tensorfleet_legacy.keras.metrics_confusion import Recall as Recall
from tensorfleet_legacy.keras.metrics_confusion import SensitivityAtSpecificity as SensitivityAtSpecificity
from tensorfleet_legacy.keras.metrics_confusion import SpecificityAtSensitivity as SpecificityAtSensitivity
from tensorfleet_legacy.keras.metrics_confusion import TrueNegatives as TrueNegatives
from tensorfleet_legacy.keras.metrics_confusion import TruePositives as TruePositives
import builtins
import typing
class Accuracy(_Accuracy):
    def __init__(self, name: typing.Any = ..., dtype: typing.Any = ...) -> None: ...
class BinaryAccuracy(_BinaryAccuracy):
    def __init__(self, name: typing.Any = ..., dtype: typing.Any = ..., threshold: typing.Any = ...) -> None: ...
class BinaryCrossentropy(_BinaryCrossentropy):
    def __init__(self, name: typing.Any = ..., dtype: typing.Any = ..., from_logits: typing.Any = ..., label_smoothing: typing.Any = ...) -> None: ...
class CategoricalAccuracy(_CategoricalAccuracy):
    def __init__(self, name: typing.Any = ..., dtype: typing.Any = ...) -> None: ...
class CategoricalCrossentropy(_CategoricalCrossentropy):
    def __init__(self, name: typing.Any = ..., dtype: typing.Any = ..., from_logits: typing.Any = ..., label_smoothing: typing.Any = ...) -> None: ...
class CategoricalHinge(_CategoricalHinge):
    def __init__(self, name: typing.Any = ..., dtype: typing.Any = ...) -> None: ...
class CosineSimilarity(_CosineSimilarity):
    def __init__(self, name: typing.Any = ..., dtype: typing.Any = ..., axis: typing.Any = ...) -> None: ...
class Hinge(_Hinge):
    def __init__(self, name: typing.Any = ..., dtype: typing.Any = ...) -> None: ...
KLD = _KLD
class KLDivergence(_KLDivergence):
    def __init__(self, name: typing.Any = ..., dtype: typing.Any = ...) -> None: ...
class LogCoshError(_LogCoshError):
    def __init__(self, name: typing.Any = ..., dtype: typing.Any = ...) -> None: ...
MAE = _MAE
MAPE = _MAPE
MSE = _MSE
MSLE = _MSLE
class Mean(_Mean):
    def __init__(self, name: builtins.str | None = ..., dtype: typing.Any = ...) -> None: ...
class MeanAbsoluteError(_MeanAbsoluteError):
    def __init__(self, name: typing.Any = ..., dtype: typing.Any = ...) -> None: ...
class MeanAbsolutePercentageError(_MeanAbsolutePercentageError):
    def __init__(self, name: typing.Any = ..., dtype: typing.Any = ...) -> None: ...
class MeanSquaredError(_MeanSquaredError):
    def __init__(self, name: typing.Any = ..., dtype: typing.Any = ...) -> None: ...
class MeanSquaredLogarithmicError(_MeanSquaredLogarithmicError):
    def __init__(self, name: typing.Any = ..., dtype: typing.Any = ...) -> None: ...
class Poisson(_Poisson):
    def __init__(self, name: typing.Any = ..., dtype: typing.Any = ...) -> None: ...
class RootMeanSquaredError(_RootMeanSquaredError):
    def __init__(self, name: builtins.str | None = ..., dtype: typing.Any = ...) -> None: ...
class SparseCategoricalAccuracy(_SparseCategoricalAccuracy):
    def __init__(self, name: typing.Any = ..., dtype: typing.Any = ...) -> None: ...
class SparseCategoricalCrossentropy(_SparseCategoricalCrossentropy):
    def __init__(self, name: typing.Any = ..., dtype: typing.Any = ..., from_logits: typing.Any = ..., axis: typing.Any = ...) -> None: ...
class SparseTopKCategoricalAccuracy(_SparseTopKCategoricalAccuracy):
    def __init__(self, k: typing.Any = ..., name: typing.Any = ..., dtype: typing.Any = ...) -> None: ...
class SquaredHinge(_SquaredHinge):
    def __init__(self, name: typing.Any = ..., dtype: typing.Any = ...) -> None: ...
class Sum(_Sum):
    def __init__(self, name: builtins.str | None = ..., dtype: typing.Any = ...) -> None: ...
class TopKCategoricalAccuracy(_TopKCategoricalAccuracy):
    def __init__(self, k: typing.Any = ..., name: typing.Any = ..., dtype: typing.Any = ...) -> None: ...
cosine = _cosine
kld = _kld
mae = _mae
mape = _mape
mse = _mse
msle = _msle

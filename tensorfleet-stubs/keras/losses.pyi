# Written by tools/make_stubs.py.
from tensorfleet_legacy.keras.losses import Loss as Loss
from tensorfleet_legacy.keras.losses import Loss as _BinaryCrossentropy
from tensorfleet_legacy.keras.losses import Loss as _CategoricalCrossentropy
from tensorfleet_legacy.keras.losses import Loss as _CategoricalHinge
from tensorfleet_legacy.keras.losses import Loss as _CosineSimilarity
from tensorfleet_legacy.keras.losses import Loss as _Hinge
from tensorfleet_legacy.keras.losses import Loss as _Huber
from tensorfleet_legacy.keras.losses import Loss as _KLDivergence
from tensorfleet_legacy.keras.losses import Loss as _LogCosh
from tensorfleet_legacy.keras.losses import Loss as _MeanAbsoluteError
from tensorfleet_legacy.keras.losses import Loss as _MeanAbsolutePercentageError
from tensorfleet_legacy.keras.losses import Loss as _MeanSquaredError
from tensorfleet_legacy.keras.losses import Loss as _MeanSquaredLogarithmicError
from tensorfleet_legacy.keras.losses import Loss as _Poisson
from tensorfleet_legacy.keras.losses import Loss as _SparseCategoricalCrossentropy
from tensorfleet_legacy.keras.losses import Loss as _SquaredHinge
from tensorfleet_legacy.keras.losses import binary_crossentropy as binary_crossentropy
from tensorfleet_legacy.keras.losses import categorical_crossentropy as categorical_crossentropy
from tensorfleet_legacy.keras.losses import categorical_hinge as categorical_hinge
from tensorfleet_legacy.keras.losses import cosine_similarity as _cosine
from tensorfleet_legacy.keras.losses import cosine_similarity as _cosine_proximity
from tensorfleet_legacy.keras.losses import cosine_similarity as cosine_similarity
from tensorfleet_legacy.keras.losses import deserialize as deserialize
from tensorfleet_legacy.keras.losses import get as get
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
from tensorfleet_legacy.keras.losses import serialize as serialize
from tensorfleet_legacy.keras.losses import sparse_categorical_crossentropy as sparse_categorical_crossentropy
from tensorfleet_legacy.keras.losses import squared_hinge as squared_hinge
import typing
class BinaryCrossentropy(_BinaryCrossentropy):
    def __init__(self, from_logits: typing.Any = ..., label_smoothing: typing.Any = ..., reduction: typing.Any = ..., name: typing.Any = ...) -> None: ...
class CategoricalCrossentropy(_CategoricalCrossentropy):
    def __init__(self, from_logits: typing.Any = ..., label_smoothing: typing.Any = ..., reduction: typing.Any = ..., name: typing.Any = ...) -> None: ...
class CategoricalHinge(_CategoricalHinge):
    def __init__(self, reduction: typing.Any = ..., name: typing.Any = ...) -> None: ...
class CosineSimilarity(_CosineSimilarity):
    def __init__(self, axis: typing.Any = ..., reduction: typing.Any = ..., name: typing.Any = ...) -> None: ...
class Hinge(_Hinge):
    def __init__(self, reduction: typing.Any = ..., name: typing.Any = ...) -> None: ...
class Huber(_Huber):
    def __init__(self, delta: typing.Any = ..., reduction: typing.Any = ..., name: typing.Any = ...) -> None: ...
KLD = _KLD
class KLDivergence(_KLDivergence):
    def __init__(self, reduction: typing.Any = ..., name: typing.Any = ...) -> None: ...
class LogCosh(_LogCosh):
    def __init__(self, reduction: typing.Any = ..., name: typing.Any = ...) -> None: ...
MAE = _MAE
MAPE = _MAPE
MSE = _MSE
MSLE = _MSLE
class MeanAbsoluteError(_MeanAbsoluteError):
    def __init__(self, reduction: typing.Any = ..., name: typing.Any = ...) -> None: ...
class MeanAbsolutePercentageError(_MeanAbsolutePercentageError):
    def __init__(self, reduction: typing.Any = ..., name: typing.Any = ...) -> None: ...
class MeanSquaredError(_MeanSquaredError):
    def __init__(self, reduction: typing.Any = ..., name: typing.Any = ...) -> None: ...
class MeanSquaredLogarithmicError(_MeanSquaredLogarithmicError):
    def __init__(self, reduction: typing.Any = ..., name: typing.Any = ...) -> None: ...
class Poisson(_Poisson):
    def __init__(self, reduction: typing.Any = ..., name: typing.Any = ...) -> None: ...
class SparseCategoricalCrossentropy(_SparseCategoricalCrossentropy):
    def __init__(self, from_logits: typing.Any = ..., reduction: typing.Any = ..., name: typing.Any = ...) -> None: ...
class SquaredHinge(_SquaredHinge):
    def __init__(self, reduction: typing.Any = ..., name: typing.Any = ...) -> None: ...
cosine = _cosine
cosine_proximity = _cosine_proximity
kld = _kld
mae = _mae
mape = _mape
mse = _mse
msle = _msle

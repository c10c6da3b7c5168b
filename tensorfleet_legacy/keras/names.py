"""Where the names of `tf.keras` are; each file is read when one of its names is used."""

from __future__ import annotations

import importlib
from typing import Any

from tensorfleet.base.naming import find, homes, publish_lazily, publish_module

_LAYERS = {
    "engine.base_layer": "Layer Input InputLayer",
    "layers.core": """
        Activation Dense Dropout ELU Embedding Flatten GaussianDropout GaussianNoise LeakyReLU Masking Permute ReLU
        RepeatVector Reshape Softmax
    """,
    "layers.convolutional": """
        AveragePooling1D AveragePooling2D AveragePooling3D AvgPool1D AvgPool2D AvgPool3D BatchNormalization Conv1D
        Conv2D Conv2DTranspose Conv3D Conv3DTranspose Convolution1D Convolution2D Convolution2DTranspose Convolution3D
        Convolution3DTranspose GlobalAveragePooling1D GlobalAveragePooling2D GlobalAveragePooling3D GlobalAvgPool1D
        GlobalAvgPool2D GlobalAvgPool3D GlobalMaxPool1D GlobalMaxPool2D GlobalMaxPool3D GlobalMaxPooling1D
        GlobalMaxPooling2D GlobalMaxPooling3D LayerNormalization MaxPool1D MaxPool2D MaxPool3D MaxPooling1D
        MaxPooling2D MaxPooling3D SeparableConv1D SeparableConv2D SeparableConvolution1D SeparableConvolution2D
        UpSampling2D
    """,
    "layers.convolutional_padding": """
        Cropping1D Cropping2D Cropping3D UpSampling1D UpSampling3D ZeroPadding1D ZeroPadding2D ZeroPadding3D
    """,
    "layers.advanced_activations": """
        ActivityRegularization AlphaDropout PReLU SpatialDropout1D SpatialDropout2D SpatialDropout3D ThresholdedReLU
    """,
    "layers.dense_features": "DenseFeatures",
    "layers.convolutional_recurrent": "ConvLSTM2D",
    "layers.core_lambda": "Lambda",
    "layers.local": "DepthwiseConv2D LocallyConnected1D LocallyConnected2D",
    "layers.merge": """
        Add Average Concatenate Dot Maximum Minimum Multiply Subtract add average concatenate dot maximum minimum
        multiply subtract
    """,
    "layers.dense_attention": "AdditiveAttention Attention",
    "layers.recurrent": "CuDNNGRU CuDNNLSTM GRU LSTM RNN SimpleRNN",
    "layers.wrappers": "Bidirectional TimeDistributed Wrapper",
    "layers.recurrent_cells": "AbstractRNNCell GRUCell LSTMCell SimpleRNNCell StackedRNNCells",
}
_LOSSES = {
    "binary_crossentropy": "",
    "categorical_crossentropy": "",
    "categorical_hinge": "",
    "hinge": "",
    "kullback_leibler_divergence": "KLD kld",
    "logcosh": "",
    "mean_absolute_error": "MAE mae",
    "mean_absolute_percentage_error": "MAPE mape",
    "mean_squared_error": "MSE mse",
    "mean_squared_logarithmic_error": "MSLE msle",
    "poisson": "",
    "sparse_categorical_crossentropy": "",
    "squared_hinge": "",
}
_LOSS_CLASSES = """
    BinaryCrossentropy CategoricalCrossentropy CategoricalHinge CosineSimilarity Hinge Huber KLDivergence LogCosh Loss
    MeanAbsoluteError MeanAbsolutePercentageError MeanSquaredError MeanSquaredLogarithmicError Poisson
    SparseCategoricalCrossentropy SquaredHinge
"""
_METRICS = """
    Accuracy BinaryAccuracy BinaryCrossentropy CategoricalAccuracy CategoricalCrossentropy CategoricalHinge
    CosineSimilarity Hinge KLDivergence LogCoshError Mean MeanAbsoluteError MeanRelativeError MeanTensor
    MeanAbsolutePercentageError MeanIoU MeanSquaredError MeanSquaredLogarithmicError Metric Poisson
    RootMeanSquaredError SparseCategoricalAccuracy SparseCategoricalCrossentropy SparseTopKCategoricalAccuracy
    SquaredHinge Sum TopKCategoricalAccuracy cosine_proximity deserialize get serialize
    sparse_top_k_categorical_accuracy top_k_categorical_accuracy
"""
_COUNTS = """
    AUC FalseNegatives FalsePositives Precision Recall SensitivityAtSpecificity SpecificityAtSensitivity
    TrueNegatives TruePositives
"""
_CALLBACKS = {
    "callbacks": "BaseLogger Callback CallbackList History ProgbarLogger",
    "callbacks_control": """
        EarlyStopping LambdaCallback LearningRateScheduler ReduceLROnPlateau TerminateOnNaN
    """,
    "callbacks_writing": "CSVLogger ModelCheckpoint RemoteMonitor TensorBoard",
}
_OPTIMIZERS = "Adadelta Adagrad Adam Adamax Ftrl Nadam RMSprop SGD deserialize get serialize"
_SCHEDULES = """
    ExponentialDecay InverseTimeDecay LearningRateSchedule PiecewiseConstantDecay PolynomialDecay deserialize serialize
"""
_STATE = """
    batch_set_value clear_session dot epsilon floatx get_session get_uid get_value image_data_format int_shape
    is_keras_tensor learning_phase learning_phase_scope manual_variable_initialization placeholder reset_uids set_epsilon set_floatx
    set_image_data_format set_learning_phase set_session set_value variable
"""
_COMPUTING = """
    arange batch_dot batch_flatten batch_get_value bias_add cast_to_floatx clip concatenate constant count_params
    dropout dtype eval flatten gradients in_test_phase in_train_phase ndim ones ones_like print_tensor
    random_normal random_uniform softmax squeeze switch truncated_normal update update_add update_sub zeros
    zeros_like
"""
_COMPUTING_MORE = """
    backend batch_normalization conv1d conv2d conv2d_transpose conv3d ctc_batch_cost ctc_decode
    ctc_label_dense_to_sparse depthwise_conv2d eye foldl foldr in_top_k is_sparse moving_average_update
    normalize_batch_in_training pool2d pool3d random_binomial random_normal_variable random_uniform_variable repeat
    repeat_elements resize_images resize_volumes separable_conv2d spatial_2d_padding spatial_3d_padding
    temporal_padding to_dense
"""
_ARITHMETIC = """
    abs all any argmax argmin binary_crossentropy cast categorical_crossentropy cos cumprod cumsum equal exp expand_dims
    gather greater greater_equal identity l2_normalize less less_equal log logsumexp map_fn max maximum mean min minimum
    not_equal one_hot permute_dimensions pow prod reshape reverse round shape sigmoid sign sin softplus softsign
    sparse_categorical_crossentropy sqrt square stack std stop_gradient sum tanh tile transpose var
"""

_PICTURES = """
    apply_affine_transform apply_brightness_shift apply_channel_shift array_to_img img_to_array load_img
    random_brightness random_channel_shift random_rotation random_shear random_shift random_zoom save_img
"""

_TABLE: dict[str, tuple[str, str]] = {}


def _add(module: str, file: str, names: str, public: str = "") -> None:
    for name in names.split():
        full = f"keras.{module}{'.' if module else ''}{public or name}"
        if _TABLE.setdefault(full, (file, name)) != (file, name):
            raise ValueError(f"tf.{full} is published twice. Delete one of its definitions.")


for _file, _names in _LAYERS.items():
    _add("layers", _file, _names)
for _name, _short in _LOSSES.items():
    for _public in (_name, *_short.split()):
        for _module in ("losses", "metrics"):
            _TABLE[f"keras.{_module}.{_public}"] = ("losses", _name)
_add("losses", "losses", _LOSS_CLASSES + " cosine_similarity deserialize get serialize")
_add("losses", "losses", "cosine_similarity", "cosine")
_add("losses", "losses", "cosine_similarity", "cosine_proximity")
_add("metrics", "metrics", _METRICS)
_add("metrics", "metrics_confusion", _COUNTS)
_add("metrics", "metrics", "cosine_proximity", "cosine")
_add("optimizers", "optimizers", _OPTIMIZERS)
_add("optimizers", "optimizer_v2.optimizer_v2", "Optimizer")
_add("optimizers.schedules", "optimizer_v2.learning_rate_schedule", _SCHEDULES)
for _file, _names in _CALLBACKS.items():
    _add("callbacks", _file, _names)
_add("metrics", "losses", "binary_accuracy categorical_accuracy sparse_categorical_accuracy")
_add("backend", "backend", _STATE)
_add("backend", "backend_arithmetic", _ARITHMETIC)
_add("", "engine.base_layer", "Input")
_add("", "backend", "VERSION", "__version__")
_add("", "engine.network", "Model Sequential")
_add("models", "engine.network", "Model Sequential")
_add("models", "saving.model_config", "clone_model model_from_config model_from_json model_from_yaml")
_add("models", "saving.hdf5_format", "load_model save_model")
_add("estimator", "estimator", "model_to_estimator")
_add("layers", "saving.model_config", "layer_from", "deserialize")
_add("layers", "saving.model_config", "serialize_layer", "serialize")
_add(
    "preprocessing.sequence",
    "preprocessing.sequence",
    "TimeseriesGenerator make_sampling_table pad_sequences skipgrams",
)
_add(
    "preprocessing.text",
    "preprocessing.text",
    "Tokenizer hashing_trick one_hot text_to_word_sequence tokenizer_from_json",
)
_add("preprocessing.image", "preprocessing.image", "ImageDataGenerator")
_add("preprocessing.image", "preprocessing.image_iterators", "DirectoryIterator Iterator NumpyArrayIterator")
_add("preprocessing.image", "preprocessing.image_arrays", _PICTURES)
_add("datasets.fashion_mnist", "datasets.imdb", "fashion_mnist", "load_data")
for _name in ("boston_housing", "cifar10", "cifar100", "imdb", "reuters"):
    _add(f"datasets.{_name}", "datasets.imdb", _name, "load_data")
for _name in ("imdb", "reuters"):
    _add(f"datasets.{_name}", "datasets.imdb", f"{_name}_word_index", "get_word_index")
_add("backend", "backend_function", "function")
_add("backend", "backend_tensors", _COMPUTING)
_add("backend", "backend_convolution", _COMPUTING_MORE)
_add("backend", "activations", "elu hard_sigmoid relu")
_add("backend", "backend_rnn", "rnn")
_add("backend", "layers.local", "local_conv1d local_conv2d")
_add("experimental", "layers.recurrent_cells", "PeepholeLSTMCell")
_add("utils", "utils.np_utils", "normalize to_categorical")
_add("utils", "engine.data_adapter", "Sequence")
_add("utils", "utils.multi_gpu_utils", "multi_gpu_model")
_add("utils", "utils.data_utils_get_file", "get_file")
_add("utils", "utils.data_utils", "GeneratorEnqueuer OrderedEnqueuer SequenceEnqueuer")
_add("utils", "utils.io_utils", "HDF5Matrix")
_add("utils", "utils.vis_utils", "model_to_dot plot_model")
_add("utils", "engine.network_graph", "convert_all_kernels_in_model get_source_inputs")
_add("wrappers.scikit_learn", "wrappers.scikit_learn", "KerasClassifier KerasRegressor")
_add("experimental", "utils.data_utils", "terminate_keras_multiprocessing_pools")
_add("experimental", "saving.saved_model_experimental", "export_saved_model load_from_saved_model")
_add(
    "experimental",
    "optimizer_v2.learning_rate_schedule",
    "CosineDecay CosineDecayRestarts LinearCosineDecay NoisyLinearCosineDecay",
)
_add("experimental", "premade", "LinearModel WideDeepModel")
_add("experimental", "layers.dense_features", "SequenceFeatures")
_add("utils", "utils.generic_utils_progbar", "Progbar")
_add(
    "utils",
    "utils.generic_utils",
    "CustomObjectScope custom_object_scope deserialize_keras_object get_custom_objects serialize_keras_object",
)
_add("activations", "activations", "elu exponential hard_sigmoid linear relu softmax")
_add("activations", "backend_arithmetic", "selu sigmoid softplus softsign tanh")
_add("initializers", "activations", "RandomNormal RandomUniform TruncatedNormal")
_SHORT = {"normal": "RandomNormal", "uniform": "RandomUniform", "random_normal": "RandomNormal"}
_SHORT |= {"random_uniform": "RandomUniform", "truncated_normal": "TruncatedNormal"}
for _public, _name in _SHORT.items():
    _add("initializers", "activations", _name, _public)
_add("regularizers", "regularizers", "L1L2 Regularizer l1 l1_l2 l2")
_add("constraints", "regularizers", "Constraint MaxNorm MinMaxNorm NonNeg RadialConstraint UnitNorm")
_SHORT = {"max_norm": "MaxNorm", "min_max_norm": "MinMaxNorm", "non_neg": "NonNeg", "unit_norm": "UnitNorm"}
for _public, _name in {**_SHORT, "radial_constraint": "RadialConstraint"}.items():
    _add("constraints", "regularizers", _name, _public)
for _name in ("activation", "initializer", "regularizer", "constraint"):
    _add(f"{_name}s", "activations", _name, "get")
    for _public in ("serialize", "deserialize"):
        _add(f"{_name}s", "activations", f"{_public}_{_name}", _public)
# The networks of each module of `keras.applications`: where they are, how their images are prepared, their names.
_APPLICATIONS = {
    "vgg16": ("applications.vgg16", "caffe", "VGG16"),
    "vgg19": ("applications.vgg16", "caffe", "VGG19"),
    "mobilenet": ("applications.vgg16", "tf", "MobileNet"),
    "mobilenet_v2": ("applications.vgg16", "tf", "MobileNetV2"),
    "xception": ("applications.vgg16", "tf", "Xception"),
    "inception_v3": ("applications.vgg16", "tf", "InceptionV3"),
    "resnet": ("applications.resnet", "caffe", "ResNet50 ResNet101 ResNet152"),
    "resnet50": ("applications.resnet", "caffe", "ResNet50"),
    "resnet_v2": ("applications.resnet", "tf", "ResNet50V2 ResNet101V2 ResNet152V2"),
    "inception_resnet_v2": ("applications.inception_resnet_v2", "tf", "InceptionResNetV2"),
    "nasnet": ("applications.nasnet", "tf", "NASNetLarge NASNetMobile"),
    "densenet": ("applications.resnet", "torch", "DenseNet121 DenseNet169 DenseNet201"),
}
for _module, (_file, _mode, _names) in _APPLICATIONS.items():
    _add("applications", _file, _names)
    _add(f"applications.{_module}", _file, _names)
    _add(f"applications.{_module}", "applications.imagenet_utils", f"prepare_{_mode}", "preprocess_input")
    _add(f"applications.{_module}", "applications.imagenet_utils", "decode_predictions")
_add("applications.imagenet_utils", "applications.imagenet_utils", "decode_predictions preprocess_input")


_add(
    "mixed_precision.experimental",
    "mixed_precision.loss_scale_optimizer",
    "Policy LossScaleOptimizer global_policy set_policy",
)
# Names that only the inside of TensorFlow has.
_INSIDE = {
    "backend": {
        "backend": "get_graph track_variable unique_object_name is_placeholder symbolic_learning_phase"
    },
    "engine.base_layer": {"engine.base_layer_operations": "TensorFlowOpLayer"},
    "engine.node": {"engine.node": "Node"},
    "layers.recurrent": {"layers.recurrent_cells": "PeepholeLSTMCell"},
    "layers.convolutional_recurrent": {"layers.convolutional_recurrent": "ConvLSTM2DCell"},
    "layers.merge": {"layers.merge": "_Merge"},
    "optimizers": {"optimizer_v2.optimizer_v2": "TFOptimizer"},
    "metrics": {"metrics_base": "MeanMetricWrapper Reduce", "metrics": "accuracy"},
    "losses": {"losses": "huber_loss"},
    "utils.vis_utils": {"utils.vis_utils": "add_edge is_wrapped_model"},
}
_HDF5 = """
    load_attributes_from_hdf5_group load_weights_from_hdf5_group load_weights_from_hdf5_group_by_name
    save_attributes_to_hdf5_group save_weights_to_hdf5_group
"""
for _module in ("engine.saving", "engine.topology", "saving.hdf5_format"):
    _INSIDE[_module] = {"saving.hdf5_format": _HDF5}
_OF_INSIDE = homes(
    (f"python.keras.{module}.{name}", (file, name))
    for module, files in _INSIDE.items()
    for file, names in files.items()
    for name in names.split()
)


def _load(name: str) -> Any:
    file, leaf = _OF_INSIDE[name] if name in _OF_INSIDE else _TABLE[name.removeprefix("python.")]
    return getattr(importlib.import_module(f"tensorfleet_legacy.keras.{file}"), leaf)


publish_lazily(_load, *_TABLE, *(f"python.{name}" for name in _TABLE), *_OF_INSIDE)


def _load_inner(name: str) -> Any:
    return find(_INNER[name])


# Where TensorFlow keeps them inside, under other names than the public ones.
_INNER = {
    "keras.layers.InputSpec": "layers.InputSpec",
    "python.keras.layers.InputSpec": "layers.InputSpec",
    "python.keras.engine.network.Network": "keras.Model",
    "python.keras.engine.topology.Container": "keras.Model",
    "python.keras.optimizer_v2.optimizer_v2.OptimizerV2": "keras.optimizers.Optimizer",
    "python.keras.optimizer_v2.rmsprop.RMSProp": "keras.optimizers.RMSprop",
}
publish_lazily(_load_inner, *_INNER)


def _borrowed(name: str) -> Any:
    *_, module, leaf = name.split(".")
    return find(_BORROWED[f"{module}.{leaf}"])


_BORROWED = {"backend.name_scope": "name_scope"}
_CLASSES = "constant identity ones orthogonal variance_scaling zeros"
for _name in _CLASSES.split():
    _camel = "".join(part.title() for part in _name.split("_"))
    _BORROWED[f"initializers.{_camel}"] = _BORROWED[f"initializers.{_name}"] = f"initializers.{_name}"
_SCALED = "glorot_normal glorot_uniform he_normal he_uniform lecun_normal lecun_uniform"
for _name in _SCALED.split():
    _BORROWED[f"initializers.{_name}"] = f"initializers.{_name}"
publish_lazily(_borrowed, *(f"{root}{name}" for name in _BORROWED for root in ("keras.", "python.keras.")))
publish_module("contrib.keras", "keras")

"""The modules of `tensorflow.python.keras`: each has the names of the public module that its contents are in."""

from __future__ import annotations

from tensorfleet.base.naming import homes, publish_module

# The inner modules, by the public one whose names they have; what is theirs alone is published where it is written.
_MODULES = {
    "keras.layers": """
        engine engine.base_layer engine.base_layer_utils engine.input_layer engine.input_spec engine.node engine.topology
        layers.advanced_activations layers.convolutional layers.convolutional_recurrent layers.core
        layers.cudnn_recurrent layers.dense_attention layers.embeddings layers.kernelized layers.local layers.merge
        layers.noise layers.normalization layers.normalization_v2 layers.pooling layers.recurrent layers.recurrent_v2
        layers.rnn_cell_wrapper_v2 layers.serialization layers.wrappers
    """,
    "keras.models": """
        engine.network engine.saving engine.sequential engine.training engine.training_arrays
        engine.training_distributed engine.training_eager engine.training_generator engine.training_utils saving
        saving.hdf5_format saving.model_config saving.save saving.saved_model saving.saving_utils
    """,
    "keras.optimizers": """
        optimizer_v2.adadelta optimizer_v2.adagrad optimizer_v2.adam optimizer_v2.adamax optimizer_v2.ftrl
        optimizer_v2.gradient_descent optimizer_v2.nadam optimizer_v2.optimizer_v2 optimizer_v2.rmsprop
    """,
    "keras.optimizers.schedules": "optimizer_v2.learning_rate_schedule",
    "keras.utils": """
        utils.conv_utils utils.data_utils utils.generic_utils utils.io_utils utils.layer_utils utils.losses_utils
        utils.metrics_utils utils.mode_keys utils.multi_gpu_utils utils.np_utils utils.tf_utils utils.vis_utils
    """,
    "keras.backend": "backend_config",
    "keras.callbacks": "callbacks_v1",
    "keras.experimental": "premade premade.linear premade.wide_deep saving.saved_model_experimental",
}
# Where they are in TensorFlow, as of 1.8, and as of 1.3.
_ROOTS = ("python.keras", "python.keras._impl.keras", "contrib.keras.python.keras", "contrib.keras.api.keras")
# Public modules, which are inside too under the same names.
_PUBLIC = """
    activations applications applications.densenet applications.imagenet_utils applications.inception_resnet_v2
    applications.inception_v3 applications.mobilenet applications.mobilenet_v2 applications.nasnet applications.resnet
    applications.resnet50 applications.resnet_v2 applications.vgg16 applications.vgg19 applications.xception backend
    callbacks constraints datasets datasets.boston_housing datasets.cifar10 datasets.cifar100 datasets.fashion_mnist
    datasets.imdb datasets.mnist datasets.reuters estimator experimental initializers layers losses metrics models
    optimizers preprocessing preprocessing.image preprocessing.sequence preprocessing.text regularizers utils wrappers
    wrappers.scikit_learn
"""

_INNER = homes(
    (
        *((inner, public) for public, modules in _MODULES.items() for inner in modules.split()),
        *((module, f"keras.{module}") for module in _PUBLIC.split()),
    )
)
for _root in _ROOTS:
    publish_module(_root, *(() if _root == "python.keras" else ("python.keras",)), "keras")
    for _inner, _public in _INNER.items():
        publish_module(f"{_root}.{_inner}", f"python.keras.{_inner}", _public, "keras", "layers")

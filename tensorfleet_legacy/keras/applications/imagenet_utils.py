"""Parts of the networks of `tf.keras.applications`: their inputs, their ends, the preparation of images."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from tensorfleet.base.naming import find
from tensorfleet.graph.operation import Tensor
from tensorfleet_legacy.keras import backend as state
from tensorfleet_legacy.keras.engine.base_layer import Input
from tensorfleet_legacy.keras.engine.network import Model
from tensorfleet_legacy.keras.layers.convolutional import GlobalAveragePooling2D, GlobalMaxPooling2D
from tensorfleet_legacy.keras.layers.core import Dense
from tensorfleet_legacy.keras.utils.data_utils_get_file import keras_folder


def channel_axis() -> int:
    """The axis of the channels of images."""
    return 3 if state.image_data_format() == "channels_last" else 1


def starts(weights: Any, include_top: bool, classes: int) -> None:
    """Checks how the network is to begin; trained weights must be in a file."""
    if weights == "imagenet":
        if include_top and classes != 1000:
            raise ValueError(
                'If using `weights` as `"imagenet"` with `include_top` as true, `classes` should be 1000'
            )
        return
    exists = find("io.gfile.exists")
    if weights is not None and not (exists(weights) or exists(f"{weights}.index")):
        raise ValueError(
            "The `weights` argument should be either `None` (random initialization), `imagenet` (pre-training on "
            "ImageNet), or the path to the weights file to be loaded."
        )


def image_input(input_tensor: Any, input_shape: Any, size: int, least: int, include_top: bool) -> Any:
    """The input of a network for images of `size`, or of another size that is at least `least`."""
    last = state.image_data_format() == "channels_last"
    if input_shape is None:
        side = size if include_top else None
        input_shape = (side, side, 3) if last else (3, side, side)
    sides = input_shape[:2] if last else input_shape[1:]
    if any(s is not None and s < least for s in sides):
        raise ValueError(
            f"Input size must be at least {least}x{least}; got `input_shape={tuple(input_shape)}`"
        )
    if include_top and None in input_shape:
        raise ValueError(
            f"If `include_top` is True, you should specify a static `input_shape`. Got `input_shape={input_shape}`"
        )
    if input_tensor is None:
        return Input(shape=input_shape)
    known = state.is_keras_tensor(input_tensor)
    return input_tensor if known else Input(tensor=input_tensor, shape=input_shape)


def pooled(x: Any, pooling: str | None) -> Any:
    """The end of a network without its top."""
    kinds = {"avg": GlobalAveragePooling2D, "max": GlobalMaxPooling2D}
    return kinds[pooling]()(x) if pooling else x


def classifier(x: Any, classes: int, name: str = "predictions") -> Any:
    """The usual top of a network."""
    x = GlobalAveragePooling2D(name="avg_pool")(x)
    return Dense(classes, activation="softmax", name=name)(x)


def file_of(name: str, include_top: bool) -> str:
    """How Keras names the file of a network's weights."""
    return f"{name}_weights_tf_dim_ordering_tf_kernels{'' if include_top else '_notop'}.h5"


def finished(inputs: Any, outputs: Any, name: str, weights: Any, file: str) -> Model:
    """The model, with the weights of a file if one is named; `file` is that of ImageNet's."""
    if weights == "imagenet":
        weights = str(_of_imagenet(file, "give `weights=None`, or the path of a file of weights"))
    model = Model(inputs, outputs, name=name)
    if weights is not None:
        model.load_weights(weights)
    return model


def _of_imagenet(file: str, otherwise: str) -> Path:
    """A file in the folder where Keras keeps what belongs to ImageNet."""
    path = keras_folder() / "models" / file
    if not path.is_file():
        raise ValueError(
            f"The weights of ImageNet are not downloaded here: {otherwise}; or put the file {file} into {path.parent}."
        )
    return path


def application(
    name: str,
    does: str,
    saved_as: str,
    layers: Callable[[Any], Any],
    *,
    size: int = 224,
    least: int = 32,
    top: Callable[[Any, int], Any] = classifier,
) -> Callable[..., Model]:
    """A function of `tf.keras.applications` that makes a network for images of `size`.

    `layers` maps the input to the features, and `top` maps those to the probabilities of the classes. `saved_as` is
    the name of the model and the beginning of the name of its file of weights; `does` is the docstring.
    """

    def network(
        include_top: bool = True,
        weights: Any = "imagenet",
        input_tensor: Any = None,
        input_shape: Any = None,
        pooling: str | None = None,
        classes: int = 1000,
        **kwargs: Any,
    ) -> Model:
        starts(weights, include_top, classes)
        inputs = image_input(input_tensor, input_shape, size, least, include_top)
        x = layers(inputs)
        x = top(x, classes) if include_top else pooled(x, pooling)
        return finished(inputs, x, saved_as, weights, file_of(saved_as, include_top))

    network.__name__ = network.__qualname__ = name
    network.__doc__ = does
    return network


def half_padding(x: Any, size: int) -> tuple:
    """The zeros around an image before a convolution that halves it."""
    first = 2 if channel_axis() == 1 else 1
    sides = x.shape.as_list()[first : first + 2]
    return tuple((size // 2 - (1 if s is None else 1 - s % 2), size // 2) for s in sides)


_MEAN, _DEVIATION = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
_BLUE_GREEN_RED = [103.939, 116.779, 123.68]


def _prepared(x: Any, data_format: str | None, mode: str) -> Any:
    """Images with colours from 0 to 255 as a network was trained on: "tf", "torch" or "caffe"."""
    is_tensor = isinstance(x, Tensor)
    if not is_tensor:
        x = np.asarray(x)
        x = x.astype(state.floatx() if not np.issubdtype(x.dtype, np.floating) else x.dtype)
    if mode == "tf":
        return x / 127.5 - 1.0
    first = (data_format or state.image_data_format()) == "channels_first"
    if mode == "caffe":
        axis = len(x.shape) - 3 if first else len(x.shape) - 1
        x = find("reverse")(x, [axis]) if is_tensor else np.flip(x, axis)
    shape = (3, 1, 1) if first else (3,)
    kind = np.float32 if is_tensor else x.dtype
    if mode == "caffe":
        return x - np.array(_BLUE_GREEN_RED, kind).reshape(shape)
    return (x / 255.0 - np.array(_MEAN, kind).reshape(shape)) / np.array(_DEVIATION, kind).reshape(shape)


def _preparing(mode: str) -> Callable:
    def preprocess_input(x: Any, data_format: str | None = None, **kwargs: Any) -> Any:
        """Images, arrays or a tensor, with colours from 0 to 255, as the network takes them."""
        return _prepared(x, data_format, mode)

    return preprocess_input


prepare_tf, prepare_caffe, prepare_torch = (_preparing(mode) for mode in ("tf", "caffe", "torch"))


def preprocess_input(x: Any, data_format: str | None = None, mode: str = "caffe", **kwargs: Any) -> Any:
    """Images with colours from 0 to 255 as networks of a `mode` take them: "caffe", "tf" or "torch"."""
    if (data_format or "channels_last") not in ("channels_first", "channels_last"):
        raise ValueError(f"Unknown data_format {data_format}")
    return _prepared(x, data_format, mode)


def decode_predictions(preds: Any, top: int = 5, **kwargs: Any) -> list:
    """For each example the likeliest classes of ImageNet: (number in WordNet, name, probability)."""
    if preds.ndim != 2 or preds.shape[1] != 1000:
        raise ValueError(
            "`decode_predictions` expects a batch of predictions (i.e. a 2D array of shape (samples, 1000)). Found "
            f"array with shape: {preds.shape}"
        )
    names = json.loads(_of_imagenet("imagenet_class_index.json", "read the numbers of classes").read_text())
    result = []
    for row in preds:
        places = row.argsort()[-top:][::-1]
        result.append([(*names[str(i)], row[i]) for i in places])
    return result

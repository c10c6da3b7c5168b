"""Layers and cells whose weights are masked."""

from __future__ import annotations

from typing import Any

from tensorfleet.api.layers.convolutional import Conv2D
from tensorfleet.api.layers.core import Dense
from tensorfleet.api.layers.rnn_lstm import BasicLSTMCell, LSTMCell
from tensorfleet.base.arguments import function, like, taking
from tensorfleet.base.naming import find
from tensorfleet_legacy.contrib.framework.arg_scope import add_arg_scope
from tensorfleet_legacy.contrib.layers.layers import connected, convolution, convolved, fully_connected
from tensorfleet_legacy.contrib.model_pruning.pruning import register


class _Masked:
    """In front of a layer's class: its kernel is masked."""

    def add_weight(self, name: str, *args: Any, **kwargs: Any) -> Any:
        """A variable; a kernel under a mask."""
        result = super().add_weight(name, *args, **kwargs)  # type: ignore[misc]
        if name != "kernel":
            return result
        options: dict[str, Any] = {"dtype": result.dtype.base_dtype, "trainable": False}
        ones, zeros = find("ones_initializer")(), find("zeros_initializer")()
        add = super().add_weight  # type: ignore[misc]
        mask = add("mask", shape=result.shape, initializer=ones, **options)
        return register(result, mask, add("threshold", shape=[], initializer=zeros, **options))


class _MaskedDense(_Masked, Dense):
    pass


class _MaskedConv2D(_Masked, Conv2D):
    pass


def _init_of(base: type, *without: str) -> Any:
    """The constructor of a cell, without some of its arguments."""

    def make(self: Any, given: dict[str, Any]) -> None:
        base.__init__(self, **given)  # type: ignore[misc]

    return taking(like(base, without=without))(make)


class MaskedBasicLSTMCell(_Masked, BasicLSTMCell):
    """A `BasicLSTMCell` whose kernel is masked."""

    __init__ = _init_of(BasicLSTMCell, "dtype", "kwargs")


class MaskedLSTMCell(_Masked, LSTMCell):
    """An `LSTMCell` whose kernel is masked."""

    __init__ = _init_of(LSTMCell, "name", "dtype", "kwargs")


masked_fully_connected = add_arg_scope(
    function(
        like(fully_connected),
        "masked_fully_connected",
        lambda given: connected(given, _MaskedDense),
        "`tf.contrib.layers.fully_connected` with masked weights.",
    )
)
masked_convolution = add_arg_scope(
    function(
        like(convolution, without=("conv_dims",)),
        "masked_convolution",
        lambda given: convolved(given, {4: _MaskedConv2D}),
        "`tf.contrib.layers.conv2d` with masked weights.",
    )
)
masked_conv2d = masked_convolution

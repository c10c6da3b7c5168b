"""`single_loss_example`: models of one layer, their data and their steps, for tests of strategies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorfleet.base.naming import find


def _off_by_one(layer: Any, x: Any) -> Any:
    """The square of what a layer's number lacks of one."""
    return find("square")(find("reshape")(layer(x), []) - 1.0)


def _minimized(optimizer: Any, loss: Callable[[], Any], layer: Any, use_callable_loss: bool) -> Any:
    if isinstance(optimizer, find("keras.optimizers.Optimizer")):
        return optimizer.minimize(loss, lambda: layer.trainable_variables)
    return optimizer.minimize(loss if use_callable_loss else loss())


def minimize_loss_example(
    optimizer: Any, use_bias: bool = False, use_callable_loss: bool = True
) -> tuple[Callable, Callable, Any]:
    """A step that brings a layer's answer to one nearer to one, the data for it, and the layer."""
    layer = find("layers.Dense")(1, use_bias=use_bias)

    def dataset_fn() -> Any:
        return find("data.Dataset").from_tensors([[1.0]]).repeat().batch(1, drop_remainder=True)

    def model_fn(x: Any) -> Any:
        return _minimized(optimizer, lambda: _off_by_one(layer, x), layer, use_callable_loss)

    return model_fn, dataset_fn, layer


def single_loss_example(
    optimizer_fn: Callable, distribution: Any, use_bias: bool = False, iterations_per_step: int = 1
) -> tuple[Any, Any]:
    """The same as a `StandardSingleLossStep`, and the layer."""
    layer = find("layers.Dense")(1, use_bias=use_bias)
    step = find("python.distribute.step_fn.StandardSingleLossStep")(
        lambda: find("data.Dataset").from_tensors([[1.0]]).repeat(),
        lambda _, x: _off_by_one(layer, x),
        optimizer_fn(),
        distribution,
        iterations_per_step,
    )
    return step, layer


def batchnorm_example(
    optimizer_fn: Callable,
    batch_per_epoch: int = 1,
    momentum: float = 0.9,
    renorm: bool = False,
    update_ops_in_replica_mode: bool = False,
) -> tuple[Callable, Callable, Any]:
    """A step through a normalized batch of 16 rows of 8 numbers, the data for it, and the layer that normalizes.

    Batch number `z` has the number `8 * row + column + 100 * z` in each place.
    """
    optimizer = optimizer_fn()
    normalize = find("layers.BatchNormalization")(renorm=renorm, momentum=momentum, fused=False)
    layer = find("layers.Dense")(1, use_bias=False)

    def dataset_fn() -> Any:
        batches = [
            [[float(8 * x + y + 100 * z) for y in range(8)] for x in range(16)]
            for z in range(batch_per_epoch)
        ]
        return find("data.Dataset").from_tensor_slices(batches).repeat()

    def model_fn(x: Any) -> Any:
        def loss() -> Any:
            return find("square")(find("reduce_sum")(layer(normalize(x, training=True)), axis=1) - 1.0)

        if not update_ops_in_replica_mode:
            return _minimized(optimizer, loss, layer, True)
        with find("control_dependencies")(find("get_collection")(find("GraphKeys").UPDATE_OPS)):
            return _minimized(optimizer, loss, layer, True)

    return model_fn, dataset_fn, normalize

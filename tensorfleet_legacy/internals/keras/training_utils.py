"""Names in `tensorflow.python.keras.engine.training_utils` and its neighbours that scripts import."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorfleet.base import dtypes
from tensorfleet.base.naming import export, find

_PLACE = "python.keras.engine.training_utils"


def _feeding() -> Any:
    from tensorfleet_legacy.keras.engine import data_adapter as feeding

    return feeding


@export(f"{_PLACE}.standardize_input_data")
def standardize_input_data(
    data: Any, names: list[str], shapes: Any = None, check_batch_axis: bool = True, exception_prefix: str = ""
) -> list:
    """Arrays in the order of names, checked against shapes."""
    if not names:
        if data is not None and len(data):
            raise ValueError(
                f"Error when checking model {exception_prefix}: expected no data, but got: {data}"
            )
        return []
    return _feeding().standardized(data, names, list(shapes or [None] * len(names)), exception_prefix)


@export(f"{_PLACE}.check_array_lengths")
def check_array_lengths(inputs: list, targets: list, weights: list | None = None) -> None:
    """ValueError when there are not as many examples in all arrays."""
    _feeding().check_lengths(inputs, targets, weights or [])


@export(f"{_PLACE}.standardize_class_weights")
def standardize_class_weights(class_weight: Any, output_names: list[str]) -> list:
    """The weights of classes for each output."""
    return _per_output(class_weight, output_names, "class_weight")


@export(f"{_PLACE}.standardize_sample_weights")
def standardize_sample_weights(sample_weight: Any, output_names: list[str]) -> list:
    """The weights of examples for each output."""
    return _per_output(sample_weight, output_names, "sample_weight")


def _per_output(given: Any, names: list[str], what: str) -> list:
    if given is None or (isinstance(given, (list, tuple)) and not given):
        return [None for _ in names]
    if len(names) == 1:
        if isinstance(given, (list, tuple)) and len(given) == 1:
            return list(given)
        return [given[names[0]]] if isinstance(given, dict) and names[0] in given else [given]
    if isinstance(given, (list, tuple)):
        if len(given) != len(names):
            raise ValueError(
                f"Provided `{what}` was a list of {len(given)} elements, but the model has {len(names)} outputs. You "
                f"should provide one `{what}` array per model output."
            )
        return list(given)
    if isinstance(given, dict):
        return [given.get(name) for name in names]
    raise TypeError(
        f"The model has multiple outputs, so `{what}` should be either a list or a dict. Provided `{what}` type not "
        f"understood: {given}"
    )


@export(f"{_PLACE}.standardize_weights")
def standardize_weights(
    y: Any, sample_weight: Any = None, class_weight: Any = None, sample_weight_mode: str | None = None
) -> Any:
    """The weights of examples: those given times those of their classes."""
    if class_weight:
        result = _feeding().class_weights(np.asarray(y), class_weight)
        return result if sample_weight is None else sample_weight * result
    return sample_weight


@export(f"{_PLACE}.batch_shuffle")
def batch_shuffle(index_array: np.ndarray, batch_size: int) -> np.ndarray:
    """Numbers in another order, batch by batch; those of a last short batch stay behind."""
    whole = len(index_array) // batch_size * batch_size
    rows = index_array[:whole].reshape((-1, batch_size))
    np.random.shuffle(rows)
    return np.append(rows.flatten(), index_array[whole:])


@export(f"{_PLACE}.should_run_validation")
def should_run_validation(validation_freq: Any, epoch: int) -> bool:
    """Whether to validate after an epoch."""
    return (
        (epoch + 1) % validation_freq == 0
        if isinstance(validation_freq, int)
        else epoch + 1 in validation_freq
    )


@export(f"{_PLACE}.generic_output_names")
def generic_output_names(outputs_list: list) -> list[str]:
    """The names of outputs that have none."""
    return [f"output_{i + 1}" for i in range(len(outputs_list))]


@export(f"{_PLACE}.get_loss_function")
def get_loss_function(loss: Any) -> Any:
    """The loss of a name, or a function, as an object."""
    from tensorfleet_legacy.keras.engine.training_utils import FunctionLoss
    from tensorfleet_legacy.keras.losses import Loss

    result = find("keras.losses.get")(loss)
    return result if result is None or isinstance(result, Loss) else FunctionLoss(result)


@export("python.keras.engine.base_layer_utils.make_variable")
def make_variable(
    name: str,
    shape: Any = None,
    dtype: Any = dtypes.float32,
    initializer: Any = None,
    trainable: bool | None = None,
    caching_device: Any = None,
    validate_shape: bool = True,
    constraint: Any = None,
    use_resource: bool | None = None,
    collections: Any = None,
    synchronization: Any = None,
    aggregation: Any = None,
    partitioner: Any = None,
) -> Any:
    """A variable as layers make theirs."""
    kind = dtypes.as_dtype(dtype)
    first = initializer() if isinstance(initializer, type) else initializer
    value = (lambda: first(shape, dtype=kind)) if callable(first) else first
    return find("Variable")(
        value,
        name=name,
        dtype=kind,
        trainable=True if trainable is None else trainable,
        caching_device=caching_device,
        validate_shape=validate_shape,
        constraint=constraint,
        use_resource=True if use_resource is None else use_resource,
        collections=collections,
    )

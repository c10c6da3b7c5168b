"""Keras helpers that scripts import: `generic_utils`, `conv_utils`, `tf_utils` and related modules."""

from __future__ import annotations

import enum
import functools
import inspect
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tensorfleet.api.layers.specs import check_inputs, data_format_of, padding_of, snake_case, tuple_of
from tensorfleet.api.variables.base import Variable
from tensorfleet.base import nest
from tensorfleet.base.naming import export, find, publish, publish_lazily
from tensorfleet.base.shapes import TensorShape
from tensorfleet.graph.constant import constant_value
from tensorfleet.graph.indexed_slices import CompositeTensor
from tensorfleet.graph.operation import Tensor
from tensorfleet_legacy.internals.layers.utils import conv_output_length

_GENERIC, _CONV, _TF = (f"python.keras.utils.{name}_utils" for name in ("generic", "conv", "tf"))

# -- generic_utils ------------------------------------------------------------------------------------------


@export(f"{_GENERIC}.to_list")
def to_list(x: Any) -> list:
    """A list as it is, anything else as the only element of one."""
    return x if isinstance(x, list) else [x]


publish(snake_case, f"{_GENERIC}.to_snake_case")


@export(f"{_GENERIC}.has_arg")
def has_arg(fn: Callable, name: str, accept_all: bool = False) -> bool:
    """Whether a function takes an argument of a name; with `accept_all`, also as one of any."""
    known = inspect.signature(fn).parameters
    if accept_all and any(p.kind is p.VAR_KEYWORD for p in known.values()):
        return True
    return name in known and known[name].kind is not inspect.Parameter.VAR_KEYWORD


@export(f"{_GENERIC}.make_batches")
def make_batches(size: int, batch_size: int) -> list[tuple[int, int]]:
    """Where batches start and end."""
    return [(start, min(size, start + batch_size)) for start in range(0, size, batch_size)]


@export(f"{_GENERIC}.slice_arrays")
def slice_arrays(arrays: Any, start: Any = None, stop: int | None = None) -> Any:
    """Rows of an array, or of each of a list: from `start` to `stop`, or those of a list."""
    if arrays is None:
        return [None]
    if isinstance(start, list) and stop is not None:
        raise ValueError("The stop argument has to be None if the value of start is a list.")
    rows = slice(start, stop) if not hasattr(start, "__len__") else start
    if isinstance(arrays, list):
        return [None if a is None else a[rows] for a in arrays]
    return arrays[rows] if hasattr(arrays, "__getitem__") else [None]


@export(f"{_GENERIC}.object_list_uid")
def object_list_uid(object_list: Any) -> str:
    """A text that stands for some objects."""
    return ", ".join(str(abs(id(x))) for x in nest.flatten(object_list))


@export(f"{_GENERIC}.is_all_none")
def is_all_none(structure: Any) -> bool:
    """Whether there is nothing but None."""
    return all(x is None for x in nest.flatten(structure))


@export(f"{_GENERIC}.check_for_unexpected_keys")
def check_for_unexpected_keys(name: str, input_dict: dict, expected_values: Any) -> None:
    """ValueError for a key that is none of those expected."""
    odd = set(input_dict) - set(expected_values)
    if odd:
        raise ValueError(
            f"Unknown entries in {name} dictionary: {list(odd)}. Only expected following keys: {expected_values}"
        )


@export(f"{_GENERIC}.validate_kwargs")
def validate_kwargs(
    kwargs: dict, allowed_kwargs: Any, error_message: str = "Keyword argument not understood:"
) -> None:
    """TypeError for an argument that is none of those allowed."""
    for name in kwargs:
        if name not in allowed_kwargs:
            raise TypeError(error_message, name)


@export(f"{_GENERIC}.serialize_keras_class_and_config")
def serialize_keras_class_and_config(cls_name: str, cls_config: Any) -> dict[str, Any]:
    """A class by its name, with a configuration."""
    return {"class_name": cls_name, "config": cls_config}


def _of_lambdas(name: str) -> Any:
    from tensorfleet_legacy.keras.layers import core_lambda as lambdas

    return getattr(lambdas, name.rpartition(".")[2])


publish_lazily(_of_lambdas, f"{_GENERIC}.func_dump", f"{_GENERIC}.func_load")

# -- conv_utils ---------------------------------------------------------------------------------------------

publish(tuple_of, f"{_CONV}.normalize_tuple")


@export(f"{_CONV}.normalize_padding")
def normalize_padding(value: Any) -> str:
    """ "valid", "same" or "causal"."""
    return padding_of(value, causal=True)


@export(f"{_CONV}.normalize_data_format")
def normalize_data_format(value: Any) -> str:
    """Where channels are: as given, or as Keras has it."""
    return find("keras.backend.image_data_format")() if value is None else data_format_of(value)


@export(f"{_CONV}.convert_kernel")
def convert_kernel(kernel: np.ndarray) -> np.ndarray:
    """A kernel turned around, as Theano has it."""
    if not 3 <= kernel.ndim <= 5:
        raise ValueError("Invalid kernel shape:", kernel.shape)
    return np.copy(np.flip(kernel, tuple(range(kernel.ndim - 2))))


@export(f"{_CONV}.conv_output_shape")
def conv_output_shape(input_shape: Any, kernel_shape: Any, strides: Any, padding: str) -> tuple:
    """The sides of the result of a convolution."""
    dims = range(len(kernel_shape))
    steps = tuple_of(strides, len(kernel_shape), "strides")
    return tuple(conv_output_length(input_shape[d], kernel_shape[d], padding, steps[d]) for d in dims)


@export(f"{_CONV}.conv_connected_inputs")
def conv_connected_inputs(
    input_shape: Any, kernel_shape: Any, output_position: Any, strides: Any, padding: str
) -> list[range]:
    """The places of the input, along each side, that one place of the result sees."""
    result = []
    for d, size in enumerate(kernel_shape):
        start = output_position[d] * strides[d] - (size // 2 if padding == "same" else 0)
        result.append(range(max(0, start), min(input_shape[d], start + size)))
    return result


@export(f"{_CONV}.conv_kernel_mask")
def conv_kernel_mask(input_shape: Any, kernel_shape: Any, strides: Any, padding: str) -> np.ndarray:
    """The connections of a convolution's input positions to its result's: [*input, *result]."""
    if padding not in ("same", "valid"):
        raise NotImplementedError(
            f"Padding type {padding} not supported. Only 'valid' and 'same' are implemented."
        )
    count = len(input_shape)
    sizes, steps = tuple_of(kernel_shape, count, "kernel_shape"), tuple_of(strides, count, "strides")
    result = conv_output_shape(input_shape, sizes, steps, padding)
    array = np.zeros((*input_shape, *result), bool)
    for place in itertools.product(*(range(d) for d in result)):
        seen = conv_connected_inputs(input_shape, sizes, place, steps, padding)
        for source in itertools.product(*seen):
            array[source + place] = True
    return array


# -- tf_utils -----------------------------------------------------------------------------------------------


@export(f"{_TF}.constant_value")
def pred_value(pred: Any) -> Any:
    """The value of a condition, where it is known."""
    return constant_value(pred) if isinstance(pred, Tensor) else bool(pred)


@export(f"{_TF}.is_tensor_or_tensor_list")
def is_tensor_or_tensor_list(v: Any) -> bool:
    """Whether something is a tensor, or a list that begins with one."""
    parts = nest.flatten(v)
    return bool(parts) and isinstance(parts[0], Tensor)


_symbolic: list[type] = []


@export(f"{_TF}.register_symbolic_tensor_type")
def register_symbolic_tensor_type(cls: type) -> None:
    """Has objects of a class stand for tensors of the graph."""
    _symbolic.append(cls)


@export(f"{_TF}.is_symbolic_tensor")
def is_symbolic_tensor(tensor: Any) -> bool:
    """Whether something is a tensor of a graph."""
    return isinstance(tensor, (Tensor, CompositeTensor, find("Variable"), *_symbolic))


@export(f"{_TF}.are_all_symbolic_tensors")
def are_all_symbolic_tensors(tensors: Any) -> bool:
    """Whether all are tensors of a graph."""
    return all(is_symbolic_tensor(t) for t in tensors)


@export(f"{_TF}.is_tensor_or_variable")
def is_tensor_or_variable(x: Any) -> bool:
    """Whether something is a tensor or a variable."""
    return isinstance(x, (Tensor, CompositeTensor, find("Variable")))


@export(f"{_TF}.convert_shapes")
def convert_shapes(input_shape: Any, to_tuples: bool = True) -> Any:
    """A structure of shapes as tuples, or as TensorShapes."""
    if _is_shape(input_shape):
        shape = TensorShape(input_shape)
        return tuple(shape.as_list()) if to_tuples else shape
    if isinstance(input_shape, dict):
        return {key: convert_shapes(value, to_tuples) for key, value in input_shape.items()}
    return type(input_shape)(convert_shapes(shape, to_tuples) for shape in input_shape)


def _is_shape(value: Any) -> bool:
    if isinstance(value, TensorShape):
        return True
    return isinstance(value, (list, tuple)) and all(
        d is None or hasattr(d, "value") or isinstance(d, int) for d in value
    )


@export(f"{_TF}.shape_type_conversion")
def shape_type_conversion(fn: Callable) -> Callable:
    """Decorator of a method of an input shape: it gets tuples, and what it gives becomes TensorShapes."""

    @functools.wraps(fn)
    def wrapped(instance: Any, input_shape: Any) -> Any:
        given = None if input_shape is None else convert_shapes(input_shape, to_tuples=True)
        result = fn(instance, given)
        return None if result is None else convert_shapes(result, to_tuples=False)

    return wrapped


@export(f"{_TF}.get_reachable_from_inputs")
def get_reachable_from_inputs(inputs: Any, targets: Any = None) -> set:
    """The tensors and operations that depend on some tensors; the search ends when all targets are found."""
    result: set = set(nest.flatten(inputs))
    wanted = set(nest.flatten(targets)) if targets is not None else None
    waiting = list(result)
    while waiting:
        here = waiting.pop()
        if isinstance(here, Tensor):
            after: Any = here.consumers()
        elif hasattr(here, "outputs"):
            after = here.outputs
        else:  # a variable
            if not isinstance(here, Variable):
                raise TypeError(f"Expected Operation, Variable, or Tensor, got {here}")
            after = here.op.outputs
        for item in after:
            if item not in result:
                result.add(item)
                waiting.append(item)
        if wanted is not None and wanted <= result:
            break
    return result


# -- the others ---------------------------------------------------------------------------------------------


@export("python.keras.utils.mode_keys.ModeKeys")
class ModeKeys:
    """The modes of a model."""

    TRAIN, TEST, PREDICT = "train", "test", "predict"


@export("python.keras.utils.losses_utils.ReductionV2", "python.ops.losses.losses_impl.ReductionV2")
class ReductionV2:
    """How one number is made of the losses of examples."""

    AUTO, NONE, SUM, SUM_OVER_BATCH_SIZE = "auto", "none", "sum", "sum_over_batch_size"

    @classmethod
    def all(cls) -> tuple[str, ...]:
        """All of them."""
        return (cls.AUTO, cls.NONE, cls.SUM, cls.SUM_OVER_BATCH_SIZE)

    @classmethod
    def validate(cls, key: str) -> None:
        """ValueError for what is none of them."""
        if key not in cls.all():
            raise ValueError(f"Invalid Reduction Key {key}.")


@export("python.keras.utils.losses_utils.reduce_weighted_loss")
def reduce_weighted_loss(weighted_losses: Any, reduction: str = ReductionV2.SUM_OVER_BATCH_SIZE) -> Tensor:
    """One number of losses: their sum, or their mean."""
    if reduction == ReductionV2.NONE:
        return weighted_losses
    total = find("reduce_sum")(weighted_losses)
    if reduction != ReductionV2.SUM_OVER_BATCH_SIZE:
        return total
    return find("div_no_nan")(total, find("cast")(find("size")(weighted_losses), total.dtype))


@export("python.keras.utils.losses_utils.compute_weighted_loss")
def compute_weighted_loss(
    losses: Any,
    sample_weight: Any = None,
    reduction: str = ReductionV2.SUM_OVER_BATCH_SIZE,
    name: str | None = None,
) -> Tensor:
    """Losses times their weights, as one number."""
    ReductionV2.validate(reduction)
    reduction = ReductionV2.SUM_OVER_BATCH_SIZE if reduction == ReductionV2.AUTO else reduction
    with find("name_scope")(name, "weighted_loss"):
        values = find("convert_to_tensor")(losses)
        kind = values.dtype
        values = find("cast")(values, "float32")
        weights = find("cast")(1.0 if sample_weight is None else sample_weight, "float32")
        while (weights.shape.ndims or 0) and weights.shape.ndims < (values.shape.ndims or 0):
            weights = find("expand_dims")(weights, -1)
        return find("cast")(reduce_weighted_loss(values * weights, reduction), kind)


@export("python.keras.engine.input_spec.assert_input_compatibility")
def assert_input_compatibility(input_spec: Any, inputs: Any, layer_name: str) -> None:
    """ValueError when an input does not fit a layer's specification."""
    check_inputs(layer_name, input_spec, nest.flatten(inputs))


@export("python.keras.utils.layer_utils.count_params")
def count_params(weights: Any) -> int:
    """How many numbers variables hold."""
    return int(sum(np.prod(v.shape.as_list()) for v in {id(v): v for v in weights}.values()))


@export("python.keras.utils.layer_utils.print_summary")
def print_summary(model: Any, line_length: Any = None, positions: Any = None, print_fn: Any = None) -> None:
    """Prints the layers of a model."""
    model.summary(line_length, positions, print_fn)


@export("python.keras.utils.data_utils.is_generator_or_sequence")
def is_generator_or_sequence(x: Any) -> bool:
    """Whether something gives batches one after the other."""
    return inspect.isgenerator(x) or isinstance(x, (find("keras.utils.Sequence"), Iterator))


@export("python.keras.utils.data_utils.iter_sequence_infinite")
def iter_sequence_infinite(seq: Any) -> Iterator:
    """The items of a sequence, over and over."""
    while True:
        yield from (seq[i] for i in range(len(seq)))


@export("python.keras.utils.metrics_utils.Reduction")
class Reduction(enum.Enum):
    """How metrics add up."""

    SUM, SUM_OVER_BATCH_SIZE, WEIGHTED_MEAN = "sum", "sum_over_batch_size", "weighted_mean"

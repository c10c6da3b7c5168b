"""What libraries of layers take from `tensorflow.python.keras.utils`: sizes of kernels, names, what counts as a tensor."""

from __future__ import annotations

import codecs
import marshal
import re
import types
from typing import Any

from tensorfleet.api import export, find
from tensorfleet.graph.operation import CompositeTensor, Operation, Tensor
from tensorfleet.variables.base import Variable

_CONV = "python.keras.utils.conv_utils"
_GENERIC = "python.keras.utils.generic_utils"
_TENSORS = "python.keras.utils.tf_utils"
_symbolic: list[type] = []


@export(f"{_CONV}.normalize_tuple")
def normalize_tuple(value: Any, n: int, name: str) -> tuple[int, ...]:
    """`n` sizes, where one number stands for all of them."""
    if isinstance(value, int):
        return (value,) * n
    wrong = f"The `{name}` argument must be a tuple of {n} integers. Received: {value}"
    try:
        sizes = tuple(value)
    except TypeError:
        raise ValueError(wrong) from None
    if len(sizes) != n:
        raise ValueError(wrong)
    for size in sizes:
        try:
            int(size)
        except (ValueError, TypeError):
            raise ValueError(f"{wrong} including element {size} of type {type(size)}") from None
    return sizes


@export(f"{_CONV}.normalize_data_format")
def normalize_data_format(value: str | None) -> str:
    """`channels_first` or `channels_last`, by default what the backend has."""
    data_format = (value or find("keras.backend.image_data_format")()).lower()
    if data_format not in ("channels_first", "channels_last"):
        raise ValueError(
            f'The `data_format` argument must be one of "channels_first", "channels_last". Received: {value}'
        )
    return data_format


@export(f"{_CONV}.normalize_padding")
def normalize_padding(value: Any) -> Any:
    """`valid`, `same` or `causal`; paddings that are given as a list stay as they are."""
    if isinstance(value, (list, tuple)):
        return value
    padding = value.lower()
    if padding not in ("valid", "same", "causal"):
        raise ValueError(
            'The `padding` argument must be a list/tuple or one of "valid", "same" (or "causal", only for `Conv1D). '
            f"Received: {padding}"
        )
    return padding


@export(f"{_GENERIC}.to_snake_case")
def to_snake_case(name: str) -> str:
    """A class's name as layers made of it are named."""
    apart = re.sub(r"(.)([A-Z][a-z0-9]+)", r"\1_\2", name)
    snake = re.sub(r"([a-z])([A-Z])", r"\1_\2", apart).lower()
    return f"private{snake}" if snake.startswith("_") else snake


@export(f"{_GENERIC}.func_dump")
def func_dump(func: Any) -> tuple[str, tuple | None, tuple | None]:
    """A function's code as text, its defaults and what it encloses: how a Lambda layer is stored."""
    code = codecs.encode(marshal.dumps(func.__code__), "base64").decode("ascii")
    enclosed = tuple(c.cell_contents for c in func.__closure__) if func.__closure__ else None
    return code, func.__defaults__, enclosed


@export(f"{_GENERIC}.func_load")
def func_load(code: Any, defaults: Any = None, closure: Any = None, globs: Any = None) -> Any:
    """The function that `func_dump` took apart; files of a model hold its parts as one list."""
    if isinstance(code, (tuple, list)):
        code, defaults, closure = code
        defaults = tuple(defaults) if isinstance(defaults, list) else defaults
    cells = tuple(c if isinstance(c, types.CellType) else types.CellType(c) for c in closure or ())
    made = marshal.loads(codecs.decode(code.encode("ascii"), "base64"))
    return types.FunctionType(
        made, globals() if globs is None else globs, made.co_name, defaults, cells or None
    )


@export(f"{_TENSORS}.get_reachable_from_inputs")
def get_reachable_from_inputs(inputs: Any, targets: Any = None) -> set:
    """The operations and tensors that depend on some; looks no further once all targets are among them."""
    waiting = list(find("nest.flatten")(inputs))
    reachable = set(waiting)
    wanted = None if targets is None else set(find("nest.flatten")(targets)) - reachable
    while waiting and wanted != set():
        for y in _next(waiting.pop(0)):
            if y not in reachable:
                reachable.add(y)
                waiting.append(y)
                if wanted is not None:
                    wanted.discard(y)
    return reachable


def _next(x: Any) -> list:
    """What is directly behind an operation, a variable or a tensor."""
    if isinstance(x, Operation):
        return [*x.outputs, *x._control_outputs]
    if isinstance(x, Variable):
        return [x.op]
    if isinstance(x, Tensor):
        return x.consumers()
    raise TypeError(f"Expected Operation, Variable, or Tensor, got {x}")


@export(f"{_TENSORS}.register_symbolic_tensor_type")
def register_symbolic_tensor_type(cls: type) -> None:
    """Objects of a class that converts to tensors count as tensors of a graph from now on."""
    _symbolic.append(cls)


@export(f"{_TENSORS}.is_symbolic_tensor")
def is_symbolic_tensor(tensor: Any) -> bool:
    """Whether something stands for a value in a graph: here all tensors and variables do."""
    return isinstance(tensor, (Tensor, Variable, CompositeTensor, *_symbolic))

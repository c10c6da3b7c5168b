"""`tf.keras.layers.Lambda`: any function as a layer, also in a file."""

from __future__ import annotations

import base64
import inspect
import marshal
import sys
import types
from collections.abc import Callable
from typing import Any

from tensorfleet.base.naming import find
from tensorfleet.graph.operation import Tensor
from tensorfleet_legacy.keras.engine.base_layer import Layer
from tensorfleet_legacy.keras.utils.generic_utils import (
    CustomObjectScope,
    deserialize_keras_object,
    get_custom_objects,
)


def func_dump(func: Any) -> tuple[str, Any, Any]:
    """A function as text: its code, its defaults, and what it has from around it."""
    code = base64.b64encode(marshal.dumps(func.__code__)).decode("ascii")
    cells = tuple(c.cell_contents for c in func.__closure__) if func.__closure__ else None
    return code, func.__defaults__, cells


def func_load(code: Any, defaults: Any = None, closure: Any = None, globs: dict | None = None) -> Callable:
    """A function from what `func_dump` gave."""
    if isinstance(code, (tuple, list)):
        code, defaults, closure = code
        defaults = tuple(defaults) if isinstance(defaults, list) else defaults
    cells = None if closure is None else tuple(_cell(value) for value in closure)
    result = marshal.loads(base64.b64decode(code))
    around = globals() if globs is None else globs
    return types.FunctionType(result, around, name=result.co_name, argdefs=defaults, closure=cells)


def _cell(value: Any) -> Any:
    return value if isinstance(value, types.CellType) else types.CellType(value)


class Lambda(Layer):
    """Any function of tensors as a layer."""

    def __init__(
        self,
        function: Callable,
        output_shape: Any = None,
        mask: Any = None,
        arguments: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.function, self.arguments = function, arguments or {}
        self.mask, self._shape = mask, output_shape
        self.supports_masking = mask is not None
        known = inspect.signature(function).parameters if _has_signature(function) else {}
        self._takes = [key for key in ("mask", "training") if key in known and key not in self.arguments]

    def call(self, inputs: Any, mask: Any = None, training: Any = None) -> Any:  # type: ignore[override]
        """The function's result."""
        given = {"mask": mask, "training": training}
        result = self.function(inputs, **self.arguments, **{key: given[key] for key in self._takes})
        if self._shape is not None and isinstance(result, Tensor):
            result.set_shape(result.shape.merge_with(self.compute_output_shape(_shapes(inputs))))
        return result

    def compute_output_shape(self, input_shape: Any) -> Any:
        """The shape that was given, or that a function of the shapes of inputs says."""
        if self._shape is None:
            return super().compute_output_shape(input_shape)
        shape = find("TensorShape")
        if callable(self._shape):
            return shape(self._shape(_tuples(input_shape)))
        several = isinstance(input_shape, list)
        first = _tuples(input_shape)[0] if several else _tuples(input_shape)
        return shape([first[0], *self._shape])

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        """The mask that was given, or what a function of the inputs' says."""
        return self.mask(inputs, mask) if callable(self.mask) else self.mask

    def get_config(self) -> dict[str, Any]:
        config = super().get_config()
        config.pop("mask", None)
        for key, value in (("function", self.function), ("output_shape", self._shape)):
            config.update(_written(key, value))
        if self.mask is not None:
            config.update(_written("mask", self.mask))
        return {**config, "arguments": self.arguments}

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: dict[str, Any] | None = None) -> Any:
        """A layer from what `get_config` gave."""
        given = dict(config)
        with CustomObjectScope(custom_objects or {}):
            around = {**globals(), **get_custom_objects()}
            for key in ("function", "output_shape", "mask"):
                kind, module = given.pop(f"{key}_type", None), given.pop(f"{key}_module", None)
                module = given.pop("module", None) if key == "function" and module is None else module
                if key in given:
                    given[key] = _read(given[key], kind, _around(module, around))
        return cls(**given)


def _has_signature(function: Any) -> bool:
    try:
        inspect.signature(function)
    except (TypeError, ValueError):
        return False
    return True


def _shapes(inputs: Any) -> Any:
    return [t.shape for t in inputs] if isinstance(inputs, (list, tuple)) else inputs.shape


def _tuples(shape: Any) -> Any:
    """Shapes as tuples of numbers, as functions of shapes take them."""
    if isinstance(shape, list) and shape and not isinstance(shape[0], (int, type(None))):
        return [_tuples(s) for s in shape]
    return tuple(find("TensorShape")(shape).as_list())


def _written(key: str, value: Any) -> dict[str, Any]:
    """A function as a configuration has it: a lambda by its code, another by its name."""
    module = "module" if key == "function" else f"{key}_module"
    if isinstance(value, types.LambdaType) and value.__name__ == "<lambda>":
        return {key: func_dump(value), f"{key}_type": "lambda", module: value.__module__}
    if callable(value):
        return {key: value.__name__, f"{key}_type": "function", module: value.__module__}
    return {key: value, f"{key}_type": "raw", module: None}


def _read(value: Any, kind: str | None, around: dict[str, Any]) -> Any:
    if kind == "lambda":
        return func_load(value, globs=around)
    if kind == "function" and isinstance(value, str):
        return deserialize_keras_object(value, around, None, "function in Lambda layer")
    return tuple(value) if isinstance(value, list) else value


def _around(module: str | None, known: dict[str, Any]) -> dict[str, Any]:
    """The globals that a function of a module sees."""
    own = vars(sys.modules[module]) if module in sys.modules else {}
    return {**known, **own} if module else known

"""`tf.function`."""

from __future__ import annotations

import functools
import inspect
import types
import weakref
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any, NoReturn

import numpy as np

from tensorfleet.api.autograph import calls
from tensorfleet.api.functions.concrete import ConcreteFunction, lifting, traced
from tensorfleet.api.variables.base import Variable
from tensorfleet.base import nest
from tensorfleet.base.naming import export, publish
from tensorfleet.base.properties import readonly
from tensorfleet.base.types import TensorLike
from tensorfleet.graph.apply import apply
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.functions import around
from tensorfleet.graph.indexed_slices import CompositeTensor
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import get_default_graph
from tensorfleet.ops.type_specs import TensorSpec

_eager = [False]


@export("config.experimental_run_functions_eagerly")
def run_functions_eagerly(run_eagerly: bool) -> None:
    """Whether `tf.function`s call their Python each time, in the graph that is the default then."""
    _eager[0] = bool(run_eagerly)


def _refuse(*_: object, **__: object) -> NoReturn:
    raise ValueError("tf.function-decorated function tried to create variables on non-first call.")


class Function:
    """A Python function that is traced once for each kind of arguments, and called as a function of the graph.

    Variables that it makes in its first call are made in the graph around it.
    """

    _makes_variables = False  # in any call, rather than in the first

    def __init__(
        self,
        python_function: Callable[..., Any],
        name: str,
        input_signature: Sequence[Any] | None,
        autograph: bool,
        relax_shapes: bool,
    ) -> None:
        self._python_function = python_function
        self._name = name
        self._specs = _checked_signature(input_signature)
        self._autograph, self._relax = autograph, relax_shapes
        self._parameters = inspect.signature(python_function)
        self._traces: dict[Any, ConcreteFunction] = {}
        self._created: dict[int, list[Variable]] = {}
        self._bound: weakref.WeakKeyDictionary[Any, Function] = weakref.WeakKeyDictionary()
        functools.update_wrapper(self, python_function)

    python_function = readonly("_python_function", "The function itself.")
    input_signature = readonly("_specs", "The kinds of arguments it takes, if it says so.")

    def __get__(self, instance: object, owner: object) -> Function:
        if instance is None:
            return self
        # Each instance has traces of its own: the method may read its attributes while it is traced.
        if instance not in self._bound:
            bound: Function = type(self)(
                types.MethodType(self._python_function, instance),
                self._name,
                None,
                self._autograph,
                self._relax,
            )
            bound._specs = self._specs
            self._bound[instance] = bound
        return self._bound[instance]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Traces the function for these arguments if they are new, then calls the traced graph."""
        if _eager[0]:
            return self._python_function(*args, **kwargs)
        concrete, tensors = self._concrete(args, kwargs)
        return concrete.call_flat(tensors)

    def get_concrete_function(self, *args: Any, **kwargs: Any) -> ConcreteFunction:
        """The function for arguments of the kinds of these, which may be `tf.TensorSpec`s."""
        return self._concrete(args, kwargs)[0]

    def _concrete(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[ConcreteFunction, list[Tensor]]:
        structure, flat = self._arguments(args, kwargs)
        graph = get_default_graph()
        # Each graph has traces of its own: a body captures tensors of the graph around it.
        key = (id(graph), _structure_key(structure), tuple(_kind(v) for v in flat))
        tensors = [v for v in flat if isinstance(v, Tensor)]
        concrete = self._traces.get(key)
        # The `id` of a graph may be that of one that is gone.
        if concrete is None or concrete.graph.outer is not graph:
            concrete = self._traces[key] = self._trace(structure, flat)
        return concrete, tensors

    def _arguments(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, list[Any]]:
        """The arguments with their defaults, and their leaves: tensors where they can be."""
        if self._specs is not None:
            return self._by_signature(args, kwargs)
        try:
            given = self._parameters.bind(*args, **kwargs)
        except TypeError as e:
            raise TypeError(f"{self._name}() {e}") from None
        given.apply_defaults()
        structure = (given.args, given.kwargs)
        flat = nest.flatten(structure, True)
        return structure, [to_tensor(v) if isinstance(v, np.ndarray) else v for v in flat]

    def _by_signature(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, list[Any]]:
        assert self._specs is not None
        names = list(self._parameters.parameters)
        if len(args) > len(self._specs):
            raise TypeError(
                f"When input_signature is provided, only pass arguments covered by it. Received {len(args)} argument(s)."
            )
        for name in kwargs:
            if name not in names:
                raise TypeError(f"Function got an unexpected keyword argument {name}")
        given = (*args, *(kwargs[n] for n in names[len(args) : len(self._specs)] if n in kwargs))
        if not given and self._specs:
            given = self._specs  # all that get_concrete_function needs to know is in the signature
        pairs = list(_paired(given, self._specs))
        if not all(isinstance(spec, TensorSpec) for _, spec in pairs) or len(given) != len(self._specs):
            raise ValueError(
                "Structure of Python function inputs does not match input_signature:\n"
                f"inputs: ({given})\ninput_signature: ({self._specs})"
            )
        flat = [_as_specified(value, spec) for value, spec in pairs]
        return (self._specs, {}), flat

    def _trace(self, structure: Any, flat: list[Any]) -> ConcreteFunction:
        """Runs the Python function; once more if it made variables, as it will from now on."""
        graph = id(around(get_default_graph()))
        created: list[Variable] = []
        if self._makes_variables:
            return self._traced_with(structure, flat, lifting(created), created)
        # Traced twice: the first time makes the variables, the second is what every later call does.
        first = graph not in self._created
        result = self._traced_with(structure, flat, lifting(created) if first else _refuse, created)
        if first:
            self._created[graph] = created
            if created:
                result = self._traced_with(structure, flat, _refuse, created)
        return result

    def _traced_with(
        self, structure: Any, flat: list[Any], creator: Callable[..., Variable], made: list[Variable]
    ) -> ConcreteFunction:
        specs = [_spec_of(v) for v in flat if isinstance(v, (Tensor, TensorSpec))]

        def call(*tensors: Tensor) -> Any:
            left = iter(tensors)
            leaves = [next(left) if isinstance(v, (Tensor, TensorSpec)) else v for v in flat]
            args, kwargs = nest.pack_sequence_as(structure, leaves, True)
            if not self._autograph:
                with calls.conversion(False):
                    return self._python_function(*args, **kwargs)
            with calls.conversion(True):
                return calls.converted_call(self._python_function, tuple(args), dict(kwargs), requested=True)

        signature = nest.pack_sequence_as(
            structure, [_spec_of(v) if isinstance(v, (Tensor, TensorSpec)) else v for v in flat], True
        )
        return traced(ConcreteFunction, call, self._name, specs, creator, signature, made)


def _checked_signature(given: Sequence[Any] | None) -> tuple[Any, ...] | None:
    if given is None:
        return None
    if not isinstance(given, (tuple, list)):
        raise TypeError(f"input_signature must be either a tuple or a list, received {type(given)}")
    if any(not isinstance(spec, TensorSpec) for spec in nest.flatten(given, True)):
        raise TypeError(
            f"Invalid input_signature {given}; input_signature must be a possibly nested sequence of TensorSpec objects."
        )
    return tuple(given)


def _paired(value: object, spec: Any) -> Iterator[tuple[Any, Any]]:
    """Arguments with their kinds; (value, None) where they are arranged differently."""
    if isinstance(spec, dict):
        if not isinstance(value, dict) or value.keys() != spec.keys():
            yield value, None
            return
        for key in sorted(spec):
            yield from _paired(value[key], spec[key])
    elif isinstance(spec, (list, tuple)):
        if not isinstance(value, (list, tuple)) or len(value) != len(spec):
            yield value, None
            return
        for v, s in zip(value, spec, strict=True):
            yield from _paired(v, s)
    else:
        yield value, spec


def _as_specified(value: TensorLike, spec: TensorSpec) -> Tensor | TensorSpec:
    """An argument as its signature says."""
    if isinstance(value, TensorSpec):
        result: Tensor | TensorSpec = value
    else:
        try:
            result = to_tensor(value, spec.dtype)
        except (TypeError, ValueError) as e:
            raise ValueError(
                "When input_signature is provided, all inputs to the Python function must be convertible to tensors:\n"
                f"inputs: ({value})\ninput_signature: ({spec})"
            ) from e
    if not spec.is_compatible_with(result):
        raise ValueError(
            f"Python inputs incompatible with input_signature:\ninputs: ({value})\ninput_signature: ({spec})"
        )
    return _declared(result, spec) if isinstance(result, Tensor) else spec


def _declared(tensor: Tensor, spec: TensorSpec) -> Tensor:
    """A tensor of which no more is known than its signature says."""
    result = apply("Identity", tensor)
    result._shape = spec.shape
    return result


def _spec_of(value: Tensor | TensorSpec) -> TensorSpec:
    if isinstance(value, TensorSpec):
        return value
    return TensorSpec(value.shape, value.dtype.base_dtype)


def _kind(value: object) -> tuple[Any, ...]:
    """A key that arguments share when one trace serves them all."""
    if isinstance(value, (Tensor, TensorSpec)):
        shape = value.shape
        dims = None if shape.ndims is None else tuple(shape.as_list())
        return ("tensor", value.dtype.base_dtype, dims)
    if isinstance(value, (Variable, CompositeTensor)):
        return ("object", id(value))
    try:
        # Values of Python count by equality, those that cannot be hashed by identity.
        hash(value)
    except TypeError:
        return ("object", id(value))
    return (type(value), value)


def _structure_key(structure: object) -> Hashable:
    """The arrangement of arguments."""
    if isinstance(structure, dict):
        return (type(structure), tuple((k, _structure_key(structure[k])) for k in sorted(structure)))
    if isinstance(structure, (list, tuple)):
        return (type(structure), tuple(_structure_key(v) for v in structure))
    return None


@export("function", "python.eager.def_function.function")
def function(
    func: Callable[..., Any] | None = None,
    input_signature: Sequence[Any] | None = None,
    autograph: bool = True,
    experimental_autograph_options: object = None,
    experimental_relax_shapes: bool = False,
    experimental_compile: bool | None = None,
) -> Any:
    """Makes a function of the graph of a Python function: traced once for each kind of arguments, then called.

    Its branches and loops may depend on tensors, unless `autograph` is off. `input_signature`, `tf.TensorSpec`s of the
    arguments, makes one function serve all.
    """
    return _decorated(Function, func, input_signature, autograph, experimental_relax_shapes)


def _decorated(
    kind: type[Function],
    func: Callable[..., Any] | None,
    input_signature: Sequence[Any] | None,
    autograph: bool,
    relax_shapes: bool,
) -> Any:
    """A function of a kind, or what makes one of a function."""
    _checked_signature(input_signature)

    def decorate(inner: Callable[..., Any]) -> Function:
        name = getattr(inner, "__name__", "function").strip("<>")
        return kind(inner, name, input_signature, autograph, relax_shapes)

    return decorate if func is None else decorate(func)


class _Defun(Function):
    """A function that is traced once, and may make variables, or find them by name, whenever it is."""

    _makes_variables = True


@export("python.eager.function.defun", "contrib.eager.defun")
def defun(
    func: Callable[..., Any] | None = None,
    input_signature: Sequence[Any] | None = None,
    autograph: bool = True,
    experimental_autograph_options: object = None,
    experimental_relax_shapes: bool = False,
) -> Any:
    """`tf.function` as it was before: its Python function may make variables in any call."""
    return _decorated(_Defun, func, input_signature, autograph, experimental_relax_shapes)


publish(function, "python.eager.function.defun_with_attributes")
publish(Function, "python.eager.def_function.Function")
publish(ConcreteFunction, "python.eager.function.ConcreteFunction")

"""`tf.py_function`: a Python function of tensors that have values, called in each run; with a gradient."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from tensorfleet.api.variables.base import Variable
from tensorfleet.base import dtypes
from tensorfleet.base.naming import export
from tensorfleet.base.types import Array, DTypeLike, TensorLike
from tensorfleet.graph.apply import apply_list
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.gradients import gradients
from tensorfleet.graph.graph import Graph
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.registry import gradient, op
from tensorfleet.graph.scopes import get_default_graph
from tensorfleet.ops.array.basic import unknown_like
from tensorfleet.ops.control.host_ops import call_by_token, function_of, register_function
from tensorfleet.session.session import Session

if TYPE_CHECKING:
    from tensorfleet.runtime.scheduling.host_ops import StepHostContext


class ValueTensor(Tensor):
    """A tensor in the body of a `py_function`: it can be asked for its value."""

    __slots__ = ()

    def numpy(self) -> Any:
        """The value, as a numpy array, number or bytes."""
        return self.graph.value_of(self)  # type: ignore[attr-defined]

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        return np.asarray(self.numpy(), *args, **kwargs)

    def __bool__(self) -> bool:
        return bool(self.numpy())

    def __int__(self) -> int:
        return int(self.numpy())

    def __float__(self) -> float:
        return float(self.numpy())

    def __index__(self) -> int:
        result: int = self.numpy().__index__()
        return result

    def __len__(self) -> int:
        return len(self.numpy())

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    def __repr__(self) -> str:
        return f"<tf.Tensor: shape={self.shape}, dtype={self.dtype.name}, numpy={self.numpy()!r}>"

    __str__ = __repr__
    __hash__ = Tensor.__hash__


class _Body(Graph):
    """The graph of one call of a function: everything in it can be computed at once."""

    def __init__(self) -> None:
        super().__init__()
        self._session: Session | None = None

    def add_op(self, *args: Any, **kwargs: Any) -> Operation:
        result = super().add_op(*args, **kwargs)
        for tensor in result._outputs:
            # The graph makes plain tensors; their class is changed here instead of in all places that make one.
            tensor.__class__ = ValueTensor
        return result

    def value_of(self, tensor: Tensor) -> Any:
        if self._session is None:
            self._session = Session(graph=self)
        return self._session.run(tensor)

    def close(self) -> None:
        """Ends its session."""
        if self._session is not None:
            self._session.close()


def _returned(value: TensorLike, kind: dtypes.DType) -> ValueTensor:
    if isinstance(value, Variable):
        raise RuntimeError(
            "Attempting to return a variable from an eagerly executed py_func: its value is gone when the call ends. "
            f"Return {value.name}.read_value()."
        )
    converted: Any = to_tensor(value, kind)  # tensors of a `_Body` are of this class
    tensor: ValueTensor = converted
    return tensor


class _EagerFunction:
    """A function of tensors, as one of arrays."""

    def __init__(self, function: Callable[..., Any], types: list[dtypes.DType]) -> None:
        self.function, self.types = function, types

    def _results(self, arguments: list[Tensor]) -> list[ValueTensor]:
        result = self.function(*arguments)
        values = [] if result is None else list(result) if isinstance(result, (list, tuple)) else [result]
        pairs = zip(values, self.types, strict=False)
        return [_returned(v, t) for v, t in pairs]

    def __call__(self, *arrays: Array) -> list[Any]:
        body = _Body()
        try:
            with body.as_default():
                return [t.numpy() for t in self._results([to_tensor(a) for a in arrays])]
        finally:
            body.close()

    def backwards(self, given: list[int], wanted: list[int], *arrays: Array) -> list[Any]:
        """The gradients by the arguments `wanted`, from those of the results `given`, which come last."""
        body = _Body()
        try:
            with body.as_default():
                tensors: list[Any] = [to_tensor(a) for a in arrays]
                arguments, grads = tensors[: -len(given)], tensors[-len(given) :]
                results = self._results(arguments)
                targets = [arguments[i] for i in wanted]
                derivatives: list[Any] = gradients([results[i] for i in given], targets, grads)
                return [
                    np.zeros_like(t.numpy()) if g is None else cast(ValueTensor, to_tensor(g)).numpy()
                    for g, t in zip(derivatives, targets, strict=True)
                ]
        finally:
            body.close()


@op(
    "EagerPyFunc",
    "input: list(Tin) -> output: list(Tout)",
    "token: string; is_async: bool = false; Tin: list(type); Tout: list(type)",
    shape=unknown_like,
    host=True,
    stateful=True,
)
def _eager_py_func(
    ctx: StepHostContext, args: list[Array], *, token: bytes, is_async: bool, Tout: list[dtypes.DType]
) -> tuple[Array, ...]:
    return call_by_token(ctx.step, token, args, Tout)


@gradient("EagerPyFunc")
def _eager_py_func_grad(op: Operation, *grads: Tensor | None) -> list[Tensor | None]:
    function: Any = function_of(op._attrs["token"])
    # Results that nothing depends on have no gradient, and take no part.
    given = [i for i, g in enumerate(grads) if g is not None]
    # Integers and strings have no gradient.
    wanted = [i for i, t in enumerate(op.inputs) if t.dtype.base_dtype.is_floating]

    def backwards(*arrays: Array) -> list[Any]:
        result: list[Any] = function.backwards(given, wanted, *arrays)
        return result

    kinds = [op.inputs[i].dtype.base_dtype for i in wanted]
    results = _applied(backwards, [*op.inputs, *(grads[i] for i in given)], kinds, None)
    by_place = dict(zip(wanted, results, strict=True))
    return [by_place.get(i) for i in range(len(op.inputs))]


def _applied(
    call: Callable[..., Any], inputs: Sequence[Tensor | None], types: list[dtypes.DType], name: str | None
) -> list[Tensor]:
    return apply_list("EagerPyFunc", inputs, token=register_function(call), Tout=types, name=name)


@export("py_function", "contrib.eager.py_func", "python.ops.script_ops.eager_py_func")
def py_function(
    func: Callable[..., Any],
    inp: Iterable[TensorLike],
    Tout: DTypeLike | Sequence[DTypeLike],
    name: str | None = None,
) -> Any:
    """Calls a Python function on tensors during each run; they have values (`numpy()`), and gradients go through.

    The function may use operations and Python's own control flow. It gives values of the types `Tout`: a type or a
    list of them.
    """
    listed: Sequence[Any] = Tout if isinstance(Tout, (list, tuple)) else [Tout]
    types = [dtypes.as_dtype(t) for t in listed]
    outputs = _applied(_EagerFunction(func, types), [to_tensor(t) for t in inp], types, name)
    if not types:
        return get_default_graph()._ops[-1]
    return outputs if listed is Tout else outputs[0]

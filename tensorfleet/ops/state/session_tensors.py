"""Tensors that stay in the session between runs: `tf.get_session_handle` and its kin."""

from __future__ import annotations

import itertools
from typing import Any, TypeAlias

import numpy as np

from tensorfleet.base import dtypes, errors
from tensorfleet.base.dtypes import DType
from tensorfleet.base.naming import export
from tensorfleet.base.properties import readonly
from tensorfleet.base.types import Array, DTypeLike, TensorLike
from tensorfleet.graph.apply import apply, apply_op
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.kernel_types import HostContext
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.registry import not_differentiable, op
from tensorfleet.graph.scopes import device, name_scope
from tensorfleet.ops.common import SCALAR, UNKNOWN

_numbers = itertools.count()


#: The values that a session keeps, by handle.
_Kept: TypeAlias = dict[bytes, Array]


def _kept(ctx: HostContext) -> _Kept:
    return ctx.private.get("", "session tensors", "session tensors", dict)


def _checked(ctx: HostContext, handle: Array) -> bytes:
    key: bytes = np.asarray(handle).item()
    if key not in _kept(ctx):
        text = f"The tensor with handle '{key.decode(errors='replace')}' is not in the session store."
        raise errors.invalid(text)
    return key


@op(
    "GetSessionHandle",
    "value: T -> handle: string",
    "T: type",
    shape=lambda op: SCALAR,
    host=True,
    stateful=True,
)
def _get_handle(ctx: HostContext, value: Array) -> Array:
    key = f"{ctx.op.name};{next(_numbers)};{ctx.op.device}".encode()
    _kept(ctx)[key] = value
    return np.array(key, object)


@op(
    "GetSessionTensor",
    "handle: string[0] -> value: dtype",
    "dtype: type",
    shape=lambda op: UNKNOWN,
    host=True,
    stateful=True,
)
def _get_tensor(ctx: HostContext, handle: Array, *, dtype: DType) -> Array:
    value = np.asarray(_kept(ctx)[_checked(ctx, handle)])
    if value.dtype != dtype.np_dtype:
        text = f"The tensor that was kept has type {dtypes.as_dtype(value.dtype).name}, not {dtype.name}."
        raise errors.invalid(text)
    return value


@op("DeleteSessionTensor", "handle: string[0] ->", host=True, stateful=True)
def _delete_tensor(ctx: HostContext, handle: Array) -> None:
    del _kept(ctx)[_checked(ctx, handle)]


not_differentiable("GetSessionHandle", "GetSessionTensor", "DeleteSessionTensor")


class TensorHandle:
    """The value of a session handle, as `sess.run` returns it: the name of a tensor that stays in the session."""

    def __init__(self, handle: Array | bytes | str, dtype: DType, session: Any) -> None:
        text: Any = np.asarray(handle)[()]
        self._handle: str = text.decode() if isinstance(text, bytes) else text
        self._dtype = dtype
        self._session = session

    handle = readonly("_handle", "The name, which you feed for a handle.")
    dtype = readonly("_dtype", "The type of the tensor.")

    def eval(self) -> Any:
        """The value of the tensor."""
        holder, value = self._reader()
        return self._session.run(value, {holder: self._handle})

    def _reader(self) -> tuple[Tensor, Tensor]:
        """The operations that read a handle: one pair for each type in a graph."""
        graph = self._session.graph
        # Kept on the graph: a new pair for each call would let it grow for ever.
        known: dict[DType, tuple[Tensor, Tensor]] = graph.__dict__.setdefault("_handle_readers", {})
        if self._dtype not in known:
            with graph.as_default(), graph.control_dependencies(None):
                known[self._dtype] = get_session_tensor(self._handle, self._dtype)
        return known[self._dtype]

    def delete(self) -> None:
        """Frees the tensor."""
        graph = self._session.graph
        kept = graph.__dict__
        if "_handle_deleter" not in kept:
            with graph.as_default(), graph.control_dependencies(None):
                kept["_handle_deleter"] = delete_session_tensor(self._handle)
        holder, deleter = kept["_handle_deleter"]
        self._session.run(deleter, {holder: self._handle})

    def get_raw_handle(self) -> str:
        """The name. You free the tensor yourself, with `tf.delete_session_tensor`."""
        return self._handle

    def to_numpy_array(self) -> Array:
        """The name as an array."""
        return np.array(self._handle.encode(), object)

    def __str__(self) -> str:
        return self._handle


def _holder() -> Tensor:
    return apply("Placeholder", dtype=dtypes.string, shape=UNKNOWN)


@export("get_session_handle")
def get_session_handle(data: TensorLike, name: str | None = None) -> Tensor:
    """Keeps a tensor in the session; fetching the result gives a `TensorHandle` to use in later runs."""
    if not isinstance(data, Tensor):
        raise TypeError("`data` must be of type Tensor.")
    return apply("GetSessionHandle", to_tensor(data), name=name)


@export("get_session_tensor")
def get_session_tensor(
    handle: TensorLike, dtype: DTypeLike, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """A placeholder for a handle, and the tensor that the handle stands for."""
    with name_scope(name), device(None):
        holder = _holder()
        return holder, apply("GetSessionTensor", holder, dtype=dtype, name=name)


@export("delete_session_tensor")
def delete_session_tensor(handle: TensorLike, name: str | None = None) -> tuple[Tensor, Operation]:
    """A placeholder for a handle, and an operation that frees the tensor it stands for."""
    with name_scope(name), device(None):
        holder = _holder()
        return holder, apply_op("DeleteSessionTensor", holder, name=name)

"""The ops that TensorFlow's own tests build graphs of: `tensorflow.python.framework.test_ops`.

Importing this module registers them. Most only say what they take and give: running one is an error.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tensorfleet.base import errors
from tensorfleet.base.shapes import TensorShape
from tensorfleet.graph import registry
from tensorfleet.graph.graphdef import GRAPH_DEF_VERSION
from tensorfleet.graph.operation import Operation
from tensorfleet.graph.raw_ops import positional

# "type | inputs -> outputs | attributes"
_TABLE = """
    A | -> out: float
    B | -> out: float
    Attr | -> | a: int
    AttrBool | -> | a: bool
    AttrBoolList | -> | a: list(bool)
    AttrDefault | -> | a: string = 'banana'
    AttrEmptyListDefault | -> | a: list(float) = []
    AttrEnum | -> | a: string(apples|oranges)
    AttrEnumList | -> | a: list(string(apples|oranges))
    AttrFloat | -> | a: float
    AttrListDefault | -> | a: list(int) = [5, 15]
    AttrListMin | -> | a: list(int) >= 2
    AttrListTypeDefault | a: N * T, b: N * T -> | T: type = int32; N: int >= 1
    AttrMin | -> | a: int >= 5
    AttrPartialShape | -> | a: shape
    AttrPartialShapeList | -> | a: list(shape)
    AttrShape | -> | a: shape
    AttrShapeList | -> | a: list(shape)
    AttrTypeDefault | a: T -> | T: type = int32
    Binary | a: T, b: T -> out: T | T: type
    ComplexStruct | -> a: n_a * int32, b: n_b * int64, c: list(t_c) | n_a: int >= 0; n_b: int >= 0; t_c: list(type) >= 0
    CopyOp | a: T -> b: T | T: type
    FiveFloatOutputs | -> a: float, b: float, c: float, d: float, e: float
    FloatInput | a: float ->
    FloatOutput | -> a: float
    FloatOutputStringOutput | -> a: float, b: string
    Foo1 | a: float, b: int32, c: int32 -> d: float, e: int32
    Foo2 | a: float, b: string, c: string -> d: float, e: int32
    Foo3 | a: float, b: string, c: float -> d: float, e: int32
    FuncAttr | -> | f: func
    FuncListAttr | -> | f: list(func)
    InPolymorphicTwice | a: N * T, b: M * T -> | T: type; N: int >= 0; M: int >= 0
    Int64Output | -> out: int64
    IntAttr | -> out: int64 | foo: int = 1
    IntInput | a: int32 ->
    IntInputFloatInput | a: int32, b: float ->
    IntInputIntOutput | a: int32 -> b: int32
    IntOutput | -> a: int32
    IntOutputFloatOutput | -> a: int32, b: float
    ListInput | a: N * T -> | N: int >= 1; T: type
    ListOutput | -> a: list(T) | T: list(type) >= 1
    MixedStruct | -> a: n_a * int32, b: float | n_a: int >= 0
    NInPolymorphicTwice | a: N * T, b: N * T -> | T: type; N: int >= 0
    NInTwice | a: N * int32, b: N * string -> | N: int >= 0
    NInTwoTypeVariables | a: N * S, b: N * T -> | S: type; T: type; N: int >= 0
    NIntsIn | a: N * int32 -> | N: int >= 2
    NIntsOut | -> a: N * int32 | N: int >= 2
    NIntsOutDefault | -> a: N * int32 | N: int >= 2 = 3
    NPolymorphicIn | a: N * T -> | T: type; N: int >= 2
    NPolymorphicOut | -> a: N * T | T: type; N: int >= 2
    NPolymorphicOutDefault | -> a: N * T | T: type = bool; N: int >= 2 = 2
    NPolymorphicRestrictIn | a: N * T -> | T: {string, bool}; N: int >= 2
    NPolymorphicRestrictOut | -> a: N * T | T: {string, bool}; N: int >= 2
    None | ->
    OpWithDefaultAttr | -> a: int32 | default_float: float = 123.0
    OpWithFutureDefaultAttr | ->
    OutT | -> a: T | T: type
    OutTypeList | -> out: list(T) | T: list(type) >= 0
    OutTypeListRestrict | -> out: list(t) | t: list({string, bool})
    Polymorphic | a: T -> out: T | T: type
    PolymorphicDefaultOut | -> out: T | T: type = string
    PolymorphicOut | -> out: T | T: type
    RefIn | a: Ref(T) -> | T: type
    RefInputFloatInput | a: Ref(float), b: float ->
    RefInputFloatInputIntOutput | a: Ref(float), b: float -> c: int32
    RefInputIntInput | a: Ref(int32), b: int32 ->
    RefOut | -> a: Ref(T) | T: type
    RefOutput | -> a: Ref(int32)
    RefOutputFloatOutput | -> a: Ref(float), b: float
    ReservedAttr | -> | range: int
    ReservedInput | input: int32 ->
    Restrict | a: T -> out: T | T: {string, bool}
    Simple | a: int32 -> out: float
    SimpleStruct | -> a: n_a * int32 | n_a: int >= 0
    StringListAttr | -> | a: list(string); b: string
    TestStringOutput | input: float -> output1: float, output2: string
    TwoFloatInputs | a: float, b: float ->
    TwoFloatInputsFloatOutput | a: float, b: float -> c: float
    TwoFloatInputsIntOutput | a: float, b: float -> c: int32
    TwoFloatOutputs | -> a: float, b: float
    TwoIntInputs | a: int32, b: int32 ->
    TwoIntOutputs | -> a: int32, b: int32
    TwoRefsIn | a: Ref(T), b: Ref(T) -> | T: type
    TypeList | a: list(T) -> | T: list(type) >= 0
    TypeListRestrict | a: list(T) -> | T: list({string, bool})
    TypeListTwice | a: list(T), b: list(T) -> | T: list(type) >= 0
    Unary | a: T -> b: T | T: type
"""


_FUNCTIONS: dict[str, str] = {}


def _op(name: str, signature: str, attrs: str = "", **flags: Any) -> Callable[[Callable], Callable]:
    _FUNCTIONS[name.lower()] = name
    return registry.op(name, signature, attrs, listed=False, **flags)


def _cannot_run(ctx: Any, *inputs: Any) -> Any:
    raise errors.InvalidArgumentError(
        None, None, f"No OpKernel was registered to support Op '{ctx.op.type}' with these attrs."
    )


def _unknown(op: Operation) -> list[TensorShape]:
    return [TensorShape(None)] * len(op._outputs)


def _scalar(op: Operation) -> TensorShape:
    return TensorShape([])


for _line in _TABLE.strip().splitlines():
    _name, _signature, *_attrs = (part.strip() for part in _line.split(" | "))
    _op(_name, _signature, *_attrs, shape=_unknown, host=True, stateful=True)(_cannot_run)


@_op("TestAttr", "-> out: T", "T: {float, double}", shape=_unknown)
def _test_attr(xp: Any, *, T: Any) -> Any:
    return xp.asarray(1.0, dtype=T.np_dtype)


@_op("GraphDefVersion", "-> version: int32", shape=_scalar, host=True, stateful=True)
def _graph_def_version(ctx: Any) -> Any:
    return np.int32(ctx.op.graph.graph_def_versions.producer)


def _older_version(op: Operation) -> TensorShape:
    if op.graph.graph_def_versions.producer != GRAPH_DEF_VERSION - 1:
        raise ValueError("Wrong graph version for shape")
    return TensorShape([])


@_op("RequiresOlderGraphVersion", "-> version: int32", shape=_older_version, host=True, stateful=True)
def _requires_older_version(ctx: Any) -> Any:
    return _graph_def_version(ctx)


@_op("Old", "->", host=True, stateful=True, removed=(8, "For reasons"))
def _old(ctx: Any) -> None:
    """Does nothing."""


@_op("KernelLabel", "-> result: string", shape=_scalar, host=True)
def _kernel_label(ctx: Any) -> Any:
    label = ctx.op._attrs.get("_kernel", b"default")
    return np.array(b"My label is: " + label, dtype=object)


@_op("KernelLabelRequired", "input: int32[1] -> result: string", shape=_scalar, host=True)
def _kernel_label_required(ctx: Any, value: Any) -> Any:
    if "_kernel" not in ctx.op._attrs:
        _cannot_run(ctx)
    return _kernel_label(ctx)


class _Stub:
    """A resource that has nothing but its existence."""

    exists = False


def _stub_of(handle: Any) -> _Stub:
    """The resource of a handle: the first, of a tensor of handles."""
    first: _Stub = handle.flat[0] if isinstance(handle, np.ndarray) else handle
    return first


_HANDLE = "container: string = ''; shared_name: string = ''"


@_op("StubResourceHandleOp", "-> resource: resource", _HANDLE, shape=_scalar, host=True, stateful=True)
def _stub_resource(ctx: Any, *, container: bytes, shared_name: bytes) -> Any:
    return ctx.resources.get(container, "stub", shared_name.decode() or ctx.op.name, _Stub)


@_op("ResourceCreateOp", "resource: resource ->", host=True, stateful=True)
def _create_resource(ctx: Any, resource: Any) -> None:
    stub = _stub_of(resource)
    if stub.exists:
        raise errors.AlreadyExistsError(None, None, "Resource already exists.")
    stub.exists = True


@_op(
    "ResourceInitializedOp",
    "resource: resource -> initialized: bool",
    shape=_scalar,
    host=True,
    stateful=True,
)
def _is_initialized(ctx: Any, resource: Any) -> Any:
    return np.bool_(_stub_of(resource).exists)


@_op("ResourceUsingOp", "resource: resource ->", host=True, stateful=True)
def _use_resource(ctx: Any, resource: Any) -> None:
    if not _stub_of(resource).exists:
        raise errors.NotFoundError(None, None, "Resource does not exist.")


@_op("DevicePlacementOp", "-> device: string", shape=_scalar, host=True, stateful=True)
def _device_placement(ctx: Any) -> Any:
    return np.array(ctx.op.device.encode(), dtype=object)


def __getattr__(name: str) -> Any:
    """The function that adds an op, by the op's name in lower case: `int_output`."""
    if name == "_op_def_lib":
        from tensorfleet_legacy.internals.framework.op_def_library import OpDefLibrary

        return OpDefLibrary()
    op_type = None if name.startswith("__") else _FUNCTIONS.get(name.replace("_", "").lower())
    if op_type is None:
        raise AttributeError(name)
    return positional(op_type)

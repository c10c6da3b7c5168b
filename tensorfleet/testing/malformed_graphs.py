"""Malformed graphs: importers and servers must refuse each of them at once.

`MALFORMED` maps the defect of a graph to a function that makes its GraphDef.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeAlias

from tensorfleet.graph.checking import MAX_DEPTH

if TYPE_CHECKING:
    from tensorfleet.base.protos import AttrValue, FunctionDef, GraphDef, NodeDef, TensorShapeProto

FLOAT, INT32, STRING, RESOURCE, VARIANT = 1, 3, 7, 20, 21
_Make: TypeAlias = "Callable[[], GraphDef]"
MALFORMED: dict[str, _Make] = {}


def _is(what: str) -> Callable[[_Make], _Make]:
    def register(make: _Make) -> _Make:
        MALFORMED[what] = make
        return make

    return register


def node(name: str, op: str, inputs: Iterable[str] = (), **attrs: Any) -> NodeDef:
    """A NodeDef; an int attribute named as a type (`T`, `dtype`) is one."""
    from tensorfleet.base.protos import NodeDef

    result = NodeDef(name=name, op=op)
    result.input.extend(inputs)
    for key, value in attrs.items():
        target = result.attr[key]
        if key in ("T", "dtype", "Tidx", "SrcT", "DstT"):
            target.type = value
        elif isinstance(value, bool):
            target.b = value
        elif isinstance(value, int):
            target.i = value
        elif isinstance(value, bytes):
            target.s = value
        elif isinstance(value, tuple):
            _dims(target.shape, value)
            target.shape.SetInParent()
        elif isinstance(value, list):
            target.list.type.extend(value)
            target.list.SetInParent()
        else:
            target.CopyFrom(value)
    return result


def _dims(shape: TensorShapeProto, sizes: Iterable[int]) -> None:
    for size in sizes:
        shape.dim.add(size=size)


def graph(*nodes: NodeDef) -> GraphDef:
    """A GraphDef of these nodes."""
    from tensorfleet.base.protos import GraphDef

    result = GraphDef()
    result.node.extend(nodes)
    return result


def _repeated(given: NodeDef, count: int) -> GraphDef:
    from tensorfleet.base.protos import GraphDef

    return GraphDef.FromString(graph(given).SerializeToString() * count)


def tensor(dtype: int, sizes: Iterable[int], content: bytes = b"", **values: Any) -> AttrValue:
    """An attribute that holds a TensorProto."""
    from tensorfleet.base.protos import AttrValue

    result = AttrValue()
    result.tensor.dtype = dtype  # type: ignore[assignment]
    _dims(result.tensor.tensor_shape, sizes)
    result.tensor.tensor_content = content
    for field, value in values.items():
        getattr(result.tensor, field).extend(value)
    return result


def constant(sizes: Iterable[int], content: bytes = b"", dtype: int = FLOAT, **values: Any) -> GraphDef:
    """A graph of one constant, which claims a shape."""
    return graph(node("c", "Const", dtype=dtype, value=tensor(dtype, sizes, content, **values)))


def one(name: str = "c") -> NodeDef:
    """A good constant."""
    return node(name, "Const", dtype=FLOAT, value=tensor(FLOAT, [], float_val=[1.0]))


def function(name: str, *nodes: NodeDef) -> FunctionDef:
    """A FunctionDef without arguments."""
    from tensorfleet.base.protos import FunctionDef

    result = FunctionDef()
    result.signature.name = name
    result.node_def.extend(nodes)
    return result


def call(name: str, called: str) -> NodeDef:
    """A node that calls a function."""
    from tensorfleet.base.protos import AttrValue

    f = AttrValue()
    f.func.name = called
    return node(name, "StatefulPartitionedCall", f=f, Tin=[], Tout=[])


# -- cycles and references ----------------------------------------------------------------------------


def _ring(count: int, op: str = "Identity") -> GraphDef:
    return graph(*(node(f"n{i}", op, [f"n{(i + 1) % count}"], T=FLOAT) for i in range(count)))


def _ring_of_controls(count: int) -> GraphDef:
    return graph(*(node(f"n{i}", "NoOp", [f"^n{(i + 1) % count}"]) for i in range(count)))


MALFORMED.update(
    {
        "a node that needs itself": lambda: _ring(1),
        "two nodes that need each other": lambda: _ring(2),
        "a ring of 100": lambda: _ring(100),
        "a ring of 100,000": lambda: _ring(100_000),
        "a ring of controls": lambda: _ring_of_controls(3),
        "a ring of 100,000 controls": lambda: _ring_of_controls(100_000),
        "a ring of merges": lambda: graph(
            node("a", "Merge", ["b", "b"], T=FLOAT, N=2), node("b", "Merge", ["a", "a"], T=FLOAT, N=2)
        ),
        "a ring with a branch": lambda: graph(
            one(), node("a", "Add", ["c", "b"], T=FLOAT), node("b", "Add", ["a", "c"], T=FLOAT)
        ),
        "an input that is not there": lambda: graph(node("a", "Identity", ["nobody"], T=FLOAT)),
        "a control that is not there": lambda: graph(node("a", "NoOp", ["^nobody"])),
        "an output that is not there": lambda: graph(one(), node("a", "Identity", ["c:1"], T=FLOAT)),
        "output 999,999,999": lambda: graph(one(), node("a", "Identity", ["c:999999999"], T=FLOAT)),
        "output -1": lambda: graph(one(), node("a", "Identity", ["c:-1"], T=FLOAT)),
        "an output whose number has 10,000 digits": lambda: graph(
            one(), node("a", "Identity", ["c:" + "9" * 10_000], T=FLOAT)
        ),
        "an output that is no number": lambda: graph(one(), node("a", "Identity", ["c:x"], T=FLOAT)),
        "an empty input": lambda: graph(node("a", "Identity", [""], T=FLOAT)),
        "a control of nothing": lambda: graph(node("a", "NoOp", ["^"])),
        "a control of an output": lambda: graph(one(), node("a", "NoOp", ["^c:0"])),
        "a control twice marked": lambda: graph(one(), node("a", "NoOp", ["^^c"])),
        "a value after a control": lambda: graph(one(), node("a", "Identity", ["^c", "c"], T=FLOAT)),
        "100,000 nodes, the last of them wrong": lambda: graph(
            *(node(f"n{i}", "NoOp") for i in range(99_999)), node("x", "NoOp", ["^nobody"])
        ),
    }
)

# -- names --------------------------------------------------------------------------------------------

_NAMES = {
    "a name that goes up": "../x",
    "a name that goes up inside": "a/../../etc/passwd",
    "a name that ends going up": "a/..",
    "no name": "",
    "a name with a newline": "a\nb",
    "a name with a zero": "a\0b",
    "a name with a space": "a b",
    "a name with a colon": "a:0",
    "a name with a caret": "^a",
    "a name that is a path": "/etc/passwd",
    "a name of other letters": "имя",
    "a name that is a command": "$(reboot)",
    "a name 10,000 scopes deep": "/".join(["a"] * 10_000),
}
for _what, _name in _NAMES.items():
    MALFORMED[_what] = functools.partial(lambda name: graph(node(name, "NoOp")), _name)


@_is("two nodes of one name")
def _twins() -> GraphDef:
    return graph(one("a"), one("a"))


# -- ops, attributes and types ------------------------------------------------------------------------

MALFORMED.update(
    {
        "an op that is not known": lambda: graph(node("a", "RunShellCommand", command=b"reboot")),
        "an op of no name": lambda: graph(node("a", "")),
        "too few inputs": lambda: graph(one(), node("a", "Add", ["c"], T=FLOAT)),
        "too many inputs": lambda: graph(one(), node("a", "Identity", ["c", "c"], T=FLOAT)),
        "inputs of another type": lambda: graph(one(), node("a", "Identity", ["c"], T=INT32)),
        "a value in a variable's place": lambda: graph(one(), node("a", "Assign", ["c", "c"], T=FLOAT)),
        "a list longer than its inputs": lambda: graph(one(), node("a", "AddN", ["c"], T=FLOAT, N=1 << 40)),
        "a list of -1": lambda: graph(one(), node("a", "AddN", ["c"], T=FLOAT, N=-1)),
        "10**12 outputs": lambda: graph(
            node("d", "Const", dtype=INT32, value=tensor(INT32, [], int_val=[0])),
            one(),
            node("a", "Split", ["d", "c"], T=FLOAT, num_split=10**12),
        ),
        "100,000 outputs": lambda: graph(
            node("d", "Const", dtype=INT32, value=tensor(INT32, [], int_val=[0])),
            one(),
            node("a", "Split", ["d", "c"], T=FLOAT, num_split=100_000),
        ),
        "an attribute of another kind": lambda: graph(node("a", "Placeholder", dtype=FLOAT, shape=b"wide")),
        "a type that is none": lambda: graph(node("a", "Placeholder", dtype=9999, shape=())),
        "no type": lambda: graph(node("a", "Placeholder", shape=())),
        "no value": lambda: graph(node("a", "Const", dtype=FLOAT)),
        "a value of another type": lambda: graph(
            node("a", "Const", dtype=INT32, value=tensor(FLOAT, [], float_val=[1.0]))
        ),
    }
)

# -- sizes --------------------------------------------------------------------------------------------

MALFORMED.update(
    {
        "a constant of 2**63 elements": lambda: constant([1 << 31, 1 << 32]),
        "a constant of 2**62 elements": lambda: constant([1 << 62]),
        "a constant of 2**40 elements with one value": lambda: constant([1 << 40], float_val=[1.0]),
        "a constant of 2**35 strings": lambda: constant([1 << 35], dtype=STRING, string_val=[b"x"]),
        "a constant whose sizes overflow": lambda: constant([1 << 62, 4, 1 << 62, 4]),
        "a constant of negative size": lambda: constant([-5]),
        "a constant of unknown size": lambda: constant([-1], float_val=[1.0]),
        "a constant of 255 dimensions": lambda: constant([1] * 255, bytes(4)),
        "a constant of 10,000 dimensions": lambda: constant([1] * 10_000, bytes(4)),
        "a constant with too few bytes": lambda: constant([4], bytes(4)),
        "a constant with too many bytes": lambda: constant([1], bytes(4096)),
        "a constant with a broken element": lambda: constant([1], bytes(3)),
        "a constant of handles": lambda: constant([1], bytes(8), RESOURCE),
        "a constant of variants": lambda: constant([1], dtype=VARIANT),
        "a shape of 2**63 elements": lambda: graph(
            node("a", "Placeholder", dtype=FLOAT, shape=(1 << 31, 1 << 32))
        ),
        "a shape of negative size": lambda: graph(node("a", "Placeholder", dtype=FLOAT, shape=(-7,))),
        "a shape of 255 dimensions": lambda: graph(node("a", "Placeholder", dtype=FLOAT, shape=(1,) * 255)),
        "a variable of 2**63 elements": lambda: graph(
            node("a", "VariableV2", dtype=FLOAT, shape=(1 << 32, 1 << 31))
        ),
        "1,100,000 nodes": lambda: _repeated(node("a", "NoOp"), 1_100_000),
    }
)

# -- nesting ------------------------------------------------------------------------------------------


def _library(*functions: FunctionDef) -> GraphDef:
    result = graph(call("a", "f0"))
    result.library.function.extend(functions)
    return result


@_is("loops 10,000 deep")
def _loops() -> GraphDef:
    enters = [
        node(f"e{i}", "Enter", [f"e{i - 1}" if i else "c"], T=FLOAT, frame_name=b"f%d" % i)
        for i in range(10_000)
    ]
    return graph(one(), *enters)


MALFORMED.update(
    {
        "a function that calls itself": lambda: _library(function("f0", call("a", "f0"))),
        "functions that call each other": lambda: _library(
            function("f0", call("a", "f1")), function("f1", call("a", "f0"))
        ),
        "functions 10,000 deep": lambda: _library(
            *(function(f"f{i}", call("a", f"f{i + 1}")) for i in range(10_000)), function("f10000", one())
        ),
        "functions just too deep": lambda: _library(
            *(function(f"f{i}", call("a", f"f{i + 1}")) for i in range(MAX_DEPTH)),
            function(f"f{MAX_DEPTH}", one()),
        ),
        "two functions of one name": lambda: _library(function("f0", one()), function("f0", one("d"))),
        "a function with a name that goes up": lambda: _library(function("f0", one("../../x"))),
        "a function with a constant of 2**63 elements": lambda: _library(
            function("f0", *constant([1 << 31, 1 << 32]).node)
        ),
    }
)

"""Checks of a `GraphDef` before anything is built from it: its size against limits, and its consistency.

A graph can come from a file or from another process, so it is not trusted: every size is compared with a limit
before memory is allocated for it, and a refused graph leaves nothing behind.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Any

from tensorfleet.base import settings

if TYPE_CHECKING:
    from tensorfleet.base.protos import (
        AttrValue,
        FunctionDef,
        GraphDef,
        NodeDef,
        TensorProto,
        TensorShapeProto,
    )

MAX_RANK = 254
MAX_ELEMENTS = (1 << 63) - 1
MAX_CONSTANT_BYTES = 2 << 30  # bytes; a message cannot hold more, but it can claim more
# Bytes of a constant that is one value, many times: it takes memory only when it is used. Its message is that short.
MAX_FILL_BYTES, _MAX_FILL_MESSAGE_BYTES = 16 << 30, 4096
MAX_OUTPUTS = 1 << 16  # of one node
MAX_DEPTH = 512  # functions inside functions, loops inside loops, scopes inside scopes
_NAME = re.compile(r"[A-Za-z0-9.][A-Za-z0-9_.\-/>]*")
_NAMES = re.compile(r"(?:[A-Za-z0-9.][A-Za-z0-9_.\-/>]*+(?:\n|\Z))*+")
_INPUT = re.compile(r"\^?([^:^]+)(?::(\d{1,9}))?")
_SIZED = frozenset(("tensor", "shape", "list"))
_MERGES = ("Merge", "RefMerge")
_NEXTS = ("NextIteration", "RefNextIteration")
_INSIDE = {"Enter": 1, "RefEnter": 1, "Exit": -1, "RefExit": -1}


def max_nodes() -> int:
    """How many nodes a graph may have."""
    return settings.MAX_NODES()


def check_graph_def(graph_def: GraphDef, mapped: Collection[str] = ()) -> None:
    """Raises ValueError for a graph that is too big or contradicts itself. `mapped` inputs come from elsewhere."""
    functions = graph_def.library.function
    count = len(graph_def.node) + sum(len(f.node_def) for f in functions)
    if count > max_nodes():
        raise ValueError(
            f"The graph has {count} nodes; at most {max_nodes()} are accepted. Set TENSORFLEET_MAX_NODES to allow more."
        )
    _check_functions(functions)
    nodes = list(graph_def.node)
    numbers = _by_name(nodes)
    ops = [node.op for node in nodes]
    # What is quick to see comes first: a graph that is refused should cost little.
    _check_order(nodes, ops, *_edges(nodes, numbers, ops, mapped))
    for node in nodes:
        attrs = node.attr
        for key in attrs:
            attr = attrs[key]
            if attr.WhichOneof("value") in _SIZED:
                _check_attr(node.name, attr)


def _by_name(nodes: list[Any]) -> dict[str, int]:
    """The number of each node, by its name."""
    names = [node.name for node in nodes]
    whole = "\n".join(names)
    # One look at all of them; whichever is wrong, if any is, is found one by one.
    fine = all(names) and whole.count("\n") == len(names) - 1 and _NAMES.fullmatch(whole)
    if not fine or ".." in whole or max(map(len, names), default=0) > MAX_DEPTH:
        for name in names:
            check_name(name)
    result = dict(zip(names, range(len(names)), strict=True))
    if len(result) < len(names):
        twice = next(name for i, name in enumerate(names) if result[name] != i)
        raise ValueError(f"Node '{twice}' is not unique")
    return result


def check_name(name: str) -> None:
    """Raises ValueError for an invalid name of a node."""
    if not _NAME.fullmatch(name):
        raise ValueError(f"Node '{name[:200]}': Node name contains invalid characters")
    if "/" in name and (".." in name.split("/") or name.count("/") >= MAX_DEPTH):
        raise ValueError(f"Node '{name[:200]}': a name cannot go up, nor be {MAX_DEPTH} scopes deep.")


# -- inputs -------------------------------------------------------------------------------------------


def _edges(
    nodes: list[Any], numbers: dict[str, int], ops: list[str], mapped: Collection[str]
) -> tuple[list[int], list[int]]:
    """The nodes that must be made before each node, all in one list, and how many of them belong to each."""
    sources: list[int] = []
    counts: list[int] = []
    for i, node in enumerate(nodes):
        before = len(sources)
        plain = not mapped and ops[i] not in _MERGES
        controls = False
        for text in node.input if plain else ():
            number = numbers.get(text)
            if number is None and text[:1] == "^":
                number = numbers.get(text[1:])
                controls = True
            elif controls:
                number = None
            if number is None:
                plain = False
                break
            sources.append(number)
        if not plain:  # not written in the simplest way, which is rare
            sources[before:] = _sources(node, numbers, ops, mapped)
        counts.append(len(sources) - before)
    return sources, counts


def _sources(node: NodeDef, numbers: dict[str, int], ops: list[str], mapped: Collection[str]) -> list[int]:
    """The nodes that must be made before a node."""
    merges = node.op in _MERGES
    result: list[int] = []
    controls = False
    for text in node.input:
        parts = _INPUT.fullmatch(text)
        if parts is None:
            raise ValueError(f"Node '{node.name}': Unknown input node '{text[:200]}'")
        controlling = text[0] == "^"
        if controls and not controlling:
            raise ValueError(f"Node '{node.name}': Control dependencies must come after regular dependencies")
        controls = controlling
        source, index = parts.groups()
        if mapped and (text if controlling or index else f"{text}:0") in mapped:
            continue
        if controlling and index:
            raise ValueError(f"Node '{node.name}': Unknown input node '{text[:200]}'")
        number = numbers.get(source)
        if number is None:
            raise ValueError(f"Node '{node.name}': Unknown input node '{text[:200]}'")
        # An edge that leads back to the start of a loop is set when everything is made.
        if controlling or not merges or ops[number] not in _NEXTS:
            result.append(number)
    return result


def _check_order(nodes: list[Any], ops: list[str], sources: list[int], left: list[int]) -> None:
    """Raises for nodes that wait for each other, and for loops inside loops beyond the limit."""
    ready = [i for i, n in enumerate(left) if not n]
    users: list[list[int]] = [[] for _ in nodes] if ready else []
    if ready:
        needed = iter(sources)
        for user, count in enumerate(left):
            for source in itertools.islice(needed, count):
                users[source].append(user)
    depth = [0] * len(nodes)
    for i in ready:
        inside = depth[i] + _INSIDE.get(ops[i], 0)
        if inside > MAX_DEPTH:
            raise ValueError(f"Node '{nodes[i].name}' is inside more than {MAX_DEPTH} loops.")
        for user in users[i]:
            left[user] -= 1
            if inside > depth[user]:
                depth[user] = inside
            if not left[user]:
                ready.append(user)
    if len(ready) < len(nodes):
        stuck = next(i for i, n in enumerate(left) if n)
        raise ValueError(
            f"The graph_def has a cycle through node '{nodes[stuck].name}' that is not a loop of control flow."
        )


# -- attributes ---------------------------------------------------------------------------------------


def _check_attr(name: str, attr: AttrValue) -> None:
    which = attr.WhichOneof("value")
    if which == "tensor":
        check_tensor(attr.tensor)
    elif which == "shape":
        check_shape(attr.shape)
    else:
        if attr.list.ByteSize() > MAX_CONSTANT_BYTES:
            raise ValueError(f"Node '{name}': an attribute is too long.")
        for shape in attr.list.shape:
            check_shape(shape)
        for tensor in attr.list.tensor:
            check_tensor(tensor)


def check_shape(shape: TensorShapeProto) -> int:
    """The number of elements of a `TensorShapeProto`, unknown sizes counted as one; raises when there cannot be such."""
    if len(shape.dim) > MAX_RANK:
        raise ValueError(f"Shape must have at most {MAX_RANK} dimensions, but has {len(shape.dim)}.")
    sizes = [d.size for d in shape.dim]
    if any(size < -1 for size in sizes):
        raise ValueError(f"Shape [{','.join(map(str, sizes[:16]))}] has negative dimensions")
    count = math.prod(size for size in sizes if size > 0)
    if count > MAX_ELEMENTS:
        raise ValueError(
            f"Shape [{','.join(map(str, sizes[:16]))}] is too large (more than 2**63 - 1 entries)"
        )
    return 0 if 0 in sizes else count


def check_tensor(tensor: TensorProto) -> int:
    """The number of elements of a `TensorProto`; raises when they cannot be, or would take too much memory."""
    if tensor.tensor_shape.unknown_rank or any(d.size < 0 for d in tensor.tensor_shape.dim):
        raise ValueError("A constant must have a known shape.")
    count = check_shape(tensor.tensor_shape)
    most = MAX_CONSTANT_BYTES if tensor.ByteSize() > _MAX_FILL_MESSAGE_BYTES else MAX_FILL_BYTES
    if count > most:
        raise ValueError(f"A constant of {count} elements is too large: at most {most} bytes are accepted.")
    return count


# -- functions ----------------------------------------------------------------------------------------


def _check_functions(functions: Iterable[FunctionDef]) -> None:
    calls: dict[str, set[str]] = {}
    for function in functions:
        name = function.signature.name
        if name in calls:
            raise ValueError(f"Function '{name}' is not unique")
        calls[name] = set()
        for node in function.node_def:
            check_name(node.name)
            calls[name].add(node.op)
            for attr in node.attr.values():
                which = attr.WhichOneof("value")
                if which == "func":
                    calls[name].add(attr.func.name)
                elif which in _SIZED:
                    _check_attr(node.name, attr)
    if calls:
        _check_nesting(calls)


def _check_nesting(calls: dict[str, set[str]]) -> None:
    """Raises for functions that call themselves, or that are nested too deeply."""
    left = {name: len([c for c in called if c in calls]) for name, called in calls.items()}
    callers: dict[str, list[str]] = {name: [] for name in calls}
    for name, called in calls.items():
        for one in called:
            if one in callers:
                callers[one].append(name)
    ready = [name for name, n in left.items() if not n]
    depth = dict.fromkeys(ready, 1)
    for name in ready:
        for caller in callers[name]:
            depth[caller] = max(depth.get(caller, 1), depth[name] + 1)
            left[caller] -= 1
            if not left[caller]:
                ready.append(caller)
    if len(ready) < len(calls):
        stuck = next(name for name, n in left.items() if n)
        raise ValueError(f"Function '{stuck}' calls itself.")
    if max(depth.values()) > MAX_DEPTH:
        raise ValueError(f"Functions are called inside each other more than {MAX_DEPTH} deep.")

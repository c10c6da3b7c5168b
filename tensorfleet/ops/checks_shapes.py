"""`tf.debugging.assert_shapes`: relations between the shapes of several tensors."""

from __future__ import annotations

from typing import Any

from tensorfleet.api import export
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.scopes import name_scope
from tensorfleet.ops.array_shape import shape as shape_of
from tensorfleet.ops.basic import group
from tensorfleet.ops.checks import Assert, assert_rank, assert_rank_in
from tensorfleet.ops.compare import equal


@export("debugging.assert_shapes")
def assert_shapes(
    shapes: Any, data: Any = None, summarize: Any = None, message: Any = None, name: str | None = None
) -> Operation:
    """An operation that fails unless tensors have the shapes asked for.

    `shapes` pairs tensors with tuples of sizes: numbers, names such as "N" that mean the same size wherever
    they occur, or None (or ".") for any size.
    """
    pairs = list(shapes.items()) if isinstance(shapes, dict) else list(shapes)
    said = "" if message is None else f"{message}.  "
    with name_scope(name, "assert_shapes", None):
        tensors = [(to_tensor(t), _sizes(s)) for t, s in pairs]
        checks: list = []
        for tensor, sizes in tensors:
            checks.append(_check_rank(tensor, sizes, said, data, summarize))
        known: dict[str, tuple[Any, str]] = {}
        for tensor, sizes in tensors:
            checks += _check_sizes(tensor, sizes, known, said, data, summarize)
    return group(*checks)


def _sizes(spec: Any) -> tuple:
    """A shape asked for as a tuple: a lone size stands for a vector or a scalar."""
    if isinstance(spec, (str, int)) or spec is None:
        return (spec,)
    return tuple(spec)


def _check_rank(tensor: Tensor, sizes: Any, said: str, data: Any, summarize: Any) -> Operation:
    rank = tensor.shape.rank
    flexible = len(sizes) == 1
    allowed = (0, 1) if flexible else (len(sizes),)
    if rank is not None and rank not in allowed:
        wanted = f"rank in {allowed}" if flexible else f"rank {len(sizes)}"
        raise ValueError(
            f"{said}Tensor {tensor.name} must have {wanted}.  Received rank {rank}, shape {tensor.shape}"
        )
    if flexible:
        return assert_rank_in(tensor, allowed, data=data, summarize=summarize)
    return assert_rank(tensor, len(sizes), data=data, summarize=summarize)


def _check_sizes(
    tensor: Tensor, sizes: Any, known: dict[str, tuple[Any, str]], said: str, data: Any, summarize: Any
) -> list:
    checks: list = []
    if tensor.shape.rank == 0:
        return checks
    static = [None] * len(sizes) if tensor.shape.rank is None else tensor.shape.as_list()
    for axis, (wanted, size) in enumerate(zip(sizes, static, strict=True)):
        if wanted is None or wanted == ".":
            continue
        source = "Specified explicitly"
        if isinstance(wanted, str):
            if wanted not in known:
                found = size if size is not None else shape_of(tensor)[axis]
                known[wanted] = (found, f"Specified by tensor {tensor.name} dimension {axis}")
                continue
            wanted, source = known[wanted]
        text = f"{said}{source}.  Tensor {tensor.name} dimension {axis} must have size "
        if size is not None and not isinstance(wanted, Tensor):
            if size != wanted:
                raise ValueError(f"{text}{wanted}.  Received size {size}, shape {tensor.shape}")
            continue
        actual = shape_of(tensor)
        details = [text, wanted, ".  Received size ", actual[axis], ", shape ", actual]
        checks.append(Assert(equal(actual[axis], wanted), data or details, summarize=summarize))
    return checks

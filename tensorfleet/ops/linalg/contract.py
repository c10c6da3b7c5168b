"""`tf.tensordot` and `tf.einsum`: products summed over chosen axes of tensors of any rank."""

from __future__ import annotations

import re
import string
from functools import lru_cache
from typing import Any

import numpy as np

from tensorfleet.base import dtypes, errors
from tensorfleet.base.naming import export
from tensorfleet.base.shapes import TensorShape, broadcast_shape
from tensorfleet.base.types import Array, ArrayModule, TensorLike
from tensorfleet.graph.apply import apply, apply_list
from tensorfleet.graph.constant import constant_value
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.registry import gradient, op
from tensorfleet.graph.scopes import name_scope
from tensorfleet.kernels.arrays import is_numpy
from tensorfleet.kernels.openblas import batched_product
from tensorfleet.ops.elementwise import POSITIVE, REAL, conj, shape_of, unbroadcast, wide
from tensorfleet.ops.linalg.matmul import matmul
from tensorfleet.ops.samples import case

# -- tensordot ---------------------------------------------------------------------------------------


@export("linalg.tensordot", "tensordot")
def tensordot(a: TensorLike, b: TensorLike, axes: TensorLike, name: str | None = None) -> Tensor:
    """Sums products over axes of `a` and `b`: the last and first `axes` of them, or two lists of axes."""
    with name_scope(name, "Tensordot", [a, b, axes]) as scope:
        a, b = to_tensor(a, name="a"), to_tensor(b, name="b")
        a_axes, b_axes = _pairs(a, axes)
        left, a_free, a_static = _as_matrix(a, a_axes, last=True)
        right, b_free, b_static = _as_matrix(b, b_axes, last=False)
        product = matmul(left, right)
        if isinstance(a_free, list) and isinstance(b_free, list):
            target = [*a_free, *b_free]
            if product.shape.is_fully_defined() and product.shape.as_list() == target:
                return product
            return apply("Reshape", product, np.array(target, np.int32), name=scope)
        pieces = [to_tensor(np.array(f, np.int32)) if isinstance(f, list) else f for f in (a_free, b_free)]
        result = apply("Reshape", product, apply("ConcatV2", pieces, np.int32(0), name="concat"), name=scope)
        if a_static is not None and b_static is not None:
            result.set_shape([*a_static, *b_static])
        return result


def _pairs(a: Tensor, axes: TensorLike) -> tuple[Any, Any]:
    """The axes to sum of each tensor, as lists of ints or as tensors."""
    if isinstance(axes, Tensor) and constant_value(axes) is not None:
        axes = constant_value(axes)
    if isinstance(axes, np.ndarray):
        axes = axes.tolist()
    if isinstance(axes, int):
        if axes < 0:
            raise ValueError("'axes' must be at least 0.")
        if a.shape.rank is not None:
            if axes > a.shape.rank:
                raise ValueError(f"'axes' must not be larger than the number of dimensions of tensor {a}.")
            return list(range(a.shape.rank - axes, a.shape.rank)), list(range(axes))
        rank = apply("Rank", a)
        return apply("Range", rank - axes, rank, 1, name="range"), list(range(axes))
    if isinstance(axes, (list, tuple)):
        if len(axes) != 2:
            raise ValueError("'axes' must be an integer or have length 2.")
        first, second = ([x] if isinstance(x, (int, np.integer)) else x for x in axes)
        if (
            isinstance(first, (list, tuple))
            and isinstance(second, (list, tuple))
            and len(first) != len(second)
        ):
            raise ValueError(
                f"Different number of contraction axes 'a' and 'b', {len(first)} != {len(second)}."
            )
        return first, second
    axes = to_tensor(axes, name="axes", dtype=dtypes.int32)
    return axes[0], axes[1]


def _as_matrix(
    x: Tensor, axes: Any, last: bool
) -> tuple[Tensor, list[int | None] | Tensor, list[int | None] | None]:
    """`x` with its summed axes moved last (or first) and both groups flattened.

    Also gives the sizes of the free axes, as a list or as a tensor, and what is known of them.
    """
    if isinstance(axes, (list, tuple)) and x.shape.rank is not None:
        rank = x.shape.rank
        axes = [int(i) % rank if -rank <= int(i) < rank else int(i) for i in axes]
        if any(not 0 <= i < rank for i in axes):
            raise ValueError(f"tensordot axes {axes} are out of range for {x}, which has rank {rank}.")
        free = [i for i in range(rank) if i not in axes]
        order = free + axes if last else axes + free
        sizes = x.shape.as_list()
        if x.shape.is_fully_defined():
            return _static_matrix(x, axes, free, order, last)
        known: list[int | None] | None = [sizes[i] for i in free]
        axes, free_axes = (
            to_tensor(np.array(axes, np.int32), name="axes"),
            to_tensor(np.array(free, np.int32), name="free"),
        )
        shape = apply("Shape", x)
    else:
        known = None
        shape, rank_now = apply("Shape", x), apply("Rank", x)
        axes = to_tensor(axes, name="axes", dtype=dtypes.int32)
        axes = apply("SelectV2", axes >= 0, axes, axes + rank_now)
        free_axes, _ = apply_list("ListDiff", apply("Range", 0, rank_now, 1, name="range"), axes)
    free_sizes = apply("GatherV2", shape, free_axes, np.int32(0))
    rows = apply("Prod", free_sizes, np.array([0], np.int32))
    columns = apply("Prod", apply("GatherV2", shape, axes, np.int32(0)), np.array([0], np.int32))
    both, target = ([free_axes, axes], [rows, columns]) if last else ([axes, free_axes], [columns, rows])
    moved = apply("Transpose", x, apply("ConcatV2", both, np.int32(0), name="concat"), name="transpose")
    return apply("Reshape", moved, apply("Pack", target, name="stack")), free_sizes, known


def _static_matrix(
    x: Tensor, axes: list[int], free: list[int], order: list[int], last: bool
) -> tuple[Tensor, list[int | None], list[int | None]]:
    sizes = x.shape.as_list()
    rows = int(np.prod([sizes[i] for i in free], dtype=np.int64))
    columns = int(np.prod([sizes[i] for i in axes], dtype=np.int64))
    moved = (
        x if order == sorted(order) else apply("Transpose", x, np.array(order, np.int32), name="transpose")
    )
    target = [rows, columns] if last else [columns, rows]
    if moved.shape.as_list() != target:
        moved = apply("Reshape", moved, np.array(target, np.int32))
    free_sizes = [sizes[i] for i in free]
    return moved, free_sizes, free_sizes


# -- einsum ------------------------------------------------------------------------------------------


def _parts(equation: str) -> tuple[list[str], str]:
    left, _, right = equation.partition("->")
    return left.split(","), right


def _einsum_shape(op: Operation) -> TensorShape:
    inputs, output = _parts(op._attrs["equation"].decode())
    if len(inputs) != len(op._inputs):
        raise ValueError(f"Expected {len(inputs)} inputs but got: {len(op._inputs)}")
    sizes: dict[str, int | None] = {}
    dots = TensorShape(())
    for labels, tensor in zip(inputs, op._inputs, strict=True):
        shape = tensor.shape
        if shape.rank is None:
            if "..." in labels and "..." in output:
                return TensorShape(None)
            continue
        named = labels.replace("...", "")
        extra = shape.rank - len(named)
        if extra < 0 or (extra and "..." not in labels):
            raise ValueError(f"Expected input of rank {len(named)} for '{labels}' but got rank {shape.rank}")
        at = labels.find("...")
        dims = shape.as_list()
        if at >= 0:
            dots = broadcast_shape(dots, TensorShape(dims[at : at + extra]))
            del dims[at : at + extra]
        for label, size in zip(named, dims, strict=True):
            if sizes.get(label) is None:
                sizes[label] = size
            elif size is not None and size != sizes[label]:
                raise ValueError(
                    f"Expected dimension {sizes[label]} at axis '{label}' but got dimension {size}"
                )
    if dots.rank and "..." not in output:
        raise ValueError(
            f"Output subscripts {output!r} contain no ellipsis, but the inputs have {dots} for one"
        )
    result: list[int | None] = []
    for piece in re.findall(r"\.\.\.|.", output):
        result += dots.as_list() if piece == "..." else [sizes.get(piece)]
    return TensorShape._of(tuple(result))


@op(
    "Einsum",
    "inputs: N * T -> output: T",
    "equation: string; N: int; T: type",
    shape=_einsum_shape,
    examples=[
        case([REAL, REAL], equation="ij,kj->ik"),
        case([POSITIVE, POSITIVE[0]], equation="ij,j->i"),
        case([POSITIVE], equation="ij->j"),
        case([POSITIVE[None], POSITIVE], equation="...ij,...kj->...ik"),
        case([POSITIVE[:, :2]], equation="ii->i"),
    ],
)
def _einsum(xp: ArrayModule, inputs: list[Array], *, equation: bytes) -> Array:
    dtype = inputs[0].dtype
    extra = {"optimize": True} if xp is np else {}
    try:
        if is_numpy(xp) and (orders := _batched(equation.decode())) is not None:
            left, right, result = orders
            product = batched_product(wide(inputs[0]).transpose(left), wide(inputs[1]).transpose(right))
            return product.transpose(result).astype(dtype, copy=False)
        text, terms = _tied(equation.decode(), [wide(x) for x in inputs])
        return xp.einsum(text, *terms, **extra).astype(dtype)
    except (ValueError, TypeError, IndexError) as e:
        raise errors.invalid(f"Einsum '{equation.decode()}' failed: {e}") from e


@lru_cache(256)
def _batched(equation: str) -> tuple[list[int], ...] | None:
    """How the dimensions of both inputs and of the result are moved if the equation is a batch of matrix products.

    Numpy makes one of a batch by sums over its elements.
    """
    inputs, output = _parts(equation)
    if len(inputs) != 2 or any("." in t or len(set(t)) < len(t) for t in (*inputs, output)):
        return None
    left, right = inputs
    batch = [c for c in output if c in left and c in right]
    rows, columns = ([c for c in t if c in output and c not in batch] for t in inputs)
    inner = [c for c in left if c not in output]
    one_each = len(rows) == len(columns) == len(inner) == 1 and set(inner) == set(right) - set(output)
    if not batch or not one_each:
        return None
    labels = [*batch, *rows, *columns]
    return (
        [left.index(c) for c in [*batch, *rows, *inner]],
        [right.index(c) for c in [*batch, *inner, *columns]],
        [labels.index(c) for c in output],
    )


def _tied(equation: str, inputs: list[Array]) -> tuple[str, list[Array]]:
    """An equation in which no label is twice in the output: an identity matrix ties the second to the first."""
    terms, output = _parts(equation)
    if "..." not in output and any(
        "..." in t and x.ndim > len(t) - 3 for t, x in zip(terms, inputs, strict=True)
    ):
        raise ValueError("Output contains no ellipsis, but the inputs have dimensions for one")
    spare = iter(sorted(set(string.ascii_letters) - set(equation)))
    seen, target = set(), []
    for piece in re.findall(r"\.\.\.|.", output):
        if piece in seen:
            other = next(spare)
            inputs = [*inputs, np.eye(_size_of(piece, terms, inputs), dtype=inputs[0].dtype)]
            terms, piece = [*terms, piece + other], other
        seen.add(piece)
        target.append(piece)
    return f"{','.join(terms)}->{''.join(target)}", inputs


def _size_of(label: str, terms: list[str], inputs: list[Array]) -> int:
    term, x = next((t, x) for t, x in zip(terms, inputs, strict=False) if label in t)
    return int(x.shape[_axis_of(label, term)])


def _axis_of(label: str, term: str) -> int:
    before, dots, _ = term.partition("...")
    return term.index(label) - (len(term) if dots and label not in before else 0)


@gradient("Einsum")
def _einsum_grad(op: Operation, dy: Tensor) -> list[Tensor]:
    inputs, output = _parts(op.get_attr("equation").decode())
    return [_einsum_input_grad(op, inputs, output, k, dy) for k in range(len(inputs))]


def _einsum_input_grad(op: Operation, inputs: list[str], output: str, k: int, dy: Tensor) -> Tensor:
    """The product of `dy` and all other inputs, brought to the labels of input `k`."""
    x, labels = op.inputs[k], inputs[k]
    others = [i for i in range(len(inputs)) if i != k]
    available = set(output) | {c for i in others for c in inputs[i]}
    dots = "..." if "..." in labels and "." in available else ""
    named = labels.replace("...", "")
    kept = "".join(c for c in named if c in available)
    source = ",".join([output, *(inputs[i] for i in others)])
    every = "..." if "." in available else ""
    g = apply("Einsum", [dy, *(conj(op.inputs[i]) for i in others)], equation=f"{source}->{every + kept}")
    if every and not dots:
        surplus = apply("Rank", g) - len(kept)
        g = apply("Sum", g, apply("Range", 0, surplus, 1, name="range"))
    if not dots and kept == named:
        return g
    # Labels found in this input alone were summed there: their gradient is the same wherever they agree.
    alone = "".join(dict.fromkeys(c for c in named if c not in available))
    if len(alone) < len(named) - len(kept):
        sizes = apply("Pack", [shape_of(x)[_axis_of(c, labels)] for c in alone])
        ones = apply("Fill", sizes, np.ones((), g.dtype.base_dtype.np_dtype))
        have, kept = f"{dots}{kept},{alone}", named
        g = apply("Einsum", [g, ones], equation=f"{have}->{dots}{named}")
    ordered = f"{labels}->{dots}{named}" if dots and not labels.startswith("...") else ""
    like = _moved(x, labels) if ordered else x
    for i in reversed([i for i, c in enumerate(named) if kept != named and c not in kept]):
        g = apply("ExpandDims", g, i - len(named))
    if dots:
        summed, _ = unbroadcast(like, g, g, None)
        g = g if summed is None else summed
    g = apply("BroadcastTo", g, shape_of(like)) if kept != named else g
    return _moved_back(g, labels) if ordered else g


def _distinct(labels: str) -> str:
    """Labels for the same axes of which none is twice."""
    spare = iter(sorted(set(string.ascii_letters) - set(labels)))
    named = labels.replace("...", "")
    letters = iter([c if named.index(c) == i else next(spare) for i, c in enumerate(named)])
    return "".join(piece if piece == "..." else next(letters) for piece in re.findall(r"\.\.\.|.", labels))


def _moved(x: Tensor, labels: str) -> Tensor:
    """The axes without a label in front of those that have one."""
    once = _distinct(labels)
    return apply("Einsum", [x], equation=f"{once}->...{once.replace('...', '')}")


def _moved_back(x: Tensor, labels: str) -> Tensor:
    once = _distinct(labels)
    return apply("Einsum", [x], equation=f"...{once.replace('...', '')}->{once}")


@export("linalg.einsum", "einsum")
def einsum(equation: str, *inputs: Any, **kwargs: Any) -> Tensor:
    """Products summed by Einstein's convention, such as `tf.einsum("bij,bjk->bik", a, b)`."""
    name = kwargs.pop("name", None)
    if kwargs:
        raise TypeError(f"invalid keyword arguments for this function: {', '.join(sorted(kwargs))}")
    equation = equation.replace(" ", "")
    match = re.fullmatch(r"([a-zA-Z.,]*)(->[a-zA-Z.]*)?", equation)
    repeated = any(term.count("...") > 1 for term in re.split(",|->", equation))
    if not match or repeated or "." in equation.replace("...", ""):
        raise ValueError(f"Indices have incorrect format: {equation}")
    terms = match.group(1).split(",")
    if len(terms) != len(inputs):
        raise ValueError(
            f"Incorrect number of arguments for equation {equation!r}: {len(terms)} != {len(inputs)}"
        )
    if match.group(2) is None:
        equation += "->" + _implied_output(match.group(1))
    unknown = set(equation.partition("->")[2]) - set(match.group(1)) - {"."}
    if unknown:
        raise ValueError(f"Unknown output labels {sorted(unknown)} in equation {equation!r}")
    named = equation.partition("->")[2].replace("...", "")
    if len(set(named)) < len(named):
        raise ValueError(f"Output labels appear more than once in equation {equation!r}")
    with name_scope(name, "einsum", [*inputs]):
        return apply("Einsum", [to_tensor(x) for x in inputs], equation=equation)


def _implied_output(left: str) -> str:
    dots = "..." if "..." in left else ""
    letters = left.replace("...", "").replace(",", "")
    return dots + "".join(c for c in sorted(set(letters)) if letters.count(c) == 1)

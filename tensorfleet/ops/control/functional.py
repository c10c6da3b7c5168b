"""`tf.map_fn`, `tf.scan`, `tf.foldl`, `tf.foldr`: functions along the first dimension of tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorfleet.base import nest
from tensorfleet.base.naming import export
from tensorfleet.base.shapes import TensorShape
from tensorfleet.graph.apply import constant
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.indexed_slices import CompositeTensor
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import name_scope
from tensorfleet.ops.array.shape import shape
from tensorfleet.ops.control.while_loop import while_loop
from tensorfleet.ops.state.tensor_array import TensorArray


def _elements(elems: Any) -> list[Tensor]:
    flat = nest.flatten(elems)
    if not flat:
        raise ValueError("elems must not be empty.")
    if any(isinstance(e, CompositeTensor) for e in flat):
        raise TypeError(
            "To perform a map over the values of a sparse tensor use either SparseTensor(input.indices, "
            "fn(input.values), input.dense_shape) or tf.sparse.to_dense."
        )
    tensors = [to_tensor(e, name="elem") for e in flat]
    for t in tensors:
        if t.shape.rank == 0:
            if len(tensors) == 1:
                raise ValueError(f"elems must be a 1+ dimensional Tensor, not a scalar: {t.name}")
            raise ValueError(f"elements in elems must be 1+ dimensional Tensors, not scalars: {t.name}")
    return tensors


def _count(tensors: list[Tensor]) -> tuple[int | Tensor, int | None]:
    """How many elements there are: as a number or a tensor, and as a number if it is known."""
    known = None
    for t in tensors:
        size = t.shape.as_list()[0] if t.shape.rank else None
        if size is not None and known is not None and size != known:
            raise ValueError(f"Dimensions {known} and {size} are not compatible: {tensors}")
        known = size if known is None else known
    if known is not None:
        return known, known
    return shape(tensors[0])[0], None


def _spread(tensors: list[Tensor], count: int | Tensor) -> list[TensorArray]:
    arrays = [
        TensorArray(t.dtype.base_dtype, size=count, dynamic_size=False, infer_shape=True) for t in tensors
    ]
    return [a.unstack(t) for a, t in zip(arrays, tensors, strict=True)]


def _stacked(arrays: list[TensorArray], count: int | None) -> list[Tensor]:
    stacked = [a.stack() for a in arrays]
    for t in stacked:
        if t.shape.rank:
            t.set_shape(TensorShape([count]).concatenate(t.shape[1:]))
    return stacked


def _callable(fn: object) -> None:
    if not callable(fn):
        raise TypeError("fn must be callable.")


@export("map_fn")
def map_fn(
    fn: Callable[..., Any],
    elems: Any,
    dtype: Any = None,
    parallel_iterations: int | None = None,
    back_prop: bool = True,
    swap_memory: bool = False,
    infer_shape: bool = True,
    name: str | None = None,
) -> Any:
    """`fn` of each slice of `elems` along the first dimension, stacked.

    `dtype` gives the types of the results of `fn`, where they differ from those of `elems`.
    """
    _callable(fn)
    with name_scope(name, "map", nest.flatten(elems)):
        tensors = _elements(elems)
        count, known = _count(tensors)
        expected = elems if dtype is None else dtype
        kinds = nest.flatten(dtype) if dtype is not None else [t.dtype.base_dtype for t in tensors]
        inputs = _spread(tensors, count)
        start = constant(0)
        outputs = [TensorArray(k, size=count, dynamic_size=False, infer_shape=infer_shape) for k in kinds]

        def compute(i: Tensor, arrays: list[TensorArray]) -> tuple[Tensor, list[TensorArray]]:
            result = fn(nest.pack_sequence_as(elems, [a.read(i) for a in inputs]))
            nest.assert_same_structure(expected, result)
            written = [a.write(i, v) for a, v in zip(arrays, nest.flatten(result), strict=True)]
            return i + 1, written

        _, arrays = while_loop(
            lambda i, _: i < count,
            compute,
            (start, outputs),
            parallel_iterations=parallel_iterations or 10,
            back_prop=back_prop,
            swap_memory=swap_memory,
            maximum_iterations=count,
        )
        return nest.pack_sequence_as(expected, _stacked(arrays, known))


@export("scan")
def scan(
    fn: Callable[..., Any],
    elems: Any,
    initializer: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    infer_shape: bool = True,
    reverse: bool = False,
    name: str | None = None,
) -> Any:
    """All the intermediate results of `a = fn(a, x)` for the slices x of `elems`, stacked.

    `a` starts as `initializer`, or as the first slice, which then is the first result.
    """
    _callable(fn)
    with name_scope(name, "scan", nest.flatten(elems)):
        tensors = _elements(elems)
        count, known = _count(tensors)
        inputs = _spread(tensors, count)
        first = count - 1 if reverse else 0
        if initializer is None:
            like, start = elems, 1
            state = [a.read(first) for a in inputs]
        else:
            like, start = initializer, 0
            state = [to_tensor(t) for t in nest.flatten(initializer)]
        outputs = [
            TensorArray(
                t.dtype.base_dtype,
                size=count,
                element_shape=t.shape if infer_shape else None,
                dynamic_size=False,
                infer_shape=infer_shape,
            )
            for t in state
        ]
        if initializer is None:
            outputs = [a.write(first, t) for a, t in zip(outputs, state, strict=True)]

        def compute(
            i: Tensor, held: list[Tensor], arrays: list[TensorArray]
        ) -> tuple[Tensor, list[Tensor], list[TensorArray]]:
            given = nest.pack_sequence_as(elems, [a.read(i) for a in inputs])
            result = fn(nest.pack_sequence_as(like, held), given)
            nest.assert_same_structure(like, result)
            flat = nest.flatten(result)
            arrays = [a.write(i, v) for a, v in zip(arrays, flat, strict=True)]
            return (i - 1 if reverse else i + 1), flat, arrays

        _, _, arrays = while_loop(
            (lambda i, *_: i >= 0) if reverse else (lambda i, *_: i < count),
            compute,
            (count - 1 - start if reverse else start, state, outputs),
            parallel_iterations=parallel_iterations,
            back_prop=back_prop,
            swap_memory=swap_memory,
            maximum_iterations=count,
        )
        return nest.pack_sequence_as(like, _stacked(arrays, known))


def _fold(
    backwards: bool,
    fn: Callable[..., Any],
    elems: Any,
    initializer: Any,
    name: str | None,
    **options: Any,
) -> Any:
    _callable(fn)
    with name_scope(name, "foldr" if backwards else "foldl", nest.flatten(elems)):
        tensors = _elements(elems)
        count, _ = _count(tensors)
        inputs = _spread(tensors, count)

        def slices(i: Tensor | int) -> Any:
            return nest.pack_sequence_as(elems, [a.read(i) for a in inputs])

        def forth(i: Tensor, held: Any) -> list[Any]:
            given = slices(i)  # before the sum: seeds depend on the order of the operations
            return [i + 1, fn(held, given)]

        def back(i: Tensor, held: Any) -> list[Any]:
            i = i - 1
            return [i, fn(held, slices(i))]

        if initializer is not None:
            state, start = initializer, count if backwards else constant(0)
        elif backwards:
            start = count - 1
            state = slices(start)
        else:
            state, start = slices(0), constant(1)
        going, step = (lambda i, _: i > 0, back) if backwards else (lambda i, _: i < count, forth)
        return while_loop(going, step, [start, state], maximum_iterations=count, **options)[1]


def _folding(backwards: bool, public: str, order: str) -> Callable[..., Any]:
    def fold(
        fn: Callable[..., Any],
        elems: Any,
        initializer: Any = None,
        parallel_iterations: int = 10,
        back_prop: bool = True,
        swap_memory: bool = False,
        name: str | None = None,
    ) -> Any:
        options = {
            "parallel_iterations": parallel_iterations,
            "back_prop": back_prop,
            "swap_memory": swap_memory,
        }
        return _fold(backwards, fn, elems, initializer, name, **options)

    fold.__name__ = fold.__qualname__ = public
    fold.__doc__ = f"The last of `a = fn(a, x)` for the slices x of `elems`, from {order}."
    return export(public)(fold)


foldl = _folding(False, "foldl", "the first to the last")
foldr = _folding(True, "foldr", "the last to the first")

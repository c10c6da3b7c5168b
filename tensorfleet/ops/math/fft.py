"""Fourier transforms over the last one, two or three axes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tensorfleet.base import dtypes, errors
from tensorfleet.base.naming import export
from tensorfleet.base.shapes import TensorShape
from tensorfleet.base.types import Array, ArrayModule
from tensorfleet.graph.apply import apply, apply_any
from tensorfleet.graph.constant import constant_value
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.registry import gradient, op
from tensorfleet.graph.scopes import name_scope
from tensorfleet.ops.array.concat import concat
from tensorfleet.ops.array.shape import shape as shape_of
from tensorfleet.ops.common import ints, static_value
from tensorfleet.ops.math.cast import cast
from tensorfleet.ops.math.complex_numbers import real
from tensorfleet.ops.math.reduce_functions import reduce_prod
from tensorfleet.ops.nn.shapes import of_rank_at_least
from tensorfleet.ops.samples import case

_RANDOM = np.random.RandomState(0)
_REAL = _RANDOM.rand(2, 3, 4, 6)
_COMPLEX = _RANDOM.rand(2, 3, 4, 6) + 1j * _RANDOM.rand(2, 3, 4, 6)
_SUFFIX = {1: "", 2: "2D", 3: "3D"}
_COMPLEX_TYPES = {dtypes.float32: dtypes.complex64, dtypes.float64: dtypes.complex128}


def _axes(rank: int) -> tuple[int, ...]:
    return tuple(range(-rank, 0))


# -- complex to complex ------------------------------------------------------------------------------


def _declare_complex(rank: int, inverse: bool) -> None:
    name = f"{'I' if inverse else ''}FFT{_SUFFIX[rank]}"
    other = f"{'' if inverse else 'I'}FFT{_SUFFIX[rank]}"

    def kernel(xp: ArrayModule, x: Array) -> Array:
        transform = xp.fft.ifftn if inverse else xp.fft.fftn
        return transform(x, axes=_axes(rank)).astype(x.dtype) if x.size else x

    def back(op: Operation, dy: Tensor) -> Any:
        size = cast(_count(dy, rank), dy.dtype.base_dtype)
        turned = apply_any(other, dy)
        return apply("RealDiv", turned, size) if inverse else apply("Mul", turned, size)

    op(
        name,
        "input: Tcomplex -> output: Tcomplex",
        "Tcomplex: {complex64, complex128} = complex64",
        shape=lambda op: of_rank_at_least(op._inputs[0].shape, rank),
        examples=[case(_COMPLEX), case(_COMPLEX[0].astype(np.complex64))],
    )(kernel)
    gradient(name)(back)


def _count(x: Tensor, rank: int) -> Tensor:
    """How many elements one transform has."""
    return reduce_prod(_last_sizes(x, rank))


def _last_sizes(x: Tensor, rank: int) -> Tensor:
    return apply("StridedSlice", shape_of(x), [-rank], [0], [1], end_mask=1)


for _rank in (1, 2, 3):
    _declare_complex(_rank, False)
    _declare_complex(_rank, True)


# -- real to complex, and back -----------------------------------------------------------------------


def _lengths(fft_length: Array, rank: int) -> tuple[int, ...]:
    lengths = ints(fft_length)
    if len(lengths) != rank:
        raise errors.invalid(f"fft_length must have shape [{rank}], got {len(lengths)}")
    if min(lengths) < 0:
        raise errors.invalid(f"fft_length must be >= 0, but got: {min(lengths)}")
    return lengths


def _cut(x: Array, sizes: tuple[int, ...]) -> Array:
    """The last axes cut to the sizes; an axis that is shorter is an error."""
    first = x.ndim - len(sizes)
    for axis, n in enumerate(sizes, first):
        if x.shape[axis] < n:
            text = f"Input dimension {axis} must have length of at least {n} but got: {x.shape[axis]}"
            raise errors.invalid(text)
    kept: Array = x[(..., *(slice(0, n) for n in sizes))]  # type: ignore[arg-type] # NumPy declares no tuples of unknown length
    return kept


def _declare_real(rank: int) -> None:
    def shape(op: Operation) -> TensorShape:
        dims = of_rank_at_least(op._inputs[0].shape, rank)
        if dims.rank is None:
            return dims
        given = static_value(op, 1)
        lengths: list[int | None] = [None] * rank
        if given is not None:
            lengths = list(ints(given))
            lengths[-1] = ints(given)[-1] // 2 + 1 if lengths[-1] else 0
        return TensorShape([*dims.as_list()[:-rank], *lengths])

    def kernel(xp: ArrayModule, x: Array, fft_length: Array, *, Tcomplex: dtypes.DType) -> Array:
        lengths = _lengths(fft_length, rank)
        x = _cut(x, lengths)
        if not x.size:
            return xp.zeros((*x.shape[:-1], x.shape[-1] // 2 + 1 if x.shape[-1] else 0), Tcomplex.np_dtype)
        return xp.fft.rfftn(x, axes=_axes(rank)).astype(Tcomplex.np_dtype)

    name = f"RFFT{_SUFFIX[rank]}"
    lengths = np.array([2, 3, 5][-rank:], np.int32)
    op(
        name,
        f"input: Treal, fft_length: int32[{rank},] -> output: Tcomplex",
        "Treal: {float, double} = float; Tcomplex: {complex64, complex128} = complex64",
        shape=shape,
        static=["fft_length"],
        examples=[
            case(_REAL, np.array([3, 4, 6][-rank:], np.int32), Tcomplex=dtypes.complex128),
            case(_REAL.astype(np.float32), lengths),
        ],
    )(kernel)
    gradient(name)(_rfft_gradient)


def _rank_of(op: Operation) -> int:
    return {"": 1, "2D": 2, "3D": 3}[op.type.partition("FFT")[2]]


def _rfft_gradient(op: Operation, dy: Tensor) -> Any:
    """The frequencies that were left out get no gradient: an inverse transform with zeros in their place."""
    rank = _rank_of(op)
    lengths = op.inputs[1]
    full = _resized(dy, lengths, rank)
    size = cast(reduce_prod(lengths), dy.dtype.base_dtype)
    wide = real(apply("Mul", apply_any(f"IFFT{_SUFFIX[rank]}", full), size))
    return _resized(wide, _last_sizes(op.inputs[0], rank), rank, op.inputs[0].shape), None


def _resized(x: Tensor, sizes: Tensor, rank: int, known: Any = None) -> Tensor:
    """The last axes cut, or filled up with zeros, to sizes known at run time."""
    have = shape_of(x)
    others = apply("StridedSlice", have, [0], [-rank], [1], begin_mask=1)
    kept = apply("Minimum", _last_sizes(x, rank), sizes)
    cut = apply("Slice", x, apply("ZerosLike", have), concat([others, kept], 0))
    after = concat([apply("ZerosLike", others), apply("Sub", sizes, kept)], 0)
    amounts = apply("Pack", [apply("ZerosLike", after), after], axis=1)
    padded = apply("Pad", cut, amounts)
    if known is not None:
        padded.set_shape(known)
    return padded


def _declare_inverse_real(rank: int) -> None:
    def shape(op: Operation) -> TensorShape:
        dims = of_rank_at_least(op._inputs[0].shape, rank)
        if dims.rank is None:
            return dims
        given = static_value(op, 1)
        lengths = [None] * rank if given is None else list(ints(given))
        return TensorShape([*dims.as_list()[:-rank], *lengths])

    def kernel(xp: ArrayModule, x: Array, fft_length: Array, *, Treal: dtypes.DType) -> Array:
        lengths = _lengths(fft_length, rank)
        x = _cut(x, (*lengths[:-1], lengths[-1] // 2 + 1))
        if not x.size or not all(lengths):
            return xp.zeros((*x.shape[:-rank], *lengths), Treal.np_dtype)
        return xp.fft.irfftn(x, s=lengths, axes=_axes(rank)).astype(Treal.np_dtype)

    name = f"IRFFT{_SUFFIX[rank]}"
    op(
        name,
        f"input: Tcomplex, fft_length: int32[{rank},] -> output: Treal",
        "Treal: {float, double} = float; Tcomplex: {complex64, complex128} = complex64",
        shape=shape,
        static=["fft_length"],
        examples=[
            case(_COMPLEX, np.array([3, 4, 10][-rank:], np.int32), Treal=dtypes.float64, grad=False),
            case(_COMPLEX.astype(np.complex64), np.array([3, 4, 9][-rank:], np.int32), grad=False),
        ],
    )(kernel)
    gradient(name)(_irfft_gradient)


def _irfft_gradient(op: Operation, dy: Tensor) -> Any:
    """Every frequency but the first, and the middle one of an even length, stood for two."""
    rank = _rank_of(op)
    kind = op.inputs[0].dtype.base_dtype
    spectrum = apply_any(f"RFFT{_SUFFIX[rank]}", dy, op.inputs[1], Tcomplex=kind)
    length = op.inputs[1][-1]
    places = apply("Range", 0, length // 2 + 1, 1)
    single = apply("LogicalOr", apply("Equal", places, 0), apply("Equal", places * 2, length))
    weights = cast(apply("Sub", 2, cast(single, dtypes.int32)), kind)
    scale = cast(reduce_prod(op.inputs[1]), kind)
    gradient = apply("RealDiv", apply("Mul", spectrum, weights), scale)
    return _resized(gradient, _last_sizes(op.inputs[0], rank), rank, op.inputs[0].shape), None


for _rank in (1, 2, 3):
    _declare_real(_rank)
    _declare_inverse_real(_rank)


# -- names -------------------------------------------------------------------------------------------


def _publish_complex(rank: int, inverse: bool) -> None:
    name = f"{'i' if inverse else ''}fft{'' if rank == 1 else f'{rank}d'}"

    def transform(input: Any, name: str | None = None) -> Tensor:
        return apply(f"{'I' if inverse else ''}FFT{_SUFFIX[rank]}", input, name=name)

    transform.__name__ = transform.__qualname__ = name
    transform.__doc__ = f"The {'inverse ' if inverse else ''}Fourier transform over the last {rank} axes."
    export(f"signal.{name}", f"spectral.{name}", name)(transform)


def _length_of(x: Tensor, rank: int, inverse: bool) -> Any:
    """The length of a transform as long as its input, as a constant where that is known."""
    known = x.shape.as_list()[-rank:] if x.shape.rank is not None else [None]
    if None not in known:
        sizes = [int(k) for k in known if k is not None]
        if inverse:
            sizes[-1] = max(0, 2 * (sizes[-1] - 1))
        return to_tensor(np.array(sizes, np.int32))
    sizes_tensor = _last_sizes(x, rank)
    if not inverse:
        return sizes_tensor
    last = apply("Maximum", 0, (sizes_tensor[-1:] - 1) * 2)
    return concat([sizes_tensor[:-1], last], 0)


def _real(rank: int, inverse: bool) -> Callable[..., Tensor]:
    name = f"{'i' if inverse else ''}rfft{'' if rank == 1 else f'{rank}d'}"
    op_type = f"{'I' if inverse else ''}RFFT{_SUFFIX[rank]}"
    default: Callable[[str | None], Any] = lambda given: name_scope(given, name)  # noqa: E731

    def transform(input_tensor: Any, fft_length: Any = None, name: str | None = None) -> Tensor:
        with default(name):
            preferred = dtypes.complex64 if inverse else dtypes.float32
            x = to_tensor(input_tensor, preferred=preferred)
            kind = x.dtype.base_dtype
            if kind not in (_COMPLEX_TYPES.values() if inverse else _COMPLEX_TYPES):
                wanted = "complex64 or complex128" if inverse else "float32 or float64"
                raise ValueError(f"{op_type} requires tf.{wanted} inputs, got: {x}")
            x.shape.with_rank_at_least(rank)
            attrs: dict[str, Any] = (
                {"Treal": _real_of(kind)} if inverse else {"Tcomplex": _COMPLEX_TYPES[kind]}
            )
            length = (
                _length_of(x, rank, inverse) if fft_length is None else to_tensor(fft_length, dtypes.int32)
            )
            if length.shape.with_rank(1).as_list()[0] == rank:
                x = _grown(x, length, rank, inverse)
            return apply(op_type, x, length, **attrs)

    transform.__name__ = transform.__qualname__ = name
    what = (
        "of half a spectrum, giving real numbers," if inverse else "of real numbers, giving half a spectrum,"
    )
    transform.__doc__ = (
        f"The {'inverse ' if inverse else ''}Fourier transform {what} over the last {rank} axes."
    )
    return export(f"signal.{name}", f"spectral.{name}")(transform)


def _real_of(kind: dtypes.DType) -> dtypes.DType:
    return next(r for r, c in _COMPLEX_TYPES.items() if c == kind)


def _grown(x: Tensor, length: Any, rank: int, inverse: bool) -> Tensor:
    """The input filled up with zeros where the transform is known to be longer than it."""
    wanted = constant_value(length)
    have: Any = x.shape.as_list()[-rank:] if x.shape.rank is not None else [None]
    if wanted is None or None in have:
        return _grown_at_run_time(x, length, rank, inverse)
    needed = [int(n) for n in wanted]
    if inverse:
        needed[-1] = needed[-1] // 2 + 1
    missing = [max(n - h, 0) for n, h in zip(needed, have, strict=True)]
    if not any(missing):
        return x
    pads = [[0, 0]] * (len(x.shape.as_list()) - rank) + [[0, m] for m in missing]
    return apply("Pad", x, pads)


def _grown_at_run_time(x: Tensor, length: Any, rank: int, inverse: bool) -> Tensor:
    needed = to_tensor(length)
    if inverse:
        needed = concat([needed[:-1], needed[-1:] // 2 + 1], 0)
    missing = apply("Maximum", 0, apply("Sub", needed, _last_sizes(x, rank)))
    others = apply("StridedSlice", shape_of(x), [0], [-rank], [1], begin_mask=1)
    after = concat([apply("ZerosLike", others), missing], 0)
    return apply("Pad", x, apply("Pack", [apply("ZerosLike", after), after], axis=1))


for _rank in (1, 2, 3):
    for _inverse in (False, True):
        _publish_complex(_rank, _inverse)
rfft, irfft = _real(1, False), _real(1, True)
for _rank in (2, 3):
    _real(_rank, False), _real(_rank, True)

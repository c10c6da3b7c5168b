"""Kernels of convolutions that keep the length of their input."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorfleet.api.variables.initializers import Initializer, _float
from tensorfleet.base import dtypes
from tensorfleet.base.dtypes import DType
from tensorfleet.base.naming import export
from tensorfleet.base.shapes import as_shape
from tensorfleet.base.types import DTypeLike
from tensorfleet.graph.apply import apply, apply_list, constant
from tensorfleet.graph.operation import Tensor
from tensorfleet.ops.random import ops as random_ops

if TYPE_CHECKING:
    from tensorfleet.api.variables.partitioned import PartitionInfo
    from tensorfleet.api.variables.types import AnyShape

_NUMBER_WORDS = {1: "three", 2: "four", 3: "five"}


class _OrthogonalDraws:
    """Random matrices, each with a seed of its own that follows from the first."""

    def __init__(self, size: int, kind: DType, seed: int | None) -> None:
        self.size, self.kind, self.seed = size, kind, seed

    def _normal(self, shape: list[int]) -> Tensor:
        seed = self.seed
        if seed is not None:
            self.seed = seed + 1
        return random_ops.random_normal(shape, dtype=self.kind, seed=seed)

    def orthogonal(self) -> Tensor:
        """A square matrix with orthonormal rows, all such alike likely."""
        q, r = apply_list("Qr", self._normal([self.size, self.size]), full_matrices=False)
        return apply("Mul", q, apply("Sign", apply("DiagPart", r)))

    def projection(self) -> Tensor:
        """A symmetric matrix that is its own square, of a random rank."""
        kept = apply(
            "Cast", apply("Greater", self._normal([self.size]), constant(0, self.kind)), DstT=self.kind
        )
        columns = apply("Mul", self.orthogonal(), kept)
        return apply("MatMul", columns, columns, transpose_b=True)


class _ConvolutionOrthogonal(Initializer):
    """The base of these initializers: their arguments, and the shapes they refuse."""

    #: of how many dimensions the convolution is
    _dims: tuple[int, ...] = (1, 2, 3)

    def __init__(self, gain: float = 1.0, seed: int | None = None, dtype: DTypeLike = dtypes.float32) -> None:
        self.gain, self.seed = gain, seed
        self.dtype = _float(dtype)

    def __call__(
        self, shape: AnyShape, dtype: DTypeLike | None = None, partition_info: PartitionInfo | None = None
    ) -> Tensor:
        sizes = [int(d) for d in as_shape(shape).as_list()]
        if len(sizes) - 2 not in self._dims:
            words = " or ".join(_NUMBER_WORDS[d] for d in self._dims)
            raise ValueError(f"The tensor to initialize must be {words}-dimensional")
        if sizes[-2] > sizes[-1]:
            raise ValueError("In_filters cannot be greater than out_filters.")
        kind = dtypes.as_dtype(dtype or self.dtype)
        kernel = self._kernel(sizes, _OrthogonalDraws(sizes[-1], kind, self.seed))
        return apply("Mul", constant(self.gain, kind), kernel)

    def _kernel(self, sizes: list[int], draws: _OrthogonalDraws) -> Tensor:
        raise TypeError("An initializer of your own defines _kernel().")


@export(
    "contrib.framework.convolutional_delta_orthogonal",
    "python.ops.init_ops.convolutional_delta_orthogonal",
    "python.ops.init_ops.ConvolutionDeltaOrthogonal",
)
class ConvolutionDeltaOrthogonal(_ConvolutionOrthogonal):
    """Zero everywhere but in the middle of the kernel, where an orthogonal matrix is."""

    def _kernel(self, sizes: list[int], draws: _OrthogonalDraws) -> Tensor:
        rows = apply("Slice", draws.orthogonal(), [0, 0], [sizes[-2], sizes[-1]])
        middle = [[(n - 1) // 2 for n in sizes[:-2]]]
        return apply("ScatterNd", middle, apply("ExpandDims", rows, 0), sizes)


class _Paraunitary(_ConvolutionOrthogonal):
    """An orthogonal matrix times factors, for each axis and step, of a projection here and of the rest one place on."""

    def _kernel(self, sizes: list[int], draws: _OrthogonalDraws) -> Tensor:
        spatial = sizes[:-2]
        if len(set(spatial)) != 1:
            raise ValueError(f"Kernel sizes must be equal: {spatial}.")
        start = apply("Slice", draws.orthogonal(), [0, 0], [sizes[-2], sizes[-1]])
        places: dict[tuple[int, ...], Tensor] = {(0,) * len(spatial): start}
        for _ in range(spatial[0] - 1):
            for axis in range(len(spatial)):
                places = _times(places, axis, draws.projection())
        joined = apply("Pack", [places[at] for at in sorted(places)])
        return apply("Reshape", joined, sizes)


def _times(
    places: dict[tuple[int, ...], Tensor], axis: int, projection: Tensor
) -> dict[tuple[int, ...], Tensor]:
    """A kernel times one factor: its part in the projection stays, the rest moves on by one along an axis."""
    product: dict[tuple[int, ...], Tensor] = {}
    for at, matrix in places.items():
        stays = apply("MatMul", matrix, projection)
        moved = apply("Sub", matrix, stays)
        on = (*at[:axis], at[axis] + 1, *at[axis + 1 :])
        for place, part in ((at, stays), (on, moved)):
            product[place] = apply("AddV2", product[place], part) if place in product else part
    return product


@export(
    "contrib.framework.convolutional_orthogonal_1d",
    "python.ops.init_ops.convolutional_orthogonal_1d",
    "python.ops.init_ops.ConvolutionOrthogonal1D",
)
class ConvolutionOrthogonal1D(_Paraunitary):
    """A kernel of a convolution along one axis that keeps lengths."""

    _dims = (1,)


@export(
    "contrib.framework.convolutional_orthogonal_2d",
    "python.ops.init_ops.convolutional_orthogonal_2d",
    "python.ops.init_ops.ConvolutionOrthogonal2D",
)
class ConvolutionOrthogonal2D(_Paraunitary):
    """A square kernel of a convolution along two axes that keeps lengths."""

    _dims = (2,)


@export(
    "contrib.framework.convolutional_orthogonal_3d",
    "python.ops.init_ops.convolutional_orthogonal_3d",
    "python.ops.init_ops.ConvolutionOrthogonal3D",
)
class ConvolutionOrthogonal3D(_Paraunitary):
    """A cubic kernel of a convolution along three axes that keeps lengths."""

    _dims = (3,)

"""Bijectors of vectors and matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorfleet.base.naming import find
from tensorfleet.base.properties import readonly
from tensorfleet.base.shapes import TensorShape
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Tensor
from tensorfleet_legacy.distributions.bijector_impl import Bijector, Chain
from tensorfleet_legacy.distributions.bijectors.affine_scalar import AffineScalar, Softplus
from tensorfleet_legacy.distributions.distribution import number
from tensorfleet_legacy.distributions.util import fill_triangular, fill_triangular_inverse
from tensorfleet_legacy.distributions.util_assertions import after


class CholeskyOuterProduct(Bijector):
    """Y = X @ X^T, where X is lower triangular with a positive diagonal."""

    def __init__(self, validate_args: bool = False, name: str = "cholesky_outer_product") -> None:
        super().__init__(forward_min_event_ndims=2, validate_args=validate_args, name=name)

    def _forward(self, x: Tensor) -> Tensor:
        if self._validate_args:
            lower = find("matrix_band_part")(x, -1, 0)
            text = "Argument must be lower triangular with a positive diagonal."
            checks = [find("assert_equal")(x, lower, message=text)]
            checks.append(find("assert_positive")(find("matrix_diag_part")(x), message=text))
            x = after(checks, x)
        return find("matmul")(x, x, adjoint_b=True)

    def _inverse(self, y: Tensor) -> Tensor:
        return find("cholesky")(y)

    def _forward_log_det_jacobian(self, x: Tensor) -> Tensor:
        # The elements of row i of X show, doubled or as they are, in rows and columns from i on.
        diagonal = find("matrix_diag_part")(x)
        size = find("shape")(diagonal)[-1]
        powers = find("cast")(find("range")(size, 0, -1), x.dtype.base_dtype)
        weighted = find("reduce_sum")(powers * find("log")(diagonal), -1)
        return weighted + find("cast")(size, x.dtype.base_dtype) * number(np.log(2.0), x)


class FillTriangular(Bijector):
    """A vector as a triangular matrix."""

    def __init__(
        self, upper: bool = False, validate_args: bool = False, name: str = "fill_triangular"
    ) -> None:
        self._upper = upper
        super().__init__(
            forward_min_event_ndims=1,
            inverse_min_event_ndims=2,
            is_constant_jacobian=True,
            validate_args=validate_args,
            name=name,
        )

    def _forward(self, x: Tensor) -> Tensor:
        return fill_triangular(x, upper=self._upper)

    def _inverse(self, y: Tensor) -> Tensor:
        return fill_triangular_inverse(y, upper=self._upper)

    def _forward_log_det_jacobian(self, x: Tensor) -> Tensor:
        return find("zeros_like")(x[..., 0])

    def _inverse_log_det_jacobian(self, y: Tensor) -> Tensor:
        return find("zeros_like")(y[..., 0, 0])

    def _forward_event_shape(self, input_shape: Any) -> Any:
        *outer, size = input_shape.as_list()
        if size is None:
            return [*outer, None, None]
        side = int((np.sqrt(1 + 8 * size) - 1) / 2)
        if side * (side + 1) // 2 != size:
            raise ValueError("Unable to determine triangular matrix: the length is not a triangular number.")
        return [*outer, side, side]

    def _inverse_event_shape(self, output_shape: Any) -> Any:
        *outer, rows, columns = output_shape.as_list()
        if rows is None or columns is None:
            return [*outer, None]
        if rows != columns:
            raise ValueError("Matrix must be square.")
        return [*outer, rows * (rows + 1) // 2]

    def _forward_event_shape_tensor(self, input_shape: Any) -> Any:
        root = find("sqrt")(1.0 + 8.0 * find("cast")(input_shape[-1], np.float64))
        side = find("cast")((root - 1.0) / 2.0, np.int32)
        return find("concat")([input_shape[:-1], [side, side]], 0)

    def _inverse_event_shape_tensor(self, output_shape: Any) -> Any:
        side = output_shape[-1]
        return find("concat")([output_shape[:-2], [side * (side + 1) // 2]], 0)


class TransformDiagonal(Bijector):
    """Applies another bijector to the diagonal of matrices."""

    def __init__(
        self, diag_bijector: Bijector, validate_args: bool = False, name: str = "transform_diagonal"
    ) -> None:
        self._diag_bijector = diag_bijector
        super().__init__(forward_min_event_ndims=2, validate_args=validate_args, name=name)

    def _forward(self, x: Tensor) -> Tensor:
        return find("matrix_set_diag")(x, self._diag_bijector.forward(find("matrix_diag_part")(x)))

    def _inverse(self, y: Tensor) -> Tensor:
        return find("matrix_set_diag")(y, self._diag_bijector.inverse(find("matrix_diag_part")(y)))

    def _forward_log_det_jacobian(self, x: Tensor) -> Tensor:
        return self._diag_bijector.forward_log_det_jacobian(find("matrix_diag_part")(x), 1)

    def _inverse_log_det_jacobian(self, y: Tensor) -> Tensor:
        return self._diag_bijector.inverse_log_det_jacobian(find("matrix_diag_part")(y), 1)


class ScaleTriL(Chain):
    """A vector as a lower triangular matrix whose diagonal is positive."""

    def __init__(
        self,
        diag_bijector: Bijector | None = None,
        diag_shift: Any = 1e-5,
        validate_args: bool = False,
        name: str = "scale_tril",
    ) -> None:
        diagonal = diag_bijector or Softplus(validate_args=validate_args)
        if diag_shift is not None:
            diagonal = Chain([AffineScalar(shift=diag_shift), diagonal])
        super().__init__(
            [TransformDiagonal(diagonal), FillTriangular()], validate_args=validate_args, name=name
        )


class MatrixInverseTriL(Bijector):
    """The inverse of lower triangular matrices."""

    def __init__(self, validate_args: bool = False, name: str = "matrix_inverse_tril") -> None:
        super().__init__(forward_min_event_ndims=2, validate_args=validate_args, name=name)

    def _forward(self, x: Tensor) -> Tensor:
        if self._validate_args:
            lower, zero = find("matrix_band_part")(x, -1, 0), number(0, x)
            checks = [find("assert_equal")(lower, x, message="Input must be lower triangular.")]
            diagonal = find("matrix_diag_part")(x)
            checks.append(
                find("assert_none_equal")(
                    diagonal, zero, message="Input must have all diagonal entries nonzero."
                )
            )
            x = after(checks, x)
        whole = find("eye")(find("shape")(x)[-1], batch_shape=find("shape")(x)[:-2], dtype=x.dtype.base_dtype)
        return find("matrix_triangular_solve")(x, whole)

    _inverse = _forward

    def _forward_log_det_jacobian(self, x: Tensor) -> Tensor:
        size = find("cast")(find("shape")(x)[-1], x.dtype.base_dtype)
        logs = find("log")(find("abs")(find("matrix_diag_part")(x)))
        return -(size + 1.0) * find("reduce_sum")(logs, -1)


class SoftmaxCentered(Bijector):
    """The softmax of a vector with a zero at its end."""

    def __init__(self, validate_args: bool = False, name: str = "softmax_centered") -> None:
        super().__init__(forward_min_event_ndims=1, validate_args=validate_args, name=name)

    def _forward(self, x: Tensor) -> Tensor:
        result = find("nn.softmax")(find("concat")([x, find("zeros_like")(x[..., :1])], -1))
        if x.shape.rank is not None:
            last = x.shape.as_list()[-1]
            result.set_shape([*x.shape.as_list()[:-1], None if last is None else last + 1])
        return result

    def _inverse(self, y: Tensor) -> Tensor:
        if self._validate_args:
            one = number(1, y)
            y = after([find("assert_near")(find("reduce_sum")(y, -1), one)], y)
        logs = find("log")(y)
        return logs[..., :-1] - logs[..., -1:]

    def _inverse_log_det_jacobian(self, y: Tensor) -> Tensor:
        return -find("reduce_sum")(find("log")(y), -1)

    def _forward_log_det_jacobian(self, x: Tensor) -> Tensor:
        # The last log-probability is -log(1 + sum exp), and each of the others is x more than it.
        last = -find("nn.softplus")(find("reduce_logsumexp")(x, -1))
        size = find("cast")(find("shape")(x)[-1] + 1, x.dtype.base_dtype)
        return find("reduce_sum")(x, -1) + size * last

    def _forward_event_shape(self, input_shape: Any) -> Any:
        *outer, size = input_shape.as_list()
        return [*outer, None if size is None else size + 1]

    def _inverse_event_shape(self, output_shape: Any) -> Any:
        *outer, size = output_shape.as_list()
        if size is not None and size <= 1:
            raise ValueError(f"output_shape[-1] = {size} <= 1")
        return [*outer, None if size is None else size - 1]

    def _forward_event_shape_tensor(self, input_shape: Any) -> Any:
        return find("concat")([input_shape[:-1], input_shape[-1:] + 1], 0)

    def _inverse_event_shape_tensor(self, output_shape: Any) -> Any:
        return find("concat")([output_shape[:-1], output_shape[-1:] - 1], 0)


class Permute(Bijector):
    """The elements of a vector in another order."""

    def __init__(self, permutation: Any, validate_args: bool = False, name: str | None = None) -> None:
        self._permutation = to_tensor(permutation, name="permutation")
        if not self._permutation.dtype.is_integer:
            raise TypeError(f"permutation.dtype ({self._permutation.dtype}) should be `int`-like.")
        result = find("get_static_value")(self._permutation)
        text = "Permutation over `d` must contain exactly one of each of `{0, 1, ..., d}`."
        if result is not None and not np.array_equal(np.sort(result), np.arange(result.shape[-1])):
            raise ValueError(text)
        super().__init__(
            graph_parents=[self._permutation],
            forward_min_event_ndims=1,
            is_constant_jacobian=True,
            validate_args=validate_args,
            name=name or "permute",
        )

    permutation = readonly("_permutation", "Where each element comes from.")

    def _forward(self, x: Tensor) -> Tensor:
        return find("gather")(x, self._permutation, axis=-1)

    def _inverse(self, y: Tensor) -> Tensor:
        return find("gather")(y, find("invert_permutation")(self._permutation), axis=-1)

    def _forward_log_det_jacobian(self, x: Tensor) -> Tensor:
        return number(0.0, x)

    _inverse_log_det_jacobian = _forward_log_det_jacobian


class Reshape(Bijector):
    """Events in another shape."""

    def __init__(
        self,
        event_shape_out: Any,
        event_shape_in: Any = (-1,),
        validate_args: bool = False,
        name: str | None = None,
    ) -> None:
        shapes = []
        for given in (event_shape_out, event_shape_in):
            shape = find("get_static_value")(to_tensor(given, np.int32))
            if shape is None:
                raise ValueError("The shapes of events must be known while the graph is built.")
            if shape.ndim != 1 or (shape < -1).any() or (shape == -1).sum() > 1:
                raise ValueError(
                    f"event_shape must be a vector with at most one unknown dimension (-1): {shape.tolist()}"
                )
            shapes.append(shape.tolist())
        self._out, self._in = shapes
        if -1 not in [*self._out, *self._in] and np.prod(self._out) != np.prod(self._in):
            raise ValueError("Input/output sizes do not match.")
        super().__init__(
            forward_min_event_ndims=len(self._in),
            inverse_min_event_ndims=len(self._out),
            is_constant_jacobian=True,
            validate_args=validate_args,
            name=name or "reshape",
        )

    def _turned(self, x: Tensor, old: list[int], new: list[int]) -> Tensor:
        outer = find("shape")(x)[: find("rank")(x) - len(old)]
        result = find("reshape")(x, find("concat")([outer, self._filled(find("shape")(x), old, new)], 0))
        if x.shape.rank is not None:
            before = TensorShape(x.shape.as_list()[: x.shape.rank - len(old)])
            result.set_shape(before.concatenate(self._known(x.shape, old, new)))
        return result

    def _known(self, shape: TensorShape, old: list[int], new: list[int]) -> list:
        event = shape.as_list()[len(shape) - len(old) :] if old else []
        for have, wanted in zip(event, old, strict=True):
            if have is not None and wanted not in (-1, have):
                raise ValueError(f"Input `event_shape` does not match `event_shape_in`: {event} vs. {old}")
        if -1 not in new:
            return list(new)
        rest = -int(np.prod(new))
        total = None if None in event else int(np.prod(event))
        return [d if d != -1 else (None if total is None else total // rest) for d in new]

    def _filled(self, shape: Tensor, old: list[int], new: list[int]) -> Any:
        if -1 not in new:
            return np.array(new, np.int32)
        count = find("reduce_prod")(shape[find("size")(shape) - len(old) :])
        return find("stack")([count // -int(np.prod(new)) if d == -1 else d for d in new])

    def _forward(self, x: Tensor) -> Tensor:
        return self._turned(x, self._in, self._out)

    def _inverse(self, y: Tensor) -> Tensor:
        return self._turned(y, self._out, self._in)

    def _forward_log_det_jacobian(self, x: Tensor) -> Tensor:
        return number(0.0, x)

    _inverse_log_det_jacobian = _forward_log_det_jacobian

    def _shape(self, shape: TensorShape, old: list[int], new: list[int]) -> Any:
        if shape.rank is None:
            return shape
        return TensorShape(shape.as_list()[: shape.rank - len(old)]).concatenate(self._known(shape, old, new))

    def _forward_event_shape(self, input_shape: Any) -> Any:
        return self._shape(input_shape, self._in, self._out)

    def _inverse_event_shape(self, output_shape: Any) -> Any:
        return self._shape(output_shape, self._out, self._in)

    def _forward_event_shape_tensor(self, input_shape: Any) -> Any:
        before = input_shape[: find("size")(input_shape) - len(self._in)]
        return find("concat")([before, self._filled(input_shape, self._in, self._out)], 0)

    def _inverse_event_shape_tensor(self, output_shape: Any) -> Any:
        before = output_shape[: find("size")(output_shape) - len(self._out)]
        return find("concat")([before, self._filled(output_shape, self._out, self._in)], 0)

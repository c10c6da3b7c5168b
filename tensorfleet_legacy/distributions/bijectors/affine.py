"""Bijectors that multiply vectors with a matrix and add to them."""

from __future__ import annotations

from typing import Any

from tensorfleet.base.naming import find
from tensorfleet.base.properties import readonly
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Tensor
from tensorfleet_legacy.distributions.bijector_impl import Bijector
from tensorfleet_legacy.distributions.distribution import number, tensors
from tensorfleet_legacy.linear_operators.linear_operator import LinearOperator
from tensorfleet_legacy.linear_operators.linear_operator_diag import (
    LinearOperatorDiag,
    LinearOperatorIdentity,
    LinearOperatorScaledIdentity,
)
from tensorfleet_legacy.linear_operators.linear_operator_full_matrix import LinearOperatorLowerTriangular
from tensorfleet_legacy.linear_operators.linear_operator_low_rank_update import LinearOperatorLowRankUpdate


class AffineLinearOperator(Bijector):
    """y = scale @ x + shift, where `scale` is a LinearOperator."""

    def __init__(
        self,
        shift: Any = None,
        scale: LinearOperator | None = None,
        validate_args: bool = False,
        name: str = "affine_linear_operator",
        adjoint: bool = False,
    ) -> None:
        kind = None if scale is None else scale.dtype.base_dtype
        self._shift = None if shift is None else tensors(kind, shift=shift)[0]
        kind = kind or (None if self._shift is None else self._shift.dtype.base_dtype)
        if scale is not None:
            if not isinstance(scale, LinearOperator):
                raise TypeError("scale is not an instance of tf.LinearOperator")
            if validate_args and not scale.is_non_singular:
                raise ValueError("Scale matrix must be non-singular.")
            if scale.tensor_rank is not None and scale.batch_shape.rank is None:
                raise ValueError("scale must have a known rank.")
        self._scale, self._adjoint = scale, adjoint
        parents = [] if self._shift is None else [self._shift]
        super().__init__(
            graph_parents=parents + ([] if scale is None else list(scale.graph_parents)),
            forward_min_event_ndims=1,
            is_constant_jacobian=True,
            validate_args=validate_args,
            dtype=kind,
            name=name,
        )

    shift = readonly("_shift", "What is added, or None.")
    scale = readonly("_scale", "What is multiplied with, or None.")
    adjoint = readonly("_adjoint", "Whether the conjugate transpose of `scale` is meant.")

    def _forward(self, x: Tensor) -> Tensor:
        if self._scale is not None:
            x = self._scale.matvec(x, adjoint=self._adjoint)
        return x if self._shift is None else x + self._shift

    def _inverse(self, y: Tensor) -> Tensor:
        y = y if self._shift is None else y - self._shift
        return y if self._scale is None else self._scale.solvevec(y, adjoint=self._adjoint)

    def _forward_log_det_jacobian(self, x: Tensor) -> Tensor:
        return number(0.0, x) if self._scale is None else self._scale.log_abs_determinant()


def scale_operator(
    multiplier: Any, diag: Any, tril: Any, factor: Any, perturb_diag: Any, size: Any, kind: Any
) -> LinearOperator:
    """The operator of a scale given in parts: (multiplier * 1 + diag + tril) + factor @ perturb_diag @ factor^T."""
    start: LinearOperator
    if tril is not None:
        (lower,) = tensors(kind, tril=tril)
        lower = find("matrix_band_part")(lower, -1, 0)
        extra = _diagonal_part(diag, multiplier, kind)
        if extra is not None:
            lower = find("matrix_set_diag")(lower, find("matrix_diag_part")(lower) + extra)
        start = LinearOperatorLowerTriangular(lower, is_non_singular=True)
    elif diag is not None:
        start = LinearOperatorDiag(_diagonal_part(diag, multiplier, kind), is_non_singular=True)
    elif multiplier is None:
        start = LinearOperatorIdentity(size, dtype=kind)
    else:
        (many,) = tensors(kind, scale_identity_multiplier=multiplier)
        start = LinearOperatorScaledIdentity(size, many, is_non_singular=True)
    if factor is None:
        return start
    u, *diagonal = tensors(kind, factor=factor, **({} if perturb_diag is None else {"d": perturb_diag}))
    return LinearOperatorLowRankUpdate(
        start,
        u=u,
        diag_update=diagonal[0] if diagonal else None,
        is_diag_update_positive=perturb_diag is None,
        is_non_singular=True,
        is_self_adjoint=True if tril is None else None,
        is_positive_definite=True if tril is None and perturb_diag is None else None,
    )


def _diagonal_part(diag: Any, multiplier: Any, kind: Any) -> Tensor | None:
    """The sum of a diagonal and a multiple of the identity."""
    if diag is None and multiplier is None:
        return None
    if diag is None:
        return tensors(kind, multiplier=multiplier)[0][..., None]
    (result,) = tensors(kind, diag=diag)
    return result if multiplier is None else result + tensors(kind, multiplier=multiplier)[0][..., None]


class Affine(Bijector):
    """y = scale @ x + shift, where the scale is a sum of parts."""

    def __init__(
        self,
        shift: Any = None,
        scale_identity_multiplier: Any = None,
        scale_diag: Any = None,
        scale_tril: Any = None,
        scale_perturb_factor: Any = None,
        scale_perturb_diag: Any = None,
        validate_args: bool = False,
        name: str = "affine",
    ) -> None:
        given = {
            "shift": shift,
            "scale_identity_multiplier": scale_identity_multiplier,
            "scale_diag": scale_diag,
            "scale_tril": scale_tril,
            "scale_perturb_factor": scale_perturb_factor,
        }
        result = tensors(**{name: value for name, value in given.items() if value is not None})
        kind = result[0].dtype.base_dtype if result else None
        if scale_perturb_factor is None and scale_perturb_diag is not None:
            raise ValueError("When scale_perturb_diag is specified, scale_perturb_factor must be specified.")
        self._shift = None if shift is None else tensors(kind, shift=shift)[0]
        parts = (scale_diag, scale_tril, scale_perturb_factor)
        self._multiplier, self._scale = None, None
        if all(part is None for part in parts):
            if scale_identity_multiplier is not None:
                (self._multiplier,) = tensors(kind, scale_identity_multiplier=scale_identity_multiplier)
        else:
            sides = zip(parts, (-1, -1, -2), strict=True)
            size = next(to_tensor(part).shape.as_list()[axis] for part, axis in sides if part is not None)
            if scale_identity_multiplier is None and scale_diag is None and scale_tril is None:
                scale_identity_multiplier = 1.0
            self._scale = scale_operator(
                scale_identity_multiplier,
                scale_diag,
                scale_tril,
                scale_perturb_factor,
                scale_perturb_diag,
                size,
                kind,
            )
        super().__init__(
            forward_min_event_ndims=1,
            is_constant_jacobian=True,
            validate_args=validate_args,
            dtype=kind,
            name=name,
        )

    shift = readonly("_shift", "What is added, or None.")

    @property
    def scale(self) -> Any:
        """The matrix as a LinearOperator; a number for a multiple of the identity; None for the identity."""
        return self._multiplier if self._scale is None else self._scale

    def _forward(self, x: Tensor) -> Tensor:
        if self._scale is not None:
            x = self._scale.matvec(x)
        elif self._multiplier is not None:
            x = x * self._multiplier[..., None]
        return x if self._shift is None else x + self._shift

    def _inverse(self, y: Tensor) -> Tensor:
        y = y if self._shift is None else y - self._shift
        if self._scale is not None:
            return self._scale.solvevec(y)
        return y if self._multiplier is None else y / self._multiplier[..., None]

    def _forward_log_det_jacobian(self, x: Tensor) -> Tensor:
        if self._scale is not None:
            return self._scale.log_abs_determinant()
        if self._multiplier is None:
            return number(0.0, x)
        size = find("cast")(find("shape")(x)[-1], x.dtype.base_dtype)
        return find("log")(find("abs")(self._multiplier)) * size

"""Helpers of TensorFlow's linear operators: `tensorflow.python.ops.linalg.linear_operator_util`."""

from __future__ import annotations

from typing import Any

from tensorfleet.base import dtypes
from tensorfleet.base.naming import export, find
from tensorfleet.graph.constant import constant_value
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.scopes import name_scope
from tensorfleet_legacy.linear_operators import linear_operator_util as tools

_HERE = "python.ops.linalg.linear_operator_util."


@export(_HERE + "assert_no_entries_with_modulus_zero")
def assert_no_entries_with_modulus_zero(
    x: Any, message: str | None = None, name: str = "assert_no_entries_with_modulus_zero"
) -> Operation:
    """An operation that fails when a number is zero."""
    with name_scope(name, values=[x]):
        x = to_tensor(x, name="x")
        zero = to_tensor(0, x.dtype.real_dtype)
        return find("assert_less")(zero, tools.magnitude(x), message=message)


@export(_HERE + "assert_zero_imag_part")
def assert_zero_imag_part(
    x: Any, message: str | None = None, name: str = "assert_zero_imag_part"
) -> Operation:
    """An operation that fails when a number is not real."""
    with name_scope(name, values=[x]):
        x = to_tensor(x, name="x")
        if x.dtype.is_floating:
            return find("no_op")()
        zero = to_tensor(0, x.dtype.real_dtype)
        return find("assert_equal")(zero, find("imag")(x), message=message)


@export(_HERE + "assert_compatible_matrix_dimensions")
def assert_compatible_matrix_dimensions(operator: Any, x: Any) -> Operation:
    """An operation that fails when an operator cannot be applied to matrices."""
    return find("assert_equal")(
        operator.domain_dimension_tensor(),
        find("shape")(x)[-2],
        message=f"Dimensions are not compatible.  shape[-2] of argument to be the same as this operator {operator.name}",
    )


@export(_HERE + "assert_is_batch_matrix")
def assert_is_batch_matrix(tensor: Any) -> None:
    """ValueError for what has less than two dimensions."""
    shape = tensor.shape
    if shape.rank is not None and shape.rank < 2:
        raise ValueError(f"Expected [batch] matrix to have at least two dimensions.  Found: {tensor}")


@export(_HERE + "shape_tensor")
def shape_tensor(shape: Any, name: str | None = None) -> Tensor:
    """A shape as a tensor; int32 for an empty one."""
    dtype = dtypes.int32 if isinstance(shape, (tuple, list)) and not shape else None
    return to_tensor(shape, dtype, name)


@export(_HERE + "broadcast_matrix_batch_dims")
def broadcast_matrix_batch_dims(batch_matrices: Any, name: str | None = None) -> list[Tensor]:
    """Matrices repeated so that all have the same batch of them."""
    with name_scope(name, "broadcast_matrix_batch_dims", batch_matrices):
        matrices = [to_tensor(m) for m in batch_matrices]
        for matrix in matrices:
            assert_is_batch_matrix(matrix)
        return matrices if len(matrices) < 2 else tools.same_batch(*matrices)


@export(_HERE + "matrix_solve_with_broadcast")
def matrix_solve_with_broadcast(
    matrix: Any, rhs: Any, adjoint: bool = False, name: str | None = None
) -> Tensor:
    """The solution of systems; batches broadcast."""
    with name_scope(name, "MatrixSolveWithBroadcast", [matrix, rhs]):
        matrix = to_tensor(matrix, name="matrix")
        return tools.solved(matrix, to_tensor(rhs, matrix.dtype, "rhs"), adjoint)


@export(_HERE + "matrix_triangular_solve_with_broadcast")
def matrix_triangular_solve_with_broadcast(
    matrix: Any, rhs: Any, lower: bool = True, adjoint: bool = False, name: str | None = None
) -> Tensor:
    """The solution of systems with triangular matrices; batches broadcast."""
    with name_scope(name, "MatrixTriangularSolve", [matrix, rhs]):
        matrix = to_tensor(matrix, name="matrix")
        matrix, rhs = tools.same_batch(matrix, to_tensor(rhs, matrix.dtype, "rhs"))
        return find("matrix_triangular_solve")(matrix, rhs, lower=lower, adjoint=adjoint)


@export(_HERE + "cholesky_solve_with_broadcast")
def cholesky_solve_with_broadcast(chol: Any, rhs: Any, name: str | None = None) -> Tensor:
    """The solution of systems whose matrices have these Cholesky factors; batches broadcast."""
    with name_scope(name, "CholeskySolveWithBroadcast", [chol, rhs]):
        return tools.solved_by_factor(to_tensor(chol), to_tensor(rhs))


@export(_HERE + "use_operator_or_provided_hint_unless_contradicting")
def use_operator_or_provided_hint_unless_contradicting(
    operator: Any, hint_attr_name: str, provided_hint_value: bool | None, message: str
) -> bool | None:
    """A hint that an operator has or that is given; ValueError when they contradict."""
    has = getattr(operator, hint_attr_name)
    if None not in (has, provided_hint_value) and bool(has) != bool(provided_hint_value):
        raise ValueError(message)
    if has or provided_hint_value:
        return True
    return None if has is None and provided_hint_value is None else False


@export(_HERE + "prefer_static_shape")
def prefer_static_shape(x: Any) -> Any:
    """A shape as numbers where it is known, else as a tensor."""
    shape = find("shape")(x)
    known = constant_value(shape)
    return shape if known is None else known

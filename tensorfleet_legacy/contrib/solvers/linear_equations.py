"""`tf.contrib.solvers`: equations with matrices that are known by their products with vectors."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

from tensorfleet.base.naming import find
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import name_scope

LinearOperator = namedtuple("LinearOperator", ["shape", "dtype", "apply", "apply_adjoint"])
CGState = namedtuple("CGState", ["i", "x", "r", "p", "gamma"])
CGLSState = namedtuple("CGLSState", ["i", "x", "r", "p", "gamma"])
LanczosBidiagState = namedtuple("LanczosBidiagState", ["u", "v", "alpha", "beta"])


def _shape(matrix: Tensor) -> Any:
    return matrix.shape.as_list() if matrix.shape.is_fully_defined() else find("shape")(matrix)


def create_operator(matrix: Any) -> LinearOperator:
    """A matrix as an operator."""
    matrix, dot = to_tensor(matrix), find("matmul")
    return LinearOperator(
        _shape(matrix), matrix.dtype, lambda v: dot(matrix, v), lambda v: dot(matrix, v, adjoint_a=True)
    )


def identity_operator(matrix: Any) -> LinearOperator:
    """An operator of the shape of a matrix that changes nothing."""
    matrix = to_tensor(matrix)
    return LinearOperator(_shape(matrix), matrix.dtype, lambda v: v, lambda v: v)


def dot(x: Any, y: Any) -> Tensor:
    """The inner product of two vectors."""
    return find("reduce_sum")(find("conj")(x) * y)


def l2norm_squared(v: Any) -> Tensor:
    """The sum of squares."""
    return find("reduce_sum")(find("square")(v))


def l2norm(v: Any) -> Tensor:
    """The length of a vector."""
    return find("sqrt")(l2norm_squared(v))


def l2normalize(v: Any) -> tuple[Tensor, Tensor]:
    """A vector of length 1, and the length that it had."""
    length = l2norm(v)
    return v / length, length


def _start(operator: Any, rhs: Tensor) -> Tensor:
    return find("expand_dims")(find("zeros")(operator.shape[1:], rhs.dtype.base_dtype), -1)


def _finished(kind: Any, state: Any) -> Any:
    i, x, r, p, gamma = state
    return kind(i, *(find("squeeze")(v) for v in (x, r, p)), gamma)


def conjugate_gradient(
    operator: Any,
    rhs: Any,
    preconditioner: Any = None,
    x: Any = None,
    tol: float = 1e-4,
    max_iter: int = 20,
    name: str = "conjugate_gradient",
) -> CGState:
    """Solves A x = rhs for a symmetric positive A, by products with A alone."""
    with name_scope(name):
        rhs = find("expand_dims")(to_tensor(rhs), -1)
        if x is None:
            guess, left = _start(operator, rhs), rhs
        else:
            guess = find("expand_dims")(to_tensor(x), -1)
            left = rhs - operator.apply(guess)
        prepared = left if preconditioner is None else preconditioner.apply(left)
        enough = tol * l2norm(left)

        def step(i: Tensor, x: Tensor, r: Tensor, p: Tensor, gamma: Tensor) -> list[Tensor]:
            z = operator.apply(p)
            length = gamma / dot(p, z)
            x, r = x + length * p, r - length * z
            q = r if preconditioner is None else preconditioner.apply(r)
            after = dot(r, q)
            return [i + 1, x, r, q + (after / gamma) * p, after]

        state = find("while_loop")(
            lambda i, x, r, *_: find("logical_and")(i < max_iter, l2norm(r) > enough),
            step,
            [find("constant")(0), guess, left, prepared, dot(left, prepared)],
        )
        return _finished(CGState, state)


def cgls(operator: Any, rhs: Any, tol: float = 1e-6, max_iter: int = 20, name: str = "cgls") -> CGLSState:
    """Finds x for which A x is nearest to rhs, by products with A and its adjoint alone."""
    with name_scope(name):
        rhs = find("expand_dims")(to_tensor(rhs), -1)
        slope = operator.apply_adjoint(rhs)
        gamma0 = l2norm_squared(slope)
        enough = tol * tol * gamma0

        def step(i: Tensor, x: Tensor, r: Tensor, p: Tensor, gamma: Tensor) -> list[Tensor]:
            q = operator.apply(p)
            length = gamma / l2norm_squared(q)
            x, r = x + length * p, r - length * q
            s = operator.apply_adjoint(r)
            after = l2norm_squared(s)
            return [i + 1, x, r, s + (after / gamma) * p, after]

        state = find("while_loop")(
            lambda i, x, r, p, gamma: find("logical_and")(i < max_iter, gamma > enough),
            step,
            [find("constant")(0), _start(operator, rhs), rhs, slope, gamma0],
        )
        return _finished(CGLSState, state)


def lanczos_bidiag(
    operator: Any,
    k: int,
    orthogonalize: bool = True,
    starting_vector: Any = None,
    name: str = "lanczos_bidiag",
) -> LanczosBidiagState:
    """Bases u, v and a bidiagonal matrix B with A v = u B, after k steps (Golub and Kahan 1965).

    `alpha` is the diagonal of B and `beta` the one below it. With `orthogonalize`, each new vector is made
    orthogonal to all before it again.
    """
    with name_scope(name):
        if starting_vector is None:
            starting_vector = find("random_uniform")(operator.shape[:1], -1, 1, operator.dtype)
        first, _ = l2normalize(find("reshape")(starting_vector, [-1, 1]))
        us, vs, alphas = [first], list[Tensor](), list[Tensor]()
        betas: list[Tensor] = []

        def next_of(vector: Tensor, basis: list[Tensor]) -> tuple[Tensor, Tensor]:
            # Twice is enough, even when nearly nothing is left after the first time.
            for _ in range(2 if orthogonalize else 0):
                for known in basis:
                    vector = vector - dot(known, vector) * known
            return l2normalize(vector)

        for i in range(k):
            r = operator.apply_adjoint(us[i])
            r = r - betas[i - 1] * vs[i - 1] if i else r
            v, alpha = next_of(r, vs)
            u, beta = next_of(operator.apply(v) - alpha * us[i], us)
            vs.append(v)
            us.append(u)
            alphas.append(alpha)
            betas.append(beta)
        join = find("concat")
        return LanczosBidiagState(join(us, 1), join(vs, 1), find("stack")(alphas), find("stack")(betas))


def bidiag_matmul(
    matrix: Any, alpha: Any, beta: Any, adjoint_b: bool = False, name: str = "bidiag_matmul"
) -> Tensor:
    """The product of a matrix with a lower bidiagonal one, or with its adjoint."""
    with name_scope(name):
        matrix, alpha, beta = to_tensor(matrix), to_tensor(alpha), to_tensor(beta)
        if not adjoint_b:
            return matrix[:, :-1] * alpha + matrix[:, 1:] * beta
        moved = find("pad")(matrix[:, :-1] * beta[:-1], [[0, 0], [1, 0]])
        return matrix * alpha + moved

# Written by tools/make_stubs.py.
from tensorfleet.api.nn.normalization import l2_normalize as l2_normalize
from tensorfleet.ops.array.constructors import eye as eye
from tensorfleet.ops.array.diagonals import diag as _tensor_diag
from tensorfleet.ops.array.diagonals import diag_part as _tensor_diag_part
from tensorfleet.ops.array.diagonals import matrix_band_part as _band_part
from tensorfleet.ops.array.diagonals import matrix_diag as _diag
from tensorfleet.ops.array.diagonals import matrix_diag_part as _diag_part
from tensorfleet.ops.array.diagonals import matrix_set_diag as _set_diag
from tensorfleet.ops.array.transpose import matrix_transpose as _transpose
from tensorfleet.ops.array.transpose import matrix_transpose as matrix_transpose
from tensorfleet.ops.linalg.contract import einsum as einsum
from tensorfleet.ops.linalg.contract import tensordot as tensordot
from tensorfleet.ops.linalg.derived import cross as cross
from tensorfleet.ops.linalg.derived import matrix_rank as matrix_rank
from tensorfleet.ops.linalg.derived import pinv as pinv
from tensorfleet.ops.linalg.derived import trace as trace
from tensorfleet.ops.linalg.factorizations import adjoint as adjoint
from tensorfleet.ops.linalg.factorizations import cholesky as cholesky
from tensorfleet.ops.linalg.factorizations import qr as qr
from tensorfleet.ops.linalg.factorizations import self_adjoint_eig as _eigh
from tensorfleet.ops.linalg.factorizations import self_adjoint_eigvals as _eigvalsh
from tensorfleet.ops.linalg.factorizations import svd as svd
from tensorfleet.ops.linalg.least_squares import matrix_solve_ls as _lstsq
from tensorfleet.ops.linalg.matmul import matmul as matmul
from tensorfleet.ops.linalg.matmul import matvec as matvec
from tensorfleet.ops.linalg.matrix_functions import lu as lu
from tensorfleet.ops.linalg.matrix_functions import matrix_exponential as _expm
from tensorfleet.ops.linalg.matrix_functions import matrix_logarithm as _logm
from tensorfleet.ops.linalg.matrix_functions import matrix_square_root as _sqrtm
from tensorfleet.ops.linalg.matrix_functions import tridiagonal_matmul as tridiagonal_matmul
from tensorfleet.ops.linalg.matrix_functions import tridiagonal_solve as tridiagonal_solve
from tensorfleet.ops.linalg.solve import cholesky_solve as cholesky_solve
from tensorfleet.ops.linalg.solve import logdet as logdet
from tensorfleet.ops.linalg.solve import matrix_determinant as _det
from tensorfleet.ops.linalg.solve import matrix_inverse as _inv
from tensorfleet.ops.linalg.solve import matrix_solve as _solve
from tensorfleet.ops.linalg.solve import matrix_triangular_solve as _triangular_solve
from tensorfleet.ops.linalg.solve import slogdet as slogdet
from tensorfleet.ops.math.clip import global_norm as global_norm
from tensorfleet.ops.math.clip import norm as norm
from tensorfleet.ops.math.clip import normalize as normalize
from tensorfleet_legacy.linear_operators.linear_operator import LinearOperator as LinearOperator
from tensorfleet_legacy.linear_operators.linear_operator_adjoint import LinearOperatorAdjoint as LinearOperatorAdjoint
from tensorfleet_legacy.linear_operators.linear_operator_adjoint import LinearOperatorInversion as LinearOperatorInversion
from tensorfleet_legacy.linear_operators.linear_operator_block_diag import LinearOperatorBlockDiag as LinearOperatorBlockDiag
from tensorfleet_legacy.linear_operators.linear_operator_circulant import LinearOperatorCirculant as LinearOperatorCirculant
from tensorfleet_legacy.linear_operators.linear_operator_circulant import LinearOperatorCirculant2D as _LinearOperatorCirculant2D
from tensorfleet_legacy.linear_operators.linear_operator_circulant import LinearOperatorCirculant3D as _LinearOperatorCirculant3D
from tensorfleet_legacy.linear_operators.linear_operator_composition import LinearOperatorComposition as LinearOperatorComposition
from tensorfleet_legacy.linear_operators.linear_operator_composition import LinearOperatorKronecker as LinearOperatorKronecker
from tensorfleet_legacy.linear_operators.linear_operator_diag import LinearOperatorDiag as LinearOperatorDiag
from tensorfleet_legacy.linear_operators.linear_operator_diag import LinearOperatorIdentity as LinearOperatorIdentity
from tensorfleet_legacy.linear_operators.linear_operator_diag import LinearOperatorScaledIdentity as LinearOperatorScaledIdentity
from tensorfleet_legacy.linear_operators.linear_operator_full_matrix import LinearOperatorFullMatrix as LinearOperatorFullMatrix
from tensorfleet_legacy.linear_operators.linear_operator_full_matrix import LinearOperatorLowerTriangular as LinearOperatorLowerTriangular
from tensorfleet_legacy.linear_operators.linear_operator_householder import LinearOperatorHouseholder as LinearOperatorHouseholder
from tensorfleet_legacy.linear_operators.linear_operator_householder import LinearOperatorPermutation as LinearOperatorPermutation
from tensorfleet_legacy.linear_operators.linear_operator_householder import LinearOperatorToeplitz as LinearOperatorToeplitz
from tensorfleet_legacy.linear_operators.linear_operator_householder import LinearOperatorTridiag as LinearOperatorTridiag
from tensorfleet_legacy.linear_operators.linear_operator_low_rank_update import LinearOperatorLowRankUpdate as LinearOperatorLowRankUpdate
from tensorfleet_legacy.linear_operators.linear_operator_zeros import LinearOperatorZeros as LinearOperatorZeros
import builtins
import typing
class LinearOperatorCirculant2D(_LinearOperatorCirculant2D):
    def __init__(self, spectrum: typing.Any, input_output_dtype: typing.Any = ..., is_non_singular: builtins.bool | None = ..., is_self_adjoint: builtins.bool | None = ..., is_positive_definite: builtins.bool | None = ..., is_square: builtins.bool | None = ..., name: builtins.str = ...) -> None: ...
class LinearOperatorCirculant3D(_LinearOperatorCirculant3D):
    def __init__(self, spectrum: typing.Any, input_output_dtype: typing.Any = ..., is_non_singular: builtins.bool | None = ..., is_self_adjoint: builtins.bool | None = ..., is_positive_definite: builtins.bool | None = ..., is_square: builtins.bool | None = ..., name: builtins.str = ...) -> None: ...
band_part = _band_part
det = _det
diag = _diag
diag_part = _diag_part
eigh = _eigh
eigvalsh = _eigvalsh
expm = _expm
inv = _inv
logm = _logm
lstsq = _lstsq
set_diag = _set_diag
solve = _solve
sqrtm = _sqrtm
tensor_diag = _tensor_diag
tensor_diag_part = _tensor_diag_part
transpose = _transpose
triangular_solve = _triangular_solve

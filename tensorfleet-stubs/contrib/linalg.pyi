# Written by tools/make_stubs.py.
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

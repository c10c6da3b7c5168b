"""The names `tf.linalg.LinearOperator*`, loaded when first used."""

from __future__ import annotations

import importlib
from typing import Any

from tensorfleet.base.naming import publish_lazily
from tensorfleet_legacy.lazy_names import publish_from

_MODULES = {
    "linear_operator": "LinearOperator",
    "linear_operator_adjoint": "LinearOperatorAdjoint LinearOperatorInversion",
    "linear_operator_full_matrix": "LinearOperatorFullMatrix LinearOperatorLowerTriangular",
    "linear_operator_diag": "LinearOperatorDiag LinearOperatorIdentity LinearOperatorScaledIdentity",
    "linear_operator_zeros": "LinearOperatorZeros",
    "linear_operator_composition": "LinearOperatorComposition LinearOperatorKronecker",
    "linear_operator_block_diag": "LinearOperatorBlockDiag",
    "linear_operator_low_rank_update": "LinearOperatorLowRankUpdate",
    "linear_operator_circulant": "LinearOperatorCirculant LinearOperatorCirculant2D LinearOperatorCirculant3D",
    "linear_operator_householder": """
        LinearOperatorHouseholder LinearOperatorPermutation LinearOperatorToeplitz LinearOperatorTridiag
    """,
}
for _module, _names in _MODULES.items():
    publish_from(f"linear_operators.{_module}", _names, "linalg", "contrib.linalg")

# Inside TensorFlow: the rules of each operation under the names of its functions and of its table.
_RULES = {
    "adjoint": ("ADJOINTS", "_ADJOINTS"),
    "cholesky": ("CHOLESKYS", "_CHOLESKY_DECOMPS"),
    "inverse": ("INVERSES", "_INVERSES"),
    "matmul": ("PRODUCTS", "_MATMUL"),
    "solve": ("SOLUTIONS", "_SOLVE"),
}
_SUMS = """
    add_operators _Adder=Adder _Hints=Hints _AddAndReturnScaledIdentity=AddAndReturnScaledIdentity
    _AddAndReturnDiag=AddAndReturnDiag _AddAndReturnTriL=AddAndReturnTriL _AddAndReturnMatrix=AddAndReturnMatrix
"""


def _load_rule(full: str) -> Any:
    name = full.rpartition(".")[2]
    for operation, (rules, table) in _RULES.items():
        members = {
            operation: "apply",
            f"Register{operation.capitalize()}": "register",
            f"_registered_{operation}": "find",
            table: "functions",
        }
        if name in members:
            # The rules of the base class are there once it is.
            base = importlib.import_module("tensorfleet_legacy.linear_operators.linear_operator")
            return getattr(getattr(base.algebra, rules), members[name])
    raise AttributeError(name)


_ALGEBRA = "python.ops.linalg.linear_operator_algebra."
for _operation, (_, _table) in _RULES.items():
    _forms = (_operation, f"Register{_operation.capitalize()}", f"_registered_{_operation}", _table)
    publish_lazily(_load_rule, *(_ALGEBRA + form for form in _forms))
publish_from("linear_operators.linear_operator_addition", _SUMS, "python.ops.linalg.linear_operator_addition")

"""Rules of one's own for adjoints, factors, inverses, products and solutions of operators."""

import pytest
from tensorfleet.python.ops.linalg import linear_operator_algebra as algebra

import tensorfleet as tf


class Stretch(tf.linalg.LinearOperatorDiag):
    pass


class LongStretch(Stretch):
    pass


def test_a_rule_for_a_class_is_used_for_it_and_for_its_subclasses_alone():
    @algebra.RegisterMatmul(Stretch, Stretch)
    def product(left, right):
        return "a stretch"

    near, far = LongStretch([2.0]), Stretch([3.0])
    assert near.matmul(far) == "a stretch"
    assert isinstance(far.matmul(tf.linalg.LinearOperatorDiag([1.0])), tf.linalg.LinearOperatorDiag)


def test_of_two_rules_that_of_the_nearer_ancestor_counts():
    algebra.RegisterInverse(Stretch)(lambda operator: "inverse of a stretch")
    algebra.RegisterInverse(LongStretch)(lambda operator: "inverse of a long stretch")
    assert Stretch([1.0]).inverse() == "inverse of a stretch"
    assert LongStretch([1.0]).inverse() == "inverse of a long stretch"
    assert algebra._registered_inverse(LongStretch) is algebra._INVERSES[LongStretch,]


def test_a_second_rule_for_the_same_classes_is_refused():
    algebra.RegisterSolve(Stretch, LongStretch)(lambda left, right: None)
    with pytest.raises(ValueError, match=r"Solve\(Stretch, LongStretch\) has already been registered"):
        algebra.RegisterSolve(Stretch, LongStretch)(lambda left, right: None)
    with pytest.raises(TypeError, match="cholesky_fn must be callable"):
        algebra.RegisterCholesky(Stretch)("no function")


def test_what_is_no_operator_has_no_rule():
    with pytest.raises(ValueError, match="No adjoint registered for"):
        algebra.adjoint(3.0)
    with pytest.raises(ValueError, match=r"No matmul registered for .*float.*\.matmul\(.*int"):
        algebra.matmul(3.0, 4)

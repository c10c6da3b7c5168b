"""The tests that every kind of linear operator passes."""

import unittest

import numpy as np
import pytest

import tensorfleet as tf

shared = tf.python.ops.linalg.linear_operator_test_util


def _run(x):
    with tf.Session() as sess:
        return sess.run(x)


def _tests_of(wrong=0.0, **skip):
    class Diagonal(shared.SquareLinearOperatorDerivedClassTest):
        @staticmethod
        def dtypes_to_test():
            return [tf.float64, tf.complex128]

        @staticmethod
        def operator_shapes_infos():
            return [shared.OperatorShapesInfo((2, 3, 3), more=1)]

        @staticmethod
        def skip_these_tests():
            return ["det"]

        def operator_and_matrix(self, shapes_info, dtype, use_placeholder, ensure_self_adjoint_and_pd=False):
            diag = shared.random_sign_uniform(list(shapes_info.shape[:-1]), 1.0, 2.0, dtype)
            if ensure_self_adjoint_and_pd:
                diag = tf.cast(tf.abs(diag), dtype)
            given = tf.placeholder_with_default(diag, None) if use_placeholder else diag
            hint = ensure_self_adjoint_and_pd or None
            result = tf.linalg.LinearOperatorDiag(given, is_self_adjoint=hint, is_positive_definite=hint)
            return result, tf.matrix_diag(diag + wrong)

    shared.add_tests(Diagonal)
    return Diagonal


def _result_of(cls):
    result = unittest.TestResult()
    unittest.defaultTestLoader.loadTestsFromTestCase(cls).run(result)
    return result


def test_every_method_is_tested_for_every_type_and_way_of_telling_shapes():
    cls = _tests_of()
    result = _result_of(cls)
    assert not result.failures and not result.errors
    names = [name for name in dir(cls) if name.startswith("test_") and name != "test_session"]
    assert len(names) == (8 + 4 * 4) * 4 and not any(name.startswith("test_det_") for name in names)
    with pytest.raises(RuntimeError, match="defined more than once"):
        shared.add_tests(cls)


def test_an_operator_that_is_not_its_matrix_fails():
    result = _result_of(_tests_of(wrong=0.5))
    assert len(result.failures) > 50


def test_operators_know_the_variables_they_are_made_of():
    case = shared.SquareLinearOperatorDerivedClassTest()
    v, other = tf.Variable([2.0, 3.0]), tf.Variable(1.0)
    operator = tf.linalg.LinearOperatorDiag(v * 2.0)
    assert operator.variables == operator.trainable_variables == (v,)
    case.check_tape_safe(operator)
    with pytest.raises(AssertionError, match="was empty"):
        case.check_tape_safe(tf.linalg.LinearOperatorDiag([1.0]))
    assert other not in operator.variables


def test_random_matrices():
    lower = _run(shared.random_tril_matrix([3, 4, 4], tf.complex64, force_well_conditioned=True))
    assert (np.abs(np.triu(lower, 1)) == 0).all() and (np.abs(np.einsum("bii->bi", lower)) >= 1).all()
    definite = _run(shared.random_positive_definite_matrix([3, 3], tf.float64))
    assert (np.linalg.eigvalsh(definite) > 0).all()
    with pytest.raises(ValueError, match="not compatible"):
        shared.random_positive_definite_matrix([2, 3], tf.float32)
    flat = _run(shared.random_normal_correlated_columns([5, 3], dtype=tf.float64, seed=1))
    assert np.linalg.svd(flat, compute_uv=False)[-1] < 1e-2
    assert _run(shared.random_normal_correlated_columns([2, 5])).shape == (2, 5)

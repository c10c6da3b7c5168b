"""What libraries ask of values while a graph is built."""

import pytest

import tensorfleet as tf

case_helper = tf.python.ops.control_flow_ops._case_helper
evaluate = tf.python.pywrap_tensorflow.TF_TryEvaluateConstant_wrapper


def test_a_value_is_known_where_nothing_is_fed_or_stored():
    known, fed = tf.constant(2) * 3 > 5, tf.placeholder(tf.bool, [])
    assert evaluate(known.graph._c_graph, tf.constant(True)._as_tf_output())
    assert evaluate(fed.graph._c_graph, fed._as_tf_output()) is None


def pick(pred, true_fn, false_fn):
    return tf.cond(pred, true_fn, false_fn) if tf.is_tensor(pred) else true_fn() if pred else false_fn()


def test_a_case_may_know_some_predicates(session):
    x = tf.placeholder(tf.int32, [])
    pairs = [(False, lambda: tf.constant("never")), (x > 3, lambda: tf.constant("large"))]
    result = case_helper(pick, pairs, lambda: tf.constant("small"), False, "case", allow_python_preds=True)
    assert [session.run(result, {x: n}) for n in (5, 1)] == [b"large", b"small"]
    forced = case_helper(pick, pairs, None, True, "case", allow_python_preds=True)
    assert session.run(forced, {x: 4}) == b"large"
    with pytest.raises(tf.errors.InvalidArgumentError, match="None of conditions evaluated as True"):
        session.run(forced, {x: 1})
    with pytest.raises(TypeError, match="pred must be Tensor, got False"):
        case_helper(pick, pairs, None, False, "case")

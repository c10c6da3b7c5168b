"""What a model function gives is checked when it is made."""

import pytest

import tensorfleet as tf

Spec = tf.estimator.EstimatorSpec
TRAIN, EVAL, PREDICT = tf.estimator.ModeKeys.TRAIN, tf.estimator.ModeKeys.EVAL, tf.estimator.ModeKeys.PREDICT


def test_each_mode_needs_its_parts():
    loss, op = tf.constant(1.0), tf.no_op()
    assert Spec(TRAIN, loss=loss, train_op=op).predictions == {}
    assert Spec(EVAL, loss=loss).eval_metric_ops == {}
    spec = Spec(PREDICT, predictions=loss)
    assert list(spec.export_outputs) == ["serving_default"]
    for arguments, message in (
        ((TRAIN, None, loss), "Missing train_op"),
        ((TRAIN, None, None, op), "Missing loss"),
        ((EVAL,), "Missing loss"),
        ((PREDICT,), "Missing predictions"),
    ):
        with pytest.raises(ValueError, match=message):
            Spec(*arguments)


def test_a_loss_is_one_number():
    assert Spec(EVAL, loss=tf.ones([1])).loss.shape == []
    with pytest.raises(ValueError, match="must be scalar"):
        Spec(EVAL, loss=tf.ones([2]))
    with pytest.raises(TypeError, match="loss must be Tensor"):
        Spec(EVAL, loss=1.0)


def test_kinds_are_checked():
    loss = tf.constant(1.0)
    for arguments, message in (
        ({"train_op": 3}, "train_op must be Operation or Tensor"),
        ({"predictions": {"a": 3}}, r"predictions\[a\] must be Tensor"),
        ({"eval_metric_ops": [3]}, "must be a dict"),
        ({"eval_metric_ops": {"a": loss}}, "tuples"),
        ({"eval_metric_ops": {"a": (loss, 3)}}, r"eval_metric_ops\[a\]"),
        ({"training_hooks": [3]}, "SessionRunHook"),
        ({"scaffold": 3}, "Scaffold"),
    ):
        with pytest.raises(TypeError, match=message):
            Spec(EVAL, loss=loss, **arguments)
    with pytest.raises(TypeError, match="must be dict"):
        Spec(PREDICT, loss, export_outputs=3)
    with pytest.raises(TypeError, match="ExportOutput objects"):
        Spec(PREDICT, loss, export_outputs={"a": 3})


def test_everything_is_of_one_graph():
    loss = tf.constant(1.0)
    with tf.Graph().as_default(), pytest.raises(ValueError, match="from the default graph"):
        Spec(EVAL, loss=loss)


def test_one_output_is_the_default_one():
    loss = tf.constant(1.0)
    output = tf.estimator.export.PredictOutput(loss)
    spec = Spec(PREDICT, loss, export_outputs={"a": output})
    assert spec.export_outputs == {"a": output, "serving_default": output}
    with pytest.raises(ValueError, match="none of them is specified as the default"):
        Spec(PREDICT, loss, export_outputs={"a": output, "b": output})


def test_parts_can_be_replaced_but_not_the_mode():
    spec = Spec(EVAL, loss=tf.constant(1.0))
    other = tf.constant(2.0)
    assert spec._replace(loss=other).loss is other
    with pytest.raises(ValueError, match="mode of EstimatorSpec cannot be changed"):
        spec._replace(mode=TRAIN)

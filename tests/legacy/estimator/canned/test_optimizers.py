"""Last layers of one's own, from inside `tf.estimator`."""

import pytest

import tensorfleet as tf

canned = tf.python.estimator.canned


def test_a_head_says_what_it_is_called_and_what_becomes_of_the_model():
    class Mine(canned.head._Head):
        name = "mine"
        logits_dimension = 1

        def create_loss(self, features, mode, logits, labels):
            return tf.losses.mean_squared_error(labels, logits)

        def create_estimator_spec(self, features, mode, logits, labels=None, train_op_fn=None):
            return tf.estimator.EstimatorSpec(mode, predictions=logits)

    assert Mine().name == "mine"
    with pytest.raises(TypeError, match="abstract"):
        canned.head._Head()


def test_an_optimizer_is_known_by_its_name():
    instance = canned.optimizers.get_optimizer_instance
    assert isinstance(instance("Ftrl", 0.1), tf.train.FtrlOptimizer)
    assert isinstance(instance(tf.train.AdamOptimizer()), tf.train.AdamOptimizer)
    with pytest.raises(ValueError, match="learning_rate must be specified"):
        instance("Ftrl")

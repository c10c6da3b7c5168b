"""What `tf.fleet` is given by mistake is refused with a sentence."""

import pytest

import tensorfleet as tf


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (
            lambda: tf.fleet.dropped_gradients(None),
            "session must be an open tf.Session or a monitored session",
        ),
        (lambda: tf.fleet.stop_server(5), "target must be a session or a string"),
        (
            lambda: tf.fleet.stop_server("grpc://localhost:1", 5),
            "task must be a name such as /job:ps/task:1, but got 5",
        ),
        (
            lambda: tf.fleet.Timeline(None),
            "step_stats must be the step_stats of a tf.RunMetadata, but got None",
        ),
    ],
)
def test_an_argument_of_another_kind_is_refused(call, text):
    with pytest.raises(TypeError, match=text):
        call()

"""State of Python in checkpoints."""

import json

import tensorfleet as tf


class Counter(tf.train.experimental.PythonState):
    def __init__(self):
        self.count = 0

    def serialize(self):
        return json.dumps({"count": self.count})

    def deserialize(self, string_value):
        self.count = json.loads(string_value)["count"]


def test_python_is_saved_with_the_variables(tmp_path):
    counter, v = Counter(), tf.Variable(2.0)
    checkpoint = tf.train.Checkpoint(counter=counter, v=v)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        counter.count = 5
        path = checkpoint.save(str(tmp_path / "model"), session=sess)
        counter.count = 0
        checkpoint.restore(path).run_restore_ops(sess)
    assert counter.count == 5
    names = [name for name, _ in tf.train.list_variables(path)]
    assert "counter/.ATTRIBUTES/py_state" in names


def test_the_base_is_abstract():
    try:
        tf.train.experimental.PythonState()
    except TypeError as e:
        assert "abstract" in str(e)
    else:
        raise AssertionError("it was made")

import tensorfleet as tf
from tensorfleet.api.autograph import calls
from tensorfleet.api.train.object_graph import attributes
from tensorfleet.base import packages
from tensorfleet_legacy import contrib


def test_files_of_both_packages_are_ours():
    assert all(file.startswith(packages.FOLDERS) for file in (packages.__file__, contrib.__file__))
    assert not __file__.startswith(packages.FOLDERS)


def test_an_operation_names_the_line_that_called_the_annex():
    result = tf.contrib.layers.fully_connected(tf.ones([2, 3]), 4)
    assert result.op.source_line.startswith(__file__)
    assert tf.keras.layers.Dense(2)(result).op.source_line.startswith(__file__)


def test_checkpoints_leave_out_private_attributes_of_the_annexs_objects():
    layer = tf.keras.layers.Dense(2)
    layer._hidden = tf.Variable(1.0)  # where our own classes keep a variable that has another name too
    layer(tf.ones([2, 3]))
    assert [name for name, _ in attributes(layer)] == ["kernel", "bias"]


def test_autograph_knows_that_functions_of_the_annex_take_tensors():
    assert tf.keras.backend.square.__module__.partition(".")[0] in calls._KNOWN

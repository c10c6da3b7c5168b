"""Shared objects built for TensorFlow: why they cannot be loaded, and what to do."""

import pytest

import tensorfleet as tf


@pytest.mark.parametrize("load", [tf.load_op_library, tf.load_file_system_library])
def test_the_loaders_reason_is_told(tmp_path, load):
    missing = str(tmp_path / "zero_out.so")
    with pytest.raises(
        tf.errors.NotFoundError, match=r"zero_out.so: cannot open shared object file.*tf.py_func"
    ):
        load(missing)
    broken = tmp_path / "broken.so"
    broken.write_bytes(b"no library")
    with pytest.raises(tf.errors.NotFoundError, match="broken.so"):
        load(str(broken))


def test_a_folder_of_libraries(tmp_path):
    tf.load_library(str(tmp_path))  # with none in it
    (tmp_path / "one.so").write_bytes(b"")
    with pytest.raises(tf.errors.NotFoundError, match="one.so"):
        tf.load_library(str(tmp_path))
    with pytest.raises(OSError, match="does not exist"):
        tf.load_library(str(tmp_path / "none"))


def test_names_from_inside():
    assert tf.pywrap_tensorflow.NewCheckpointReader is tf.train.NewCheckpointReader
    assert tf.Session().run(tf.user_ops.my_fact()) == b"0! == 1"

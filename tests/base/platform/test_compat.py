"""Small things under `tf.compat`, `tf.version` and `tf.resource_loader`."""

import os
from pathlib import Path

import numpy as np
import pytest

import tensorfleet as tf


def test_bytes_and_text_become_each_other():
    assert tf.compat.as_bytes("é") == b"\xc3\xa9"
    assert tf.compat.as_text(b"\xc3\xa9") == tf.compat.as_str("é") == "é"
    assert tf.compat.as_bytes(bytearray(b"a")) == b"a"
    assert tf.compat.as_str_any(b"a") == "a"
    assert tf.compat.as_str_any(3) == "3"
    for convert in (tf.compat.as_bytes, tf.compat.as_text):
        with pytest.raises(TypeError, match="Expected binary or unicode string, got 3"):
            convert(3)


def test_paths_become_text():
    assert tf.compat.path_to_str(Path("/a/b")) == "/a/b"
    assert tf.compat.path_to_str("c") == "c"


def test_numpy_numbers_are_numbers():
    assert isinstance(np.int32(1), tf.compat.integral_types)
    assert isinstance(np.float32(1), tf.compat.real_types)
    assert isinstance(np.complex64(1), tf.compat.complex_types)


def test_the_horizon_moves_inside_a_block():
    assert tf.compat.forward_compatible(2019, 1, 1)
    with tf.compat.forward_compatibility_horizon(2018, 1, 1):
        assert not tf.compat.forward_compatible(2019, 1, 1)
    assert tf.compat.forward_compatible(2019, 1, 1)


def test_scripts_that_ask_for_the_version_find_one_x():
    assert tf.__version__ == tf.VERSION == tf.version.VERSION
    assert tf.VERSION.startswith("1.15")
    assert tf.GraphDef().versions.producer == 0
    assert tf.Graph().as_graph_def().versions.producer == tf.version.GRAPH_DEF_VERSION


def test_data_files_lie_beside_the_script():
    folder = os.path.dirname(os.path.abspath(__file__))
    assert tf.resource_loader.get_data_files_path() == folder
    assert tf.resource_loader.get_path_to_datafile("x.txt") == os.path.join(folder, "x.txt")

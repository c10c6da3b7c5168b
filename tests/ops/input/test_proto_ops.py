"""Protocol buffers as tensors: messages that the program knows, and those of a file."""

import numpy as np
import pytest
from google.protobuf import descriptor_pb2

import tensorfleet as tf
from tests.support.sessions import run


def described(path):
    file = descriptor_pb2.FileDescriptorProto(name="sample_point.proto", package="sample", syntax="proto3")
    point = file.message_type.add(name="Point")
    for i, name in enumerate(("x", "y")):
        point.field.add(name=name, number=i + 1, type=5, label=3 if name == "y" else 1)
    path.write_bytes(descriptor_pb2.FileDescriptorSet(file=[file]).SerializeToString())
    return str(path)


def test_messages_of_a_file_go_there_and_back(tmp_path):
    source = described(tmp_path / "descriptors")
    sizes, values = np.array([[1, 2], [0, 0]], np.int32), [np.array([[7], [0]]), np.array([[-1, 2], [0, 0]])]
    data = tf.io.encode_proto(
        sizes, [v.astype(np.int32) for v in values], ["x", "y"], "sample.Point", descriptor_source=source
    )
    result = tf.io.decode_proto(
        data, "sample.Point", ["y", "x"], [tf.int32, tf.int64], descriptor_source=source
    )
    texts, (counts, (y, x)) = run([data, result])
    assert texts.tolist() == [b"\x08\x07\x12\x0b" + b"\xff" * 9 + b"\x01\x02", b""]
    assert counts.tolist() == [[2, 1], [0, 0]]
    assert y.tolist() == [[-1, 2], [0, 0]] and x.tolist() == [[7], [0]] and x.dtype == np.int64


def test_messages_that_the_program_knows():
    example = tf.train.Example()
    example.features.feature["a"].int64_list.value.extend([1, 2])
    sizes, (features,) = run(
        tf.io.decode_proto([example.SerializeToString()], "tensorflow.Example", ["features"], [tf.string])
    )
    assert sizes.tolist() == [[1]] and features[0, 0] == example.features.SerializeToString()


def test_sizes_must_fit_the_values(tmp_path):
    source = described(tmp_path / "descriptors")
    with pytest.raises(tf.errors.InvalidArgumentError, match="sizes must be batch_size"):
        run(tf.io.encode_proto([[1]], [[[1]], [[2]]], ["x", "y"], "sample.Point", descriptor_source=source))
    with pytest.raises(TypeError, match="Expected list for 'field_names'"):
        tf.io.decode_proto([b""], "sample.Point", "x", [tf.int32])

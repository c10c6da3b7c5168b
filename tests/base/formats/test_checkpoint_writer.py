"""Checkpoint files: written, read back, cut in parts, merged, damaged."""

import os

import ml_dtypes
import numpy as np
import pytest

import tensorfleet as tf
from tensorfleet.base.formats.checkpoint_reader import BundleReader
from tensorfleet.base.formats.checkpoint_v1 import open_checkpoint
from tensorfleet.base.formats.checkpoint_writer import BundleWriter, merge
from tensorfleet.base.formats.table import read_table, write_table
from tensorfleet.base.formats.tensor_slices import TensorSlice, parse_spec
from tensorfleet.base.formats.varint import read_varint, write_varint


def test_varints_come_back():
    for value in (0, 1, 127, 128, 300, 2**32, 2**63):
        data = write_varint(value)
        assert read_varint(b"x" + data, 1) == (value, len(data) + 1)


@pytest.mark.parametrize("count", [0, 1, 15, 16, 17, 1000])
def test_table_gives_back_what_was_written(count):
    items = {f"layer/{i:05d}/kernel".encode(): b"v" * (i % 40) for i in range(count)}
    table = write_table(items.items())
    assert read_table(table) == items
    assert len(table) < 48 + 40 + 60 * max(count, 1)


def test_large_table_is_cut_into_blocks():
    items = {f"{i:06d}".encode(): bytes(1000) for i in range(700)}
    assert read_table(write_table(items.items())) == items


def test_known_table_bytes():
    # One entry: key "a", value "b"; then the empty metaindex block, the index block, the footer.
    table = write_table([(b"a", b"b")])
    assert table[:13] == b"\0\1\1ab\0\0\0\0\1\0\0\0"
    assert table.endswith(bytes.fromhex("57fb808b247547db"))


@pytest.mark.parametrize("position", [3, 20, 40, -1])
def test_damaged_table_is_data_loss(position):
    table = bytearray(write_table([(b"key", b"value")]))
    table[position] ^= 0xFF
    with pytest.raises(tf.errors.DataLossError):
        read_table(bytes(table))


def test_truncated_table_is_data_loss():
    with pytest.raises(tf.errors.DataLossError, match="too short to be an sstable"):
        read_table(b"abc")


def test_slice_keys_are_tensorflows():
    assert TensorSlice((0, 150), (2, 150)).key("q") == b"\0q\0\1\1\2\x80\x82\xc0\x96\xc0\x96"
    assert TensorSlice((0,), (-1,)).key("a\0\xff") == b"\0a\0\xff\xc3\xbf\0\1\1\1\x80\x7f"


def test_slice_keys_sort_as_their_numbers_do():
    numbers = [0, 1, 63, 64, 8191, 8192, 2**20, 2**40, 2**55, 2**56, 2**62]
    keys = [TensorSlice((n,), (5,)).key("x") for n in numbers]
    assert keys == sorted(keys)


def test_specs_are_read():
    shape, part = parse_spec("4 5 0,2:-")
    assert shape == (4, 5)
    assert part.shape(shape) == (2, 5)
    assert TensorSlice.from_proto(part.to_proto()) == part


@pytest.mark.parametrize("spec", ["4 5 0,2", "4 x,1", "4 3,2", "nonsense"])
def test_bad_specs_are_refused(spec):
    with pytest.raises(tf.errors.InvalidArgumentError, match="spec"):
        parse_spec(spec)


ARRAYS = {
    "float": np.arange(6, dtype=np.float32).reshape(2, 3),
    "scalar": np.array(3, np.int64),
    "empty": np.zeros((0, 3), np.float64),
    "bool": np.array([True, False]),
    "brain": np.array([1.5, -2], ml_dtypes.bfloat16),
    "complex": np.array([1 + 2j], np.complex128),
    "string": np.array([[b"ab"], [b""], [b"\xff\0" * 200]], object),
    "backwards": np.arange(12, dtype=np.int32).reshape(3, 4).T,
}


@pytest.fixture
def prefix(tmp_path):
    path = str(tmp_path / "model")
    with BundleWriter(path) as writer:
        for name, array in ARRAYS.items():
            writer.add(name, array)
    return path


def test_tensors_come_back(prefix):
    reader = BundleReader(prefix)
    assert reader.names() == sorted(ARRAYS)
    for name, array in ARRAYS.items():
        got = reader.read(name)
        assert got.dtype == array.dtype
        assert reader.shape(name) == got.shape == array.shape
        np.testing.assert_array_equal(got, array)


def test_quantized_types_keep_their_names(tmp_path):
    with BundleWriter(str(tmp_path / "q")) as writer:
        writer.add("q", np.array([1, 2], np.int8), tf.qint8)
    assert BundleReader(str(tmp_path / "q")).dtype("q") == tf.qint8


def test_a_part_of_a_whole_tensor_can_be_read(prefix):
    got = BundleReader(prefix).read("float", TensorSlice((0, 1), (2, 2)))
    np.testing.assert_array_equal(got, ARRAYS["float"][:, 1:])


def write_parts(path, array, bounds):
    with BundleWriter(path) as writer:
        for start, end in bounds:
            part = TensorSlice((start, 0), (end - start, -1))
            writer.add_slice("v", array.shape, part, array[start:end])


def test_parts_are_put_together_however_they_are_asked_for(tmp_path):
    whole = np.arange(30).reshape(10, 3)
    write_parts(str(tmp_path / "p"), whole, [(0, 3), (3, 7), (7, 10)])
    reader = BundleReader(str(tmp_path / "p"))
    assert reader.names() == ["v"]
    np.testing.assert_array_equal(reader.read("v"), whole)
    np.testing.assert_array_equal(reader.read("v", TensorSlice((2, 1), (6, 1))), whole[2:8, 1:2])


def test_missing_parts_are_an_error(tmp_path):
    write_parts(str(tmp_path / "p"), np.arange(30).reshape(10, 3), [(0, 3), (7, 10)])
    with pytest.raises(tf.errors.InvalidArgumentError, match="do not fully cover"):
        BundleReader(str(tmp_path / "p")).read("v")


def test_missing_key_and_missing_file(prefix):
    with pytest.raises(tf.errors.NotFoundError, match="Key nope not found in checkpoint"):
        BundleReader(prefix).read("nope")
    with pytest.raises(tf.errors.NotFoundError, match="Failed to find any matching files for"):
        BundleReader(prefix + "x")
    with pytest.raises(tf.errors.DataLossError, match="path without .index"):
        open_checkpoint(prefix + ".index")


def test_damaged_data_is_noticed(prefix):
    with open(f"{prefix}.data-00000-of-00001", "r+b") as f:
        content = bytearray(f.read())
        content[5] ^= 1
        f.seek(0)
        f.write(content)
    reader = BundleReader(prefix)
    with pytest.raises(tf.errors.DataLossError, match="Checksum does not match"):
        reader.read("float")
    np.testing.assert_array_equal(reader.read("string"), ARRAYS["string"])


@pytest.mark.parametrize("distance", [1, 399, 401, 405, 409])
def test_damaged_strings_are_noticed(tmp_path, distance):
    path = str(tmp_path / "s")
    with BundleWriter(path) as writer:
        writer.add("s", ARRAYS["string"])
    name = f"{path}.data-00000-of-00001"
    with open(name, "r+b") as f:
        content = bytearray(f.read())
        content[-distance] ^= 1
        f.seek(0)
        f.write(content)
    with pytest.raises(tf.errors.DataLossError):
        BundleReader(path).read("s")


def test_damaged_index_is_noticed(prefix):
    with open(f"{prefix}.index", "r+b") as f:
        f.seek(30)
        f.write(b"\xff")
    with pytest.raises(tf.errors.DataLossError, match="block checksum mismatch"):
        BundleReader(prefix)


def test_truncated_data_is_noticed(prefix):
    os.truncate(f"{prefix}.data-00000-of-00001", 10)
    with pytest.raises(tf.errors.OutOfRangeError, match="fewer bytes"):
        BundleReader(prefix).read("string")


def test_nothing_is_visible_before_the_end(tmp_path):
    writer = BundleWriter(str(tmp_path / "m"))
    writer.add("a", np.ones(3))
    assert not [f for f in os.listdir(tmp_path) if "tempstate" not in f]
    writer.finish()
    assert sorted(os.listdir(tmp_path)) == ["m.data-00000-of-00001", "m.index"]


def test_a_failed_write_leaves_nothing(tmp_path):
    with pytest.raises(tf.errors.InvalidArgumentError, match="duplicate"), BundleWriter(tmp_path / "m") as w:
        w.add("a", np.ones(3))
        w.add("a", np.ones(3))
    assert os.listdir(tmp_path) == []


def test_shards_are_merged(tmp_path):
    whole = np.arange(8).reshape(4, 2)
    prefixes = []
    for shard, (start, end) in enumerate([(0, 1), (1, 4)]):
        prefixes.append(str(tmp_path / "temporary" / f"part-{shard}"))
        with BundleWriter(prefixes[-1]) as writer:
            writer.add(f"own{shard}", np.array([shard]))
            writer.add_slice("v", (4, 2), TensorSlice((start, 0), (end - start, 2)), whole[start:end])
    merge(prefixes, str(tmp_path / "all"))
    assert sorted(os.listdir(tmp_path)) == [
        "all.data-00000-of-00002",
        "all.data-00001-of-00002",
        "all.index",
    ]
    reader = BundleReader(str(tmp_path / "all"))
    assert reader.names() == ["own0", "own1", "v"]
    assert reader.read("own1").tolist() == [1]
    np.testing.assert_array_equal(reader.read("v"), whole)


def test_two_shards_with_the_same_tensor_are_refused(tmp_path):
    for name in "ab":
        with BundleWriter(tmp_path / name) as writer:
            writer.add("v", np.ones(2))
    with pytest.raises(tf.errors.InvalidArgumentError, match="both hold 'v'"):
        merge([tmp_path / "a", tmp_path / "b"], tmp_path / "all")


def test_shards_may_make_their_directory_at_the_same_time(tmp_path, monkeypatch):
    (tmp_path / "shared").mkdir()
    monkeypatch.setattr("tensorfleet.base.formats.checkpoint_writer.os.path.isdir", lambda path: False)
    with BundleWriter(tmp_path / "shared" / "part") as writer:
        writer.add("a", np.ones(2))
    assert BundleReader(tmp_path / "shared" / "part").names() == ["a"]


def test_a_missing_parent_directory_is_not_found(tmp_path):
    with pytest.raises(tf.errors.NotFoundError):
        BundleWriter(tmp_path / "no" / "such" / "place")

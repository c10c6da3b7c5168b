"""Files by the names of `tensorflow.python.lib.io.file_io`."""

import os

import pytest

import tensorfleet as tf

file_io = tf.python.lib.io.file_io


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "file")


def test_whole_files_as_text_and_as_bytes(path):
    file_io.write_string_to_file(path, "first")
    file_io.write_string_to_file(path, "second")
    assert file_io.read_file_to_string(path) == "second"
    assert file_io.read_file_to_string(path, binary_mode=True) == b"second"
    with pytest.raises(tf.errors.NotFoundError):
        file_io.read_file_to_string(path + "-missing")


def test_a_file_written_in_one_move_leaves_nothing_beside_it(path):
    file_io.atomic_write_string_to_file(path, "old")
    with pytest.raises(tf.errors.AlreadyExistsError):
        file_io.atomic_write_string_to_file(path, "new", overwrite=False)
    assert file_io.read_file_to_string(path) == "old"
    assert file_io.list_directory(os.path.dirname(path)) == ["file"]
    file_io.atomic_write_string_to_file(path, "new")
    assert file_io.read_file_to_string(path) == "new"


def test_files_are_compared_by_content(path):
    for name, text in (("a", "1234"), ("b", "1235"), ("c", "1235"), ("d", "12345")):
        file_io.write_string_to_file(path + name, text)
    assert file_io.filecmp(path + "b", path + "c")
    assert not file_io.filecmp(path + "a", path + "b")
    assert not file_io.filecmp(path + "a", path + "d")
    assert file_io.file_crc32(path + "b") == file_io.file_crc32(path + "c", block_size=2)
    assert file_io.file_crc32(path + "a") == "0x9be3e0a3"


def test_directories(tmp_path):
    top = str(tmp_path / "top")
    file_io.create_dir(top)
    file_io.recursive_create_dir(top + "/one/two")
    file_io.write_string_to_file(top + "/one/text", "x")
    assert file_io.is_directory(top + "/one") and file_io.stat(top + "/one").is_directory
    assert [names for _, _, names in file_io.walk(top, in_order=False)] == [[], ["text"], []]
    assert file_io.get_matching_files(top + "/*/t*") == [top + "/one/text", top + "/one/two"]
    assert file_io.get_matching_files(()) == []
    file_io.delete_recursively(top)
    assert not file_io.file_exists(top)


def test_a_file_open_for_both_reads_from_its_start_what_was_written(path):
    with file_io.FileIO(path, "r+") as f:  # makes the file
        f.write("one\ntwo\n")
    assert (f.tell(), f.readline(), f.tell()) == (0, "one\n", 4)
    f.close()
    both = file_io.FileIO(path, "w+")
    both.write("three")
    both.flush()
    assert both.read() == "three"
    both.close()
    assert both.read() == "three"
    more = file_io.FileIO(path, "a+")
    more.write("four")
    more.close()
    assert more.read() == "threefour"


def test_a_place_before_the_start_is_refused(path):
    file_io.write_string_to_file(path, "text")
    f = file_io.FileIO(path)
    with pytest.raises(tf.errors.InvalidArgumentError, match="seek"):
        f.seek(-1)

"""Files as `tf.gfile` sees them: what it returns, and TensorFlow's errors when it cannot."""

import os

import pytest

import tensorfleet as tf

gfile = tf.gfile


@pytest.fixture
def here(tmp_path):
    return str(tmp_path)


def write(path, text):
    with gfile.GFile(path, "w") as f:
        f.write(text)
    return path


def test_text_and_bytes_by_the_mode(here):
    path = write(here + "/f", "héllo\nworld\n")
    with gfile.GFile(path) as f:
        assert f.read() == "héllo\nworld\n"
    assert gfile.Open(path, "rb").read() == "héllo\nworld\n".encode()
    assert list(gfile.FastGFile(path)) == ["héllo\n", "world\n"]


def test_sizes_and_positions_count_bytes(here):
    f = gfile.GFile(write(here + "/f", "héllo\n"))
    assert f.read(3) == "hé"
    assert f.tell() == 3
    assert f.size() == 7
    f.seek(1)
    assert f.read(2) == "é"
    f.seek(-2, whence=2)
    assert f.readlines() == ["o\n"]
    f.close()


def test_a_file_is_opened_when_it_is_used(here):
    missing = gfile.GFile(here + "/no")
    with pytest.raises(tf.errors.NotFoundError, match="no; No such file or directory"):
        missing.read()
    gfile.GFile(here + "/new", "w").close()
    assert not gfile.Exists(here + "/new")


def test_appending_keeps_what_was_there(here):
    path = write(here + "/f", "1")
    with gfile.GFile(path, "a") as f:
        f.write("2")
        f.write(b"3")
    assert gfile.GFile(path).read() == "123"


def test_a_file_is_only_used_as_it_was_opened(here):
    path = write(here + "/f", "1")
    with pytest.raises(tf.errors.PermissionDeniedError, match="isn't open for writing"):
        gfile.GFile(path).write("x")
    with pytest.raises(tf.errors.PermissionDeniedError, match="isn't open for reading"):
        gfile.GFile(path, "w").read()
    with pytest.raises(tf.errors.InvalidArgumentError, match="mode is not"):
        gfile.GFile(path, "q")
    with pytest.raises(TypeError, match="offset argument required"):
        gfile.GFile(path).seek()


def test_making_directories(here):
    gfile.MakeDirs(here + "/a/b")
    gfile.MakeDirs(here + "/a/b")
    gfile.MkDir(here + "/a/b")
    assert gfile.IsDirectory(here + "/a/b")
    with pytest.raises(tf.errors.NotFoundError):
        gfile.MkDir(here + "/x/y")


def test_deleting(here):
    gfile.MakeDirs(here + "/a/b")
    write(here + "/a/b/f", "1")
    with pytest.raises(tf.errors.FailedPreconditionError, match="Is a directory"):
        gfile.Remove(here + "/a")
    gfile.Remove(here + "/a/b/f")
    gfile.DeleteRecursively(here + "/a")
    assert gfile.ListDirectory(here) == []
    for delete in (gfile.Remove, gfile.DeleteRecursively):
        with pytest.raises(tf.errors.NotFoundError):
            delete(here + "/a")


def test_copying_and_renaming_replace_only_when_asked(here):
    one, two = write(here + "/1", "one"), write(here + "/2", "two")
    for change in (gfile.Copy, gfile.Rename):
        with pytest.raises(tf.errors.AlreadyExistsError, match="file already exists"):
            change(one, two)
    gfile.Copy(one, two, overwrite=True)
    gfile.Rename(two, here + "/3")
    assert gfile.GFile(here + "/3").read() == "one"
    assert not gfile.Exists(two)
    with pytest.raises(tf.errors.NotFoundError):
        gfile.Copy(here + "/no", here + "/no2")


def test_looking_around(here):
    gfile.MakeDirs(here + "/d/e")
    write(here + "/d/f1", "abc")
    write(here + "/d/f2", "")
    assert gfile.Glob(here + "/d/f*") == [here + "/d/f1", here + "/d/f2"]
    assert gfile.Glob([here + "/d/f2", here + "/none*", here + "/d/e"]) == [here + "/d/f2", here + "/d/e"]
    assert sorted(gfile.ListDirectory(here + "/d")) == ["e", "f1", "f2"]
    assert [top for top, _, _ in gfile.Walk(here)] == [here, here + "/d", here + "/d/e"]
    assert [top for top, _, _ in gfile.Walk(here, in_order=False)] == [here + "/d/e", here + "/d", here]
    assert list(gfile.Walk(here + "/none")) == []
    stat = gfile.Stat(here + "/d/f1")
    assert (stat.length, stat.is_directory) == (3, False)
    assert stat.mtime_nsec == os.stat(here + "/d/f1").st_mtime_ns
    with pytest.raises(tf.errors.NotFoundError, match="Could not find directory"):
        gfile.ListDirectory(here + "/none")


def test_the_newer_names_are_the_same_functions(here):
    tf.io.gfile.makedirs(here + "/a")
    with tf.io.gfile.GFile(here + "/a/f", "w") as f:
        f.write("x")
    assert tf.io.gfile.exists(here + "/a/f")
    assert tf.io.gfile.listdir(here + "/a") == ["f"]
    tf.io.gfile.rmtree(here + "/a")
    assert not tf.io.gfile.isdir(here + "/a")


def test_paths_may_be_urls_of_files_but_not_of_other_systems(here):
    write("file://" + here + "/f", "1")
    assert os.path.exists(here + "/f")
    with pytest.raises(tf.errors.UnimplementedError, match="File system scheme 'gs' not implemented"):
        gfile.Exists("gs://bucket/f")


def test_scripts_find_gfile_where_tensorflow_hid_it():
    from tensorfleet.python.platform import gfile as hidden

    assert hidden.Exists is gfile.Exists

"""Files from elsewhere, kept where they are found again."""

import hashlib
import tarfile
import zipfile
from pathlib import Path

import pytest

import tensorfleet as tf

get_file = tf.keras.utils.get_file


@pytest.fixture
def source(tmp_path):
    file = tmp_path / "elsewhere.txt"
    file.write_text("four words are here")
    return file


def test_a_file_is_fetched_once(source, tmp_path):
    path = get_file("data.txt", source.as_uri(), cache_dir=str(tmp_path / "keras"))
    assert path == str(tmp_path / "keras" / "datasets" / "data.txt")
    source.unlink()
    assert (
        Path(get_file("data.txt", source.as_uri(), cache_dir=str(tmp_path / "keras"))).read_text()
        == "four words are here"
    )


def test_a_file_must_be_as_its_hash_says(source, tmp_path):
    options = dict(cache_dir=str(tmp_path), cache_subdir="sub")
    for kind, name in (("sha256", "file_hash"), ("md5", "md5_hash")):
        right = hashlib.new(kind, source.read_bytes()).hexdigest()
        assert Path(get_file(kind, source.as_uri(), **{name: right}, **options)).exists()
        with pytest.raises(ValueError, match="has not the hash"):
            get_file(kind, source.as_uri(), **{name: right[::-1]}, **options)


def test_archives_are_unpacked(source, tmp_path):
    with tarfile.open(tmp_path / "a.tar.gz", "w:gz") as archive:
        archive.add(source, "words/inside.txt")
    with zipfile.ZipFile(tmp_path / "b.zip", "w") as archive:
        archive.write(source, "zipped.txt")
    folder = get_file("words", (tmp_path / "a.tar.gz").as_uri(), untar=True, cache_dir=str(tmp_path / "k"))
    assert (Path(folder) / "inside.txt").exists()
    path = get_file("b.zip", (tmp_path / "b.zip").as_uri(), extract=True, cache_dir=str(tmp_path / "k"))
    assert (Path(path).parent / "zipped.txt").exists()


def test_what_cannot_be_fetched_leaves_nothing(tmp_path):
    with pytest.raises(RuntimeError, match="URL fetch failure"):
        get_file("x", (tmp_path / "missing").as_uri(), cache_dir=str(tmp_path))
    assert list((tmp_path / "datasets").iterdir()) == []

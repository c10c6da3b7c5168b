"""Which exports are kept."""

import os

import pytest

from tensorfleet_legacy.estimator import gc as keeping
from tensorfleet_legacy.estimator.gc import Path


def paths(*versions):
    return [Path(f"/exports/{number}", version) for number, version in enumerate(versions)]


def kept(keep, *versions):
    return [path.export_version for path in keep(paths(*versions))]


def test_the_latest_versions_are_kept():
    assert kept(keeping.largest_export_versions(2), 10, 2, None, 30, 4) == [10, 30]


def test_the_latest_of_equal_versions_is_kept():
    assert keeping.largest_export_versions(1)(paths(5, 5)) == [Path("/exports/1", 5)]


def test_one_of_every_interval_is_kept():
    assert kept(keeping.one_of_every_n_export_versions(3), 0, 1, 2, 3, 4, 7, 8, None, 33) == [3, 4, 8, 33]


@pytest.mark.parametrize("keep, left", [(keeping.mod_export_version(2), [0, 4]), (lambda p: [], [])])
def test_multiples_are_kept(keep, left):
    assert kept(keep, 0, 1, 4) == left


def test_functions_are_united_and_negated():
    either = keeping.union(keeping.largest_export_versions(1), keeping.mod_export_version(3))
    assert kept(either, 0, 1, 2, 3, 4) == [0, 3, 4]
    assert kept(keeping.negation(either), 0, 1, 2, 3, 4) == [1, 2]


def test_paths_of_a_folder_are_read_by_a_parser(tmp_path):
    for name in ("3", "1", "x"):
        os.mkdir(tmp_path / name)

    def version(path):
        name = os.path.basename(path.path)
        return path._replace(export_version=int(name)) if name.isdigit() else None

    assert [p.export_version for p in keeping.get_paths(str(tmp_path), version)] == [1, 3]


def test_they_are_where_libraries_look_for_them():
    import tensorfleet as tf

    assert tf.contrib.session_bundle.gc.union is keeping.union
    assert tf.python.estimator.gc._get_paths is keeping.get_paths
    assert tf.contrib.learn.python.learn.utils.gc.Path is Path

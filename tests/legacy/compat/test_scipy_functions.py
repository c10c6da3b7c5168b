"""Scripts find in scipy what it had in TensorFlow 1's days."""

import importlib
import sys
import warnings

import numpy as np
import pytest

import tensorfleet as tf
from tensorfleet.cli.scripts import alias


def fresh(name):
    sys.modules.pop(name, None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of scipy itself, for what is left of scipy.misc
        return importlib.import_module(name)


@pytest.fixture(autouse=True)
def then():
    alias.install()
    yield
    alias.uninstall()
    for name in ("scipy.misc", "scipy.signal"):
        sys.modules.pop(name, None)


def test_rewards_in_an_array_of_objects_are_discounted():
    rewards = np.array([1, 2.0, True], dtype=object)
    result = fresh("scipy.signal").lfilter([1], [1, -0.5], rewards[::-1], axis=0)[::-1]
    np.testing.assert_allclose(result, [2.25, 2.5, 1.0])


def test_pictures_are_written_read_and_made_smaller(tmp_path):
    pytest.importorskip("PIL")
    misc = fresh("scipy.misc")
    picture = np.random.RandomState(0).randint(0, 256, [8, 6, 3]).astype(np.uint8)
    misc.imsave(str(tmp_path / "a.png"), picture)
    np.testing.assert_array_equal(misc.imread(str(tmp_path / "a.png")), picture)
    assert misc.imread(str(tmp_path / "a.png"), flatten=True).shape == (8, 6)
    assert misc.imresize(picture, [4, 3]).shape == (4, 3, 3)
    assert misc.imresize(picture, 50).shape == misc.imresize(picture, 0.5, "nearest").shape == (4, 3, 3)
    assert misc.imrotate(picture, 90).shape == (8, 6, 3)


def test_numbers_become_the_grays_from_their_least_to_their_greatest():
    pytest.importorskip("PIL")
    misc = fresh("scipy.misc")
    np.testing.assert_array_equal(misc.bytescale(np.array([[-1.0, 0.0, 1.0]])), [[0, 128, 255]])
    assert misc.toimage(np.zeros([2, 3])).size == (3, 2)
    assert misc.imresize(np.float32([[0, 1], [1, 0]]), (2, 2), mode="F").max() == 1.0
    assert misc.logsumexp([0.0, 0.0]) == pytest.approx(np.log(2))


def test_numbers_stand_for_the_colours_of_a_palette():
    pytest.importorskip("PIL")
    misc, red = fresh("scipy.misc"), np.zeros([256, 3], np.uint8)
    red[1] = [255, 0, 0]
    numbers = np.array([[0, 1]], np.uint8)
    assert np.array(misc.toimage(numbers, pal=red).convert("RGB")).tolist() == [[[0, 0, 0], [255, 0, 0]]]
    assert misc.toimage(numbers, mode="P").mode == "P" and misc.toimage(numbers).mode == "L"


def test_pictures_without_pillow_are_refused_with_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(tf.errors.UnimplementedError, match="pip install"):
        fresh("scipy.misc").imread("a.png")

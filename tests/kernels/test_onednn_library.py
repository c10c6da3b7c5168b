"""oneDNN as a library: where it is found, and what is told to it."""

import importlib.metadata

import pytest

from tensorfleet.kernels import onednn_library
from tensorfleet.kernels.onednn_library import Geometry

GEOMETRY = Geometry("input", (2, 9, 8, 3), (3, 2, 3, 4), (2, 5, 4, 4), (2, 2), (1, 1), (1, 0), (1, 0))


def test_a_geometry_is_read_back_from_its_text():
    assert Geometry.read(GEOMETRY.text()) == GEOMETRY


def test_a_geometry_of_fewer_examples_keeps_the_windows():
    one = GEOMETRY.of_examples(1)
    assert (one.x, one.y) == ((1, 9, 8, 3), (1, 5, 4, 4))
    assert one.multiplications() == GEOMETRY.multiplications() // 2


def test_axes_are_named_as_the_library_does():
    assert onednn_library.channels_last((2, 9, 8, 3)) == ((2, 3, 9, 8), (216, 1, 24, 3))
    assert onednn_library.filters_last((3, 2, 3, 4)) == ((4, 3, 3, 2), (1, 4, 24, 12))


@pytest.mark.parametrize("error", [importlib.metadata.PackageNotFoundError, OSError])
def test_there_is_no_library_where_it_is_not_installed_or_cannot_be_read(monkeypatch, error):
    def missing(name):
        raise error(name)

    monkeypatch.setattr(importlib.metadata, "files", missing)
    assert onednn_library.library.__wrapped__() is None


@pytest.mark.skipif(onednn_library.library() is None, reason="oneDNN is not installed")
def test_a_convolution_that_cannot_be_is_an_error():
    dnn = onednn_library.library()
    wrong = Geometry("forward", (2, 9, 8, 3), (3, 2, 3, 4), (2, 99, 4, 4), (2, 2), (1, 1), (1, 0), (1, 0))
    with pytest.raises(OSError, match="status"):
        dnn.convolution(wrong, dnn.layout(onednn_library.filters_last(wrong.w)[0]))

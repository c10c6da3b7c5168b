"""PNG images: any pixels come back, and smooth ones take little room."""

import io

import numpy as np
import pytest
from PIL import Image

from tensorfleet.base.formats import png


@pytest.mark.parametrize("shape", [(1, 1, 1), (5, 7, 3), (9, 4, 4), (3, 3, 2)])
@pytest.mark.parametrize("kind", [np.uint8, np.uint16])
def test_pixels_come_back(shape, kind):
    noise = np.random.RandomState(0).randint(0, np.iinfo(kind).max + 1, shape).astype(kind)
    sloped = (np.cumsum(np.cumsum(np.ones(shape), 0), 1) * 3).astype(kind)
    for pixels in (noise, sloped, np.zeros(shape, kind)):
        contents = png.encode(pixels)
        result = (
            png.decode_deep(contents) if kind == np.uint16 else np.array(Image.open(io.BytesIO(contents)))
        )
        np.testing.assert_array_equal(result.reshape(shape), pixels)


def test_a_ramp_of_colors_takes_little_room():
    line = np.arange(256, dtype=np.uint8)
    down, across = np.meshgrid(line, line, indexing="ij")
    ramp = np.stack([down, across, down // 2 + across // 2], -1)
    assert len(png.encode(ramp, 7)) < ramp.size / 100

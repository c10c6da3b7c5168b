"""Image files: sizes at a ratio, for every color mode."""

import io

import numpy as np
import pytest

from tensorfleet.base.formats import images


def jpeg(mode: str, height: int, width: int) -> bytes:
    """A JPEG file of one color."""
    image = images.pillow().new(mode, (width, height), 200 if mode == "L" else (200, 100, 50, 0)[: len(mode)])
    out = io.BytesIO()
    image.save(out, "JPEG", quality=95)
    return out.getvalue()


@pytest.mark.parametrize("mode", ["L", "RGB", "CMYK"])
@pytest.mark.parametrize("ratio", [1, 2, 4, 8])
@pytest.mark.parametrize("size", [(16, 16), (33, 50), (9, 15), (3, 100), (1, 1)])
def test_a_jpeg_file_is_decoded_at_a_ratio_of_its_size_rounded_up(mode, ratio, size):
    pixels = images.decode_jpeg(jpeg(mode, *size), ratio=ratio)
    assert pixels.shape == (-(-size[0] // ratio), -(-size[1] // ratio), 1 if mode == "L" else 3)
    whole = images.decode_jpeg(jpeg(mode, *size))
    assert np.abs(pixels.astype(int) - whole[0, 0]).max() <= 2


@pytest.mark.parametrize("mode", ["L", "RGB", "CMYK"])
def test_a_jpeg_file_is_made_gray(mode):
    assert images.decode_jpeg(jpeg(mode, 9, 15), channels=1, ratio=2).shape == (5, 8, 1)

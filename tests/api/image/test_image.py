"""`tf.image`: refusals, sizes known only at run time, gradients, and files without Pillow."""

import re
import sys

import numpy as np
import pytest

import tensorfleet as tf
from tensorfleet.graph.kernels import Kernel
from tensorfleet.ops.image.resize import _blocks, _cubic_matrix
from tensorfleet.runtime.devices import load_jax

IMAGE = np.random.RandomState(0).rand(6, 8, 3).astype(np.float32)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda i: i.crop_to_bounding_box(IMAGE, -1, 0, 2, 2), "offset_height must be >= 0."),
        (lambda i: i.crop_to_bounding_box(IMAGE, 0, 0, 7, 2), "height must be >= target + offset."),
        (lambda i: i.crop_to_bounding_box(IMAGE, 0, 0, 2, 0), "target_width must be > 0."),
        (lambda i: i.pad_to_bounding_box(IMAGE, 1, 1, 6, 20), "height must be <= target - offset"),
        (lambda i: i.resize_image_with_crop_or_pad(IMAGE, 0, 5), "target_height must be > 0."),
        (lambda i: i.central_crop(IMAGE, 0.0), "central_fraction must be within"),
        (lambda i: i.flip_left_right(IMAGE[0]), "must be at least three-dimensional"),
        (lambda i: i.flip_left_right(IMAGE[None, None]), "must have either 3 or 4 dimensions"),
        (lambda i: i.resize_images(IMAGE, [5]), "'size' must be a 1-D Tensor of 2 elements"),
        (lambda i: i.resize_images(IMAGE, [5, 5], method=9), "Resize method is not implemented"),
        (lambda i: i.resize_images(IMAGE[0], [5, 5]), "'images' must have either 3 or 4 dimensions."),
        (lambda i: i.random_brightness(IMAGE, -1), "max_delta must be non-negative."),
        (lambda i: i.random_hue(IMAGE, 0.7), "max_delta must be <= 0.5."),
        (lambda i: i.random_contrast(IMAGE, 1, 0.5), "upper must be > lower."),
        (lambda i: i.random_jpeg_quality(IMAGE, 0, 101), "jpeg encoding range"),
        (lambda i: i.adjust_gamma(IMAGE, -1), "Gamma should be a non-negative real number."),
    ],
)
def test_impossible_requests_are_refused_when_the_graph_is_made(call, message):
    with tf.Graph().as_default(), pytest.raises(ValueError, match=re.escape(message)):
        call(tf.image)


def test_sizes_known_at_run_time_are_checked_then(session):
    image = tf.placeholder(tf.float32, [None, None, 3])
    crop = tf.image.crop_to_bounding_box(image, 2, 2, 4, 4)
    assert crop.shape.as_list() == [4, 4, 3]
    assert session.run(crop, {image: IMAGE}).tolist() == IMAGE[2:6, 2:6].tolist()
    with pytest.raises(tf.errors.InvalidArgumentError, match="width must be >= target"):
        session.run(crop, {image: IMAGE[:, :5]})


def test_an_area_of_one_color_keeps_exactly_that_color(session):
    flat = np.full((1, 5, 7, 3), 251, np.uint8)
    resized = session.run(tf.image.resize_bilinear(flat, [13, 11]))
    assert (resized == 251).all()


@pytest.mark.parametrize("sizes", [(128, 200), (33, 100), (200, 31), (7, 90)])
def test_a_matrix_in_blocks_is_the_matrix(sizes):
    weights = _cubic_matrix(*sizes, (False, True))
    items = [np.pad(part, ((0, 0), (start, sizes[0] - end))) for start, end, part in _blocks(weights)]
    np.testing.assert_array_equal(np.concatenate(items), weights)


@pytest.mark.parametrize("width", [50, 129])
def test_wide_pictures_are_resized_alike_in_xla(width):
    x = np.random.RandomState(0).rand(2, 9, width, 3).astype(np.float32)
    resized = Kernel(tf.image.resize_bicubic(x, [11, 201]).op)
    (result,) = resized.call(load_jax()[1], [x, np.array([11, 201])])
    across, down = _cubic_matrix(width, 201, (False, False)), _cubic_matrix(9, 11, (False, False))
    np.testing.assert_allclose(result, np.einsum("ow,ph,bhwc->bpoc", across, down, x), rtol=1e-4, atol=1e-5)


def test_gradients_of_crops_reach_images_and_boxes(session):
    image = tf.constant(IMAGE[None])
    boxes = tf.constant([[0.1, 0.2, 0.8, 0.9]])
    crops = tf.image.crop_and_resize(image, boxes, [0], [3, 3])
    to_image, to_boxes = tf.gradients(tf.reduce_sum(crops), [image, boxes])
    assert to_image.op.type == "CropAndResizeGradImage"
    assert to_boxes.op.type == "CropAndResizeGradBoxes"
    values = session.run([to_image, to_boxes])
    assert values[0].sum() == pytest.approx(27)


def test_a_box_of_no_image_is_refused(session):
    crops = tf.image.crop_and_resize(IMAGE[None], [[0.0, 0.0, 1.0, 1.0]], [1], [3, 3])
    with pytest.raises(tf.errors.OutOfRangeError, match="box_index has values outside"):
        session.run(crops)


def test_unknown_files_are_named(session):
    with pytest.raises(tf.errors.InvalidArgumentError, match="got unknown format starting with b'hello'"):
        session.run(tf.image.decode_jpeg(b"hello"))
    with pytest.raises(tf.errors.InvalidArgumentError, match="Input is empty"):
        session.run(tf.image.decode_png(b""))
    with pytest.raises(tf.errors.InvalidArgumentError, match="`channels` must be 0, 1, 3 or 4 but got 2"):
        session.run(tf.image.decode_png(b"hello", channels=2))


def test_files_need_pillow_and_say_how_to_get_it(monkeypatch, session):
    monkeypatch.setitem(sys.modules, "PIL", None)
    png = session.run(tf.image.encode_png((IMAGE * 255).astype(np.uint8)))
    with pytest.raises(tf.errors.UnimplementedError, match=r"pip install 'tensorfleet\[images\]'"):
        session.run(tf.image.decode_png(png))


def test_files_come_back_as_they_were_written(session):
    pixels = (IMAGE * 255).astype(np.uint8)
    deep = (IMAGE * 65535).astype(np.uint16)
    back = tf.image.decode_png(tf.image.encode_png(pixels), channels=3)
    deep_back = tf.image.decode_png(tf.image.encode_png(deep), dtype=tf.uint16)
    assert back.shape.as_list() == [None, None, 3]
    a, b = session.run([back, deep_back])
    np.testing.assert_array_equal(a, pixels)
    np.testing.assert_array_equal(b, deep)


@pytest.mark.parametrize("filtering", range(5))
def test_rows_of_deep_png_files_are_unfiltered(filtering):
    """Pillow cannot write such files: we filter rows ourselves, as the format's rules say."""
    import struct
    import zlib

    from tensorfleet.base.formats import png

    deep = (np.random.RandomState(1).rand(4, 3, 1) * 65535).astype(np.uint16)
    lines = deep.astype(">u2").view(np.uint8).reshape(4, 6).astype(int)
    rows = b""
    for y in range(4):
        above = lines[y - 1] if y else np.zeros(6, int)
        row = [filtering]
        for i in range(6):
            left, corner = (lines[y][i - 2], above[i - 2]) if i >= 2 else (0, 0)
            up = above[i]
            near = min((left, up, corner), key=lambda v: abs(int(left + up - corner) - int(v)))
            guess = (0, left, up, (left + up) // 2, near)[filtering]
            row.append((lines[y][i] - guess) % 256)
        rows += bytes(row)
    header = struct.pack(">IIBBBBB", 3, 4, 16, 0, 0, 0, 0)
    parts = ((b"IHDR", header), (b"IDAT", zlib.compress(rows)), (b"IEND", b""))
    data = png.SIGNATURE + b"".join(png._chunk(kind, body) for kind, body in parts)
    np.testing.assert_array_equal(png.decode_deep(data), deep)


def test_the_size_of_a_part_of_a_jpeg_is_known_from_its_window():
    contents = tf.placeholder(tf.string, [])
    assert tf.image.decode_and_crop_jpeg(contents, [0, 1, 5, 6], channels=3).shape.as_list() == [5, 6, 3]
    window = tf.placeholder(tf.int32, [4])
    assert tf.image.decode_and_crop_jpeg(contents, window).shape.as_list() == [None, None, None]

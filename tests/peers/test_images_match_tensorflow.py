"""`tf.image` against TensorFlow: the same calls in both, the same pixels."""

import io
import warnings

import numpy as np
import pytest

import tensorfleet as tf

RANDOM = np.random.RandomState(0)
COLOR = RANDOM.rand(9, 12, 3).astype(np.float32)
BYTES = (COLOR * 255).astype(np.uint8)
BATCH = RANDOM.rand(2, 13, 11, 3).astype(np.float32)
LARGE = RANDOM.rand(2, 180, 180, 1).astype(np.float32)
BOXES = np.array([[[0.1, 0.2, 0.7, 0.9], [0.3, 0.3, 0.5, 0.6]]], np.float32)

CALLS = {
    "flip_left_right": lambda i, t: i.flip_left_right(COLOR),
    "flip_left_right_batch": lambda i, t: i.flip_left_right(BATCH),
    "flip_up_down": lambda i, t: i.flip_up_down(BYTES),
    "transpose": lambda i, t: i.transpose(COLOR),
    "transpose_batch": lambda i, t: i.transpose(BATCH),
    **{f"rot90_{k}": lambda i, t, k=k: i.rot90(COLOR, k) for k in range(-1, 5)},
    "rot90_batch": lambda i, t: i.rot90(BATCH, 3),
    "random_flip": lambda i, t: i.random_flip_left_right(COLOR, seed=3),
    "random_flip_ud": lambda i, t: i.random_flip_up_down(COLOR, seed=4),
    "random_flip_batch": lambda i, t: i.random_flip_left_right(BATCH, seed=5),
    "random_crop": lambda i, t: t.random_crop(COLOR, [4, 5, 3], seed=3),
    "crop": lambda i, t: i.crop_to_bounding_box(COLOR, 1, 2, 5, 6),
    "crop_batch": lambda i, t: i.crop_to_bounding_box(BATCH, 1, 2, 5, 6),
    "pad": lambda i, t: i.pad_to_bounding_box(COLOR, 1, 2, 15, 16),
    "pad_unknown": lambda i, t: i.pad_to_bounding_box(unknown(t, BATCH), 1, 2, 15, 16),
    **{
        f"crop_or_pad_{h}_{w}": lambda i, t, h=h, w=w: i.resize_image_with_crop_or_pad(COLOR, h, w)
        for h, w in ((5, 5), (20, 20), (4, 21), (9, 12), (10, 11))
    },
    "crop_or_pad_unknown": lambda i, t: i.resize_image_with_crop_or_pad(unknown(t, COLOR), 5, 20),
    **{f"central_crop_{f}": lambda i, t, f=f: i.central_crop(COLOR, f) for f in (0.3, 0.5, 0.875, 1.0)},
    "central_crop_unknown": lambda i, t: i.central_crop(unknown(t, BATCH), 0.4),
    **{f"resize_{m}": lambda i, t, m=m: i.resize_images(BATCH, [7, 20], method=m) for m in range(4)},
    **{f"resize_bytes_{m}": lambda i, t, m=m: i.resize_images(BYTES, [7, 5], method=m) for m in range(4)},
    "resize_aligned": lambda i, t: i.resize_images(BYTES, [17, 5], align_corners=True),
    "resize_same": lambda i, t: i.resize_images(BYTES, [9, 12]),
    "resize_keep": lambda i, t: i.resize_images(BYTES, [20, 20], preserve_aspect_ratio=True),
    "resize_keep_unknown": lambda i, t: i.resize_images(
        unknown(t, BATCH), [20, 30], preserve_aspect_ratio=True
    ),
    "resize_with_pad": lambda i, t: i.resize_image_with_pad(COLOR, 20, 30),
    "resize_with_pad_batch": lambda i, t: i.resize_image_with_pad(BATCH, 6, 6),
    "crop_and_resize": lambda i, t: i.crop_and_resize(BATCH, BOXES[0], [1, 0], [5, 4]),
    "brightness": lambda i, t: i.adjust_brightness(BYTES, 0.3),
    "brightness_float": lambda i, t: i.adjust_brightness(COLOR, -0.3),
    "random_brightness": lambda i, t: i.random_brightness(COLOR, 0.4, seed=7),
    "contrast": lambda i, t: i.adjust_contrast(BYTES, 2.0),
    "random_contrast": lambda i, t: i.random_contrast(COLOR, 0.2, 1.8, seed=7),
    "gamma": lambda i, t: i.adjust_gamma(BYTES, 0.5, 1.2),
    "hue": lambda i, t: i.adjust_hue(BYTES, 0.3),
    "random_hue": lambda i, t: i.random_hue(COLOR, 0.3, seed=2),
    "saturation": lambda i, t: i.adjust_saturation(COLOR, 0.3),
    "random_saturation": lambda i, t: i.random_saturation(COLOR, 0.3, 3.0, seed=9),
    "standardize": lambda i, t: i.per_image_standardization(BYTES),
    "standardize_flat": lambda i, t: i.per_image_standardization(np.full((3, 3, 3), 7, np.uint8)),
    "standardize_batch": lambda i, t: i.per_image_standardization(BATCH),
    "gray": lambda i, t: i.rgb_to_grayscale(BYTES),
    "gray_float": lambda i, t: i.rgb_to_grayscale(BATCH),
    "rgb": lambda i, t: i.grayscale_to_rgb(t.constant(BATCH[..., :1])),
    "hsv": lambda i, t: i.rgb_to_hsv(COLOR),
    "from_hsv": lambda i, t: i.hsv_to_rgb(COLOR),
    "yiq": lambda i, t: i.rgb_to_yiq(COLOR),
    "from_yiq": lambda i, t: i.yiq_to_rgb(BATCH),
    "yuv": lambda i, t: i.rgb_to_yuv(COLOR),
    "from_yuv": lambda i, t: i.yuv_to_rgb(COLOR),
    **{
        f"convert_{a}_{b}_{s}": lambda i, t, a=a, b=b, s=s: i.convert_image_dtype(
            (COLOR * (1 if np.dtype(a).kind == "f" else 200)).astype(a), b, saturate=s
        )
        for a in ("uint8", "int16", "float32", "float64")
        for b in ("uint8", "int32", "float16", "float32")
        for s in (False, True)
    },
    "total_variation": lambda i, t: i.total_variation(t.constant(BATCH)),
    "total_variation_one": lambda i, t: i.total_variation(t.constant(COLOR)),
    "psnr": lambda i, t: i.psnr(BATCH, BATCH * 0.9, 1.0),
    "psnr_bytes": lambda i, t: i.psnr(BYTES, BYTES[::-1].copy(), 255),
    "ssim": lambda i, t: i.ssim(BATCH, BATCH * 0.9, 1.0),
    "ssim_one": lambda i, t: i.ssim(BYTES, BYTES, 255, filter_size=5),
    "ssim_multiscale": lambda i, t: i.ssim_multiscale(LARGE, LARGE * 0.8, 1.0),
    "image_gradients": lambda i, t: i.image_gradients(t.constant(BATCH)),
    "sobel_edges": lambda i, t: i.sobel_edges(t.constant(BATCH)),
    "patches": lambda i, t: i.extract_image_patches(BATCH, [1, 3, 3, 1], [1, 2, 2, 1], [1, 1, 1, 1], "SAME"),
    "glimpse": lambda i, t: i.extract_glimpse(BATCH, [3, 3], [[0.0, 0.1], [0.2, -0.3]]),
    "glimpse_edges": lambda i, t: i.extract_glimpse(
        BATCH, [4, 5], [[2.0, 3.0], [5.0, 6.0]], centered=False, normalized=False
    ),
    "draw": lambda i, t: i.draw_bounding_boxes(BATCH[:1], BOXES),
    "nms": lambda i, t: i.non_max_suppression(BOXES[0], [0.3, 0.9], 2, 0.2),
    "nms_scores": lambda i, t: i.non_max_suppression_with_scores(BOXES[0], [0.3, 0.9], 2, soft_nms_sigma=0.5),
    "nms_padded": lambda i, t: i.non_max_suppression_padded(
        BOXES[0], [0.3, 0.9], 5, 0.2, pad_to_max_output_size=True
    ),
}


def unknown(library, value):
    """The value through a placeholder that knows only its rank."""
    return library.placeholder_with_default(value, [None] * (value.ndim - 1) + [value.shape[-1]])


def both(tensorflow, call):
    result = []
    for library in (tf, tensorflow):
        graph = library.Graph()
        with graph.as_default(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tensors = call(library.image, library)
            with library.Session(graph=graph) as session:
                result.append((tensors, session.run(tensors)))
    return result


@pytest.mark.parametrize("name", CALLS)
def test_pixels_are_tensorflows(tensorflow, name):
    (tensors, ours), (their_tensors, theirs) = both(tensorflow, CALLS[name])
    if not isinstance(tensors, (list, tuple)):
        tensors, their_tensors, ours, theirs = [tensors], [their_tensors], [ours], [theirs]
    for tensor, other, a, b in zip(tensors, their_tensors, ours, theirs, strict=True):
        assert tensor.dtype.name == other.dtype.name
        assert tensor.shape.is_compatible_with(
            other.shape.as_list() if other.shape.rank is not None else None
        )
        assert a.dtype == b.dtype and a.shape == b.shape
        tolerance = 2e-3 if a.dtype == np.float16 else 2e-5
        if a.dtype.kind in "iu":  # a rounding in float32 may fall to either side
            assert np.abs(a.astype(np.int64) - b).max(initial=0) <= (
                1 if name in ("gamma", "hue", "contrast") else 0
            )
        else:
            np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("covered", [0.1, 0.7])
def test_random_crops_around_boxes_are_tensorflows(tensorflow, seed, covered):
    results = []
    for library in (tf, tensorflow):
        graph = library.Graph()
        with graph.as_default(), library.Session(graph=graph) as session:
            sampled = library.image.sample_distorted_bounding_box(
                [100, 137, 3],
                BOXES,
                seed=seed + 1,
                seed2=3,
                min_object_covered=covered,
                area_range=[0.08, 1.0],
            )
            results.append([session.run(sampled) for _ in range(3)])
    for ours, theirs in zip(*results, strict=True):
        for a, b in zip(ours, theirs, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-6)


# -- files -------------------------------------------------------------------------------------------


def smooth_picture(channels=3):
    y, x = np.mgrid[0:32, 0:40]
    layers = [np.sin(x / 9 + k) + np.cos(y / 7 - k) for k in range(channels)]
    return ((np.stack(layers, -1) + 2) / 4 * 255).astype(np.uint8)


def file_of(pixels, kind, mode=None, **options):
    from PIL import Image

    pixels = pixels.squeeze()
    image = Image.fromarray(pixels)
    if mode is not None:
        image = Image.frombytes(mode, pixels.shape[1::-1], pixels.tobytes())
    out = io.BytesIO()
    image.save(out, kind, **options)
    return out.getvalue()


def decoded(tensorflow, call):
    (_, ours), (_, theirs) = both(tensorflow, call)
    assert ours.dtype == theirs.dtype and ours.shape == theirs.shape
    return ours.astype(np.float64), theirs.astype(np.float64)


@pytest.mark.parametrize("channels", [0, 1, 3])
@pytest.mark.parametrize("ratio", [1, 2])
@pytest.mark.parametrize("method", ["INTEGER_ACCURATE", ""])
def test_jpeg_files_decode_alike(tensorflow, channels, ratio, method):
    """We always transform accurately; TensorFlow, unless told to, in the fast way."""
    data = file_of(smooth_picture(), "JPEG", quality=90)
    options = dict(channels=channels, ratio=ratio, dct_method=method)
    ours, theirs = decoded(tensorflow, lambda i, t: i.decode_jpeg(data, **options))
    assert np.abs(ours - theirs).max() <= (3 if method == "" else 0)


@pytest.mark.parametrize("ratio", [2, 4, 8])
@pytest.mark.parametrize("mode", ["L", "RGB", "CMYK"])
@pytest.mark.parametrize("size", [(16, 16), (33, 50), (9, 15), (3, 100)])
def test_jpeg_files_of_any_size_and_color_mode_shrink_alike(tensorflow, ratio, mode, size):
    y, x = np.mgrid[: size[0], : size[1]]
    waves = [127 + 120 * np.sin(x / 20 + i) * np.cos(y / 30 + i) for i in range(len(mode))]
    data = file_of(np.stack(waves, -1).astype(np.uint8), "JPEG", mode=mode, quality=95)
    options = dict(ratio=ratio, dct_method="INTEGER_ACCURATE")
    ours, theirs = decoded(tensorflow, lambda i, t: i.decode_jpeg(data, **options))
    # A side shorter than the ratio is averaged, not decoded at that scale.
    assert np.abs(ours - theirs).max() <= (2 if min(size) >= ratio else 16)


@pytest.mark.parametrize("channels", [0, 1, 3, 4])
@pytest.mark.parametrize("depth", [1, 3, 4])
@pytest.mark.parametrize("dtype", ["uint8", "uint16"])
def test_png_files_decode_alike(tensorflow, channels, depth, dtype):
    data = file_of(smooth_picture(depth), "PNG")
    ours, theirs = decoded(tensorflow, lambda i, t: i.decode_png(data, channels=channels, dtype=dtype))
    np.testing.assert_array_equal(ours, theirs)


def test_png_files_of_16_bits_decode_alike(tensorflow):
    deep = (RANDOM.rand(7, 5, 3) * 65535).astype(np.uint16)
    graph = tensorflow.Graph()
    with graph.as_default(), tensorflow.Session(graph=graph) as session:
        data = session.run(tensorflow.image.encode_png(deep))
    for dtype in ("uint8", "uint16"):
        ours, theirs = decoded(tensorflow, lambda i, t, d=dtype: i.decode_png(data, dtype=d))
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("kind", ["PNG", "BMP", "GIF", "JPEG"])
@pytest.mark.parametrize("dtype", ["uint8", "float32"])
def test_any_file_decodes_alike(tensorflow, kind, dtype):
    data = file_of(smooth_picture(), kind)
    ours, theirs = decoded(tensorflow, lambda i, t: i.decode_image(data, dtype=dtype))
    np.testing.assert_allclose(ours, theirs, atol=4 if dtype == "uint8" else 4 / 255)


def test_files_we_write_are_read_by_tensorflow(tensorflow):
    picture = smooth_picture()
    with tf.Graph().as_default(), tf.Session() as session:
        png, jpeg = session.run([tf.image.encode_png(picture), tf.image.encode_jpeg(picture)])
        shape = session.run(tf.image.extract_jpeg_shape(jpeg))
    graph = tensorflow.Graph()
    with graph.as_default(), tensorflow.Session(graph=graph) as session:
        exact, near = session.run([tensorflow.image.decode_png(png), tensorflow.image.decode_jpeg(jpeg)])
    np.testing.assert_array_equal(exact, picture)
    assert np.abs(near.astype(int) - picture).max() < 12
    assert shape.tolist() == [32, 40, 3]

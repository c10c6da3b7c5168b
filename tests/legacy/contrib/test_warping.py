"""Images taken at other places, moved by a flow or by a few points."""

import numpy as np
import pytest
from scipy import ndimage
from scipy.interpolate import RBFInterpolator

import tensorfleet as tf

I = tf.contrib.image  # noqa: E741
RANDOM = np.random.RandomState(0)
IMAGES = RANDOM.rand(2, 6, 5, 3).astype(np.float32)


def sampled(image, ys, xs, mode):
    places = np.array([np.ravel(ys), np.ravel(xs)])
    return np.stack(
        [ndimage.map_coordinates(c, places, order=1, mode=mode) for c in image.transpose(2, 0, 1)], -1
    )


def slope_of(f, x, step=1e-2):
    """A numeric gradient of the sum of a function."""
    result = np.zeros_like(x)
    for i in np.ndindex(*x.shape):
        ends = []
        for side in (-1, 1):
            moved = x.copy()
            moved[i] += side * step
            ends.append(f(moved).sum(dtype=np.float64))
        result[i] = (ends[1] - ends[0]) / (2 * step)
    return result


def test_a_flow_moves_pixels_and_the_border_is_continued(session):
    flow = RANDOM.normal(0, 2, [2, 6, 5, 2]).astype(np.float32)
    result = session.run(I.dense_image_warp(IMAGES, tf.constant(flow)))
    y, x = np.meshgrid(np.arange(6), np.arange(5), indexing="ij")
    for image, f, item in zip(IMAGES, flow, result, strict=True):
        wanted = sampled(image, y - f[..., 0], x - f[..., 1], "nearest").reshape(6, 5, 3)
        np.testing.assert_allclose(item, wanted, atol=1e-5)
    with pytest.raises(ValueError, match="Grid must be 4 dimensional"):
        I.dense_image_warp(IMAGES[0], flow)


def test_the_gradient_of_a_flow(session):
    flow = RANDOM.uniform(0.2, 0.8, [1, 3, 3, 2]).astype(np.float32)
    image, given = IMAGES[:1, :3, :3], tf.placeholder(tf.float32, [1, 3, 3, 2])
    result = I.dense_image_warp(image, given)
    slope = session.run(tf.gradients(result, given)[0], {given: flow})
    numeric = slope_of(lambda f: session.run(result, {given: f}), flow)
    np.testing.assert_allclose(slope, numeric, atol=2e-2)


@pytest.mark.parametrize(("order", "kernel"), [(1, "linear"), (2, "thin_plate_spline"), (3, "cubic")])
def test_a_spline_goes_through_its_points(session, order, kernel):
    points = RANDOM.rand(12, 2)
    values, asked = np.sin(3 * points), RANDOM.rand(7, 2)
    result = session.run(I.interpolate_spline(points[None], values[None], asked[None], order))
    wanted = RBFInterpolator(points, values, kernel=kernel, degree=1)(asked)
    np.testing.assert_allclose(result[0], wanted, atol=1e-4)


def test_points_are_moved_and_edges_stay(session):
    image = np.zeros([1, 11, 11, 1], np.float32)
    image[0, 4, 4] = 1
    warped, flow = session.run(
        I.sparse_image_warp(
            image,
            np.array([[[4.0, 4.0]]], np.float32),
            np.array([[[6.0, 5.0]]], np.float32),
            num_boundary_points=2,
        )
    )
    assert np.unravel_index(warped[0, :, :, 0].argmax(), (11, 11)) == (6, 5)
    np.testing.assert_allclose(flow[0, 6, 5], [2, 1], atol=1e-3)
    np.testing.assert_allclose(flow[0, [0, 0, -1, -1], [0, -1, 0, -1]], 0, atol=1e-3)


def test_outside_of_images_is_zero(session):
    warp = RANDOM.uniform(-2, 7, [2, 4, 3, 2]).astype(np.float32)
    result = session.run(tf.contrib.resampler.resampler(IMAGES, tf.constant(warp)))
    assert result.shape == (2, 4, 3, 3)
    padded = np.pad(IMAGES, [[0, 0], [9, 9], [9, 9], [0, 0]])
    for image, places, item in zip(padded, warp, result, strict=True):
        wanted = sampled(image, places[..., 1] + 9, places[..., 0] + 9, "constant").reshape(4, 3, 3)
        np.testing.assert_allclose(item, wanted, atol=1e-5)


def test_the_gradients_of_places_and_images(session):
    data, warp = tf.placeholder(tf.float32, [1, 3, 3, 1]), tf.placeholder(tf.float32, [1, 4, 2])
    result = tf.contrib.resampler.resampler(data, warp)
    image = IMAGES[:1, :3, :3, :1]
    places = np.array([[[0.3, 1.6], [1.4, 0.7], [-0.4, 0.5], [2.3, 1.2]]], np.float32)
    slopes = session.run(tf.gradients(result, [data, warp]), {data: image, warp: places})
    np.testing.assert_allclose(
        slopes[0], slope_of(lambda v: session.run(result, {data: v, warp: places}), image), atol=2e-2
    )
    np.testing.assert_allclose(
        slopes[1], slope_of(lambda v: session.run(result, {data: image, warp: v}), places), atol=2e-2
    )


def test_colors_are_turned_in_yiq(session):
    to_yiq = np.array([[0.299, 0.587, 0.114], [0.596, -0.274, -0.322], [0.211, -0.523, 0.312]])
    hue, saturation, value = 0.7, 0.8, 1.2
    result = session.run(I.adjust_hsv_in_yiq(IMAGES, hue, saturation, value))
    a, b = value * saturation * np.cos(hue), value * saturation * np.sin(hue)
    turn = np.array([[value, 0, 0], [0, a, -b], [0, b, a]])
    wanted = IMAGES @ (np.linalg.inv(to_yiq) @ turn @ to_yiq).T
    np.testing.assert_allclose(result, wanted, atol=0.02)
    bytes_ = (IMAGES * 255).astype(np.uint8)
    same = session.run(I.adjust_hsv_in_yiq(bytes_))
    assert same.dtype == np.uint8 and np.abs(same.astype(int) - bytes_).max() <= 1


def test_random_colors_are_within_bounds(session):
    result = I.random_hsv_in_yiq(IMAGES, lower_value=0.5, upper_value=1.5, seed=1)
    factors = [session.run(result).mean() / IMAGES.mean() for _ in range(5)]
    assert 0.45 < min(factors) < max(factors) < 1.55 and len(set(factors)) == 5
    with pytest.raises(ValueError, match="lower_saturation must be < upper_saturation"):
        I.random_hsv_in_yiq(IMAGES, lower_saturation=2)


def test_the_nearest_pairs_first(session):
    distances = np.array([[0.5, 0.1, 0.3], [0.6, 0.05, 0.4], [0.2, 0.2, 0.9]], np.float32)
    rows, columns = session.run(I.bipartite_match(distances, 3.0))
    assert rows.tolist() == [2, 1, 0] and columns.tolist() == [2, 1, 0]
    rows, columns = session.run(I.bipartite_match(distances, 2.0, top_k=1))
    assert rows.tolist() == [-1, 1, -1] and columns.tolist() == [-1, 1, -1]


def test_parts_of_images_are_numbered_from_one(session):
    image = np.array([[7, 7, 0, 7], [0, 7, 2, 7], [5, 0, 2, 2]])
    parts = session.run(I.connected_components(tf.constant(image)))
    assert parts.tolist() == [[1, 1, 0, 2], [0, 1, 3, 2], [4, 0, 3, 3]]
    both = session.run(I.connected_components(tf.constant(np.stack([image, image]) > 0)))
    assert both[0].tolist() == [[1, 1, 0, 1], [0, 1, 1, 1], [2, 0, 1, 1]]
    assert set(np.unique(both[1])) == {0, 3, 4}
    with pytest.raises(TypeError, match="images should have rank 2"):
        I.connected_components(tf.zeros([2, 2, 2, 1]))

"""`tf.contrib.image` and `tf.contrib.resampler`: images taken at other places, moved by a flow or by a few points."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorfleet.base import dtypes
from tensorfleet.base.naming import find
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import control_dependencies, name_scope

_TINY = 1e-10


def _rows(data: Tensor, y: Tensor, x: Tensor) -> Tensor:
    """The pixels of images, [batch, n, channels], at integer places [batch, n]."""
    sizes = find("shape")(data)
    flat = find("reshape")(data, [-1, sizes[3]])
    first = find("expand_dims")(find("range")(sizes[0]) * sizes[1] * sizes[2], 1)
    return find("gather")(flat, first + y * sizes[2] + x)


def _inside(grid: Tensor, points: Tensor) -> Tensor:
    """Values between the pixels of a grid at points (y, x), [batch, n, 2]; those outside are moved to the border."""
    sizes = find("shape")(grid)
    checks = [
        find("assert_greater_equal")(sizes[1], 2, message="Grid height must be at least 2."),
        find("assert_greater_equal")(sizes[2], 2, message="Grid width must be at least 2."),
    ]
    lower, share = [], []
    with control_dependencies(checks):
        for d in range(2):
            place = points[:, :, d]
            last = find("cast")(sizes[d + 1] - 2, place.dtype)
            below = find("minimum")(find("maximum")(find("floor")(place), find("zeros_like")(place)), last)
            lower.append(find("cast")(below, dtypes.int32))
            part = find("cast")(place - below, grid.dtype)
            share.append(find("expand_dims")(find("clip_by_value")(part, 0.0, 1.0), 2))
    (y, x), (down, right) = lower, share
    top, bottom = (
        left + right * (_rows(grid, at, x + 1) - left)
        for at, left in ((y, _rows(grid, y, x)), (y + 1, _rows(grid, y + 1, x)))
    )
    return top + down * (bottom - top)


def dense_image_warp(image: Any, flow: Any, name: str = "dense_image_warp") -> Tensor:
    """Images whose pixel (y, x) is that of the given ones at (y, x) - flow, between pixels by both neighbours."""
    with name_scope(name):
        image, flow = to_tensor(image), to_tensor(flow)
        if image.shape.ndims != 4:
            raise ValueError(f"Grid must be 4 dimensional. Received size: {image.shape}")
        sizes = find("shape")(image)
        x, y = find("meshgrid")(find("range")(sizes[2]), find("range")(sizes[1]))
        places = find("expand_dims")(find("cast")(find("stack")([y, x], 2), flow.dtype), 0) - flow
        output = _inside(image, find("reshape")(places, [sizes[0], -1, 2]))
        result = find("reshape")(output, sizes)
        result.set_shape(image.shape)
        return result


def _squared_distances(x: Tensor, y: Tensor) -> Tensor:
    total = find("reduce_sum")
    across = find("matmul")(x, y, transpose_b=True)
    squares = find("expand_dims")(total(find("square")(x), 2), 2)
    return squares - 2 * across + find("expand_dims")(total(find("square")(y), 2), 1)


def _radial(squared: Tensor, order: int) -> Tensor:
    """The basis of polyharmonic splines, of squared distances."""
    if order in (2, 4):
        return 0.5 * squared ** (order // 2) * find("log")(find("maximum")(squared, _TINY))
    squared = find("maximum")(squared, _TINY)
    power = find("pow")(squared, 0.5 * order)
    return 0.5 * power * find("log")(squared) if order % 2 == 0 else power


def interpolate_spline(
    train_points: Any,
    train_values: Any,
    query_points: Any,
    order: int,
    regularization_weight: float = 0.0,
    name: str = "interpolate_spline",
) -> Tensor:
    """The values at other points of a polyharmonic spline through values [batch, n, k] at points [batch, n, d]."""
    with name_scope(name):
        points, values, asked = (to_tensor(x) for x in (train_points, train_values, query_points))
        for tensor, what in ((points, "input points (d)"), (values, "output values (k)")):
            if tensor.shape.as_list()[-1] is None:
                raise ValueError(f"The dimensionality of the {what} must be statically-inferrable.")
        sizes, join, turn = find("shape")(points), find("concat"), [0, 2, 1]
        matrix = _radial(_squared_distances(points, points), order)
        if regularization_weight > 0:
            matrix = matrix + regularization_weight * find("eye")(sizes[1], dtype=points.dtype)
        planes = join([points, find("ones_like")(points[..., :1])], 2)
        count = points.shape.as_list()[-1] + 1
        corner = find("zeros")([sizes[0], count, count], points.dtype)
        left = join([matrix, find("transpose")(planes, turn)], 1)
        whole = join([left, join([planes, corner], 1)], 2)
        zeros = find("zeros")([sizes[0], count, values.shape.as_list()[-1]], points.dtype)
        solved = find("matrix_solve")(whole, join([values, zeros], 1))
        near = _radial(_squared_distances(asked, points), order)
        more = join([asked, find("ones_like")(asked[..., :1])], 2)
        return find("matmul")(near, solved[:, : sizes[1]]) + find("matmul")(more, solved[:, sizes[1] :])


def sparse_image_warp(
    image: Any,
    source_control_point_locations: Any,
    dest_control_point_locations: Any,
    interpolation_order: int = 2,
    regularization_weight: float = 0.0,
    num_boundary_points: int = 0,
    name: str = "sparse_image_warp",
) -> tuple[Tensor, Tensor]:
    """Images in which some points are moved to others and the rest follows smoothly; and the flow.

    `num_boundary_points` points of each edge stay where they are.
    """
    image = to_tensor(image)
    source, target = to_tensor(source_control_point_locations), to_tensor(dest_control_point_locations)
    with name_scope(name):
        batch, height, width, _ = image.shape.as_list()
        flows = target - source
        if num_boundary_points > 0:
            edge = _edge(height, width, num_boundary_points - 1)
            still = np.broadcast_to(edge, [batch, *edge.shape])
            target = find("concat")([target, to_tensor(still, target.dtype)], 1)
            flows = find("concat")([flows, find("zeros")(still.shape, flows.dtype)], 1)
        grid = np.stack(np.meshgrid(np.arange(height), np.arange(width), indexing="ij"), -1).reshape(-1, 2)
        places = to_tensor(np.broadcast_to(grid, [batch, *grid.shape]).astype(np.float64), image.dtype)
        result = interpolate_spline(target, flows, places, interpolation_order, regularization_weight)
        dense = find("reshape")(result, [batch, height, width, 2])
        return dense_image_warp(image, dense), dense


def _edge(height: int, width: int, between: int) -> np.ndarray:
    """The corners and so many points between them on each edge."""
    ys, xs = (np.linspace(0, size - 1, between + 2) for size in (height, width))
    grid = np.stack(np.meshgrid(ys, xs, indexing="ij"), -1)
    outer = np.zeros(grid.shape[:2], bool)
    outer[[0, -1]], outer[:, [0, -1]] = True, True
    return grid[outer]


def resampler(data: Any, warp: Any, name: str = "resampler") -> Tensor:
    """The values between the pixels of images at points (x, y), [batch, ..., 2]; outside of the images is zero."""
    with name_scope(name, "resampler", [data, warp]):
        data, warp = to_tensor(data, name="data"), to_tensor(warp, name="warp")
        if data.shape.rank not in (None, 4):
            raise ValueError(
                f"Only bilinear interpolation is currently supported. The input data shape must be [batch_size, "
                f"data_height, data_width, data_num_channels], but is: {data.shape}"
            )
        sizes, outer = find("shape")(data), find("shape")(warp)
        points = find("reshape")(warp, [sizes[0], -1, 2])
        x, y = points[:, :, 0], points[:, :, 1]
        low_x, low_y = find("floor")(x), find("floor")(y)
        results = []
        for at_y, share_y in ((low_y, low_y + 1 - y), (low_y + 1, y - low_y)):
            for at_x, share_x in ((low_x, low_x + 1 - x), (low_x + 1, x - low_x)):
                pixel, known = _or_zero(data, at_y, at_x, sizes)
                results.append(find("expand_dims")(share_x * share_y * known, 2) * pixel)
        result = find("reshape")(find("add_n")(results), find("concat")([outer[:-1], sizes[3:]], 0))
        result.set_shape(warp.shape[:-1].concatenate(data.shape[-1:]))
        return result


def _or_zero(data: Tensor, y: Tensor, x: Tensor, sizes: Tensor) -> tuple[Tensor, Tensor]:
    """Pixels at whole places, and 1 or 0 for those inside or outside of the images."""
    whole_y, whole_x = (find("cast")(v, dtypes.int32) for v in (y, x))
    held = [find("clip_by_value")(v, 0, s - 1) for v, s in ((whole_y, sizes[1]), (whole_x, sizes[2]))]
    known = find("logical_and")(find("equal")(held[0], whole_y), find("equal")(held[1], whole_x))
    return _rows(data, *held), find("cast")(known, y.dtype)


# Red, green and blue of gray, of what turns with the cosine and with the sine of the hue's angle (in YIQ).
_GRAY = np.array([[0.299, 0.587, 0.114]] * 3)
_COSINE = np.array([[0.701, -0.587, -0.114], [-0.299, 0.413, -0.114], [-0.3, -0.588, 0.886]])
_SINE = np.array([[0.168, 0.330, -0.497], [-0.328, 0.035, 0.292], [1.25, -1.05, -0.203]])


def adjust_hsv_in_yiq(
    image: Any,
    delta_hue: Any = 0,
    scale_saturation: Any = 1,
    scale_value: Any = 1,
    name: str | None = None,
) -> Tensor:
    """Images whose hue is turned by an angle, whose saturation and brightness are scaled."""
    with name_scope(name, "adjust_hsv_in_yiq", [image]):
        image = to_tensor(image, name="image")
        kind = dtypes.float32
        hue, saturation, value = (find("cast")(v, kind) for v in (delta_hue, scale_saturation, scale_value))
        colors = value * saturation
        matrix = (
            value * to_tensor(_GRAY, kind)
            + colors * find("cos")(hue) * to_tensor(_COSINE, kind)
            + colors * find("sin")(hue) * to_tensor(_SINE, kind)
        )
        numbers = find("image.convert_image_dtype")(image, kind)
        turned = find("tensordot")(numbers, matrix, [[-1], [1]])
        turned.set_shape(image.shape)
        return find("image.convert_image_dtype")(turned, image.dtype)


def random_hsv_in_yiq(
    image: Any,
    max_delta_hue: float = 0,
    lower_saturation: float = 1,
    upper_saturation: float = 1,
    lower_value: float = 1,
    upper_value: float = 1,
    seed: int | None = None,
) -> Tensor:
    """`adjust_hsv_in_yiq` by random amounts."""
    if max_delta_hue < 0:
        raise ValueError("max_delta must be non-negative.")
    for what, low, high in (
        ("saturation", lower_saturation, upper_saturation),
        ("value", lower_value, upper_value),
    ):
        if low < 0:
            raise ValueError(f"lower_{what} must be non-negative.")
        if low > high:
            raise ValueError(f"lower_{what} must be < upper_{what}.")

    def between(low: float, high: float) -> Any:
        return low if low == high else find("random_uniform")([], low, high, seed=seed)

    hue = between(-max_delta_hue, max_delta_hue)
    saturation, value = between(lower_saturation, upper_saturation), between(lower_value, upper_value)
    return adjust_hsv_in_yiq(image, hue, saturation, value)

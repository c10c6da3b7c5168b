"""`tf.contrib.gan.eval`: how good and how varied generated data are, by what a classifier makes of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorfleet.base import dtypes
from tensorfleet.base.naming import find
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import name_scope

_IMAGE_SIDE_PIXELS = 299  # of the images of an Inception network


def preprocess_image(
    images: Any, height: int = _IMAGE_SIDE_PIXELS, width: int = _IMAGE_SIDE_PIXELS, scope: str | None = None
) -> Tensor:
    """Images of bytes, resized, with values from -1 to 1."""
    images = to_tensor(images)
    alone = images.shape.ndims == 3
    with name_scope(scope, "preprocess", [images]):
        images = images if images.dtype.is_floating else find("cast")(images, dtypes.float32)
        images = find("expand_dims")(images, 0) if alone else images
        resized = (find("image.resize_bilinear")(images, [height, width]) - 128.0) / 128.0
        return resized[0] if alone else resized


def _run(images: Any, classifier_fn: Callable, num_batches: int) -> Tensor:
    """The outputs of a classifier for images, a few at a time."""
    parts = find("stack")(find("split")(images, num_batches))
    output = find("map_fn")(
        classifier_fn, parts, parallel_iterations=1, back_prop=False, name="RunClassifier"
    )
    return find("concat")(find("unstack")(output, num=num_batches), 0)


def _double(*values: Any) -> list[Tensor]:
    items = [to_tensor(v) for v in values]
    for value in items:
        value.shape.assert_has_rank(2)
    return [find("cast")(v, dtypes.float64) for v in items]


def _like(result: Tensor, given: Any) -> Tensor:
    return find("cast")(result, to_tensor(given).dtype)


def classifier_score_from_logits(logits: Any) -> Tensor:
    """The score of Salimans et al. 2016: high when a classifier is sure of each, and all classes come up."""
    (scores,) = _double(logits)
    p = find("nn.softmax")(scores)
    overall = find("log")(find("reduce_mean")(p, 0))
    away = find("reduce_sum")(p * (find("nn.log_softmax")(scores) - overall), 1)
    return _like(find("exp")(find("reduce_mean")(away)), logits)


def classifier_score(images: Any, classifier_fn: Callable, num_batches: int = 1) -> Tensor:
    """The score of images, by a classifier that gives logits."""
    return classifier_score_from_logits(_run(images, classifier_fn, num_batches))


def _covariance(values: Tensor) -> tuple[Tensor, Tensor]:
    mean = find("reduce_mean")(values, 0)
    off = values - mean
    count = find("cast")(find("shape")(values)[0], dtypes.float64)
    return mean, find("matmul")(off, off, transpose_a=True) / (count - 1)


def _root(matrix: Tensor) -> Tensor:
    """The root of a symmetric matrix without negative eigenvalues."""
    values, vectors = find("self_adjoint_eig")(matrix)
    scaled = vectors * find("sqrt")(find("maximum")(values, find("zeros_like")(values)))
    return find("matmul")(scaled, vectors, transpose_b=True)


def frechet_classifier_distance_from_activations(real_activations: Any, generated_activations: Any) -> Tensor:
    """Frechet's distance of two normal distributions with the means and covariances of activations."""
    real, generated = _double(real_activations, generated_activations)
    (mean, around), (mean_g, around_g) = _covariance(real), _covariance(generated)
    dot, trace, root = find("matmul"), find("trace"), _root(around)
    both = trace(_root(dot(root, dot(around_g, root))))
    apart = find("reduce_sum")(find("square")(mean - mean_g))
    return _like(apart + trace(around + around_g) - 2.0 * both, real_activations)


def frechet_classifier_distance(
    real_images: Any, generated_images: Any, classifier_fn: Callable, num_batches: int = 1
) -> Tensor:
    """Frechet's distance of what a classifier makes of real and of generated images."""
    real, generated = (_run(x, classifier_fn, num_batches) for x in (real_images, generated_images))
    return frechet_classifier_distance_from_activations(real, generated)


def mean_only_frechet_classifier_distance_from_activations(
    real_activations: Any, generated_activations: Any
) -> Tensor:
    """The squared distance of the means."""
    real, generated = _double(real_activations, generated_activations)
    apart = find("reduce_mean")(real, 0) - find("reduce_mean")(generated, 0)
    return _like(find("reduce_sum")(find("square")(apart)), real_activations)


def diagonal_only_frechet_classifier_distance_from_activations(
    real_activations: Any, generated_activations: Any
) -> Tensor:
    """Frechet's distance for features that are independent of each other."""
    real, generated = _double(real_activations, generated_activations)
    (mean, around), (mean_g, around_g) = (find("nn.moments")(x, [0]) for x in (real, generated))
    spread = around + around_g - 2.0 * find("sqrt")(around * around_g)
    return _like(find("reduce_sum")(spread + find("square")(mean - mean_g)), real_activations)


def _bounds(count: Tensor, blocks: Tensor) -> Tensor:
    """Where blocks of nearly equal sizes begin and end; the larger ones are the last."""
    least = count // blocks
    larger = count - least * blocks
    sizes = least + find("cast")(find("range")(blocks) >= blocks - larger, dtypes.int32)
    return find("pad")(find("cumsum")(sizes), [[1, 0]])


def kernel_classifier_distance_and_std_from_activations(
    real_activations: Any, generated_activations: Any, max_block_size: int = 1024, dtype: Any = None
) -> tuple[Tensor, Tensor]:
    """The kernel distance of Binkowski et al. 2018, a mean over blocks, and its standard error."""
    real, generated = to_tensor(real_activations), to_tensor(generated_activations)
    for value in (real, generated):
        value.shape.assert_has_rank(2)
    real.shape[1:2].assert_is_compatible_with(generated.shape[1:2])
    kind = real.dtype if dtype is None else dtype
    real, generated = find("cast")(real, kind), find("cast")(generated, kind)
    counts = [find("shape")(x)[0] for x in (real, generated)]
    blocks = find("cast")(find("ceil")(find("maximum")(*counts) / max_block_size), dtypes.int32)
    ends = [_bounds(count, blocks) for count in counts]
    size, total = float(real.shape.as_list()[1]), find("reduce_sum")

    def kernel(a: Tensor, b: Tensor) -> Tensor:
        return find("pow")(find("matmul")(a, b, transpose_b=True) / size + 1.0, 3.0)

    def within(values: Tensor) -> Tensor:
        n = find("cast")(find("shape")(values)[0], kind)
        k = kernel(values, values)
        return (total(k) - find("trace")(k)) / (n * (n - 1))

    def block(i: Tensor) -> Tensor:
        r, g = (x[e[i] : e[i + 1]] for x, e in zip((real, generated), ends, strict=True))
        return within(r) + within(g) - 2 * find("reduce_mean")(kernel(r, g))

    output = find("map_fn")(block, find("range")(blocks), dtype=kind, back_prop=False)
    mean, number = find("reduce_mean")(output), find("cast")(blocks, kind)
    # One block has no spread: zero over zero.
    variance = total(find("square")(output - mean)) / (number - 1)
    return mean, find("sqrt")(variance / number)


def kernel_classifier_distance_from_activations(
    real_activations: Any, generated_activations: Any, max_block_size: int = 1024, dtype: Any = None
) -> Tensor:
    """The kernel distance of activations."""
    return kernel_classifier_distance_and_std_from_activations(
        real_activations, generated_activations, max_block_size, dtype
    )[0]


def kernel_classifier_distance_and_std(
    real_images: Any,
    generated_images: Any,
    classifier_fn: Callable,
    num_classifier_batches: int = 1,
    max_block_size: int = 1024,
    dtype: Any = None,
) -> tuple[Tensor, Tensor]:
    """The kernel distance of what a classifier makes of real and of generated images, and its standard error."""
    real, generated = (
        _run(x, classifier_fn, num_classifier_batches) for x in (real_images, generated_images)
    )
    return kernel_classifier_distance_and_std_from_activations(real, generated, max_block_size, dtype)


def kernel_classifier_distance(
    real_images: Any,
    generated_images: Any,
    classifier_fn: Callable,
    num_classifier_batches: int = 1,
    max_block_size: int = 1024,
    dtype: Any = None,
) -> Tensor:
    """The kernel distance of what a classifier makes of real and of generated images."""
    return kernel_classifier_distance_and_std(
        real_images, generated_images, classifier_fn, num_classifier_batches, max_block_size, dtype
    )[0]

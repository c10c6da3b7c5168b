"""Time the ops of the library one by one against TensorFlow's, at sizes where arithmetic dominates.

    make bench
    .venv-peers/bin/python benchmarks/ops.py --rounds 7 sort top_k

Both libraries run in this process and take turns; the best of all rounds counts, since a busy machine only
ever makes a run slower. A ratio above 1 means that TensorFleet is faster. Worst first.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")

import numpy as np

RANDOM = np.random.RandomState(0)
FLAT = RANDOM.rand(1 << 20).astype(np.float32)
MATRIX = RANDOM.rand(1024, 1024).astype(np.float32)
ROWS = RANDOM.rand(4096, 256).astype(np.float32)
IMAGES = RANDOM.rand(16, 64, 64, 16).astype(np.float32)
PICTURES = RANDOM.rand(8, 128, 128, 3).astype(np.float32)
VOLUMES = RANDOM.rand(4, 16, 16, 16, 8).astype(np.float32)
KERNEL = RANDOM.rand(3, 3, 16, 32).astype(np.float32)
INDICES = RANDOM.randint(0, 4096, 20000).astype(np.int32)
SEGMENTS = np.sort(RANDOM.randint(0, 500, 4096)).astype(np.int32)
LABELS = RANDOM.randint(0, 256, 4096).astype(np.int32)
SPD = np.stack([a @ a.T + 32 * np.eye(32) for a in RANDOM.rand(64, 32, 32)]).astype(np.float32)
WINDOW: dict[str, Any] = dict(ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="VALID")
OVERLAP: dict[str, Any] = dict(ksize=[1, 3, 3, 1], strides=[1, 2, 2, 1], padding="SAME")


def slope(f: Callable) -> Callable:
    """The gradient of the sum of f's result by its first argument."""

    def call(tf: Any, *xs: Any) -> Any:
        y = f(tf, *xs)
        return tf.convert_to_tensor(tf.gradients(tf.reduce_sum(y * y), xs[0])[0])

    return call


# name -> (function of the library and its inputs, the inputs)
OPS: dict[str, tuple[Callable, tuple]] = {
    "add": (lambda tf, x, y: x + y, (MATRIX, MATRIX)),
    "exp": (lambda tf, x: tf.exp(x), (FLAT,)),
    "tanh": (lambda tf, x: tf.tanh(x), (FLAT,)),
    "sigmoid": (lambda tf, x: tf.sigmoid(x), (FLAT,)),
    "erf": (lambda tf, x: tf.erf(x), (FLAT,)),
    "lgamma": (lambda tf, x: tf.lgamma(x + 1), (FLAT,)),
    "digamma": (lambda tf, x: tf.digamma(x + 1), (FLAT,)),
    "pow": (lambda tf, x, y: tf.pow(x, y), (MATRIX, MATRIX)),
    "igamma": (lambda tf, x, y: tf.igamma(x + 1, y + 1), (FLAT[:65536], FLAT[:65536])),
    "betainc": (lambda tf, x: tf.betainc(x + 1, x + 2, x), (FLAT[:16384],)),
    "floormod": (lambda tf, x, y: tf.floormod(x, y + 1), (MATRIX, MATRIX)),
    "reduce_sum": (lambda tf, x: tf.reduce_sum(x, 1), (MATRIX,)),
    "reduce_sum_0": (lambda tf, x: tf.reduce_sum(x, 0), (MATRIX,)),
    "reduce_max": (lambda tf, x: tf.reduce_max(x, 1), (MATRIX,)),
    "reduce_prod": (lambda tf, x: tf.reduce_prod(x, 0), (MATRIX,)),
    "reduce_logsumexp": (lambda tf, x: tf.reduce_logsumexp(x, 1), (ROWS,)),
    "reduce_any": (lambda tf, x: tf.reduce_any(x > 2, 1), (MATRIX,)),
    "argmax": (lambda tf, x: tf.argmax(x, 1), (MATRIX,)),
    "argmax_0": (lambda tf, x: tf.argmax(x, 0), (MATRIX,)),
    "cumsum": (lambda tf, x: tf.cumsum(x, 1), (MATRIX,)),
    "cumsum_0": (lambda tf, x: tf.cumsum(x, 0), (MATRIX,)),
    "cumprod": (lambda tf, x: tf.cumprod(x, 1), (MATRIX,)),
    "cumsum_grad": (slope(lambda tf, x: tf.cumsum(x, 1)), (MATRIX,)),
    "cumprod_grad": (slope(lambda tf, x: tf.cumprod(x + 0.5, 1)), (ROWS,)),
    "sort": (lambda tf, x: tf.sort(x), (MATRIX,)),
    "argsort": (lambda tf, x: tf.argsort(x), (MATRIX,)),
    "top_k": (lambda tf, x: tf.nn.top_k(x, 10)[0], (MATRIX,)),
    "top_k_half": (lambda tf, x: tf.nn.top_k(x, 128)[0], (ROWS,)),
    "in_top_k": (lambda tf, x, y: tf.nn.in_top_k(x, y, 5), (ROWS, LABELS)),
    "nth_element": (lambda tf, x: tf.sort(x)[:, 512], (MATRIX,)),
    "searchsorted": (lambda tf, x, y: tf.searchsorted(x, y), (np.sort(ROWS, 1), ROWS)),
    "unique": (lambda tf, x: tf.unique(x)[0], (INDICES,)),
    "where": (lambda tf, x: tf.where(x > 0.9), (MATRIX,)),
    "boolean_mask": (lambda tf, x: tf.boolean_mask(x, x[:, 0] > 0.5), (ROWS,)),
    "gather": (lambda tf, x, i: tf.gather(x, i), (ROWS, INDICES)),
    "gather_1": (lambda tf, x, i: tf.gather(x, i % 256, axis=1), (ROWS[:256], INDICES[:2048])),
    "gather_grad": (slope(lambda tf, x, i: tf.gather(x, i)), (ROWS, INDICES)),
    "gather_nd": (lambda tf, x, i: tf.gather_nd(x, tf.stack([i, i % 256], 1)), (ROWS, INDICES)),
    "gather_nd_grad": (slope(lambda tf, x, i: tf.gather_nd(x, tf.stack([i, i % 256], 1))), (ROWS, INDICES)),
    "scatter_nd": (lambda tf, i, x: tf.scatter_nd(i[:4096, None], x, [4096, 256]), (INDICES, ROWS)),
    "tensor_scatter_add": (lambda tf, x, i: tf.tensor_scatter_add(x, i[:4096, None], x), (ROWS, INDICES)),
    "segment_sum": (lambda tf, x, s: tf.segment_sum(x, s), (ROWS, SEGMENTS)),
    "segment_mean": (lambda tf, x, s: tf.segment_mean(x, s), (ROWS, SEGMENTS)),
    "segment_max": (lambda tf, x, s: tf.segment_max(x, s), (ROWS, SEGMENTS)),
    "unsorted_segment_sum": (lambda tf, x, s: tf.unsorted_segment_sum(x, s, 256), (ROWS, LABELS)),
    "unsorted_segment_max": (lambda tf, x, s: tf.unsorted_segment_max(x, s, 256), (ROWS, LABELS)),
    "one_hot": (lambda tf, i: tf.one_hot(i, 256), (LABELS,)),
    "dynamic_partition": (lambda tf, x, s: tf.dynamic_partition(x, s % 4, 4)[0], (ROWS, LABELS)),
    "bincount": (lambda tf, i: tf.bincount(i), (INDICES,)),
    "histogram": (lambda tf, x: tf.histogram_fixed_width(x, [0.0, 1.0]), (FLAT,)),
    "transpose": (lambda tf, x: tf.transpose(x), (MATRIX,)),
    "transpose_4d": (lambda tf, x: tf.transpose(x, [0, 3, 1, 2]), (IMAGES,)),
    "concat": (lambda tf, x, y: tf.concat([x, y], 1), (MATRIX, MATRIX)),
    "split": (lambda tf, x: tf.split(x, 4, 1)[2], (MATRIX,)),
    "tile": (lambda tf, x: tf.tile(x, [2, 3]), (MATRIX,)),
    "pad": (lambda tf, x: tf.pad(x, [[0, 0], [2, 2], [2, 2], [0, 0]]), (IMAGES,)),
    "mirror_pad": (lambda tf, x: tf.pad(x, [[0, 0], [2, 2], [2, 2], [0, 0]], "REFLECT"), (IMAGES,)),
    "reverse": (lambda tf, x: tf.reverse(x, [1]), (MATRIX,)),
    "roll": (lambda tf, x: tf.roll(x, 100, 1), (MATRIX,)),
    "strided_slice": (lambda tf, x: x[::2, 1::3], (MATRIX,)),
    "strided_slice_grad": (slope(lambda tf, x: x[::2, 1::3]), (MATRIX,)),
    "space_to_depth": (lambda tf, x: tf.space_to_depth(x, 2), (IMAGES,)),
    "matrix_band_part": (lambda tf, x: tf.matrix_band_part(x, 3, 3), (MATRIX,)),
    "matmul": (lambda tf, x: tf.matmul(x, x), (MATRIX,)),
    "batch_matmul": (lambda tf, x: tf.matmul(x, x), (SPD,)),
    "einsum": (lambda tf, x: tf.einsum("bij,bkj->bik", x, x), (SPD,)),
    "cholesky": (lambda tf, x: tf.cholesky(x), (SPD,)),
    "matrix_inverse": (lambda tf, x: tf.matrix_inverse(x), (SPD,)),
    "matrix_solve": (lambda tf, x: tf.matrix_solve(x, x[:, :, :4]), (SPD,)),
    "svd": (lambda tf, x: tf.svd(x)[0], (SPD,)),
    "self_adjoint_eig": (lambda tf, x: tf.self_adjoint_eig(x)[0], (SPD,)),
    "qr": (lambda tf, x: tf.qr(x)[1], (SPD,)),
    "softmax": (lambda tf, x: tf.nn.softmax(x), (ROWS,)),
    "softmax_grad": (slope(lambda tf, x: tf.nn.softmax(x)), (ROWS,)),
    "log_softmax": (lambda tf, x: tf.nn.log_softmax(x), (ROWS,)),
    "sparse_xent": (
        lambda tf, x, y: tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=x),
        (ROWS, LABELS),
    ),
    "relu": (lambda tf, x: tf.nn.relu(x), (IMAGES,)),
    "max_pool": (lambda tf, x: tf.nn.max_pool(x, **WINDOW), (IMAGES,)),
    "max_pool_grad": (slope(lambda tf, x: tf.nn.max_pool(x, **WINDOW)), (IMAGES,)),
    "max_pool_3_grad": (slope(lambda tf, x: tf.nn.max_pool(x, **OVERLAP)), (IMAGES,)),
    "avg_pool": (lambda tf, x: tf.nn.avg_pool(x, **WINDOW), (IMAGES,)),
    "avg_pool_3": (lambda tf, x: tf.nn.avg_pool(x, **OVERLAP), (IMAGES,)),
    "avg_pool_grad": (slope(lambda tf, x: tf.nn.avg_pool(x, **OVERLAP)), (IMAGES,)),
    "conv2d": (lambda tf, x, k: tf.nn.conv2d(x, k, [1, 1, 1, 1], "SAME"), (IMAGES, KERNEL)),
    "conv2d_grad": (slope(lambda tf, x, k: tf.nn.conv2d(x, k, [1, 1, 1, 1], "SAME")), (IMAGES, KERNEL)),
    "conv2d_filter_grad": (
        slope(lambda tf, k, x: tf.nn.conv2d(x, k, [1, 1, 1, 1], "SAME")),
        (KERNEL, IMAGES),
    ),
    "depthwise_conv2d": (
        lambda tf, x, k: tf.nn.depthwise_conv2d(x, k[:, :, :, :1], [1, 1, 1, 1], "SAME"),
        (IMAGES, KERNEL),
    ),
    "lrn": (lambda tf, x: tf.nn.lrn(x), (IMAGES,)),
    "moments": (lambda tf, x: tf.nn.moments(x, [0, 1, 2])[1], (IMAGES,)),
    "resize_bilinear": (lambda tf, x: tf.image.resize_bilinear(x, [200, 200]), (PICTURES,)),
    "resize_bilinear_grad": (slope(lambda tf, x: tf.image.resize_bilinear(x, [200, 200])), (PICTURES,)),
    "resize_nearest": (lambda tf, x: tf.image.resize_nearest_neighbor(x, [200, 200]), (PICTURES,)),
    "resize_bicubic": (lambda tf, x: tf.image.resize_bicubic(x, [200, 200]), (PICTURES,)),
    "resize_area": (lambda tf, x: tf.image.resize_area(x, [60, 60]), (PICTURES,)),
    "crop_and_resize": (
        lambda tf, x: tf.image.crop_and_resize(x, [[0.1, 0.1, 0.8, 0.9]] * 8, list(range(8)), [100, 100]),
        (PICTURES,),
    ),
    "flip_left_right": (lambda tf, x: tf.image.flip_left_right(x), (PICTURES,)),
    "rgb_to_hsv": (lambda tf, x: tf.image.rgb_to_hsv(x), (PICTURES,)),
    "adjust_hue": (lambda tf, x: tf.image.adjust_hue(x, 0.2), (PICTURES,)),
    "adjust_contrast": (lambda tf, x: tf.image.adjust_contrast(x, 2.0), (PICTURES,)),
    "extract_patches": (
        lambda tf, x: tf.extract_image_patches(x, [1, 3, 3, 1], [1, 2, 2, 1], [1, 1, 1, 1], "SAME"),
        (PICTURES,),
    ),
    "fft": (lambda tf, x: tf.abs(tf.fft(tf.cast(x, tf.complex64))), (ROWS,)),
    "rfft": (lambda tf, x: tf.abs(tf.spectral.rfft(x)), (ROWS,)),
    "stft": (lambda tf, x: tf.abs(tf.signal.stft(x, 256, 64)), (FLAT[None, : 1 << 17],)),
    "random_uniform": (lambda tf, x: tf.random_uniform([1024, 1024], seed=1) + x[0], (FLAT,)),
    "random_normal": (lambda tf, x: tf.random_normal([1024, 1024], seed=1) + x[0], (FLAT,)),
    "truncated_normal": (lambda tf, x: tf.truncated_normal([1024, 1024], seed=1) + x[0], (FLAT,)),
    "random_shuffle": (lambda tf, x: tf.random_shuffle(x, seed=1), (ROWS,)),
    "multinomial": (lambda tf, x: tf.multinomial(x, 10, seed=1), (ROWS,)),
    "dropout": (lambda tf, x: tf.nn.dropout(x, 0.5, seed=1), (MATRIX,)),
    "clip_by_norm": (lambda tf, x: tf.clip_by_norm(x, 1.0), (MATRIX,)),
    "fake_quant": (lambda tf, x: tf.fake_quant_with_min_max_args(x), (MATRIX,)),
    "max_pool_3d": (lambda tf, x: tf.nn.max_pool3d(x, 2, 2, "VALID"), (VOLUMES,)),
}


class Runner:
    """One op in one library, ready to be run again and again."""

    def __init__(self, tf: Any, call: Callable, inputs: tuple) -> None:
        graph = tf.Graph()
        with graph.as_default(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            places = [tf.placeholder(tf.as_dtype(x.dtype), x.shape) for x in inputs]
            result = call(tf, *places)
        self._session = tf.Session(graph=graph)
        self._run = self._session.make_callable(result, places)
        self._inputs = inputs
        for _ in range(3):
            self._run(*inputs)

    def time(self, least: float) -> float:
        """The best of the runs that fit into so many seconds."""
        best, end = float("inf"), time.perf_counter() + least
        while True:
            start = time.perf_counter()
            self._run(*self._inputs)
            now = time.perf_counter()
            best = min(best, now - start)
            if now > end:
                return best

    def close(self) -> None:
        self._session.close()


def measure(libraries: dict[str, Any], name: str, rounds: int, seconds: float) -> dict[str, float]:
    """The best time of an op in each library."""
    call, inputs = OPS[name]
    runners = {key: Runner(tf, call, inputs) for key, tf in libraries.items()}
    best = dict.fromkeys(runners, float("inf"))
    for _ in range(rounds):
        for key, runner in runners.items():
            best[key] = min(best[key], runner.time(seconds))
    for runner in runners.values():
        runner.close()
    return best


def main() -> None:
    """Prints the table of all ops, or of those named."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=0.1, help="per library and round")
    parser.add_argument("names", nargs="*", help="ops to measure; all of them by default")
    options = parser.parse_args()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import tensorflow.compat.v1 as oracle
    oracle.disable_v2_behavior()
    oracle.logging.set_verbosity(oracle.logging.ERROR)
    import tensorfleet

    libraries = {"tensorfleet": tensorfleet, "tensorflow": oracle}
    rows = []
    for name in options.names or OPS:
        try:
            best = measure(libraries, name, options.rounds, options.seconds)
        except Exception as e:
            print(f"{name}: {type(e).__name__}: {e}", file=sys.stderr)
            continue
        rows.append((best["tensorflow"] / best["tensorfleet"], name, best))
    print(f"{'op':24}{'TensorFleet':>14}{'TensorFlow':>14}{'ratio':>8}")
    for ratio, name, best in sorted(rows):
        print(f"{name:24}{best['tensorfleet'] * 1e3:11.2f} ms{best['tensorflow'] * 1e3:11.2f} ms{ratio:8.2f}")


if __name__ == "__main__":
    main()

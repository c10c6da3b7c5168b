"""Rows of benchmarks/ops.py: neural networks and images."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from op_data import FLAT, IMAGES, INDICES, KERNEL, LABELS, MATRIX, PICTURES, RANDOM, ROWS, VOLUMES, Row, slope

WINDOW: dict[str, Any] = dict(ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="VALID")
OVERLAP: dict[str, Any] = dict(ksize=[1, 3, 3, 1], strides=[1, 2, 2, 1], padding="SAME")

CUBES: dict[str, Any] = dict(ksize=[1, 3, 3, 3, 1], strides=[1, 2, 2, 2, 1], padding="SAME")
DEPTH = KERNEL[:, :, :, :2].copy()
WIDE = RANDOM.rand(8, 28, 28, 64).astype(np.float32)
FIVE = RANDOM.rand(5, 5, 64, 64).astype(np.float32)
BLOCK = RANDOM.rand(3, 3, 3, 8, 16).astype(np.float32)
ONES = np.ones(16, np.float32)
BOXES = np.sort(RANDOM.rand(2000, 2, 2), 1).reshape(2000, 4).astype(np.float32)
BYTES = (PICTURES * 255).astype(np.uint8)
LOGITS = RANDOM.rand(50, 32, 40).astype(np.float32)


def conv(strides: int = 1, padding: str = "SAME", rate: int = 1) -> Callable:
    return lambda tf, x, k: tf.nn.conv2d(
        x, k, [1, strides, strides, 1], padding, dilations=[1, rate, rate, 1]
    )


def depthwise(strides: int = 1) -> Callable:
    return lambda tf, x, k: tf.nn.depthwise_conv2d(x, k, [1, strides, strides, 1], "SAME")


def conv3d(strides: int = 1) -> Callable:
    return lambda tf, x, k: tf.nn.conv3d(x, k, [1, strides, strides, strides, 1], "SAME")


def batch_norm(training: bool) -> Callable:
    def call(tf: Any, x: Any, scale: Any) -> Any:
        known = () if training else (scale, scale)
        return tf.nn.fused_batch_norm(x, scale, scale, *known, is_training=training)[0]

    return call


def ctc(tf: Any, logits: Any) -> Any:
    where = [[b, t] for b in range(32) for t in range(12)]
    labels = tf.SparseTensor(where, [(b + 5 * t) % 39 for b, t in where], [32, 12])
    return tf.nn.ctc_loss(labels, logits, [50] * 32)


# name -> (function of the library and its inputs, the inputs)
OPS: dict[str, Row] = {
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
    "relu_grad": (slope(lambda tf, x: tf.nn.relu(x)), (IMAGES,)),
    "relu6": (lambda tf, x: tf.nn.relu6(x), (IMAGES,)),
    "elu": (lambda tf, x: tf.nn.elu(x - 0.5), (IMAGES,)),
    "selu_grad": (slope(lambda tf, x: tf.nn.selu(x - 0.5)), (IMAGES,)),
    "leaky_relu": (lambda tf, x: tf.nn.leaky_relu(x - 0.5), (IMAGES,)),
    "softplus": (lambda tf, x: tf.nn.softplus(x), (IMAGES,)),
    "softplus_grad": (slope(lambda tf, x: tf.nn.softplus(x)), (IMAGES,)),
    "softsign": (lambda tf, x: tf.nn.softsign(x), (IMAGES,)),
    "swish": (lambda tf, x: tf.nn.swish(x), (IMAGES,)),
    "tanh_grad": (slope(lambda tf, x: tf.tanh(x)), (IMAGES,)),
    "bias_add": (lambda tf, x, b: tf.nn.bias_add(x, b), (IMAGES, ONES)),
    "bias_add_grad": (slope(lambda tf, x, b: tf.nn.bias_add(x, b), 1), (IMAGES, ONES)),
    "bias_add_nchw": (
        lambda tf, x, b: tf.nn.bias_add(x, b, "NCHW"),
        (IMAGES.transpose(0, 3, 1, 2).copy(), ONES),
    ),
    "softmax_narrow": (lambda tf, x: tf.nn.softmax(tf.reshape(x, [-1, 8])), (FLAT,)),
    "softmax_0": (lambda tf, x: tf.nn.softmax(x, 0), (MATRIX,)),
    "log_softmax_grad": (slope(lambda tf, x: tf.nn.log_softmax(x)), (ROWS,)),
    "xent": (lambda tf, x, y: tf.nn.softmax_cross_entropy_with_logits_v2(labels=y, logits=x), (ROWS, ROWS)),
    "xent_grad": (
        slope(lambda tf, x, y: tf.nn.softmax_cross_entropy_with_logits_v2(labels=y, logits=x)),
        (ROWS, ROWS),
    ),
    "sparse_xent_grad": (
        slope(lambda tf, x, y: tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=x)),
        (ROWS, LABELS),
    ),
    "sigmoid_xent": (
        lambda tf, x, y: tf.nn.sigmoid_cross_entropy_with_logits(labels=y, logits=x),
        (ROWS, ROWS),
    ),
    "max_pool_3": (lambda tf, x: tf.nn.max_pool(x, **OVERLAP), (IMAGES,)),
    "max_pool_argmax": (lambda tf, x: tf.nn.max_pool_with_argmax(x, **WINDOW)[1], (IMAGES,)),
    "max_pool_argmax_grad": (slope(lambda tf, x: tf.nn.max_pool_with_argmax(x, **WINDOW)[0]), (IMAGES,)),
    "avg_pool_wide": (lambda tf, x: tf.nn.avg_pool(x, [1, 7, 7, 1], [1, 1, 1, 1], "SAME"), (WIDE,)),
    "max_pool_wide": (lambda tf, x: tf.nn.max_pool(x, [1, 7, 7, 1], [1, 1, 1, 1], "SAME"), (WIDE,)),
    "max_pool_wide_grad": (
        slope(lambda tf, x: tf.nn.max_pool(x, [1, 7, 7, 1], [1, 1, 1, 1], "SAME")),
        (WIDE,),
    ),
    "max_pool_3d": (lambda tf, x: tf.nn.max_pool3d(x, 2, 2, "VALID"), (VOLUMES,)),
    "max_pool_3d_grad": (slope(lambda tf, x: tf.nn.max_pool3d(x, 2, 2, "VALID")), (VOLUMES,)),
    "max_pool_3d_3_grad": (slope(lambda tf, x: tf.nn.max_pool3d(x, **CUBES)), (VOLUMES,)),
    "avg_pool_3d": (lambda tf, x: tf.nn.avg_pool3d(x, **CUBES), (VOLUMES,)),
    "avg_pool_3d_grad": (slope(lambda tf, x: tf.nn.avg_pool3d(x, **CUBES)), (VOLUMES,)),
    "fractional_max_pool": (
        lambda tf, x: tf.nn.fractional_max_pool(x, [1, 1.5, 1.5, 1], seed=1, deterministic=True)[0],
        (IMAGES,),
    ),
    "fractional_avg_pool": (
        lambda tf, x: tf.nn.fractional_avg_pool(x, [1, 1.5, 1.5, 1], seed=1, deterministic=True)[0],
        (IMAGES,),
    ),
    "fractional_max_pool_grad": (
        slope(lambda tf, x: tf.nn.fractional_max_pool(x, [1, 1.5, 1.5, 1], seed=1, deterministic=True)[0]),
        (IMAGES,),
    ),
    "conv2d_stride": (conv(2), (IMAGES, KERNEL)),
    "conv2d_stride_grad": (slope(conv(2)), (IMAGES, KERNEL)),
    "conv2d_stride_filter_grad": (slope(conv(2), 1), (IMAGES, KERNEL)),
    "conv2d_wide": (conv(), (WIDE, FIVE)),
    "conv2d_wide_grad": (slope(conv()), (WIDE, FIVE)),
    "conv2d_wide_filter_grad": (slope(conv(), 1), (WIDE, FIVE)),
    "conv2d_point": (conv(), (WIDE, FIVE[:1, :1])),
    "conv2d_point_grad": (slope(conv()), (WIDE, FIVE[:1, :1])),
    "conv2d_point_filter_grad": (slope(conv(), 1), (WIDE, FIVE[:1, :1])),
    "conv2d_pictures": (conv(2), (PICTURES, RANDOM.rand(7, 7, 3, 32).astype(np.float32))),
    "conv2d_pictures_filter_grad": (
        slope(conv(2), 1),
        (PICTURES, RANDOM.rand(7, 7, 3, 32).astype(np.float32)),
    ),
    "conv2d_valid_grad": (slope(conv(1, "VALID")), (WIDE, FIVE)),
    "conv2d_atrous": (conv(rate=2), (IMAGES, KERNEL)),
    "atrous_conv2d": (lambda tf, x, k: tf.nn.atrous_conv2d(x, k, 2, "SAME"), (IMAGES, KERNEL)),
    "conv2d_transpose": (
        lambda tf, x, k: tf.nn.conv2d_transpose(x, k, [16, 128, 128, 32], [1, 2, 2, 1]),
        (IMAGES, KERNEL.transpose(0, 1, 3, 2).copy()),
    ),
    "conv1d": (
        lambda tf, x, k: tf.nn.conv1d(x, k, 1, "SAME"),
        (RANDOM.rand(32, 512, 32).astype(np.float32), FIVE[0, :, :32]),
    ),
    "conv1d_filter_grad": (
        slope(lambda tf, x, k: tf.nn.conv1d(x, k, 1, "SAME"), 1),
        (RANDOM.rand(32, 512, 32).astype(np.float32), FIVE[0, :, :32]),
    ),
    "depthwise_conv2d_grad": (slope(depthwise()), (IMAGES, DEPTH)),
    "depthwise_conv2d_filter_grad": (slope(depthwise(), 1), (IMAGES, DEPTH)),
    "depthwise_conv2d_stride": (depthwise(2), (IMAGES, DEPTH)),
    "depthwise_conv2d_stride_grad": (slope(depthwise(2)), (IMAGES, DEPTH)),
    "depthwise_conv2d_stride_filter_grad": (slope(depthwise(2), 1), (IMAGES, DEPTH)),
    "separable_conv2d": (
        lambda tf, x, d, p: tf.nn.separable_conv2d(x, d, p, [1, 1, 1, 1], "SAME"),
        (IMAGES, DEPTH, RANDOM.rand(1, 1, 32, 32).astype(np.float32)),
    ),
    "conv3d": (conv3d(), (VOLUMES, BLOCK)),
    "conv3d_grad": (slope(conv3d()), (VOLUMES, BLOCK)),
    "conv3d_filter_grad": (slope(conv3d(), 1), (VOLUMES, BLOCK)),
    "conv3d_stride": (conv3d(2), (VOLUMES, BLOCK)),
    "conv3d_stride_grad": (slope(conv3d(2)), (VOLUMES, BLOCK)),
    "conv3d_stride_filter_grad": (slope(conv3d(2), 1), (VOLUMES, BLOCK)),
    "dilation2d": (
        lambda tf, x, k: tf.nn.dilation2d(x, k, [1, 1, 1, 1], [1, 1, 1, 1], "SAME"),
        (IMAGES, KERNEL[:, :, :, 0]),
    ),
    "dilation2d_grad": (
        slope(lambda tf, x, k: tf.nn.dilation2d(x, k, [1, 1, 1, 1], [1, 1, 1, 1], "SAME")),
        (IMAGES, KERNEL[:, :, :, 0]),
    ),
    "dilation2d_filter_grad": (
        slope(lambda tf, x, k: tf.nn.dilation2d(x, k, [1, 1, 1, 1], [1, 1, 1, 1], "SAME"), 1),
        (IMAGES, KERNEL[:, :, :, 0]),
    ),
    "lrn_grad": (slope(lambda tf, x: tf.nn.lrn(x)), (IMAGES,)),
    "batch_norm": (batch_norm(False), (IMAGES, ONES)),
    "batch_norm_training": (batch_norm(True), (IMAGES, ONES)),
    "batch_norm_grad": (slope(batch_norm(False)), (IMAGES, ONES)),
    "batch_norm_training_grad": (slope(batch_norm(True)), (IMAGES, ONES)),
    "batch_norm_scale_grad": (slope(batch_norm(True), 1), (IMAGES, ONES)),
    "l2_normalize": (lambda tf, x: tf.nn.l2_normalize(x, 1), (ROWS,)),
    "dropout_grad": (slope(lambda tf, x: tf.nn.dropout(x, 0.5, seed=1)), (MATRIX,)),
    "ctc_loss": (ctc, (LOGITS,)),
    "ctc_loss_grad": (slope(ctc), (LOGITS,)),
    "ctc_greedy_decoder": (lambda tf, x: tf.nn.ctc_greedy_decoder(x, [50] * 32)[0][0].values, (LOGITS,)),
    "ctc_beam_search": (
        lambda tf, x: tf.nn.ctc_beam_search_decoder(x, [50] * 32, 10)[0][0].values,
        (LOGITS,),
    ),
    "lstm_block_cell": (
        lambda tf, x, w: tf.raw_ops.LSTMBlockCell(
            x=x, cs_prev=x, h_prev=x, w=w, wci=x[0], wcf=x[0], wco=x[0], b=w[0]
        )[6],
        (ROWS[:512], RANDOM.rand(512, 1024).astype(np.float32)),
    ),
    "resize_bilinear_down": (lambda tf, x: tf.image.resize_bilinear(x, [60, 60]), (PICTURES,)),
    "resize_bilinear_bytes": (lambda tf, x: tf.image.resize_bilinear(x, [200, 200]), (BYTES,)),
    "resize_nearest_grad": (
        slope(lambda tf, x: tf.image.resize_nearest_neighbor(x, [200, 200])),
        (PICTURES,),
    ),
    "resize_bicubic_grad": (slope(lambda tf, x: tf.image.resize_bicubic(x, [200, 200])), (PICTURES,)),
    "resize_area_up": (lambda tf, x: tf.image.resize_area(x, [200, 200]), (PICTURES,)),
    "crop_and_resize_grad": (
        slope(
            lambda tf, x: tf.image.crop_and_resize(x, [[0.1, 0.1, 0.8, 0.9]] * 8, list(range(8)), [100, 100])
        ),
        (PICTURES,),
    ),
    "crop_and_resize_nearest": (
        lambda tf, x: tf.image.crop_and_resize(
            x, [[0.1, 0.1, 0.8, 0.9]] * 8, list(range(8)), [100, 100], method="nearest"
        ),
        (PICTURES,),
    ),
    "hsv_to_rgb": (lambda tf, x: tf.image.hsv_to_rgb(x), (PICTURES,)),
    "rgb_to_grayscale": (lambda tf, x: tf.image.rgb_to_grayscale(x), (PICTURES,)),
    "adjust_saturation": (lambda tf, x: tf.image.adjust_saturation(x, 0.5), (PICTURES,)),
    "adjust_brightness": (lambda tf, x: tf.image.adjust_brightness(x, 0.1), (BYTES,)),
    "convert_image_dtype": (lambda tf, x: tf.image.convert_image_dtype(x, tf.float32), (BYTES,)),
    "standardize": (lambda tf, x: tf.map_fn(tf.image.per_image_standardization, x), (PICTURES,)),
    "rot90": (lambda tf, x: tf.image.rot90(x), (PICTURES,)),
    "sobel_edges": (lambda tf, x: tf.image.sobel_edges(x), (PICTURES,)),
    "total_variation": (lambda tf, x: tf.image.total_variation(x), (PICTURES,)),
    "ssim": (lambda tf, x, y: tf.image.ssim(x, y, 1.0), (PICTURES, PICTURES[::-1].copy())),
    "psnr": (lambda tf, x, y: tf.image.psnr(x, y, 1.0), (PICTURES, PICTURES[::-1].copy())),
    "extract_patches_grad": (
        slope(lambda tf, x: tf.extract_image_patches(x, [1, 3, 3, 1], [1, 2, 2, 1], [1, 1, 1, 1], "SAME")),
        (PICTURES,),
    ),
    "extract_glimpse": (lambda tf, x: tf.image.extract_glimpse(x, [64, 64], tf.zeros([8, 2])), (PICTURES,)),
    "draw_bounding_boxes": (
        lambda tf, x, b: tf.image.draw_bounding_boxes(x, tf.reshape(b[:80], [8, 10, 4])),
        (PICTURES, BOXES),
    ),
    "non_max_suppression": (
        lambda tf, b, s: tf.image.non_max_suppression(b, s[:2000], 200),
        (BOXES, FLAT[:2000]),
    ),
    "combined_non_max_suppression": (
        lambda tf, b, s: tf.image.combined_non_max_suppression(
            tf.reshape(b, [4, 500, 1, 4]), tf.reshape(s, [4, 500, 10]), 20, 100
        ),
        (BOXES, FLAT[:20000]),
    ),
    "fake_quant_vars_grad": (slope(lambda tf, x: tf.fake_quant_with_min_max_vars(x, 0.2, 0.8)), (MATRIX,)),
    "fake_quant_channels": (
        lambda tf, x, m: tf.fake_quant_with_min_max_vars_per_channel(x, -m, m),
        (IMAGES, ONES),
    ),
    "quantize": (lambda tf, x: tf.quantize(x, 0.0, 1.0, tf.quint8)[1], (MATRIX,)),
    "quantize_and_dequantize": (
        lambda tf, x: tf.quantization.quantize_and_dequantize(x, 0.0, 1.0),
        (MATRIX,),
    ),
    "embedding_lookup_sparse": (
        lambda tf, x, i: tf.nn.embedding_lookup_sparse(
            x,
            tf.SparseTensor(
                tf.stack([tf.range(20000, dtype=tf.int64) // 10] * 2, 1), tf.cast(i, tf.int64), [2000, 2000]
            ),
            None,
            combiner="mean",
        ),
        (ROWS, INDICES),
    ),
    "sampled_softmax": (
        lambda tf, w, y: tf.nn.sampled_softmax_loss(
            w, tf.zeros([4096]), tf.cast(y[:512, None], tf.int64), w[:512], 64, 4096, seed=1
        ),
        (ROWS, LABELS),
    ),
}

"""Names from before TensorFlow 1.0, which old scripts still use. Each warns once and points to its successor."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from tensorfleet.base import logging
from tensorfleet.base.naming import find, publish

# old name -> new name, with the old argument names where they differ.
NAMES: dict[str, tuple[str, dict[str, str]]] = {
    "mul": ("multiply", {}),
    "sub": ("subtract", {}),
    "neg": ("negative", {}),
    "inv": ("reciprocal", {}),
    "pack": ("stack", {}),
    "unpack": ("unstack", {}),
    "select": ("where", {"t": "x", "e": "y"}),
    "batch_matmul": ("matmul", {"x": "a", "y": "b", "adj_x": "adjoint_a", "adj_y": "adjoint_b"}),
    "batch_matrix_diag": ("matrix_diag", {}),
    "batch_matrix_diag_part": ("matrix_diag_part", {}),
    "batch_matrix_transpose": ("matrix_transpose", {}),
    "batch_matrix_band_part": ("matrix_band_part", {}),
    "batch_matrix_set_diag": ("matrix_set_diag", {}),
    "batch_matrix_inverse": ("matrix_inverse", {}),
    "batch_matrix_determinant": ("matrix_determinant", {}),
    "batch_matrix_solve": ("matrix_solve", {}),
    "batch_cholesky": ("cholesky", {}),
    "batch_fft": ("fft", {}),
    "batch_ifft": ("ifft", {}),
    "batch_fft2d": ("fft2d", {}),
    "batch_fft3d": ("fft3d", {}),
    "batch_ifft2d": ("ifft2d", {}),
    "batch_ifft3d": ("ifft3d", {}),
    "batch_cholesky_solve": ("cholesky_solve", {}),
    "batch_matrix_solve_ls": ("matrix_solve_ls", {}),
    "batch_matrix_triangular_solve": ("matrix_triangular_solve", {}),
    "batch_self_adjoint_eig": ("self_adjoint_eig", {}),
    "batch_self_adjoint_eigvals": ("self_adjoint_eigvals", {}),
    "batch_svd": ("svd", {}),
    "concat_v2": ("concat", {"concat_dim": "axis"}),
    "split_v": ("split", {"size_splits": "num_or_size_splits", "split_dim": "axis"}),
    "image.per_image_whitening": ("image.per_image_standardization", {}),
    "nn.rnn": ("nn.static_rnn", {}),
    "nn.bidirectional_rnn": ("nn.static_bidirectional_rnn", {}),
    "nn.state_saving_rnn": ("nn.static_state_saving_rnn", {}),
    "complex_abs": ("abs", {}),
    "listdiff": ("setdiff1d", {}),
    "train.SyncReplicasOptimizerV2": ("train.SyncReplicasOptimizer", {}),
}
_warned: set[str] = set()


def _warn(old: str, new: str) -> None:
    if old not in _warned:
        _warned.add(old)
        logging.get_logger().warning("tf.%s is now tf.%s.", old, new, stacklevel=3)


def _forward(old: str, new: str, keywords: dict[str, str]) -> Callable:
    target = find(new)

    @functools.wraps(target)
    def call(*args: Any, **kwargs: Any) -> Any:
        _warn(old, new)
        return target(*args, **{keywords.get(k, k): v for k, v in kwargs.items()})

    call.__name__ = call.__qualname__ = old
    call.__doc__ = f"The name of `tf.{new}` before TensorFlow 1.0."
    return call


for _old, (_new, _keywords) in NAMES.items():
    publish(_forward(_old, _new, _keywords), _old)

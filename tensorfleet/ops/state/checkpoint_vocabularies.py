"""Tensors of checkpoints whose rows or columns follow a vocabulary, for another vocabulary."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorfleet.base import errors
from tensorfleet.base.files import GFile
from tensorfleet.base.formats.checkpoint_v1 import open_checkpoint
from tensorfleet.base.shapes import TensorShape
from tensorfleet.base.types import Array
from tensorfleet.graph.kernel_types import HostContext
from tensorfleet.graph.registry import not_differentiable, op


def _lines(path: Any) -> list[str]:
    with GFile(bytes(path.item() if hasattr(path, "item") else path).decode()) as f:
        return [line.rstrip("\n") for line in f]


@op(
    "GenerateVocabRemapping",
    "new_vocab_file: string[0], old_vocab_file: string[0] -> remapping: int64, num_present: int32",
    "new_vocab_offset: int; num_new_vocab: int; old_vocab_size: int = -1",
    shape=lambda op: [TensorShape([op._attrs["num_new_vocab"]]), TensorShape([])],
    host=True,
)
def _generate_vocab_remapping(
    ctx: HostContext,
    new: Array,
    old: Array,
    *,
    new_vocab_offset: int,
    num_new_vocab: int,
    old_vocab_size: int,
) -> tuple[Array, np.int32]:
    before = _lines(old)
    if old_vocab_size >= 0:
        before = before[:old_vocab_size]
    places = {word: i for i, word in enumerate(before)}
    words = _lines(new)
    if new_vocab_offset + num_new_vocab > len(words):
        raise errors.invalid(
            f"Expected {num_new_vocab} lines from {new_vocab_offset} on, the file has {len(words)}."
        )
    wanted = words[new_vocab_offset : new_vocab_offset + num_new_vocab]
    old_ids = np.array([places.get(word, -1) for word in wanted], np.int64)
    return old_ids, np.int32((old_ids >= 0).sum())


@op(
    "LoadAndRemapMatrix",
    "ckpt_path: string, old_tensor_name: string[0], row_remapping: int64[1], col_remapping: int64[1], "
    "initializing_values: float -> output_matrix: float",
    "num_rows: int; num_cols: int; max_rows_in_memory: int = -1",
    shape=lambda op: TensorShape([op._attrs["num_rows"], op._attrs["num_cols"]]),
    host=True,
    stateful=True,
)
def _load_and_remap_matrix(
    ctx: HostContext,
    path: Array,
    name: Array,
    rows: Array,
    columns: Array,
    initial: Array,
    *,
    num_rows: int,
    num_cols: int,
    max_rows_in_memory: int,
) -> Array:
    old = open_checkpoint(np.asarray(path).item().decode()).read(np.asarray(name).item().decode())
    rows = np.asarray(rows)
    columns = np.asarray(columns) if np.size(columns) else np.arange(num_cols)
    if rows.shape != (num_rows,) or columns.shape != (num_cols,):
        raise errors.invalid(
            f"remapping sizes must be {num_rows} and {num_cols}: {rows.size}, {columns.size}"
        )
    for places, size in ((rows, old.shape[0]), (columns, old.shape[1])):
        if places.size and places.max() >= size:
            raise errors.invalid(
                f"remapping id {places.max()} is out of range: the old tensor has {old.shape}"
            )
    for places in (rows, columns):
        used, counts = np.unique(places[places >= 0], return_counts=True)
        if (counts > 1).any():
            old_id = used[np.argmax(counts > 1)]
            both = np.flatnonzero(places == old_id)[:2]
            raise errors.UnimplementedError(
                None,
                None,
                f"Old ID {old_id} is mapped to both new ID {both[0]} and {both[1]}, which is not currently supported.",
            )
    kept = (rows[:, None] >= 0) & (columns[None, :] >= 0)
    missing = int((~kept).sum())
    if np.size(initial) != missing:
        raise errors.invalid(
            f"initializing_values contains {np.size(initial)} elements, but {missing} are missing."
        )
    result = np.empty((num_rows, num_cols), np.float32)
    result[kept] = old[np.maximum(rows, 0)][:, np.maximum(columns, 0)][kept]
    result[~kept] = np.ravel(initial)
    return result


not_differentiable("GenerateVocabRemapping", "LoadAndRemapMatrix")

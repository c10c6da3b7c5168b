"""Matrices of checkpoints whose rows or columns follow a vocabulary, as initial values for another vocabulary."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from tensorfleet.api.variables.initializers import Zeros
from tensorfleet.base import dtypes
from tensorfleet.base.naming import export
from tensorfleet.base.shapes import as_shape
from tensorfleet.base.types import DTypeLike, ShapeLike, TensorLike
from tensorfleet.graph.apply import apply, apply_list
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Tensor

if TYPE_CHECKING:
    from tensorfleet.api.train.types import PathLike
    from tensorfleet.api.variables.partitioned import PartitionInfo


@export("contrib.framework.load_and_remap_matrix", "python.training.checkpoint_ops._load_and_remap_matrix")
def load_and_remap_matrix(
    ckpt_path: PathLike | Sequence[str],
    old_tensor_name: str,
    new_row_vocab_offset: int,
    num_rows_to_load: int,
    new_col_vocab_size: int,
    initializer: Callable[..., TensorLike],
    old_row_vocab_size: int = -1,
    old_row_vocab_file: str | None = None,
    new_row_vocab_file: str | None = None,
    old_col_vocab_file: str | None = None,
    new_col_vocab_file: str | None = None,
    num_row_oov_buckets: int = 0,
    num_col_oov_buckets: int = 0,
    max_rows_in_memory: int = -1,
) -> Tensor:
    """A saved matrix with its rows and columns where the words of the new vocabularies are.

    Without vocabulary files rows or columns stay as they are. `initializer` gives the values of new words and of
    the buckets for unknown ones, which come last.
    """
    rows, old_rows = _places(
        new_row_vocab_file, old_row_vocab_file, new_row_vocab_offset, num_rows_to_load, old_row_vocab_size
    )
    columns, old_columns = _places(new_col_vocab_file, old_col_vocab_file, 0, new_col_vocab_size)
    missing = num_rows_to_load * new_col_vocab_size - old_rows * old_columns
    matrix = apply(
        "LoadAndRemapMatrix",
        ckpt_path[0] if isinstance(ckpt_path, (list, tuple)) else ckpt_path,
        old_tensor_name,
        rows,
        columns,
        apply("Reshape", to_tensor(initializer([missing, 1]), dtypes.float32), [-1]),
        num_rows=num_rows_to_load,
        num_cols=new_col_vocab_size,
        max_rows_in_memory=max_rows_in_memory,
    )
    if num_row_oov_buckets > 0:
        matrix = apply(
            "ConcatV2", [matrix, to_tensor(initializer([num_row_oov_buckets, new_col_vocab_size]))], 0
        )
    if num_col_oov_buckets > 0:
        shape = [num_rows_to_load + num_row_oov_buckets, num_col_oov_buckets]
        matrix = apply("ConcatV2", [matrix, to_tensor(initializer(shape))], 1)
    return matrix


def _places(new: str | None, old: str | None, first: int, count: int, old_size: int = -1) -> Sequence[Any]:
    """Where in the checkpoint each row (or column) is, -1 for nowhere, and how many are somewhere."""
    if new and old:
        return apply_list(
            "GenerateVocabRemapping",
            new,
            old,
            new_vocab_offset=first,
            num_new_vocab=count,
            old_vocab_size=old_size,
        )
    if new or old or old_size != -1:
        raise ValueError(
            "A new vocabulary needs the old one, and the other way round: give both files or none."
        )
    return to_tensor(list(range(first, first + count)), dtypes.int64), count


@export(
    "contrib.framework.load_and_remap_matrix_initializer",
    "python.training.checkpoint_ops._load_and_remap_matrix_initializer",
)
def load_and_remap_matrix_initializer(
    ckpt_path: PathLike | Sequence[str],
    old_tensor_name: str,
    new_row_vocab_size: int,
    new_col_vocab_size: int,
    old_row_vocab_size: int = -1,
    old_row_vocab_file: str | None = None,
    new_row_vocab_file: str | None = None,
    old_col_vocab_file: str | None = None,
    new_col_vocab_file: str | None = None,
    num_row_oov_buckets: int = 0,
    num_col_oov_buckets: int = 0,
    initializer: Callable[..., TensorLike] | None = None,
    max_rows_in_memory: int = -1,
) -> Callable[..., Tensor]:
    """An initializer, for a variable whole or cut by rows, that is `load_and_remap_matrix`."""
    others: Callable[..., TensorLike] = initializer or Zeros()

    def initial(
        shape: ShapeLike, dtype: DTypeLike = dtypes.float32, partition_info: PartitionInfo | None = None
    ) -> Tensor:
        if dtypes.as_dtype(dtype) != dtypes.float32:
            raise TypeError(f"Currently, only float32 is supported. Received dtype: {dtype}")
        sizes = as_shape(shape).as_list()
        if len(sizes) != 2 or sizes[1] != new_col_vocab_size + num_col_oov_buckets:
            raise ValueError(
                f"The variable has the shape {sizes}; the vocabulary and its buckets make a matrix of "
                f"{new_col_vocab_size + num_col_oov_buckets} columns."
            )
        first = 0 if partition_info is None else partition_info.single_offset(sizes)
        known = min(max(new_row_vocab_size - first, 0), sizes[0])
        return load_and_remap_matrix(
            ckpt_path,
            old_tensor_name,
            min(first, new_row_vocab_size),
            known,
            new_col_vocab_size,
            others,
            old_row_vocab_size,
            old_row_vocab_file,
            new_row_vocab_file,
            old_col_vocab_file,
            new_col_vocab_file,
            sizes[0] - known,
            num_col_oov_buckets,
            max_rows_in_memory,
        )

    return initial


@export(
    "contrib.framework.load_embedding_initializer",
    "python.training.checkpoint_ops._load_embedding_initializer",
)
def load_embedding_initializer(
    ckpt_path: PathLike | Sequence[str],
    embedding_tensor_name: str,
    new_vocab_size: int,
    embedding_dim: int,
    old_vocab_file: str,
    new_vocab_file: str,
    old_vocab_size: int = -1,
    num_oov_buckets: int = 0,
    initializer: Callable[..., TensorLike] | None = None,
    max_rows_in_memory: int = -1,
) -> Callable[..., Tensor]:
    """An initializer of embeddings from those of a checkpoint; words without one have `initializer`'s values."""
    from tensorfleet.api.variables.initializers import TruncatedNormal

    return load_and_remap_matrix_initializer(
        ckpt_path,
        embedding_tensor_name,
        new_vocab_size,
        embedding_dim,
        old_vocab_size,
        old_vocab_file,
        new_vocab_file,
        num_row_oov_buckets=num_oov_buckets,
        initializer=initializer or TruncatedNormal(stddev=embedding_dim**-0.5),
        max_rows_in_memory=max_rows_in_memory,
    )

"""Lookups of sparse ids under the names of `tf.contrib.layers`."""

from __future__ import annotations

from typing import Any

from tensorfleet.api.nn import embedding_sparse
from tensorfleet.base import dtypes, logging
from tensorfleet.base.naming import export, find
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import name_scope

_SEGMENTS = {"sum": "sparse_segment_sum", "mean": "sparse_segment_mean", "sqrtn": "sparse_segment_sqrt_n"}


@export("contrib.layers.safe_embedding_lookup_sparse")
def safe_embedding_lookup_sparse(
    embedding_weights: Any,
    sparse_ids: Any,
    sparse_weights: Any = None,
    combiner: Any = None,
    default_id: Any = None,
    name: str | None = None,
    partition_strategy: str = "div",
    max_norm: Any = None,
) -> Tensor:
    """See `tf.nn.safe_embedding_lookup_sparse`; the combiner is "mean" unless another is asked for."""
    if combiner is None:
        logging.warn('The default value of combiner will change from "mean" to "sqrtn" after 2016/11/01.')
        combiner = "mean"
    return embedding_sparse.safe_embedding_lookup_sparse(**locals())


@export("contrib.layers.embedding_lookup_unique")
def embedding_lookup_unique(
    params: Any, ids: Any, partition_strategy: str = "mod", name: str | None = None
) -> Tensor:
    """`tf.nn.embedding_lookup` that looks up each id once, however often it is asked for."""
    with name_scope(name, "EmbeddingLookupUnique", [ids]):
        ids = to_tensor(ids)
        each, places = find("unique")(find("reshape")(ids, [-1]))
        rows = find("nn.embedding_lookup")(params, each, partition_strategy)
        sizes = find("concat")([find("shape")(ids), find("shape")(rows)[1:]], 0)
        result = find("reshape")(find("gather")(rows, places), sizes)
        result.set_shape(ids.shape.concatenate(rows.shape[1:]))
        return result


@export("contrib.layers.scattered_embedding_lookup")
def scattered_embedding_lookup(
    params: Any, values: Any, dimension: int, name: str | None = None, hash_key: int | None = None
) -> Tensor:
    """Embeddings of any values: each number is the parameter at the hash of the value and the number's place."""
    if dimension is None:
        raise ValueError("You must specify dimension.")
    if dimension <= 0:
        raise ValueError(f"Dimension must be >0. Given is {dimension}")
    parts = (
        list(params) if isinstance(params, (list, tuple)) or hasattr(params, "_get_partitions") else [params]
    )
    with name_scope(name, "scattered_embedding_lookup", [values]):
        values = to_tensor(values)
        sizes = [part.shape.as_list() for part in parts]
        total = sum(size[0] for size in sizes)
        for i, size in enumerate(sizes):
            if len(size) != 1:
                raise ValueError(f"Shape {tuple(size)} must have rank 1")
            if size[0] != (expected := (total - i - 1) // len(parts) + 1):
                raise ValueError(f"Tensor {i} in params has size {size[0]}, expected {expected}.")
        flat = find("reshape")(values, [-1, 1])
        places = find("tile")(find("expand_dims")(find("range")(dimension), 0), find("shape")(flat))
        crossed = find("sparse.cross_hashed")([places, flat], total, hash_key)
        ids = find("sparse_tensor_to_dense")(crossed)
        output = find("nn.embedding_lookup")(parts, ids, "div")
        return find("reshape")(output, find("concat")([find("shape")(values), [dimension]], 0))


@export("contrib.layers.scattered_embedding_lookup_sparse")
def scattered_embedding_lookup_sparse(
    params: Any,
    sparse_values: Any,
    dimension: int,
    combiner: str | None = None,
    default_value: Any = None,
    name: str | None = None,
    hash_key: int | None = None,
) -> Tensor:
    """The scattered embeddings of the values of each row, added up as the combiner says."""
    if combiner is None:
        logging.warn('The default value of combiner will change from "mean" to "sqrtn" after 2016/11/01.')
        combiner = "mean"
    if not isinstance(sparse_values, find("SparseTensor")):
        raise TypeError("sparse_values must be SparseTensor")
    if combiner not in _SEGMENTS:
        raise ValueError("Combiner must be one of 'mean', 'sqrtn' or 'sum'.")
    with name_scope(name, "scattered_embedding_lookup_sparse", [sparse_values]) as scope:
        if default_value is None:  # TensorFlow's, so that rows without values get the same parameters
            default_value = "6ZxWzWOHxZ" if sparse_values.dtype == dtypes.string else 1288896567
        filled, _ = find("sparse_fill_empty_rows")(sparse_values, default_value)
        each, places = find("unique")(filled.values)
        rows = scattered_embedding_lookup(params, each, dimension, hash_key=hash_key)
        segments = find("cast")(filled.indices[:, 0], dtypes.int32)
        return find(_SEGMENTS[combiner])(rows, places, segments, name=scope)

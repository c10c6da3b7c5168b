"""Lookups of sparse ids under the names of `tf.contrib.layers`."""

from __future__ import annotations

from typing import Any

from tensorfleet.api import export
from tensorfleet.graph.operation import Tensor
from tensorfleet.nn import embedding_sparse
from tensorfleet.platform import logging


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
    return embedding_sparse.safe_embedding_lookup_sparse(
        embedding_weights,
        sparse_ids,
        sparse_weights,
        combiner,
        default_id,
        name,
        partition_strategy,
        max_norm,
    )

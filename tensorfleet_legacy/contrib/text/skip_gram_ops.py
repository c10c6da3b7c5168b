"""`tf.contrib.text`: pairs of words that stand near each other, as word2vec is trained with."""

from __future__ import annotations

import csv
from typing import Any

from tensorfleet.base import dtypes
from tensorfleet.base.naming import find
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import name_scope


def skip_gram_sample(
    input_tensor: Any,
    min_skips: Any = 1,
    max_skips: Any = 5,
    start: Any = 0,
    limit: Any = -1,
    emit_self_as_target: Any = False,
    vocab_freq_table: Any = None,
    vocab_min_count: Any = None,
    vocab_subsampling: float | None = None,
    corpus_size: Any = None,
    batch_size: int | None = None,
    batch_capacity: int | None = None,
    seed: int | None = None,
    name: str | None = None,
) -> tuple[Tensor, Tensor]:
    """Tokens and their neighbours: as many on both sides of each token as a random number of skips says."""
    useless = (vocab_min_count, vocab_subsampling, corpus_size)
    if vocab_freq_table is None and any(v is not None for v in useless):
        raise ValueError(
            f"vocab_freq_table is not provided, but vocab_min_count={vocab_min_count}, vocab_subsampling="
            f"{vocab_subsampling}, or corpus_size={corpus_size} is not None. These settings are useless without a "
            "vocab_freq_table."
        )
    if (vocab_subsampling is None) != (corpus_size is None):
        raise ValueError(
            f"vocab_subsampling is {vocab_subsampling} while corpus_size is {corpus_size} - both must be provided in "
            "order for subsampling to work."
        )
    with name_scope(name, "skip_gram_sample", [input_tensor]):
        tokens = to_tensor(input_tensor)
        if vocab_freq_table is not None:
            tokens = _frequent(
                tokens, vocab_freq_table, vocab_min_count, vocab_subsampling, corpus_size, seed
            )
        result = _pairs(tokens, (min_skips, max_skips), (start, limit), emit_self_as_target, seed)
        if batch_size is not None and batch_size > 0:
            capacity = batch_capacity if batch_capacity else 100 * batch_size
            first, second = find("train.batch")(
                list(result), batch_size, capacity=capacity, enqueue_many=True
            )
            return first, second
        return result


def _frequent(tokens: Tensor, table: Any, least: Any, rate: Any, total: Any, seed: Any) -> Tensor:
    """The tokens that are in a table, at least so often; of the most frequent ones some are left out."""
    counts = table.lookup(tokens)
    known = find("not_equal")(counts, table.default_value)
    if least is not None:
        known = find("logical_and")(known, counts >= find("cast")(least, counts.dtype))
    tokens, counts = (find("boolean_mask")(x, known) for x in (tokens, counts))
    if not rate:
        return tokens
    if not 0 <= rate <= 1:
        raise ValueError(f"Invalid vocab_subsampling={rate} - it should be within range [0, 1].")
    allowed = find("cast")(rate, dtypes.float64) * find("cast")(total, dtypes.float64)
    counts = find("cast")(counts, dtypes.float64)
    kept = (find("sqrt")(counts / allowed) + 1.0) * (allowed / counts)
    drawn = find("random_uniform")(find("shape")(counts), dtype=dtypes.float64, seed=seed)
    return find("boolean_mask")(tokens, drawn <= kept)


def _pairs(tokens: Tensor, skips: tuple, bounds: tuple, with_self: Any, seed: Any) -> tuple[Tensor, Tensor]:
    least, most = (to_tensor(s, dtypes.int32) for s in skips)
    begin, limit = (to_tensor(b, dtypes.int32) for b in bounds)
    check = find("Assert")(
        find("logical_and")(least >= 0, most >= least),
        ["min_skips must be >= 0, and max_skips at least min_skips:", least, most],
    )
    size = find("size")(tokens)
    end = find("where")(limit >= 0, find("minimum")(begin + limit, size), size)
    with find("control_dependencies")([check]):
        places = find("range")(begin, find("maximum")(begin, end))
    reach = find("random_uniform")(find("shape")(places), least, most + 1, dtypes.int32, seed)
    steps = find("expand_dims")(find("range")(-most, most + 1), 0)
    others = find("expand_dims")(places, 1) + steps
    near = find("abs")(steps) <= find("expand_dims")(reach, 1)
    inside = find("logical_and")(others >= begin, others < end)
    wanted = find("logical_or")(find("not_equal")(steps, 0), to_tensor(with_self))
    which = find("where")(find("logical_and")(find("logical_and")(near, inside), wanted))
    first = find("gather")(places, which[:, 0])
    return find("gather")(tokens, first), find("gather")(tokens, find("gather_nd")(others, which))


def skip_gram_sample_with_text_vocab(
    input_tensor: Any,
    vocab_freq_file: str,
    vocab_token_index: int = 0,
    vocab_token_dtype: Any = dtypes.string,
    vocab_freq_index: int = 1,
    vocab_freq_dtype: Any = dtypes.float64,
    vocab_delimiter: str = ",",
    vocab_min_count: Any = 0,
    vocab_subsampling: float | None = None,
    corpus_size: Any = None,
    min_skips: Any = 1,
    max_skips: Any = 5,
    start: Any = 0,
    limit: Any = -1,
    emit_self_as_target: Any = False,
    batch_size: int | None = None,
    batch_capacity: int | None = None,
    seed: int | None = None,
    name: str | None = None,
) -> tuple[Tensor, Tensor]:
    """`skip_gram_sample` with the frequencies of words from a file."""
    if vocab_token_index < 0 or vocab_freq_index < 0:
        raise ValueError(
            f"vocab_token_index={vocab_token_index} and vocab_freq_index={vocab_freq_index} must both be >= 0."
        )
    if vocab_token_index == vocab_freq_index:
        raise ValueError(
            f"vocab_token_index and vocab_freq_index should be different, but are both {vocab_token_index}."
        )
    total, size = 0.0, 0
    with find("gfile.GFile")(vocab_freq_file, "r") as file:
        for row in csv.reader(file, delimiter=vocab_delimiter):
            if max(vocab_token_index, vocab_freq_index) >= len(row):
                raise ValueError(
                    f"Row in vocab file only has {len(row)} columns, so vocab_token_index={vocab_token_index} or "
                    f"vocab_freq_index={vocab_freq_index} is out of bounds. Row content: {row}"
                )
            count = float(row[vocab_freq_index])
            if count < 0:
                raise ValueError(f"Row in vocab file has negative frequency of {count}. Row content: {row}")
            total, size = total + count, size + 1
    if corpus_size and total - corpus_size > 1e-6:
        raise ValueError(
            f"`corpus_size`={corpus_size} must be greater than or equal to the sum of all the frequency counts ({total}) "
            f"of `vocab_freq_file` ({vocab_freq_file})."
        )
    lines = find("contrib.lookup.TextFileInitializer")(
        vocab_freq_file,
        vocab_token_dtype,
        vocab_token_index,
        vocab_freq_dtype,
        vocab_freq_index,
        size,
        vocab_delimiter,
    )
    return skip_gram_sample(
        input_tensor,
        min_skips,
        max_skips,
        start,
        limit,
        emit_self_as_target,
        find("contrib.lookup.HashTable")(lines, -1),
        vocab_min_count,
        vocab_subsampling,
        None if vocab_subsampling is None else corpus_size or total,
        batch_size,
        batch_capacity,
        seed,
        name,
    )

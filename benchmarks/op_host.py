"""Rows of benchmarks/ops.py: strings, sparse tensors, codecs, tables, variables."""

from __future__ import annotations

import io
import struct
from typing import Any

import numpy as np
from op_data import FLAT, INDICES, MATRIX, RANDOM, ROWS, WHOLE, Row, first, kept, slope, update

WORDS = np.array([b"word %d of some text" % i for i in RANDOM.randint(0, 50000, 100_000)], object)
NUMBERS = np.array([b"%.4f" % x for x in RANDOM.rand(100_000)], object)
NAMES = np.array([b"w%d" % i for i in range(50_000)], object)
LOOKED_UP = NAMES[RANDOM.randint(0, 50_000, 100_000)]
CSV = np.array([b",".join(b"%.3f" % x for x in row) for row in RANDOM.rand(10_000, 8)], object)
RAW = np.array([RANDOM.bytes(784) for _ in range(2000)], object)
BASE64 = np.array([b"d29yZCA%04d" % (i % 1000) + b"A" for i in range(100_000)], object)
SOME = 50_000


def _picture() -> np.ndarray:
    ys, xs = np.mgrid[0:480, 0:640]
    waves = [np.sin(xs / 31) * np.cos(ys / 17), np.sin(xs / 7), np.cos(ys / 43)]
    noise = RANDOM.randint(0, 20, (480, 640, 3))
    return (np.stack(waves, -1) * 100 + 120 + noise).astype(np.uint8)


PICTURE = _picture()


def encoded(kind: str) -> np.ndarray:
    """The picture as the contents of a file."""
    from PIL import Image

    file = io.BytesIO()
    Image.fromarray(PICTURE).save(file, kind)
    return np.array(file.getvalue(), object)


def examples() -> np.ndarray:
    """Serialized tf.train.Examples: sixteen floats, an integer and a string each."""

    def field(number: int, data: bytes) -> bytes:
        size, out = len(data), bytes([number << 3 | 2])
        while size > 127:
            out, size = out + bytes([size & 127 | 128]), size >> 7
        return out + bytes([size]) + data

    def feature(name: bytes, kind: int, values: bytes) -> bytes:
        return field(1, field(1, name) + field(2, field(kind, values)))

    made = []
    for i in range(2000):
        floats = struct.pack("<16f", *FLAT[i : i + 16])
        parts = [
            feature(b"x", 2, field(1, floats)),
            feature(b"y", 3, field(1, bytes([i & 127]))),
            feature(b"z", 1, field(1, b"text %d" % i)),
        ]
        made.append(field(1, b"".join(parts)))
    return np.array(made, object)


def parsed(tf: Any, x: Any) -> Any:
    shapes = {"x": ([16], tf.float32), "y": ([], tf.int64), "z": ([], tf.string)}
    found = tf.parse_example(x, {k: tf.FixedLenFeature(*v) for k, v in shapes.items()})
    return [found[k] for k in sorted(found)]


def parsed_sparse(tf: Any, x: Any) -> Any:
    kinds = {"x": tf.float32, "y": tf.int64, "z": tf.string}
    found = tf.parse_example(x, {k: tf.VarLenFeature(v) for k, v in kinds.items()})
    return [found[k].values for k in sorted(found)]


def table(tf: Any, x: Any) -> Any:
    """A lookup in a table of strings."""
    keys = tf.constant(NAMES)
    values = tf.range(SOME, dtype=tf.int64)
    entries = tf.lookup.KeyValueTensorInitializer(keys, values)
    return tf.lookup.StaticHashTable(entries, -1).lookup(x)


def sparse(tf: Any, values: Any, seed: int = 0) -> Any:
    """A sparse matrix of 4096 x 1024 with a value at SOME places."""
    places = np.unique(np.random.RandomState(seed).randint(0, 4096 * 1024, 2 * SOME))
    places = np.sort(np.random.RandomState(seed).permutation(places)[:SOME])
    return tf.SparseTensor(np.stack([places // 1024, places % 1024], 1), values[:SOME], [4096, 1024])


def words(tf: Any, flat: Any) -> Any:
    """Strings of ten letters, as a sparse tensor."""
    where = np.stack([np.arange(20000) // 10, np.arange(20000) % 10], 1).astype(np.int64)
    return tf.SparseTensor(where, tf.cast(flat, tf.int64), [2000, 10])


# name -> (function of the library and its inputs, the inputs)
OPS: dict[str, Row] = {
    "string_join": kept(lambda tf, x: tf.string_join([x, x], "-"), WORDS),
    "string_split": kept(lambda tf, x: tf.string_split(x).values, WORDS),
    "string_split_v2": kept(lambda tf, x: tf.strings.split(x, sep="o").values, WORDS[:20000]),
    "string_lower": kept(lambda tf, x: tf.strings.lower(x), WORDS),
    "string_upper_utf8": kept(lambda tf, x: tf.strings.upper(x, encoding="utf-8"), WORDS),
    "string_strip": kept(lambda tf, x: tf.string_strip(x), WORDS),
    "string_length": kept(lambda tf, x: tf.strings.length(x), WORDS),
    "string_length_utf8": kept(lambda tf, x: tf.strings.length(x, unit="UTF8_CHAR"), WORDS),
    "substr": kept(lambda tf, x: tf.substr(x, 2, 6), WORDS),
    "regex_replace": kept(lambda tf, x: tf.regex_replace(x, "[0-9]+", "#"), WORDS),
    "regex_full_match": kept(lambda tf, x: tf.strings.regex_full_match(x, "word 1.*text"), WORDS),
    "string_to_number": kept(lambda tf, x: tf.string_to_number(x), NUMBERS),
    "string_to_number_int": kept(lambda tf, x: tf.string_to_number(tf.substr(x, 2, 4), tf.int32), NUMBERS),
    "as_string": (lambda tf, x: first(tf, tf.as_string(x[:100000])), (FLAT,)),
    "as_string_int": (lambda tf, x: first(tf, tf.as_string(x[:100000])), (WHOLE,)),
    "string_hash_fast": kept(lambda tf, x: tf.string_to_hash_bucket_fast(x, 1000), WORDS),
    "string_hash_strong": kept(lambda tf, x: tf.string_to_hash_bucket_strong(x, 1000, [1, 2]), WORDS),
    "string_hash": kept(lambda tf, x: tf.string_to_hash_bucket(x, 1000), WORDS),
    "reduce_join": kept(lambda tf, x: tf.reduce_join(tf.reshape(x, [-1, 10]), 1), WORDS),
    "encode_base64": kept(lambda tf, x: tf.encode_base64(x), WORDS),
    "decode_base64": kept(lambda tf, x: tf.decode_base64(x), BASE64),
    "unicode_decode": kept(lambda tf, x: tf.strings.unicode_decode(x, "UTF-8").values, WORDS[:20000]),
    "unicode_transcode": kept(
        lambda tf, x: tf.strings.unicode_transcode(x, "UTF-8", "UTF-16-BE"), WORDS[:20000]
    ),
    "string_equal": kept(lambda tf, x: tf.equal(x, x[::-1]), WORDS),
    "string_gather": kept(lambda tf, x, i: tf.gather(x, i), WORDS, INDICES),
    "string_concat": kept(lambda tf, x: tf.concat([x, x], 0), WORDS),
    "string_unique": kept(lambda tf, x: tf.unique(x)[0], WORDS),
    "string_tile": kept(lambda tf, x: tf.tile(x, [3]), WORDS),
    "decode_raw": kept(lambda tf, x: tf.decode_raw(x, tf.uint8), RAW),
    "decode_csv": kept(lambda tf, x: tf.decode_csv(x, [[0.0]] * 8), CSV),
    "parse_example": kept(parsed, examples()),
    "parse_example_sparse": kept(parsed_sparse, examples()),
    "parse_tensor": kept(lambda tf, x: tf.parse_tensor(tf.serialize_tensor(x), tf.float32), MATRIX),
    "table_lookup": kept(table, LOOKED_UP),
    "decode_jpeg": kept(lambda tf, x: tf.image.decode_jpeg(x), encoded("JPEG")),
    "decode_jpeg_gray": kept(lambda tf, x: tf.image.decode_jpeg(x, channels=1), encoded("JPEG")),
    "decode_png": kept(lambda tf, x: tf.image.decode_png(x), encoded("PNG")),
    "decode_gif": kept(lambda tf, x: tf.image.decode_gif(x), encoded("GIF")),
    "decode_bmp": kept(lambda tf, x: tf.image.decode_bmp(x), encoded("BMP")),
    "encode_jpeg": (lambda tf, x: tf.image.encode_jpeg(x), (PICTURE,)),
    "encode_png": (lambda tf, x: tf.image.encode_png(x), (PICTURE,)),
    "edit_distance": (lambda tf, x: tf.edit_distance(words(tf, x % 9), words(tf, x % 7)), (INDICES,)),
    "set_intersection": (
        lambda tf, x: (
            tf.sets.set_intersection(
                tf.reshape(x[:20000], [2000, 10]) % 50, tf.reshape(x[20000:40000], [2000, 10]) % 50
            ).values
        ),
        (WHOLE,),
    ),
    "set_size": (lambda tf, x: tf.sets.set_size(words(tf, x % 9)), (INDICES,)),
    "sparse_matmul": (
        lambda tf, x, v: tf.sparse_tensor_dense_matmul(sparse(tf, v), x[:, :64]),
        (MATRIX, FLAT),
    ),
    "sparse_matmul_grad": (
        slope(lambda tf, x, v: tf.sparse_tensor_dense_matmul(sparse(tf, v), x)),
        (MATRIX[:, :64], FLAT),
    ),
    "sparse_matmul_values_grad": (
        slope(lambda tf, v, x: tf.sparse_tensor_dense_matmul(sparse(tf, v), x)),
        (FLAT[:SOME], MATRIX[:, :64]),
    ),
    "sparse_to_dense": (lambda tf, v: tf.sparse_tensor_to_dense(sparse(tf, v)), (FLAT,)),
    "sparse_add": (lambda tf, v: tf.sparse_add(sparse(tf, v), sparse(tf, v, 1)).values, (FLAT,)),
    "sparse_add_dense": (
        lambda tf, v, x: tf.sparse_add(sparse(tf, v), tf.reshape(x, [4096, 1024])),
        (FLAT, np.tile(FLAT, 4)),
    ),
    "sparse_concat": (lambda tf, v: tf.sparse_concat(1, [sparse(tf, v), sparse(tf, v, 1)]).values, (FLAT,)),
    "sparse_split": (
        lambda tf, v: tf.sparse_split(sp_input=sparse(tf, v), num_split=4, axis=1)[1].values,
        (FLAT,),
    ),
    "sparse_slice": (lambda tf, v: tf.sparse_slice(sparse(tf, v), [10, 10], [2000, 500]).values, (FLAT,)),
    "sparse_reorder": (lambda tf, v: tf.sparse_reorder(tf.sparse_transpose(sparse(tf, v))).values, (FLAT,)),
    "sparse_reshape": (lambda tf, v: tf.sparse_reshape(sparse(tf, v), [1024, -1]).indices, (FLAT,)),
    "sparse_reduce_sum": (lambda tf, v: tf.sparse_reduce_sum(sparse(tf, v), 1), (FLAT,)),
    "sparse_reduce_max": (lambda tf, v: tf.sparse_reduce_max(sparse(tf, v), 0), (FLAT,)),
    "sparse_softmax": (lambda tf, v: tf.sparse_softmax(sparse(tf, v)).values, (FLAT,)),
    "sparse_maximum": (lambda tf, v: tf.sparse_maximum(sparse(tf, v), sparse(tf, v, 1)).values, (FLAT,)),
    "sparse_times_dense": (lambda tf, v, x: (sparse(tf, v) * x[:1]).values, (FLAT, MATRIX)),
    "sparse_fill_empty_rows": (
        lambda tf, v: tf.sparse_fill_empty_rows(sparse(tf, v), 1.0)[0].values,
        (FLAT,),
    ),
    "sparse_retain": (lambda tf, v: tf.sparse_retain(sparse(tf, v), v[:SOME] > 0.5).values, (FLAT,)),
    "sparse_transpose": (lambda tf, v: tf.sparse_transpose(sparse(tf, v)).values, (FLAT,)),
    "serialize_many_sparse": (lambda tf, x: first(tf, tf.serialize_many_sparse(words(tf, x))), (INDICES,)),
    "deserialize_many_sparse": (
        lambda tf, x: tf.deserialize_many_sparse(tf.serialize_many_sparse(words(tf, x)), tf.int64).values,
        (INDICES,),
    ),
    "assign": update(lambda tf, v, x: tf.assign(v, x), MATRIX),
    "assign_add": update(lambda tf, v, x: tf.assign_add(v, x), MATRIX),
    "scatter_add": update(
        lambda tf, v, i, x: tf.scatter_add(v, i[:4096], x), INDICES, ROWS, shape=(4096, 256)
    ),
    "scatter_update": update(
        lambda tf, v, i, x: tf.scatter_update(v, i[:4096], x), INDICES, ROWS, shape=(4096, 256)
    ),
    "scatter_max": update(
        lambda tf, v, i, x: tf.scatter_max(v, i[:4096], x), INDICES, ROWS, shape=(4096, 256)
    ),
    "scatter_nd_add": update(
        lambda tf, v, i, x: tf.scatter_nd_add(v, tf.stack([i % 1024, i // 4], 1), x[:20000]), INDICES, FLAT
    ),
    "scatter_nd_update": update(
        lambda tf, v, i, x: tf.scatter_nd_update(v, i[:4096, None], x), INDICES, ROWS, shape=(4096, 256)
    ),
    "slice_assign": update(lambda tf, v, x: v[10:900, ::2].assign(x[10:900, ::2]), MATRIX),
}

MAKERS: dict[str, Any] = {
    "sgd": lambda tf: tf.train.GradientDescentOptimizer(0.01),
    "momentum": lambda tf: tf.train.MomentumOptimizer(0.01, 0.9),
    "adam": lambda tf: tf.train.AdamOptimizer(0.01),
    "adagrad": lambda tf: tf.train.AdagradOptimizer(0.01),
    "adadelta": lambda tf: tf.train.AdadeltaOptimizer(0.01),
    "rmsprop": lambda tf: tf.train.RMSPropOptimizer(0.01),
    "rmsprop_centered": lambda tf: tf.train.RMSPropOptimizer(0.01, centered=True),
    "ftrl": lambda tf: tf.train.FtrlOptimizer(0.01),
    "proximal_adagrad": lambda tf: tf.train.ProximalAdagradOptimizer(0.01, l1_regularization_strength=0.01),
}


def trained(make: Any) -> Row:
    """A row that applies a gradient to a variable."""
    return update(lambda tf, v, x: make(tf).apply_gradients([(x, v)]), MATRIX)


def trained_rows(make: Any) -> Row:
    """A row that applies a gradient to some rows of a variable."""
    return update(
        lambda tf, v, i, x: make(tf).apply_gradients([(tf.IndexedSlices(x, i[:4096]), v)]),
        INDICES,
        ROWS,
        shape=(4096, 256),
    )


OPS |= {name: trained(make) for name, make in MAKERS.items()}
OPS |= {name + "_rows": trained_rows(make) for name, make in MAKERS.items()}

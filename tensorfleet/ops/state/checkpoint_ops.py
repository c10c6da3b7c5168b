"""Checkpoints as operations: writing tensors to files, reading them back, merging shards."""

from __future__ import annotations

import numpy as np

from tensorfleet.base import errors
from tensorfleet.base.dtypes import DType
from tensorfleet.base.formats.checkpoint_changes import SavedTensor, SavedValues, write_changes
from tensorfleet.base.formats.checkpoint_reader import BundleReader
from tensorfleet.base.formats.checkpoint_v1 import open_checkpoint
from tensorfleet.base.formats.checkpoint_writer import BundleWriter, merge
from tensorfleet.base.formats.tensor_slices import parse_spec
from tensorfleet.base.shapes import TensorShape
from tensorfleet.base.types import Array
from tensorfleet.graph.kernel_types import HostContext
from tensorfleet.graph.operation import Operation
from tensorfleet.graph.registry import not_differentiable, op
from tensorfleet.kernels.aligned_memory import final
from tensorfleet.ops.common import SCALAR, UNKNOWN, static_value
from tensorfleet.ops.samples import case
from tensorfleet.ops.state.queue_ops import shared

#: an attribute of SaveV2 that TensorFlow ignores: each so many saves are full, the others have what changed
FULL_EVERY = "_full_every"
#: the kind of the resource that remembers what was saved
SAVED_VALUES = "saved values"
_CHECKPOINT = "prefix: string, tensor_names: string, shape_and_slices: string"


def _strings(values: Array) -> list[str]:
    return [v.decode() if isinstance(v, bytes) else str(v) for v in np.asarray(values, object).ravel()]


def _text(value: Array) -> str:
    (text,) = _strings(value)
    return text


def _checked(prefix: Array, names: Array, specs: Array, count: int) -> tuple[str, list[str], list[str]]:
    """The arguments that saving and restoring share."""
    if np.size(prefix) != 1 or np.ndim(prefix) > 1:
        raise errors.invalid(f"Input prefix should have a single element, got {np.size(prefix)} instead.")
    for what, value in (("tensor_names", names), ("shape_and_slices", specs)):
        if np.ndim(value) != 1 or np.size(value) != count:
            raise errors.invalid(
                f"Input {what} should be a vector of {count} strings, got shape {np.shape(value)}."
            )
    return _text(prefix), _strings(names), _strings(specs)


@op("SaveV2", f"{_CHECKPOINT}, tensors: list(dtypes) ->", "dtypes: list(type)", host=True, stateful=True)
def _save(
    ctx: HostContext, prefix: Array, names: Array, specs: Array, tensors: list[Array], *, dtypes: list[DType]
) -> tuple[()]:
    path, keys, parts = _checked(prefix, names, specs, len(tensors))
    full_every = ctx.op._attrs.get(FULL_EVERY)
    if full_every is not None:
        saved = shared(ctx, SAVED_VALUES, b"", b"", lambda name: SavedValues())
        found = map(SavedTensor, keys, parts, tensors, dtypes)
        write_changes(saved, path, list(found), full_every, ctx.step.beside_others())
        return ()
    if ctx.step.is_exclusive:
        tensors = [tensor.copy() if type(tensor) is np.ndarray else tensor for tensor in tensors]
    with ctx.step.beside_others(), BundleWriter(path) as writer:
        for key, spec, tensor, dtype in zip(keys, parts, tensors, dtypes, strict=True):
            if spec:
                shape, part = parse_spec(spec)
                writer.add_slice(key, shape, part, tensor, dtype)
            else:
                writer.add(key, tensor, dtype)
    return ()


def _restored_shapes(op: Operation) -> list[TensorShape]:
    count = len(op._attrs["dtypes"])
    op._inputs[1].shape.merge_with(op._inputs[2].shape)
    specs = static_value(op, 2)
    if specs is None or np.size(specs) != count:
        return [UNKNOWN] * count
    shapes = []
    for spec in _strings(specs):
        if not spec:
            shapes.append(UNKNOWN)
            continue
        shape, part = parse_spec(spec)
        shapes.append(TensorShape(part.shape(shape)))
    return shapes


@op(
    "RestoreV2",
    f"{_CHECKPOINT} -> tensors: list(dtypes)",
    "dtypes: list(type)",
    shape=_restored_shapes,
    host=True,
    stateful=True,
)
def _restore(
    ctx: HostContext, prefix: Array, names: Array, specs: Array, *, dtypes: list[DType]
) -> tuple[Array, ...]:
    path, keys, parts = _checked(prefix, names, specs, len(dtypes))
    reader = open_checkpoint(path)
    for key, dtype in zip(keys, dtypes, strict=True):
        stored = reader.dtype(key)
        if stored != dtype:
            text = f"tensor_name = {key}; expected dtype {_c_name(dtype)} does not equal original dtype {_c_name(stored)}"
            raise errors.invalid(text)
    return tuple(_read(reader, key, spec) for key, spec in zip(keys, parts, strict=True))


def _read(reader: BundleReader, key: str, spec: str) -> Array:
    if not spec:
        return final(reader.read(key))
    shape, part = parse_spec(spec)
    stored = reader.shape(key)
    if stored != shape:
        text = f"tensor_name = {key}; shape in shape_and_slice spec {_dims(shape)} does not match the shape stored in checkpoint: {_dims(stored)}"
        raise errors.invalid(text)
    return reader.read(key, part)


def _dims(shape: tuple[int, ...]) -> str:
    return f"[{','.join(map(str, shape))}]"


def _c_name(dtype: DType) -> str:
    return {"float32": "float", "float64": "double", "float16": "half"}.get(dtype.name, dtype.name)


@op(
    "MergeV2Checkpoints",
    "checkpoint_prefixes: string, destination_prefix: string ->",
    "delete_old_dirs: bool = true; allow_missing_files: bool = false",
    host=True,
    stateful=True,
)
def _merge(
    ctx: HostContext, prefixes: Array, destination: Array, *, delete_old_dirs: bool, allow_missing_files: bool
) -> tuple[()]:
    merge(_strings(prefixes), _text(destination), delete_old_dirs, allow_missing_files)
    return ()


@op(
    "ShardedFilename",
    "basename: string[0], shard: int32[0], num_shards: int32[0] -> filename: string",
    shape=lambda op: SCALAR,
    host=True,
    examples=[case(np.array(b"model", object), np.int32(1), np.int32(3))],
)
def _sharded_filename(ctx: HostContext, basename: Array, shard: Array, num_shards: Array) -> Array:
    name = f"{_text(basename)}-{int(shard):05d}-of-{int(num_shards):05d}"
    return np.array(name.encode(), object)


@op(
    "ShardedFilespec",
    "basename: string[0], num_shards: int32[0] -> filename: string",
    shape=lambda op: SCALAR,
    host=True,
    examples=[case(np.array(b"model", object), np.int32(3))],
)
def _sharded_filespec(ctx: HostContext, basename: Array, num_shards: Array) -> Array:
    return np.array(f"{_text(basename)}-?????-of-{int(num_shards):05d}".encode(), object)


not_differentiable("SaveV2", "RestoreV2", "MergeV2Checkpoints", "ShardedFilename", "ShardedFilespec")

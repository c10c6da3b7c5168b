"""`tf.io.decode_proto` and `tf.io.encode_proto`: protocol buffers of any message, as tensors of their fields."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorfleet.base import dtypes, errors
from tensorfleet.base.dtypes import DType
from tensorfleet.base.naming import export
from tensorfleet.base.shapes import TensorShape
from tensorfleet.base.types import Array, Dims, DTypeLike, TensorLike
from tensorfleet.graph.apply import apply, apply_op
from tensorfleet.graph.kernel_types import HostContext
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.registry import not_differentiable, op
from tensorfleet.kernels import proto_fields

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor, FieldDescriptor


def _decoded_shapes(op: Operation) -> list[TensorShape]:
    batch, count = op._inputs[0].shape, len(op._attrs["field_names"])
    return [batch.concatenate([count]), *(batch.concatenate([None]) for _ in range(count))]


def _names(op: Operation) -> list[str]:
    return [name.decode() if isinstance(name, bytes) else name for name in op._attrs["field_names"]]


def _message(op: Operation) -> Descriptor:
    message: Descriptor = proto_fields.message_type(
        op._attrs["message_type"].decode(), op._attrs["descriptor_source"]
    )
    return message


@op(
    "DecodeProtoV2",
    "bytes: string -> sizes: int32, values: list(output_types)",
    "message_type: string; field_names: list(string); output_types: list(type); "
    "descriptor_source: string = 'local://'; message_format: string = 'binary'; sanitize: bool = false",
    shape=_decoded_shapes,
    host=True,
)
def _decode_proto(
    ctx: HostContext, data: Array, *, output_types: list[DType], message_format: bytes
) -> tuple[Array, ...]:
    message, names = _message(ctx.op), _names(ctx.op)
    if len(output_types) != len(names):
        raise errors.invalid("field_names and output_types attributes must have the same length")
    fields = [
        proto_fields.field_of(message, name, dtypes.as_dtype(t))
        for name, t in zip(names, output_types, strict=True)
    ]
    by_number = {field.number: field for field in fields}
    rows = [
        _parsed(message, bytes(text), by_number, message_format) for text in np.asarray(data, object).ravel()
    ]
    sizes = np.array([[len(row[f.number]) for f in fields] for row in rows], np.int32)
    values = [
        _stacked([row[f.number] for row in rows], f, dtypes.as_dtype(t), data.shape)
        for f, t in zip(fields, output_types, strict=True)
    ]
    return (sizes.reshape(*data.shape, len(fields)), *values)


def _parsed(
    message: Descriptor, data: bytes, fields: dict[int, FieldDescriptor], message_format: bytes
) -> dict[int, list[Any]]:
    if message_format not in (b"binary", b"text"):
        raise errors.invalid(f"format string must be 'binary' or 'text': got {message_format.decode()!r}")
    try:
        if message_format == b"text":
            from google.protobuf import message_factory, text_format

            parsed = message_factory.GetMessageClass(message)()
            data = text_format.Parse(data.decode(), parsed).SerializeToString()
        return proto_fields.parsed(data, fields)
    except Exception as e:
        is_text = message_format == b"text"
        what = "Unable to parse text protobuf" if is_text else "CountFields: Failed to consume entire buffer"
        raise errors.DataLossError(None, None, f"{what}: {e}") from e


def _stacked(rows: list[list[Any]], field: FieldDescriptor, dtype: dtypes.DType, batch: Dims) -> Array:
    """The values of all messages, filled up to the longest, and to one at least."""
    longest = max((len(row) for row in rows), default=1) or 1
    table = np.full((len(rows), longest), proto_fields.default_of(field), dtype.np_dtype)
    for i, row in enumerate(rows):
        table[i, : len(row)] = row
    return table.reshape(*batch, longest)


def _encoded_shape(op: Operation) -> TensorShape:
    sizes = op._inputs[0].shape
    return TensorShape(None) if sizes.rank is None else sizes[:-1]


@op(
    "EncodeProto",
    "sizes: int32, values: list(Tinput_types) -> bytes: string",
    "field_names: list(string); message_type: string; descriptor_source: string = 'local://'; "
    "Tinput_types: list(type) >= 1",
    shape=_encoded_shape,
    host=True,
)
def _encode_proto(ctx: HostContext, sizes: Array, values: list[Array]) -> Array:
    message, names = _message(ctx.op), _names(ctx.op)
    if sizes.shape[-1:] != (len(names),):
        raise errors.invalid(
            f"sizes must be batch_size + [field_names.size()], got: {list(sizes.shape)} for {len(names)} fields"
        )
    batch = sizes.shape[:-1]
    for name, value in zip(names, values, strict=True):
        if value.shape[:-1] != batch:
            raise errors.invalid(
                f"Values must match up to the last dimension, got {list(value.shape)} of {name} for {list(batch)}"
            )
    types = [t.dtype.base_dtype for t in ctx.op._inputs[1:]]
    fields = [proto_fields.field_of(message, name, t) for name, t in zip(names, types, strict=True)]
    order = sorted(range(len(fields)), key=lambda i: fields[i].number)
    flat_sizes = sizes.reshape(-1, len(names))
    flat = [value.reshape(len(flat_sizes), value.shape[-1]) for value in values]
    messages = np.empty(len(flat_sizes), object)
    for row in range(len(flat_sizes)):
        messages[row] = b"".join(_field(fields[i], flat[i][row], int(flat_sizes[row, i])) for i in order)
    return messages.reshape(batch)


def _field(field: FieldDescriptor, values: Array, count: int) -> bytes:
    if count > len(values):
        raise errors.invalid(f"Size {count} of field {field.name} is larger than its values: {len(values)}")
    if count > 1 and not proto_fields.is_repeated(field):
        raise errors.invalid(f"Non-repeated field {field.name} has {count} values")
    return proto_fields.written(field, values[:count])


not_differentiable("DecodeProtoV2", "EncodeProto")


@export("io.decode_proto")
def decode_proto(
    bytes: TensorLike,
    message_type: str,
    field_names: Sequence[str],
    output_types: Sequence[DTypeLike],
    descriptor_source: str | bytes = "local://",
    message_format: str = "binary",
    sanitize: bool = False,
    name: str | None = None,
) -> tuple[Tensor, list[Tensor]]:
    """How many values each field of each message has, and the values of each field, filled up to the longest."""
    if not isinstance(field_names, (list, tuple)):
        raise TypeError(
            f"Expected list for 'field_names' argument to 'decode_proto_v2' Op, not {field_names!r}."
        )
    op = apply_op(
        "DecodeProtoV2",
        bytes,
        message_type=message_type,
        field_names=list(field_names),
        output_types=[dtypes.as_dtype(t) for t in output_types],
        descriptor_source=descriptor_source,
        message_format=message_format,
        sanitize=sanitize,
        name=name,
    )
    return op.outputs[0], list(op.outputs[1:])


@export("io.encode_proto")
def encode_proto(
    sizes: TensorLike,
    values: Iterable[TensorLike],
    field_names: Iterable[str],
    message_type: str,
    descriptor_source: str | bytes = "local://",
    name: str | None = None,
) -> Tensor:
    """Serialized messages; `sizes` says how many values of each field a message has."""
    return apply(
        "EncodeProto",
        sizes,
        list(values),
        field_names=list(field_names),
        message_type=message_type,
        descriptor_source=descriptor_source,
        name=name,
    )

"""The messages in which TensorFlow's inside keeps what is known of a handle: `cpp_shape_inference_pb2`."""

from __future__ import annotations

import functools
from typing import Any

from tensorfleet.base.naming import publish_lazily

_OPTIONAL, _REPEATED = 1, 3
_BOOL, _MESSAGE, _ENUM = 8, 11, 14


@functools.cache
def _result() -> Any:
    from google.protobuf import descriptor_pb2, message_factory

    from tensorfleet.base import protos

    shape, kind = protos.TensorShapeProto.DESCRIPTOR, protos.types_pb2.DataType.DESCRIPTOR
    file = descriptor_pb2.FileDescriptorProto(
        name="tensorfleet/shape_messages.proto", package="tensorfleet", syntax="proto3"
    )
    file.dependency.extend(dict.fromkeys([shape.file.name, kind.file.name]))
    whole = file.message_type.add(name="CppShapeInferenceResult")
    one = whole.nested_type.add(name="HandleShapeAndType")
    one.field.add(name="shape", number=1, type=_MESSAGE, label=_OPTIONAL, type_name=f".{shape.full_name}")
    one.field.add(name="dtype", number=2, type=_ENUM, label=_OPTIONAL, type_name=f".{kind.full_name}")
    several = whole.nested_type.add(name="HandleData")
    several.field.add(name="is_set", number=1, type=_BOOL, label=_OPTIONAL)
    inner = ".tensorfleet.CppShapeInferenceResult"
    several.field.add(
        name="shape_and_type",
        number=2,
        type=_MESSAGE,
        label=_REPEATED,
        type_name=f"{inner}.HandleShapeAndType",
    )
    whole.field.add(name="shape", number=1, type=_MESSAGE, label=_OPTIONAL, type_name=f".{shape.full_name}")
    whole.field.add(
        name="handle_data", number=4, type=_MESSAGE, label=_OPTIONAL, type_name=f"{inner}.HandleData"
    )
    pool: Any = shape.file.pool
    pool.Add(file) if hasattr(pool, "Add") else pool.AddSerializedFile(file.SerializeToString())
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("tensorfleet.CppShapeInferenceResult"))


publish_lazily(lambda _: _result(), "python.framework.cpp_shape_inference_pb2.CppShapeInferenceResult")

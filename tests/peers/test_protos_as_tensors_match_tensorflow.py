"""`tf.io.decode_proto` and `tf.io.encode_proto`: TensorFlow's values, for a message of every type of field."""

import numpy as np
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from tests.peers.programs import agree, refuse_alike, walk, walk_errors

F = descriptor_pb2.FieldDescriptorProto
KINDS = {
    "double": "float64",
    "float": "float32",
    "int64": "int64",
    "uint64": "uint64",
    "int32": "int32",
    "fixed64": "uint64",
    "fixed32": "uint32",
    "bool": "bool",
    "string": "string",
    "bytes": "string",
    "uint32": "uint32",
    "sfixed32": "int32",
    "sfixed64": "int64",
    "sint32": "int32",
    "sint64": "int64",
}


def described():
    file = descriptor_pb2.FileDescriptorProto(name="sample_fields.proto", package="sample", syntax="proto2")
    message = file.message_type.add(name="Fields")
    for i, kind in enumerate(KINDS):
        number = getattr(F, f"TYPE_{kind.upper()}")
        message.field.add(name=f"one_{kind}", number=i + 1, type=number, label=F.LABEL_OPTIONAL)
        many = message.field.add(name=f"many_{kind}", number=i + 101, type=number, label=F.LABEL_REPEATED)
        if kind not in ("string", "bytes") and i % 2:
            many.options.packed = True
    nested = dict(type=F.TYPE_MESSAGE, type_name=".sample.Fields")
    message.field.add(name="inner", number=200, label=F.LABEL_REPEATED, **nested)
    message.field.add(name="set", number=201, type=F.TYPE_INT32, label=F.LABEL_OPTIONAL, default_value="7")
    return descriptor_pb2.FileDescriptorSet(file=[file])


FILES = described()
SOURCE = b"bytes://" + FILES.SerializeToString()
pool = descriptor_pool.DescriptorPool()
pool.Add(FILES.file[0])
Fields = message_factory.GetMessageClass(pool.FindMessageTypeByName("sample.Fields"))


def value_of(kind, i):
    if kind in ("string", "bytes"):
        return "x" * i if kind == "string" else b"y" * i
    if kind == "bool":
        return bool(i % 2)
    signed = kind in ("double", "float", "int64", "int32", "sfixed32", "sfixed64", "sint32", "sint64")
    return -i * 1000 if signed and i % 2 else i * 1000


def messages():
    one, two = Fields(), Fields()
    for i, kind in enumerate(KINDS):
        setattr(one, f"one_{kind}", value_of(kind, i))
        getattr(one, f"many_{kind}").extend(value_of(kind, j) for j in range(i % 4))
        getattr(two, f"many_{kind}").extend(value_of(kind, j) for j in range(3))
    one.inner.add(one_int32=5)
    two.inner.add(one_string="deep")
    return np.array([one.SerializeToString(), two.SerializeToString(), b""], object)


DATA = messages()
NAMES = [f"{n}_{kind}" for kind in KINDS for n in ("one", "many")] + ["inner", "set"]
TYPES = [t for t in KINDS.values() for _ in range(2)] + ["string", "int32"]


def decoded(data=DATA, names=NAMES, types=TYPES, **options):
    def program(tf):
        kinds = [getattr(tf, t) for t in types]
        options.setdefault("descriptor_source", SOURCE)
        sizes, values = tf.io.decode_proto(data, "sample.Fields", names, kinds, **options)
        return [sizes, *values]

    return program


def there_and_back(tf):
    kinds = [getattr(tf, t) for t in TYPES]
    sizes, values = tf.io.decode_proto(DATA, "sample.Fields", NAMES, kinds, descriptor_source=SOURCE)
    return tf.io.encode_proto(sizes, values, NAMES, "sample.Fields", descriptor_source=SOURCE)


VALUES = {
    "all fields": decoded(),
    "a matrix of messages": decoded(DATA.reshape(3, 1)),
    "wider types": decoded(names=["one_int32", "many_float"], types=["int64", "float64"]),
    "text": decoded(
        np.array([b"one_int32: 4 many_string: 'a'"], object),
        ["one_int32", "many_string"],
        ["int32", "string"],
        message_format="text",
    ),
    "nothing": decoded(np.array([b""], object), ["one_int32", "many_int32", "set"], ["int32"] * 3),
    "there and back": there_and_back,
}


@walk(VALUES)
def test_values(tensorflow, program):
    agree(tensorflow, program)


ERRORS = {
    "no such message": (
        lambda tf: tf.io.decode_proto(DATA, "sample.None", ["x"], [tf.int32], descriptor_source=SOURCE)[0],
        "No descriptor found for message type sample.None",
    ),
    "no such field": (
        decoded(names=["none"], types=["int32"]),
        "Unknown field: none in message type sample.Fields",
    ),
    "another type": (decoded(names=["one_string"], types=["int32"]), "Unexpected output type"),
    "no message": (
        decoded(np.array([b"\xff\xff"], object), ["set"], ["int32"]),
        "CountFields: Failed to consume entire buffer",
    ),
}


@walk_errors(ERRORS)
def test_errors(tensorflow, program, phrase):
    refuse_alike(tensorflow, program, phrase)

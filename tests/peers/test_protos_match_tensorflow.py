"""Our messages against TensorFlow's: the same names, numbers and types, and nothing forgotten."""

from importlib import import_module

import pytest
from google.protobuf import descriptor_pb2, descriptor_pool
from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor

from tensorfleet.base import protos
from tensorfleet.base.protos._index import MODULE_OF

# Importing these registers TensorFlow's side of every message with protobuf's descriptor pool.
TENSORFLOW_MODULES = (
    "core.example.example_pb2",
    "core.framework.cost_graph_pb2",
    "core.framework.device_attributes_pb2",
    "core.framework.graph_pb2",
    "core.framework.summary_pb2",
    "core.framework.variable_pb2",
    "core.protobuf.config_pb2",
    "core.protobuf.control_flow_pb2",
    "core.protobuf.meta_graph_pb2",
    "core.protobuf.named_tensor_pb2",
    "core.protobuf.queue_runner_pb2",
    "core.protobuf.saved_model_pb2",
    "core.protobuf.tensor_bundle_pb2",
    "core.protobuf.tensorflow_server_pb2",
    "core.profiler.tfprof_log_pb2",
    "core.profiler.tfprof_output_pb2",
    "core.util.event_pb2",
    "core.util.saved_tensor_slice_pb2",
    "python.training.checkpoint_state_pb2",
)


@pytest.fixture(scope="module")
def tensorflow():
    tensorflow = import_module("tensorflow")
    for module in TENSORFLOW_MODULES:
        import_module(f"tensorflow.{module}")
    return tensorflow


def in_tensorflow(full_name: str) -> str:
    package, _, name = full_name.partition(".")
    if package != "tensorfleet":
        return full_name
    profiler = MODULE_OF.get(name.partition(".")[0]) == "profile_pb2"
    return f"tensorflow.tfprof.{name}" if profiler else f"tensorflow.{name}"


def traits(field: FieldDescriptor, rename=lambda name: name) -> dict[str, object]:
    """All of a field that shows on the wire or in Python."""
    kind = field.message_type or field.enum_type
    return {
        "number": field.number,
        "type": field.type,
        "repeated": field.is_repeated,
        "packed": field.is_packed,
        # Keys and values of a map always go on the wire: proto2 and proto3 only word that differently.
        "presence": field.has_presence and not field.containing_type.GetOptions().map_entry,
        "oneof": wire_oneof(field),
        "refers to": rename(kind.full_name) if kind else None,
    }


def wire_oneof(field: FieldDescriptor) -> str | None:
    # A proto3 "optional" is implemented as a oneof of its own, which nobody sees.
    oneof = field.containing_oneof
    return None if oneof is None or oneof.name.startswith("_") else oneof.name


def reserved_numbers(message: Descriptor) -> set[int]:
    proto = descriptor_pb2.DescriptorProto()
    message.CopyToProto(proto)
    return {number for span in proto.reserved_range for number in range(span.start, span.end)}


#: of our own, for options that TensorFlow does not have
OUR_FIELDS = {"tensorfleet.RunOptions.Experimental.trace_by_op"}


def differences(ours: Descriptor, theirs: Descriptor) -> list[str]:
    """Every way in which the two messages, and those nested in them, are not the same."""
    result = []
    reserved = reserved_numbers(ours)
    for name, field in theirs.fields_by_name.items():
        if name not in ours.fields_by_name and field.number not in reserved:
            result.append(f"{ours.full_name} lacks {name} = {field.number}")
    for name, field in ours.fields_by_name.items():
        other = theirs.fields_by_name.get(name)
        if other is None and field.GetOptions().deprecated:
            continue  # 1.15 has it
        if other is None and field.full_name in OUR_FIELDS and field.number >= 1000:
            continue  # far from the numbers that TensorFlow gives
        if other is None:
            result.append(f"{ours.full_name}.{name} is not in TensorFlow")
        elif (mine := traits(field, in_tensorflow)) != (wanted := traits(other)):
            result.append(f"{ours.full_name}.{name}: {mine}, TensorFlow has {wanted}")
    for name, nested in theirs.nested_types_by_name.items():
        if name in ours.nested_types_by_name:
            result += differences(ours.nested_types_by_name[name], nested)
        elif not nested.GetOptions().map_entry:
            result.append(f"{ours.full_name} lacks message {name}")
    for name, enum in theirs.enum_types_by_name.items():
        if name in ours.enum_types_by_name:
            result += enum_differences(ours.enum_types_by_name[name], enum)
        else:
            result.append(f"{ours.full_name} lacks enum {name}")
    return result


def enum_differences(ours: EnumDescriptor, theirs: EnumDescriptor) -> list[str]:
    mine = {value.name: value.number for value in ours.values}
    wanted = {value.name: value.number for value in theirs.values}
    return [f"{ours.full_name} differs in {name}={number}" for name, number in mine.items() ^ wanted.items()]


# Of models in the format from before SavedModel: TensorFlow 2 no longer has it.
GONE = {name for name, module in MODULE_OF.items() if module == "manifest_pb2"}


@pytest.mark.parametrize("name", sorted(MODULE_OF.keys() - GONE))
def test_message_is_the_same_as_tensorflows(tensorflow, name):
    pool = descriptor_pool.Default()
    ours = getattr(protos, name).DESCRIPTOR
    if isinstance(ours, EnumDescriptor):
        result = enum_differences(ours, pool.FindEnumTypeByName(in_tensorflow(ours.full_name)))
    else:
        result = differences(ours, pool.FindMessageTypeByName(in_tensorflow(ours.full_name)))
    assert result == []


def test_a_graph_passes_through_our_messages_unchanged(tensorflow):
    v1 = tensorflow.compat.v1
    with v1.Graph().as_default():
        x = v1.placeholder(v1.float32, [None, 3], name="x")
        w = v1.get_variable("w", [3, 2], use_resource=False)
        loss = v1.reduce_sum(v1.matmul(x, w) + [1.0, 2.0])
        v1.train.GradientDescentOptimizer(0.1).minimize(loss)
        theirs = v1.train.export_meta_graph()
    ours = protos.MetaGraphDef.FromString(theirs.SerializeToString())
    assert [node.name for node in ours.graph_def.node] == [node.name for node in theirs.graph_def.node]
    assert type(theirs).FromString(ours.SerializeToString()) == theirs
    assert str(ours) == str(theirs)

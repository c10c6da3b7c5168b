"""The messages by themselves: lazy access, an index that is complete, values that survive the wire."""

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

from tensorfleet.base import protos
from tensorfleet.base.protos._index import MODULE_OF


def run_python(code: str) -> str:
    """What a fresh interpreter prints: laziness can only be seen where nothing is loaded yet."""
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout


def test_importing_protos_loads_no_messages():
    loaded = run_python("import sys, tensorfleet.base.protos; print(*sys.modules)").split()
    assert "tensorfleet.base.protos" in loaded
    assert not [
        name for name in loaded if name.startswith("tensorfleet.base.protos.") and name.endswith("_pb2")
    ]


def test_a_message_loads_only_the_modules_it_is_made_of():
    loaded = run_python(
        "import sys; from tensorfleet.base import protos; protos.GraphDef\n"
        "print(*[m.rpartition('.')[2] for m in sys.modules if m.startswith('tensorfleet.base.protos.')])"
    ).split()
    assert {name for name in loaded if name.endswith("_pb2")} == {"graph_pb2", "tensor_pb2", "types_pb2"}


@pytest.mark.parametrize("name", sorted(MODULE_OF))
def test_every_indexed_name_resolves_to_a_message_or_enum_of_ours(name):
    descriptor = getattr(protos, name).DESCRIPTOR
    assert descriptor.name == name
    assert descriptor.full_name.split(".")[0] == "tensorfleet"
    assert name in dir(protos)


def test_the_index_lists_everything_the_proto_files_define():
    folder = Path(protos.__file__).parent
    modules = [path.stem + "_pb2" for path in folder.glob("*.proto")]
    defined = {}
    for module in modules:
        file = importlib.import_module(f"tensorfleet.base.protos.{module}").DESCRIPTOR
        defined |= dict.fromkeys([*file.message_types_by_name, *file.enum_types_by_name], module)
    assert defined == MODULE_OF


def test_modules_are_reachable_as_attributes():
    assert protos.types_pb2.DT_FLOAT == 1
    assert protos.types_pb2.DataType is protos.DataType


def test_an_unknown_name_is_an_attribute_error_that_says_so():
    with pytest.raises(AttributeError, match="has no message or enum 'GraphDeff'"):
        _ = protos.GraphDeff


def test_graph_survives_the_wire():
    graph = protos.GraphDef()
    graph.versions.producer = 1882
    node = graph.node.add(name="product", op="MatMul", input=["x", "y", "^init"], device="/job:ps/task:0")
    node.attr["T"].type = protos.types_pb2.DT_FLOAT
    node.attr["transpose_a"].b = True
    node.attr["_output_shapes"].list.shape.add().dim.add(size=-1)
    back = protos.GraphDef.FromString(graph.SerializeToString())
    assert back == graph
    assert back.node[0].attr["transpose_a"].WhichOneof("value") == "b"


def test_config_survives_the_wire():
    config = protos.ConfigProto(device_count={"CPU": 2}, allow_soft_placement=True)
    config.gpu_options.per_process_gpu_memory_fraction = 0.5
    config.graph_options.optimizer_options.global_jit_level = protos.OptimizerOptions.ON_1
    config.graph_options.rewrite_options.constant_folding = protos.RewriterConfig.OFF
    config.cluster_def.job.add(name="worker", tasks={0: "localhost:2222"})
    assert protos.ConfigProto.FromString(config.SerializeToString()) == config


def test_numeric_lists_are_packed():
    tensor = protos.TensorProto(float_val=[1.0, 2.0, 3.0])
    assert tensor.SerializeToString() == b"\x2a\x0c" + bytes.fromhex("0000803f0000004000004040")


def test_fields_we_leave_out_are_kept_as_they_came():
    # Field 7 of MetaGraphDef, an object graph: reserved here, and still handed on unchanged.
    written_by_tensorflow = b"\x3a\x02\x0a\x00"
    assert protos.MetaGraphDef.FromString(written_by_tensorflow).SerializeToString() == written_by_tensorflow

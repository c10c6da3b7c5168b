"""`tensorflow.python.tools.freeze_graph`: a graph and a checkpoint as one graph of constants."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from tensorfleet.api.saved_model import names
from tensorfleet.api.saved_model.loader import load, parse_saved_model
from tensorfleet.api.train.checkpoint_reader import NewCheckpointReader
from tensorfleet.api.train.checkpoint_state import checkpoint_exists
from tensorfleet.api.train.saver import Saver, import_meta_graph
from tensorfleet.base.files import GFile, exists, whole_file
from tensorfleet.base.naming import export
from tensorfleet.graph.apply import apply_op
from tensorfleet.graph.graph import Graph
from tensorfleet.graph.importing import import_graph_def
from tensorfleet.graph.meta_graph import read_meta_graph_file
from tensorfleet.graph.subgraph import convert_variables_to_constants
from tensorfleet.session.session import BaseSession, Session

if TYPE_CHECKING:
    from google.protobuf.message import Message

    from tensorfleet.api.train.types import PathLike
    from tensorfleet.base.protos import GraphDef, MetaGraphDef, SaverDef

_V2 = 2
_VARIABLES = ("Variable", "VariableV2", "VarHandleOp")
_PLACE = "python.tools.freeze_graph."
_Message = TypeVar("_Message", bound="Message")


@export(_PLACE + "freeze_graph")
def freeze_graph(
    input_graph: PathLike | None,
    input_saver: PathLike | None,
    input_binary: bool,
    input_checkpoint: str,
    output_node_names: str,
    restore_op_name: str | None,
    filename_tensor_name: str | None,
    output_graph: PathLike | None,
    clear_devices: bool,
    initializer_nodes: str,
    variable_names_whitelist: str = "",
    variable_names_blacklist: str = "",
    input_meta_graph: PathLike | None = None,
    input_saved_model_dir: PathLike | None = None,
    saved_model_tags: str = names.SERVING,
    checkpoint_version: int = _V2,
) -> GraphDef:
    """Reads a graph, a MetaGraph or a SavedModel from files, and writes it frozen to `output_graph`.

    Node names and tags are separated by commas. Returns the GraphDef.
    """
    from tensorfleet.base.protos import GraphDef, SaverDef

    tags = _names(saved_model_tags)
    graph_def = meta = saver_def = None
    if input_saved_model_dir:
        graph_def = _of_saved_model(input_saved_model_dir, tags)
    elif input_graph:
        graph_def = _message(input_graph, GraphDef(), input_binary)
    elif input_meta_graph:
        meta = read_meta_graph_file(_existing(input_meta_graph))
    if input_saver:
        saver_def = _message(input_saver, SaverDef(), input_binary)
    return freeze_graph_with_def_protos(
        graph_def,
        saver_def,
        input_checkpoint,
        output_node_names,
        restore_op_name,
        filename_tensor_name,
        output_graph,
        clear_devices,
        initializer_nodes,
        variable_names_whitelist,
        variable_names_blacklist,
        meta,
        input_saved_model_dir,
        tags,
        checkpoint_version,
    )


@export(_PLACE + "freeze_graph_with_def_protos")
def freeze_graph_with_def_protos(
    input_graph_def: GraphDef | None,
    input_saver_def: SaverDef | None,
    input_checkpoint: str,
    output_node_names: str,
    restore_op_name: str | None,
    filename_tensor_name: str | None,
    output_graph: PathLike | None,
    clear_devices: bool,
    initializer_nodes: str,
    variable_names_whitelist: str = "",
    variable_names_blacklist: str = "",
    input_meta_graph_def: MetaGraphDef | None = None,
    input_saved_model_dir: PathLike | None = None,
    saved_model_tags: Sequence[str] | None = None,
    checkpoint_version: int = _V2,
) -> GraphDef:
    """As `freeze_graph`, with messages instead of files."""
    if not input_saved_model_dir and not checkpoint_exists(input_checkpoint):
        raise ValueError(f"Input checkpoint '{input_checkpoint}' doesn't exist!")
    if not output_node_names:
        raise ValueError("You need to supply the name of a node to --output_node_names.")
    graph_def: Any = input_meta_graph_def.graph_def if input_meta_graph_def else input_graph_def
    if clear_devices:
        for node in graph_def.node:
            node.device = ""
    with Graph().as_default() as graph, Session(graph=graph) as sess:
        if input_saved_model_dir:
            load(sess, saved_model_tags or [], input_saved_model_dir)
        elif input_meta_graph_def:
            saver = import_meta_graph(input_meta_graph_def, clear_devices=clear_devices)
            if saver is not None:
                saver.restore(sess, input_checkpoint)
        else:
            assert input_graph_def is not None  # one of the three is given
            import_graph_def(input_graph_def, name="")
            _restore(sess, input_saver_def, input_checkpoint)
        if initializer_nodes:
            sess.run(_names(initializer_nodes))
        frozen: GraphDef = convert_variables_to_constants(
            sess,
            graph_def,
            _names(output_node_names),
            _names(variable_names_whitelist) or None,
            _names(variable_names_blacklist) or None,
        )
    if output_graph:
        with GFile(output_graph, "wb") as f:
            f.write(frozen.SerializeToString())
    return frozen


def _names(text: str) -> list[str]:
    return text.replace(" ", "").split(",") if text else []


def _restore(sess: BaseSession, saver_def: SaverDef | None, checkpoint: str) -> None:
    if saver_def is not None:
        Saver(saver_def=saver_def).restore(sess, checkpoint)
        return
    reader = NewCheckpointReader(checkpoint)
    held = {op.name: op.outputs[0] for op in sess.graph.get_operations() if op.type in _VARIABLES}
    saved = reader.get_variable_to_shape_map()
    for name in held:
        whole, is_part, _ = name.rpartition("/part_")
        if is_part and whole in saved:
            raise ValueError(
                "Models containing partition variables cannot be converted from checkpoint files. Pass a SavedModel as "
                "input_saved_model_dir."
            )
    # Tensors that only the checkpoint has, such as slots, were needed for training.
    known = {name: held[name] for name in saved if name in held}
    by_reference = {name: t for name, t in known.items() if t.op.type != "VarHandleOp"}
    for name in known.keys() - by_reference.keys():
        sess.run(apply_op("AssignVariableOp", known[name], reader.get_tensor(name)))
    if by_reference:
        Saver(var_list=by_reference).restore(sess, checkpoint)


def _of_saved_model(folder: PathLike, tags: list[str]) -> GraphDef:
    for meta in parse_saved_model(folder).meta_graphs:
        if set(meta.meta_info_def.tags) == set(tags):
            return meta.graph_def
    raise ValueError(f"The SavedModel in {folder} has no graph with the tags {tags}.")


def _existing(path: PathLike) -> str:
    if not exists(path):
        raise OSError(f"Input file '{path}' does not exist!")
    return os.fspath(path)


def _message(path: PathLike, message: _Message, binary: bool) -> _Message:
    from google.protobuf import text_format

    content = whole_file(_existing(path))
    if binary:
        message.ParseFromString(content)
        return message
    return text_format.Merge(content.decode(), message)

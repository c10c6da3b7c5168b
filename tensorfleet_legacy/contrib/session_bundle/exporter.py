"""`tf.contrib.session_bundle`: models in the format that TensorFlow Serving read before SavedModel."""

from __future__ import annotations

import collections
import os
import re
from collections.abc import Callable, Mapping
from typing import Any

from tensorfleet.api.train.checkpoint_state import write_state
from tensorfleet.api.train.global_step import global_step
from tensorfleet.api.train.saver import import_meta_graph
from tensorfleet.base import files as gfile
from tensorfleet.base.naming import export, publish, publish_lazily
from tensorfleet.graph.constant import constant_value
from tensorfleet.graph.graph import Graph
from tensorfleet.graph.scopes import get_default_graph, get_default_session
from tensorfleet.session.session import Session

_MODULE = "contrib.session_bundle"
_CONSTANTS = {
    "ASSETS_DIRECTORY": "assets",
    "ASSETS_KEY": "serving_assets",
    "GRAPH_KEY": "serving_graph",
    "INIT_OP_KEY": "serving_init_op",
    "META_GRAPH_DEF_FILENAME": "export.meta",
    "SIGNATURES_KEY": "serving_signatures",
    "VARIABLES_FILENAME": "export",
    "VARIABLES_FILENAME_PATTERN": "export-?????-of-?????",
    "VERSION_FORMAT_SPECIFIER": "%08d",
}
for _name, _value in _CONSTANTS.items():
    publish(_value, f"{_MODULE}.constants.{_name}")
_MESSAGES = """
    Signatures Signature RegressionSignature ClassificationSignature GenericSignature TensorBinding AssetFile
"""
_TYPES = {"GraphDef": "tensorflow", "Signatures": "tensorflow.serving", "AssetFile": "tensorflow.serving"}
Path = collections.namedtuple("Path", "path export_version")


def _message(name: str) -> Any:
    from tensorfleet.base import protos

    return getattr(protos, name.rpartition(".")[2])


publish_lazily(_message, *(f"{_MODULE}.manifest_pb2.{name}" for name in _MESSAGES.split()))


@export(f"{_MODULE}.exporter.generic_signature")
def generic_signature(name_tensor_map: Mapping[str, Any]) -> Any:
    """The signature of a model with tensors under these names."""
    signature = _message("Signature")()
    for name, tensor in name_tensor_map.items():
        signature.generic_signature.map[name].tensor_name = tensor.name
    return signature


@export(f"{_MODULE}.exporter.regression_signature")
def regression_signature(input_tensor: Any, output_tensor: Any) -> Any:
    """The signature of a model that gives numbers."""
    signature = _message("Signature")()
    signature.regression_signature.input.tensor_name = input_tensor.name
    signature.regression_signature.output.tensor_name = output_tensor.name
    return signature


@export(f"{_MODULE}.exporter.classification_signature")
def classification_signature(input_tensor: Any, classes_tensor: Any = None, scores_tensor: Any = None) -> Any:
    """The signature of a model that gives classes, scores, or both."""
    signature = _message("Signature")()
    signature.classification_signature.input.tensor_name = input_tensor.name
    if classes_tensor is not None:
        signature.classification_signature.classes.tensor_name = classes_tensor.name
    if scores_tensor is not None:
        signature.classification_signature.scores.tensor_name = scores_tensor.name
    return signature


@export(f"{_MODULE}.exporter.gfile_copy_callback")
def gfile_copy_callback(files_to_copy: Mapping[str, str], export_dir_path: str) -> None:
    """Copies files under new names into a directory, which is made."""
    gfile.makedirs(export_dir_path)
    for source, name in files_to_copy.items():
        gfile.copy(source, os.path.join(export_dir_path, name))


@export(f"{_MODULE}.exporter.Exporter")
class Exporter:
    """Writes a model with its signatures, one directory for each version."""

    def __init__(self, saver: Any) -> None:
        self._saver = saver
        self._files: dict[str, str] = {}
        self._copy: Callable[[Mapping[str, str], str], None] | None = None
        self._has_init = False

    def init(
        self,
        graph_def: Any = None,
        init_op: Any = None,
        clear_devices: bool = False,
        default_graph_signature: Any = None,
        named_graph_signatures: Mapping[str, Any] | None = None,
        assets_collection: Any = None,
        assets_callback: Callable[[Mapping[str, str], str], None] | None = gfile_copy_callback,
    ) -> None:
        """Puts what is exported with the variables into collections of the default graph.

        `graph_def` is the graph to serve where it is not the whole one, `init_op` runs after the variables have been
        restored. `assets_collection` holds constants with the names of files that belong to the model.
        """
        graph = get_default_graph()
        if init_op is not None:
            graph.add_to_collection(_CONSTANTS["INIT_OP_KEY"], init_op)
        if graph_def is not None or clear_devices:
            served = _message("GraphDef")()
            served.CopyFrom(graph_def if graph_def is not None else graph.as_graph_def())
            for node in served.node if clear_devices else ():
                node.device = ""
            graph.add_to_collection(_CONSTANTS["GRAPH_KEY"], _packed(served))
        signatures = _message("Signatures")()
        if default_graph_signature is not None:
            signatures.default_signature.CopyFrom(default_graph_signature)
        for name, signature in (named_graph_signatures or {}).items():
            signatures.named_signatures[name].CopyFrom(signature)
        graph.add_to_collection(_CONSTANTS["SIGNATURES_KEY"], _packed(signatures))
        self._add_assets(graph, assets_collection or [])
        self._copy = assets_callback
        self._has_init = True

    def _add_assets(self, graph: Graph, tensors: Any) -> None:
        for tensor in tensors:
            value = constant_value(tensor)
            if value is None:
                raise ValueError(f"The asset {tensor.name} is not a constant: its file cannot be known.")
            source = os.fsdecode(value.item())
            self._files[source] = os.path.basename(source)
            asset = _message("AssetFile")(filename=self._files[source])
            asset.tensor_binding.tensor_name = tensor.name
            graph.add_to_collection(_CONSTANTS["ASSETS_KEY"], _packed(asset))

    def export(
        self,
        export_dir_base: str,
        global_step_tensor: Any,
        sess: Any = None,
        exports_to_keep: Callable[[list[Path]], list[Path]] | None = None,
    ) -> str:
        """Writes the model below `export_dir_base`, in a directory named by the global step, and returns its path.

        `exports_to_keep` is given all versions there are and says which of them stay.
        """
        if not self._has_init:
            raise RuntimeError("init must be called first")
        sess = sess or get_default_session()
        version = global_step(sess, global_step_tensor)
        target = os.path.join(export_dir_base, _CONSTANTS["VERSION_FORMAT_SPECIFIER"] % version)
        if gfile.exists(target):
            raise RuntimeError(
                "Overwriting exports can cause corruption and are not allowed. "
                f"Duplicate export dir: {target}"
            )
        unfinished = f"{target}-tmp"
        gfile.makedirs(unfinished)
        variables = os.path.join(unfinished, _CONSTANTS["VARIABLES_FILENAME"])
        self._saver.save(sess, variables, write_state=False)
        write_state(unfinished, variables, relative=True)
        if self._copy is not None and self._files:
            self._copy(self._files, os.path.join(unfinished, _CONSTANTS["ASSETS_DIRECTORY"]))
        gfile.rename(unfinished, target)
        if exports_to_keep is not None:
            _clear(export_dir_base, exports_to_keep)
        return target


def _clear(folder: str, exports_to_keep: Callable[[list[Path]], list[Path]]) -> None:
    """Deletes the versions that are not to be kept."""
    names = [name for name in gfile.listdir(folder) if re.fullmatch(r"\d{8,}", name)]
    there = [Path(os.path.join(folder, name), int(name)) for name in sorted(names)]
    kept = exports_to_keep(there)
    for path in there:
        if path not in kept:
            gfile.rmtree(path.path)


def _packed(message: Any) -> Any:
    """A message in an envelope that says TensorFlow's name of its type."""
    from google.protobuf.any_pb2 import Any as Envelope

    name = type(message).__name__
    url = f"type.googleapis.com/{_TYPES[name]}.{name}"
    return Envelope(type_url=url, value=message.SerializeToString(deterministic=True))


@export(f"{_MODULE}.session_bundle.load_session_bundle_from_path")
def load_session_bundle_from_path(
    export_dir: str, target: str = "", config: Any = None, meta_graph_def: Any = None
) -> tuple[Session, Any]:
    """A session with an exported model in a graph of its own, and the model's MetaGraphDef."""
    file = os.path.join(export_dir, _CONSTANTS["META_GRAPH_DEF_FILENAME"])
    if meta_graph_def is None:
        if not gfile.exists(file):
            raise RuntimeError(f"Expected meta graph file missing {file}")
        meta_graph_def = _message("MetaGraphDef").FromString(gfile.whole_file(file))
    graph = Graph()
    with graph.as_default():
        saver = import_meta_graph(meta_graph_def)
    sess = Session(target, graph=graph, config=config)
    if saver is not None:
        saver.restore(sess, os.path.join(export_dir, _CONSTANTS["VARIABLES_FILENAME"]))
    folder = os.path.join(export_dir, _CONSTANTS["ASSETS_DIRECTORY"])
    stored = graph.get_collection(_CONSTANTS["ASSETS_KEY"])
    assets = [_message("AssetFile").FromString(envelope.value) for envelope in stored]
    feeds = {asset.tensor_binding.tensor_name: os.path.join(folder, asset.filename) for asset in assets}
    for operation in graph.get_collection(_CONSTANTS["INIT_OP_KEY"]):
        sess.run(operation, feeds)
    return sess, meta_graph_def

"""`tf.saved_model.load`: SavedModels back into a session."""

from __future__ import annotations

import os
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from tensorfleet.api.saved_model import names
from tensorfleet.api.saved_model.signatures import load_op_from_signature_def
from tensorfleet.api.train.saver import Saver, all_saveable_objects, import_with_elements
from tensorfleet.base import logging
from tensorfleet.base.files import exists, file_path, whole_file
from tensorfleet.base.naming import export
from tensorfleet.base.properties import readonly
from tensorfleet.graph.graph import Graph
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.scopes import get_collection

if TYPE_CHECKING:
    from tensorfleet.api.train.types import PathLike
    from tensorfleet.base.protos import MetaGraphDef, SavedModel
    from tensorfleet.session.session import BaseSession


@export(
    "saved_model.maybe_saved_model_directory",
    "saved_model.loader.maybe_saved_model_directory",
    "saved_model.contains_saved_model",
    "python.saved_model.loader.maybe_saved_model_directory",
)
def maybe_saved_model_directory(export_dir: PathLike) -> bool:
    """Whether a directory holds the file of a SavedModel."""
    return any(exists(path) for path in _files(export_dir))


def _files(export_dir: PathLike) -> list[str]:
    folder = file_path(export_dir)
    return [os.path.join(folder, name) for name in (names.MODEL_FILE, names.MODEL_TEXT_FILE)]


@export("python.saved_model.loader_impl.parse_saved_model", "python.saved_model.loader.parse_saved_model")
def parse_saved_model(export_dir: PathLike) -> SavedModel:
    """The `SavedModel` message of a directory, from its binary or text file."""
    from google.protobuf import message, text_format

    from tensorfleet.base.protos import SavedModel

    binary, text = _files(export_dir)
    path = binary if exists(binary) else text
    if not exists(path):
        raise OSError(
            f"SavedModel file does not exist at: {file_path(export_dir)}/"
            f"{{{names.MODEL_TEXT_FILE}|{names.MODEL_FILE}}}"
        )
    content = whole_file(path)
    try:
        return SavedModel.FromString(content) if path == binary else text_format.Parse(content, SavedModel())
    except (message.DecodeError, text_format.ParseError, UnicodeDecodeError) as e:
        raise OSError(f"Cannot parse file {path}: {e}.") from e


@export(
    "saved_model.load",
    "saved_model.loader.load",
    "python.saved_model.loader.load",
    "python.saved_model.loader_impl.load",
)
def load(
    sess: BaseSession,
    tags: str | Collection[str],
    export_dir: PathLike,
    import_scope: str | None = None,
    **saver_kwargs: Any,
) -> MetaGraphDef:
    """Adds the graph that has exactly these tags to the session's, restores its variables, runs its main op.

    Returns its `MetaGraphDef`, whose `signature_def` names inputs and outputs.
    """
    return SavedModelLoader(export_dir).load(sess, tags, import_scope, **saver_kwargs)


@export("python.saved_model.loader.SavedModelLoader", "python.saved_model.loader_impl.SavedModelLoader")
class SavedModelLoader:
    """Loads a SavedModel, as a whole or step by step: its graph, its variables, then its init op."""

    def __init__(self, export_dir: PathLike) -> None:
        self._export_dir = file_path(export_dir)
        self._model = parse_saved_model(export_dir)

    export_dir: str = readonly("_export_dir", "The directory of the model.")

    @property
    def variables_path(self) -> str:
        """The checkpoint of the model's variables."""
        return os.path.join(self._export_dir, names.VARIABLES_DIRECTORY, names.VARIABLES_FILE)

    saved_model: SavedModel = readonly("_model", "The model's `SavedModel` message.")

    def get_meta_graph_def_from_tags(self, tags: str | Collection[str]) -> MetaGraphDef:
        """The `MetaGraphDef` that has exactly these tags."""
        return _find(self._model, tags)

    def load_graph(
        self, graph: Graph, tags: str | Collection[str], import_scope: str | None = None, **saver_kwargs: Any
    ) -> tuple[Saver | None, Any]:
        """Adds the nodes with these tags to a graph; gives their Saver, and the elements that `return_elements` names."""
        meta = self.get_meta_graph_def_from_tags(tags)
        with graph.as_default():
            return import_with_elements(meta, import_scope=import_scope, **saver_kwargs)

    def restore_variables(
        self, sess: BaseSession, saver: Saver | None, import_scope: str | None = None
    ) -> None:
        """Restores the variables with a Saver, which may be None where there are none."""
        with sess.graph.as_default():
            if saver is not None:
                saver.restore(sess, self.variables_path)
            elif all_saveable_objects(import_scope):
                raise ValueError(
                    "No tf.train.Saver object was passed to the function `SavedModelLoader.restore_variables`. Since there "
                    "are variables in the graph, a saver is required."
                )
            else:
                logging.info("The specified SavedModel has no variables; no checkpoints were restored.")

    def run_init_ops(
        self, sess: BaseSession, tags: str | Collection[str], import_scope: str | None = None
    ) -> None:
        """Runs the operation that the model names for loading."""
        meta = self.get_meta_graph_def_from_tags(tags)
        with sess.graph.as_default():
            init_op = get_init_op(meta, import_scope)
            if init_op is not None:
                sess.run(init_op, feed_dict=_assets(meta, self._export_dir, import_scope))

    def load(
        self,
        sess: BaseSession,
        tags: str | Collection[str],
        import_scope: str | None = None,
        **saver_kwargs: Any,
    ) -> MetaGraphDef:
        """All of it, into the session's graph; gives the `MetaGraphDef`."""
        saver, _ = self.load_graph(sess.graph, tags, import_scope, **saver_kwargs)
        self.restore_variables(sess, saver, import_scope)
        self.run_init_ops(sess, tags, import_scope)
        return self.get_meta_graph_def_from_tags(tags)


def _find(model: SavedModel, tags: str | Collection[str]) -> MetaGraphDef:
    wanted = {tags} if isinstance(tags, str) else set(tags)
    for meta in model.meta_graphs:
        if set(meta.meta_info_def.tags) == wanted:
            return meta
    available = [sorted(meta.meta_info_def.tags) for meta in model.meta_graphs]
    raise RuntimeError(
        f"MetaGraphDef associated with tags {', '.join(map(repr, sorted(wanted)))} could not be found in "
        f"SavedModel, with available tags '{available}'. Load it with one of these sets."
    )


def _scoped(name: str, scope: str | None) -> str:
    return f"{scope}/{name}" if scope else name


@export("python.saved_model.loader_impl.get_init_op")
def get_init_op(meta_graph_def: MetaGraphDef, import_scope: str | None = None) -> Operation | Tensor | None:
    """The operation to run after loading, or None. It is in a signature, or in older models in a collection."""
    if names.INIT_OP_SIGNATURE in meta_graph_def.signature_def:
        signature = meta_graph_def.signature_def[names.INIT_OP_SIGNATURE]
        return load_op_from_signature_def(signature, names.INIT_OP_SIGNATURE, import_scope)
    # Before signatures named the operation it was in a collection; the older of the two comes second.
    for key in (names.MAIN_OP_COLLECTION, names.LEGACY_INIT_OP_COLLECTION):
        stored = meta_graph_def.collection_def
        names_of_ops = stored[key].node_list.value if key in stored else []
        if len(names_of_ops) > 1:
            raise RuntimeError(
                f"Expected exactly one SavedModel init op. Found {len(names_of_ops)}: {list(names_of_ops)}."
            )
        if names_of_ops:
            items: list[Operation] = get_collection(key)
            return items[0]
    return None


@export("python.saved_model.loader_impl.get_train_op")
def get_train_op(meta_graph_def: MetaGraphDef, import_scope: str | None = None) -> Operation | Tensor | None:
    """The operation that trains the model, or None."""
    if names.TRAIN_OP_SIGNATURE in meta_graph_def.signature_def:
        signature = meta_graph_def.signature_def[names.TRAIN_OP_SIGNATURE]
        return load_op_from_signature_def(signature, names.TRAIN_OP_SIGNATURE, import_scope)
    ops: list[Operation] = get_collection(names.TRAIN_OP_COLLECTION)
    return ops[0] if ops else None


def _assets(meta: MetaGraphDef, folder: str, scope: str | None) -> dict[str, str]:
    """The tensors that stand for files of the model, with where these are now."""
    from tensorfleet.base.protos import AssetFileDef

    stored = list(meta.asset_file_def)
    if not stored and names.ASSETS_COLLECTION in meta.collection_def:
        items = meta.collection_def[names.ASSETS_COLLECTION].any_list.value
        stored = [AssetFileDef.FromString(item.value) for item in items]
    place = os.path.join(folder, names.ASSETS_DIRECTORY)
    return {_scoped(a.tensor_info.name, scope): os.path.join(place, a.filename) for a in stored}

"""`tf.saved_model.load`: SavedModels back into a session."""

from __future__ import annotations

import os
from typing import Any

from tensorfleet.api import export
from tensorfleet.platform import logging
from tensorfleet.platform.gfile import local_path
from tensorfleet.saved_model import names
from tensorfleet.train.saver import import_meta_graph


@export(
    "saved_model.maybe_saved_model_directory",
    "saved_model.loader.maybe_saved_model_directory",
    "saved_model.contains_saved_model",
    "python.saved_model.loader.maybe_saved_model_directory",
)
def maybe_saved_model_directory(export_dir: Any) -> bool:
    """Whether a directory holds the file of a SavedModel."""
    return any(os.path.exists(path) for path in _files(export_dir))


def _files(export_dir: Any) -> list[str]:
    folder = local_path(export_dir)
    return [os.path.join(folder, name) for name in (names.MODEL_FILE, names.MODEL_TEXT_FILE)]


@export("python.saved_model.loader_impl.parse_saved_model", "python.saved_model.loader.parse_saved_model")
def parse_saved_model(export_dir: Any) -> Any:
    """The `SavedModel` message of a directory, from its binary or text file."""
    from google.protobuf import message, text_format

    from tensorfleet.protos import SavedModel

    binary, text = _files(export_dir)
    found = binary if os.path.exists(binary) else text
    if not os.path.exists(found):
        raise OSError(
            f"SavedModel file does not exist at: {local_path(export_dir)}/"
            f"{{{names.MODEL_TEXT_FILE}|{names.MODEL_FILE}}}"
        )
    with open(found, "rb") as f:
        content = f.read()
    try:
        return SavedModel.FromString(content) if found == binary else text_format.Parse(content, SavedModel())
    except (message.DecodeError, text_format.ParseError, UnicodeDecodeError) as e:
        raise OSError(f"Cannot parse file {found}: {e}.") from e


@export(
    "saved_model.load",
    "saved_model.loader.load",
    "python.saved_model.loader.load",
    "python.saved_model.loader_impl.load",
)
def load(sess: Any, tags: Any, export_dir: Any, import_scope: str | None = None, **saver_kwargs: Any) -> Any:
    """Adds the graph that has exactly these tags to the session's, restores its variables, runs its main op.

    Returns its `MetaGraphDef`, whose `signature_def` names inputs and outputs.
    """
    meta = _find(parse_saved_model(export_dir), tags)
    folder = local_path(export_dir)
    with sess.graph.as_default():
        saver = import_meta_graph(meta, import_scope=import_scope, **saver_kwargs)
        if saver is None:
            logging.info("The specified SavedModel has no variables; no checkpoints were restored.")
        else:
            saver.restore(sess, os.path.join(folder, names.VARIABLES_DIRECTORY, names.VARIABLES_FILE))
        main_op = _main_op(meta, import_scope)
        if main_op is not None:
            sess.run(main_op, feed_dict=_assets(meta, folder, import_scope))
    return meta


def _find(model: Any, tags: Any) -> Any:
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


def _main_op(meta: Any, scope: str | None) -> Any:
    """What is to be run after loading: in a collection, or in newer models in a signature."""
    from tensorfleet.graph.scopes import get_default_graph

    graph = get_default_graph()
    if names.INIT_OP_SIGNATURE in meta.signature_def:
        info = meta.signature_def[names.INIT_OP_SIGNATURE].outputs[names.INIT_OP_SIGNATURE]
        return graph.as_graph_element(_scoped(info.name, scope))
    for key in (names.MAIN_OP_COLLECTION, names.LEGACY_INIT_OP_COLLECTION):
        found = meta.collection_def[key].node_list.value if key in meta.collection_def else []
        if len(found) > 1:
            raise RuntimeError(f"Expected exactly one SavedModel init op. Found {len(found)}: {list(found)}.")
        if found:
            return graph.as_graph_element(_scoped(found[0], scope))
    return None


def _assets(meta: Any, folder: str, scope: str | None) -> dict[str, str]:
    """The tensors that stand for files of the model, with where these are now."""
    from tensorfleet.protos import AssetFileDef

    stored = list(meta.asset_file_def)
    if not stored and names.ASSETS_COLLECTION in meta.collection_def:
        items = meta.collection_def[names.ASSETS_COLLECTION].any_list.value
        stored = [AssetFileDef.FromString(item.value) for item in items]
    place = os.path.join(folder, names.ASSETS_DIRECTORY)
    return {_scoped(a.tensor_info.name, scope): os.path.join(place, a.filename) for a in stored}

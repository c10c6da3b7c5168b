"""`tf.saved_model.Builder` and `simple_save`: writing SavedModels."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from tensorfleet.api.saved_model import names
from tensorfleet.api.saved_model.signatures import op_signature_def, predict_signature_def
from tensorfleet.api.train.saver import Saver, all_saveable_objects
from tensorfleet.api.variables.lists import global_variables_initializer, local_variables_initializer
from tensorfleet.base import logging
from tensorfleet.base.files import GFile, copy, exists, file_path, listdir, makedirs, rename, whole_file
from tensorfleet.base.naming import export
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.scopes import GraphKeys, add_to_collection, get_collection, get_default_graph
from tensorfleet.ops.array.basic import group
from tensorfleet.ops.state.lookup import tables_initializer

if TYPE_CHECKING:
    from tensorfleet.api.train.types import PathLike
    from tensorfleet.base.protos import AssetFileDef, MetaGraphDef, SignatureDef
    from tensorfleet.session.session import BaseSession

#: Signatures by their keys.
Signatures: TypeAlias = "Mapping[str, SignatureDef]"

# TensorFlow recognizes the message by this name of its own.
_ASSET_TYPE = "type.googleapis.com/tensorflow.AssetFileDef"


class _ModelWriter:
    """The part that both builders share: files, variables, graphs."""

    def __init__(self, export_dir: PathLike) -> None:
        from tensorfleet.base.protos import SavedModel

        folder = file_path(export_dir)
        if exists(folder) and listdir(folder):
            raise AssertionError(
                f"Export directory {folder} already exists, and isn't empty. Please choose a different export "
                "directory, or delete all the contents of the specified directory."
            )
        makedirs(folder)
        self._export_dir = folder
        self._saved_model = SavedModel(saved_model_schema_version=names.SCHEMA_VERSION)
        self._has_saved_variables = False

    def save(self, as_text: bool = False) -> bytes:
        """Writes the model's file; returns its path."""
        from google.protobuf import text_format

        if as_text:
            path = os.path.join(self._export_dir, names.MODEL_TEXT_FILE)
            content = text_format.MessageToString(self._saved_model).encode()
        else:
            path = os.path.join(self._export_dir, names.MODEL_FILE)
            content = self._saved_model.SerializeToString(deterministic=True)
        # Servers poll the directory: the file appears whole, by a rename, or not at all.
        temporary = f"{path}.tmp{os.getpid()}"
        with GFile(temporary, "wb") as f:
            f.write(content)
        rename(temporary, path, overwrite=True)
        logging.info("SavedModel written to: %s", path)
        return path.encode()

    def _copy_assets(self, assets: Sequence[Tensor] | None) -> list[Any]:
        """Copies the files, each once; gives the messages that tell which tensor is fed which file."""
        if not assets:
            logging.info("No assets to save.")
            return []
        folder = os.path.join(self._export_dir, names.ASSETS_DIRECTORY)
        makedirs(folder)
        taken: dict[str, str] = {}
        noted = []
        for tensor in assets:
            source = _asset_path(tensor)
            filename = _free_name(source, taken)
            target = os.path.join(folder, filename)
            if not exists(target):
                copy(source, target)
            noted.append(_asset(filename, tensor))
        logging.info("Assets written to: %s", folder)
        return noted

    def _check_order(self, first: bool) -> None:
        if first and self._has_saved_variables:
            raise AssertionError(
                "Graph state including variables and assets has already been saved. Please invoke "
                "`add_meta_graph()` instead."
            )
        if not first and not self._has_saved_variables:
            raise AssertionError(
                "Graph state including variables and assets has not been saved yet. Please invoke "
                "`add_meta_graph_and_variables()` first."
            )

    def _save_variables(self, sess: BaseSession, saver: Saver | None) -> Saver:
        folder = os.path.join(self._export_dir, names.VARIABLES_DIRECTORY)
        makedirs(folder)
        saver = saver or _default_saver()
        path = os.path.join(folder, names.VARIABLES_FILE)
        saver.save(sess, path, write_meta_graph=False, write_state=False)
        self._has_saved_variables = True
        return saver

    def _add(
        self,
        saver: Saver,
        tags: str | Collection[str],
        signatures: Signatures | None,
        clear_devices: bool,
        strip: bool,
    ) -> MetaGraphDef:
        meta = saver.export_meta_graph(clear_devices=clear_devices, strip_default_attrs=strip)
        meta.meta_info_def.tags.extend([tags] if isinstance(tags, str) else tags)
        for key, signature in (signatures or {}).items():
            # By its bytes, since the message may be TensorFlow's own.
            meta.signature_def[key].ParseFromString(signature.SerializeToString())
        added = self._saved_model.meta_graphs.add()
        added.CopyFrom(meta)
        return added


@export(
    "saved_model.Builder",
    "saved_model.builder.SavedModelBuilder",
    "python.saved_model.builder.SavedModelBuilder",
    "python.saved_model.builder_impl.SavedModelBuilder",
)
class SavedModelBuilder(_ModelWriter):
    """Writes a SavedModel: one set of variables, and graphs that use them, distinguished by tags.

    The first graph comes with `add_meta_graph_and_variables`, further ones with `add_meta_graph`; `save`
    writes the model's file.
    """

    def add_meta_graph_and_variables(
        self,
        sess: BaseSession,
        tags: str | Collection[str],
        signature_def_map: Signatures | None = None,
        assets_collection: Sequence[Tensor] | None = None,
        legacy_init_op: Operation | None = None,
        clear_devices: bool = False,
        main_op: Operation | None = None,
        strip_default_attrs: bool = False,
        saver: Saver | None = None,
    ) -> None:
        """Adds the default graph, and saves the values that its variables have in `sess`.

        `main_op` runs when the model is loaded. `assets_collection` are string constants with the paths of
        files that belong to the model; these are copied.
        """
        self._check_order(first=True)
        _check_signatures(signature_def_map)
        self._collect(assets_collection, main_op, legacy_init_op)
        saver = self._save_variables(sess, saver)
        self._add(saver, tags, signature_def_map, clear_devices, strip_default_attrs)

    def add_meta_graph(
        self,
        tags: str | Collection[str],
        signature_def_map: Signatures | None = None,
        assets_collection: Sequence[Tensor] | None = None,
        legacy_init_op: Operation | None = None,
        clear_devices: bool = False,
        main_op: Operation | None = None,
        strip_default_attrs: bool = False,
        saver: Saver | None = None,
    ) -> None:
        """Adds the default graph, which uses the variables already saved."""
        self._check_order(first=False)
        _check_signatures(signature_def_map)
        self._collect(assets_collection, main_op, legacy_init_op)
        self._add(saver or _default_saver(), tags, signature_def_map, clear_devices, strip_default_attrs)

    def _collect(
        self, assets: Sequence[Tensor] | None, main_op: Operation | None, legacy_init_op: Operation | None
    ) -> None:
        from google.protobuf.any_pb2 import Any as AnyMessage

        for asset in self._copy_assets(assets):
            add_to_collection(
                names.ASSETS_COLLECTION, AnyMessage(type_url=_ASSET_TYPE, value=asset.SerializeToString())
            )
        if main_op is None and legacy_init_op is None:
            return
        chosen = legacy_init_op if main_op is None else main_op
        key = names.LEGACY_INIT_OP_COLLECTION if main_op is None else names.MAIN_OP_COLLECTION
        if not isinstance(chosen, Operation):
            raise TypeError(f"main_op needs to be an Operation: {chosen!r}")
        for existing in (names.MAIN_OP_COLLECTION, names.LEGACY_INIT_OP_COLLECTION):
            if get_collection(existing):
                raise ValueError(
                    f"Graph already contains one or more main ops under the collection {existing}."
                )
        add_to_collection(key, chosen)


@export("python.saved_model.builder._SavedModelBuilder", "python.saved_model.builder_impl._SavedModelBuilder")
class SignatureModelBuilder(_ModelWriter):
    """Writes a SavedModel whose init and train operations are in signatures and whose assets are in a list."""

    def add_meta_graph_and_variables(
        self,
        sess: BaseSession,
        tags: str | Collection[str],
        signature_def_map: Signatures | None = None,
        assets_list: Sequence[Tensor] | None = None,
        clear_devices: bool = False,
        init_op: Operation | Tensor | None = None,
        train_op: Operation | Tensor | None = None,
        strip_default_attrs: bool = False,
        saver: Saver | None = None,
    ) -> None:
        """Adds the default graph, and saves the values that its variables have in `sess`."""
        self._check_order(first=True)
        signatures = _with_operations(signature_def_map, init_op, train_op)
        assets = self._copy_assets(assets_list)
        saver = self._save_variables(sess, saver)
        added = self._add(saver, tags, signatures, clear_devices, strip_default_attrs)
        added.asset_file_def.extend(assets)

    def add_meta_graph(
        self,
        tags: str | Collection[str],
        signature_def_map: Signatures | None = None,
        assets_list: Sequence[Tensor] | None = None,
        clear_devices: bool = False,
        init_op: Operation | Tensor | None = None,
        train_op: Operation | Tensor | None = None,
        saver: Saver | None = None,
    ) -> None:
        """Adds the default graph, which uses the variables already saved."""
        self._check_order(first=False)
        signatures = _with_operations(signature_def_map, init_op, train_op)
        assets = self._copy_assets(assets_list)
        added = self._add(saver or _default_saver(), tags, signatures, clear_devices, strip=True)
        added.asset_file_def.extend(assets)


def _with_operations(
    signatures: Signatures | None, init_op: Operation | Tensor | None, train_op: Operation | Tensor | None
) -> dict[str, Any]:
    """The signatures, and those that name the operations to be run."""
    _check_signatures(signatures)
    named = dict(signatures or {})
    for key, op in ((names.INIT_OP_SIGNATURE, init_op), (names.TRAIN_OP_SIGNATURE, train_op)):
        if op is not None:
            if not isinstance(op, (Operation, Tensor)):
                raise TypeError(f"init_op and train_op must be a Tensor or an Operation: {op!r}")
            named[key] = op_signature_def(op, key)
    return named


def _default_saver() -> Saver:
    # A model may be exported without variables; sharded, since they may be on several servers.
    return Saver(all_saveable_objects(), sharded=True, allow_empty=True)


def _check_signatures(signatures: Signatures | None) -> None:
    for key in (names.INIT_OP_SIGNATURE, names.TRAIN_OP_SIGNATURE):
        if key in (signatures or {}):
            raise KeyError(f'SignatureDef map key "{key}" is reserved. Please use a different key.')
    for signature in (signatures or {}).values():
        for info in [*signature.inputs.values(), *signature.outputs.values()]:
            if info.WhichOneof("encoding") is None:
                raise AssertionError(
                    f"Invalid `tensor_info`: {info}. All TensorInfo protos used in the SignatureDefs must have one "
                    "of the 'encoding' fields (e.g., name or coo_sparse) set."
                )
            if not info.dtype:
                raise AssertionError(
                    f"Invalid `tensor_info`: {info}. All TensorInfo protos used in the SignatureDefs must have the "
                    "dtype field set."
                )


def _asset_path(tensor: object) -> str:
    """The file that a constant names."""
    if not isinstance(tensor, Tensor) or tensor.op.type != "Const":
        raise TypeError(f"Asset path tensor must be a constant Tensor, not {tensor}.")
    value = tensor.op._attrs["value"].item()
    if not value:
        raise ValueError(f"Invalid asset filepath tensor {tensor}: it is empty.")
    return file_path(value)


def _free_name(source: str, taken: dict[str, str]) -> str:
    """The file's name in the model; files of the same name but other content get a name of their own."""
    content = hashlib.sha256(whole_file(source)).hexdigest()
    base = name = os.path.basename(source)
    number = 0
    while taken.setdefault(name, content) != content:
        number += 1
        name = f"{base}_{number}"
    return name


def _asset(filename: str, tensor: Tensor) -> AssetFileDef:
    from tensorfleet.base.protos import AssetFileDef

    message = AssetFileDef(filename=filename)
    message.tensor_info.name = tensor.name
    return message


@export("saved_model.simple_save", "python.saved_model.simple_save.simple_save")
def simple_save(
    session: BaseSession,
    export_dir: PathLike,
    inputs: Mapping[str, Any],
    outputs: Mapping[str, Any],
    legacy_init_op: Operation | None = None,
) -> None:
    """Writes a SavedModel for serving, with one signature from `inputs` to `outputs`."""
    builder = SavedModelBuilder(export_dir)
    builder.add_meta_graph_and_variables(
        session,
        tags=[names.SERVING],
        signature_def_map={names.DEFAULT_SIGNATURE: predict_signature_def(inputs, outputs)},
        assets_collection=get_collection(GraphKeys.ASSET_FILEPATHS),
        legacy_init_op=legacy_init_op,
        clear_devices=True,
    )
    builder.save()


@export("saved_model.main_op.main_op", "python.saved_model.main_op.main_op")
def main_op() -> Operation:
    """An operation that initializes variables and tables, to run when a model is loaded."""
    return group(global_variables_initializer(), local_variables_initializer(), tables_initializer())


@export(
    "saved_model.main_op_with_restore",
    "saved_model.main_op.main_op_with_restore",
    "python.saved_model.main_op.main_op_with_restore",
)
def main_op_with_restore(restore_op_name: str) -> Operation:
    """As `main_op`, with an operation of the graph that runs after it."""
    graph = get_default_graph()
    with graph.control_dependencies([main_op()]):
        return group(graph.get_operation_by_name(restore_op_name))

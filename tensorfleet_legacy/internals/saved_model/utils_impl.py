"""Parts of `tensorflow.python.saved_model`: where the files of a model are, and further kinds of signatures."""

from __future__ import annotations

import functools
import os
from typing import Any

from tensorfleet.api.saved_model import loader, names
from tensorfleet.api.saved_model.signatures import build_signature_def, build_tensor_info, is_valid_signature
from tensorfleet.base.naming import export, publish
from tensorfleet.graph.scopes import get_default_graph

_UTILS = "python.saved_model.utils_impl"
_METHODS = {
    "train": "tensorflow/supervised/training",
    "eval": "tensorflow/supervised/eval",
}
for _kind, _method in _METHODS.items():
    publish(_method, f"python.saved_model.signature_constants.SUPERVISED_{_kind.upper()}_METHOD_NAME")
publish("eval", "python.saved_model.tag_constants.EVAL")
publish("assets.extra", "python.saved_model.constants.EXTRA_ASSETS_DIRECTORY")


def _supervised(method: str, inputs: Any, loss: Any, predictions: Any = None, metrics: Any = None) -> Any:
    if not inputs:
        raise ValueError(f"{method} inputs cannot be None or empty.")
    outputs = {**(loss or {}), **(predictions or {}), **(metrics or {})}
    taken, given = ({k: build_tensor_info(v) for k, v in each.items()} for each in (inputs, outputs))
    return build_signature_def(taken, given, method)


def _train(inputs: Any, loss: Any, predictions: Any = None, metrics: Any = None) -> Any:
    """The signature of training: what goes in, then losses, predictions and metrics by name."""
    return _supervised(_METHODS["train"], inputs, loss, predictions, metrics)


def _eval(inputs: Any, loss: Any, predictions: Any = None, metrics: Any = None) -> Any:
    """The signature of evaluation: what goes in, then losses, predictions and metrics by name."""
    return _supervised(_METHODS["eval"], inputs, loss, predictions, metrics)


for _module in ("signature_def_utils", "signature_def_utils_impl"):
    publish(_train, f"python.saved_model.{_module}.supervised_train_signature_def")
    publish(_eval, f"python.saved_model.{_module}.supervised_eval_signature_def")


def _valid(method: str, signature_def: Any) -> bool:
    return signature_def.method_name == method and is_valid_signature(signature_def)


for _kind, _method in (
    ("classification", names.CLASSIFY_METHOD),
    ("regression", names.REGRESS_METHOD),
    ("predict", names.PREDICT_METHOD),
):
    publish(
        functools.partial(_valid, _method),
        f"python.saved_model.signature_def_utils_impl._is_valid_{_kind}_signature",
    )


def _below(export_dir: Any, *parts: str) -> str:
    return os.path.join(os.fspath(export_dir), *parts)


@export(f"{_UTILS}.get_variables_dir")
def get_variables_dir(export_dir: Any) -> str:
    """The folder of a model's variables."""
    return _below(export_dir, names.VARIABLES_DIRECTORY)


@export(f"{_UTILS}.get_variables_path")
def get_variables_path(export_dir: Any) -> str:
    """The path of a model's variables, as a checkpoint's."""
    return _below(export_dir, names.VARIABLES_DIRECTORY, names.VARIABLES_FILE)


@export(f"{_UTILS}.get_assets_dir")
def get_assets_dir(export_dir: Any) -> str:
    """The folder of a model's further files."""
    return _below(export_dir, names.ASSETS_DIRECTORY)


@export(f"{_UTILS}.get_or_create_variables_dir")
def get_or_create_variables_dir(export_dir: Any) -> str:
    """The folder of a model's variables, made if need be."""
    os.makedirs(get_variables_dir(export_dir), exist_ok=True)
    return get_variables_dir(export_dir)


@export(f"{_UTILS}.get_or_create_assets_dir")
def get_or_create_assets_dir(export_dir: Any) -> str:
    """The folder of a model's further files, made if need be."""
    os.makedirs(get_assets_dir(export_dir), exist_ok=True)
    return get_assets_dir(export_dir)


@export("python.saved_model.utils.get_element_from_tensor_info", f"{_UTILS}.get_element_from_tensor_info")
def get_element_from_tensor_info(tensor_info: Any, graph: Any = None, import_scope: str | None = None) -> Any:
    """The tensor or operation that an entry of a signature names."""
    name = tensor_info.name if import_scope is None else f"{import_scope}/{tensor_info.name}"
    return (graph or get_default_graph()).as_graph_element(name)


@export("python.saved_model.loader_impl.get_asset_tensors")
def get_asset_tensors(
    export_dir: Any, meta_graph_def_to_load: Any, import_scope: str | None = None
) -> dict[str, str]:
    """The names of the tensors that stand for files of a model, and where these are."""
    return loader._assets(meta_graph_def_to_load, os.fspath(export_dir), import_scope)


publish(loader.parse_saved_model, "python.tools.saved_model_utils.read_saved_model")


@export("python.tools.saved_model_utils.get_saved_model_tag_sets")
def saved_model_tag_sets(saved_model_dir: Any) -> list[list[str]]:
    """The tags of each graph of a SavedModel."""
    return [list(g.meta_info_def.tags) for g in loader.parse_saved_model(saved_model_dir).meta_graphs]


@export("python.tools.saved_model_utils.get_meta_graph_def")
def meta_graph_with_tags(saved_model_dir: Any, tag_set: str) -> Any:
    """The graph of a SavedModel that has exactly these tags, which are separated by commas."""
    wanted = set(tag_set.split(","))
    for graph in loader.parse_saved_model(saved_model_dir).meta_graphs:
        if set(graph.meta_info_def.tags) == wanted:
            return graph
    raise RuntimeError(f"MetaGraphDef associated with tag-set {tag_set} could not be found in SavedModel")

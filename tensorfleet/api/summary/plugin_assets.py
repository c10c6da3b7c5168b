"""`tensorflow.python.summary.plugin_asset`: files for TensorBoard's plugins, which are written with the graph."""

from __future__ import annotations

import abc
import os
from typing import Any

from tensorfleet.base.files import GFile, makedirs
from tensorfleet.base.naming import export
from tensorfleet.graph.scopes import get_default_graph

_NAMES = "_plugin_assets"
_PREFIX = "__plugin_asset__"
_PLACE = "python.summary.plugin_asset"


@export(f"{_PLACE}.PluginAsset")
class PluginAsset(abc.ABC):
    """What a plugin wants to have written: `assets` gives the files by name. There is one of each kind in a graph."""

    #: the folder's name; a subclass has to set it
    plugin_name: str | None = None

    @abc.abstractmethod
    def assets(self) -> dict[str, Any]:
        """The contents of files, by name."""


@export(f"{_PLACE}.get_plugin_asset")
def get_plugin_asset(plugin_asset_cls: Any, graph: Any = None) -> Any:
    """The one of its kind in a graph, made when it is first asked for."""
    graph = graph or get_default_graph()
    if not plugin_asset_cls.plugin_name:
        raise ValueError(f"Class {plugin_asset_cls.__name__} has no plugin_name")
    name = _PREFIX + plugin_asset_cls.plugin_name
    if not graph.get_collection(name):
        graph.add_to_collection(name, plugin_asset_cls())
        graph.add_to_collection(_NAMES, name)
    found = _only(graph, name)
    if not isinstance(found, plugin_asset_cls):
        raise ValueError(
            f"Plugin name collision between classes {plugin_asset_cls.__name__} and {type(found).__name__}"
        )
    return found


def _only(graph: Any, name: str) -> Any:
    found = graph.get_collection(name)
    if len(found) != 1:
        raise ValueError(f"Collection for {name} had {len(found)} items, expected 1")
    return found[0]


@export(f"{_PLACE}.get_all_plugin_assets")
def get_all_plugin_assets(graph: Any = None) -> list:
    """Those of all kinds in a graph."""
    graph = graph or get_default_graph()
    return [_only(graph, name) for name in graph.get_collection(_NAMES)]


def write_plugin_assets(logdir: str, graph: Any) -> None:
    """Writes the files of all kinds below a folder: `plugins/<plugin_name>/<name>`."""
    for asset in get_all_plugin_assets(graph):
        folder = os.path.join(logdir, "plugins", str(asset.plugin_name))
        makedirs(folder)
        for name, content in asset.assets().items():
            with GFile(os.path.join(folder, name), "wb") as file:
                file.write(content.encode() if isinstance(content, str) else content)

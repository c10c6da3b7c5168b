"""`tensorflow.python.summary.plugin_asset`: files for TensorBoard's plugins, which are written with the graph."""

from __future__ import annotations

import abc
import os
from typing import Any, TypeVar

from tensorfleet.base.files import GFile, makedirs
from tensorfleet.base.naming import export
from tensorfleet.graph.graph import Graph
from tensorfleet.graph.scopes import get_default_graph

_NAMES = "_plugin_assets"
_PREFIX = "__plugin_asset__"
_PLACE = "python.summary.plugin_asset"


@export(f"{_PLACE}.PluginAsset")
class PluginAsset(abc.ABC):
    """Files of a TensorBoard plugin: `assets` gives them by name. A graph has one instance of each class."""

    #: the folder's name; a subclass has to set it
    plugin_name: str | None = None

    @abc.abstractmethod
    def assets(self) -> dict[str, Any]:
        """The contents of files, by name."""


_Asset = TypeVar("_Asset", bound=PluginAsset)


@export(f"{_PLACE}.get_plugin_asset")
def get_plugin_asset(plugin_asset_cls: type[_Asset], graph: Graph | None = None) -> _Asset:
    """The instance of a class in a graph, made at the first call."""
    graph = graph or get_default_graph()
    if not plugin_asset_cls.plugin_name:
        raise ValueError(f"Class {plugin_asset_cls.__name__} has no plugin_name")
    name = _PREFIX + plugin_asset_cls.plugin_name
    if not graph.get_collection(name):
        graph.add_to_collection(name, plugin_asset_cls())
        graph.add_to_collection(_NAMES, name)
    asset = _only(graph, name)
    if not isinstance(asset, plugin_asset_cls):
        raise ValueError(
            f"Plugin name collision between classes {plugin_asset_cls.__name__} and {type(asset).__name__}"
        )
    return asset


def _only(graph: Graph, name: str) -> PluginAsset:
    assets: list[PluginAsset] = graph.get_collection(name)
    if len(assets) != 1:
        raise ValueError(f"Collection for {name} had {len(assets)} items, expected 1")
    return assets[0]


@export(f"{_PLACE}.get_all_plugin_assets")
def get_all_plugin_assets(graph: Graph | None = None) -> list[PluginAsset]:
    """The instances of all classes in a graph."""
    graph = graph or get_default_graph()
    return [_only(graph, name) for name in graph.get_collection(_NAMES)]


def write_plugin_assets(logdir: str, graph: Graph) -> None:
    """Writes the files of all instances below a folder: `plugins/<plugin_name>/<name>`."""
    for asset in get_all_plugin_assets(graph):
        folder = os.path.join(logdir, "plugins", str(asset.plugin_name))
        makedirs(folder)
        for name, content in asset.assets().items():
            with GFile(os.path.join(folder, name), "wb") as file:
                file.write(content.encode() if isinstance(content, str) else content)

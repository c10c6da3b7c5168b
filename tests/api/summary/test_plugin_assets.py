"""Files for TensorBoard's plugins."""

import pytest
from tensorfleet.python.summary import plugin_asset

import tensorfleet as tf


class _Words(plugin_asset.PluginAsset):
    plugin_name = "words"

    def __init__(self):
        self.contents = {}

    def assets(self):
        return self.contents


class _Others(_Words):
    plugin_name = "others"


def test_there_is_one_of_each_kind_in_a_graph():
    words = plugin_asset.get_plugin_asset(_Words)
    assert plugin_asset.get_plugin_asset(_Words) is words
    others = plugin_asset.get_plugin_asset(_Others)
    assert plugin_asset.get_all_plugin_assets() == [words, others]
    assert plugin_asset.get_all_plugin_assets(tf.Graph()) == []


def test_kinds_need_names_of_their_own():
    class Same(plugin_asset.PluginAsset):
        plugin_name = "words"

        def assets(self):
            return {}

    class Nameless(Same):
        plugin_name = None

    plugin_asset.get_plugin_asset(_Words)
    with pytest.raises(ValueError, match="Plugin name collision between classes Same and _Words"):
        plugin_asset.get_plugin_asset(Same)
    with pytest.raises(ValueError, match="has no plugin_name"):
        plugin_asset.get_plugin_asset(Nameless)
    tf.add_to_collection("__plugin_asset__words", 3)
    with pytest.raises(ValueError, match="had 2 items, expected 1"):
        plugin_asset.get_all_plugin_assets()


def test_they_are_written_with_the_graph(tmp_path):
    plugin_asset.get_plugin_asset(_Words).contents = {"a.txt": "text", "b": b"\x00"}
    with tf.summary.FileWriter(str(tmp_path)) as writer:
        writer.add_graph(tf.get_default_graph())
    assert (tmp_path / "plugins" / "words" / "a.txt").read_text() == "text"
    assert (tmp_path / "plugins" / "words" / "b").read_bytes() == b"\x00"

"""Summaries as they were before TensorFlow 1.0: tags given by hand. Each name warns once."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any

from tensorfleet.api.summary.summary import merge, merge_all, type_of
from tensorfleet.api.summary.writer import FileWriter
from tensorfleet.base import logging
from tensorfleet.base.naming import publish
from tensorfleet.base.types import TensorLike
from tensorfleet.graph import registry
from tensorfleet.graph.apply import apply
from tensorfleet.graph.graph import Graph
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import GraphKeys, name_scope

if TYPE_CHECKING:
    from google.protobuf.message import Message

    from tensorfleet.api.train.types import PathLike
    from tensorfleet.api.variables.types import CollectionKeys

_warned: set[str] = set()


def _warn(old: str, new: str) -> None:
    if old not in _warned:
        _warned.add(old)
        logging.get_logger().warning("tf.%s is now tf.%s.", old, new, stacklevel=3)


def _tagged(
    op_type: str,
    tag: TensorLike,
    value: TensorLike,
    collections: CollectionKeys | None,
    name: str | None,
    *more: TensorLike,
    **attrs: Any,
) -> Tensor:
    if "T" in registry.get(op_type).attrs:
        attrs["T"] = type_of(op_type, value)
    with name_scope(name, op_type.removesuffix("V2"), [tag, value]) as scope:
        summary = apply(op_type, tag, value, *more, name=scope, **attrs)
    summary.graph.add_to_collections([GraphKeys.SUMMARIES] if collections is None else collections, summary)
    return summary


def scalar_summary(
    tags: TensorLike, values: TensorLike, collections: CollectionKeys | None = None, name: str | None = None
) -> Tensor:
    """A summary of numbers, each under its tag. Now `tf.summary.scalar`."""
    _warn("scalar_summary", "summary.scalar")
    return _tagged("ScalarSummary", tags, values, collections, name)


def histogram_summary(
    tag: TensorLike, values: TensorLike, collections: CollectionKeys | None = None, name: str | None = None
) -> Tensor:
    """A summary of how values are distributed. Now `tf.summary.histogram`."""
    _warn("histogram_summary", "summary.histogram")
    return _tagged("HistogramSummary", tag, values, collections, name)


def image_summary(
    tag: TensorLike,
    tensor: TensorLike,
    max_images: int = 3,
    collections: CollectionKeys | None = None,
    name: str | None = None,
) -> Tensor:
    """A summary of images. Now `tf.summary.image`."""
    _warn("image_summary", "summary.image")
    return _tagged("ImageSummary", tag, tensor, collections, name, max_images=max_images)


def audio_summary(
    tag: TensorLike,
    tensor: TensorLike,
    sample_rate: TensorLike,
    max_outputs: int = 3,
    collections: CollectionKeys | None = None,
    name: str | None = None,
) -> Tensor:
    """A summary of sounds. Now `tf.summary.audio`."""
    _warn("audio_summary", "summary.audio")
    return _tagged("AudioSummaryV2", tag, tensor, collections, name, sample_rate, max_outputs=max_outputs)


def merge_summary(
    inputs: Sequence[Tensor], collections: CollectionKeys | None = None, name: str | None = None
) -> Tensor:
    """One summary of several. Now `tf.summary.merge`."""
    _warn("merge_summary", "summary.merge")
    return merge(inputs, collections, name)


def merge_all_summaries(key: Hashable = GraphKeys.SUMMARIES) -> Tensor | None:
    """All summaries of the default graph in one. Now `tf.summary.merge_all`."""
    _warn("merge_all_summaries", "summary.merge_all")
    return merge_all(key)


class SummaryWriter(FileWriter):
    """Writes event files. Now `tf.summary.FileWriter`."""

    def __init__(
        self,
        logdir: PathLike,
        graph: Graph | None = None,
        max_queue: int = 10,
        flush_secs: float = 120,
        graph_def: Graph | Message | None = None,
    ) -> None:
        _warn("train.SummaryWriter", "summary.FileWriter")
        super().__init__(logdir, graph, max_queue, flush_secs, graph_def)


NAMES = {
    "scalar_summary": scalar_summary,
    "histogram_summary": histogram_summary,
    "image_summary": image_summary,
    "audio_summary": audio_summary,
    "merge_summary": merge_summary,
    "merge_all_summaries": merge_all_summaries,
    "train.SummaryWriter": SummaryWriter,
}
for _name, _value in NAMES.items():
    publish(_value, _name)

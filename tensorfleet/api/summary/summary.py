"""`tf.summary.scalar`, `histogram`, `image`, ...: operations whose value is a serialized `Summary`."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorfleet.base import dtypes, logging
from tensorfleet.base.naming import export, publish_lazily
from tensorfleet.base.types import TensorLike
from tensorfleet.graph import registry
from tensorfleet.graph.apply import apply
from tensorfleet.graph.convert import make_array, to_tensor
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import GraphKeys, get_default_graph, name_scope

if TYPE_CHECKING:
    from google.protobuf.message import Message

    from tensorfleet.api.variables.types import CollectionKeys
    from tensorfleet.base.protos import NodeDef

_MESSAGES = ("Event", "SessionLog", "Summary", "SummaryDescription", "TaggedRunMetadata")


def _message(name: str) -> Any:
    from tensorfleet.base import protos

    return getattr(protos, name.rpartition(".")[2])


publish_lazily(_message, *(f"summary.{name}" for name in _MESSAGES))


def _cleaned(name: str | None) -> str | None:
    """Replaces the characters that names of operations cannot have; logs a changed name."""
    if name is None:
        return None
    clean = re.sub(r"[^-/\w\.]", "_", name).lstrip("/")
    if clean != name:
        logging.info("Summary name %s is illegal; using %s instead.", name, clean)
    return clean


@contextmanager
def _scope(
    name: str | None,
    family: str | None = None,
    default_name: str | None = None,
    values: Sequence[TensorLike] | None = None,
) -> Iterator[tuple[str, str]]:
    """The scope a summary is made in, and its tag. With a family, TensorBoard shows it with its family."""
    name, family = _cleaned(name), _cleaned(family)
    full = name if family is None else f"{family}/{name}"
    with name_scope(full, default_name, values) as scope:
        tag = scope.rstrip("/")
        yield tag if family is None else f"{family}/{tag}", scope


def _collected(
    summary: Tensor, collections: CollectionKeys | None, default: CollectionKeys = (GraphKeys.SUMMARIES,)
) -> Tensor:
    # Every replica builds the same summaries; their tags would collide in one event file.
    modes = summary.graph._local().strategies
    if modes and modes[-1].replica is not None and modes[-1].replica._replica_index:
        return summary  # the first replica's is the one that is written
    summary.graph.add_to_collections(default if collections is None else collections, summary)
    return summary


def _check_count(op_type: str, attr: str, count: int) -> None:
    if count < 1:
        raise ValueError(f"Attr '{attr}' of '{op_type}' Op passed {count} less than minimum 1.")


def type_of(op_type: str, value: object) -> dtypes.DType | None:
    """The type of an array or a number if the op takes that type, so that it is not converted."""
    if not isinstance(value, (np.ndarray, np.generic, int, float)):
        return None
    kind = dtypes.as_dtype(make_array(value).dtype)
    allowed = registry.get(op_type).attrs["T"].allowed or ()
    return kind if kind in allowed else None


@export("summary.scalar")
def scalar(
    name: str, tensor: TensorLike, collections: CollectionKeys | None = None, family: str | None = None
) -> Tensor:
    """A summary of one number. `name`, with the scopes around it, is the tag that TensorBoard shows."""
    with _scope(name, family, values=[tensor]) as (tag, scope):
        return _collected(apply("ScalarSummary", tag, tensor, name=scope), collections)


@export("summary.histogram")
def histogram(
    name: str, values: TensorLike, collections: CollectionKeys | None = None, family: str | None = None
) -> Tensor:
    """A summary of how values are distributed. They must be finite."""
    with _scope(name, family, "HistogramSummary", [values]) as (tag, scope):
        kind = type_of("HistogramSummary", values)
        return _collected(apply("HistogramSummary", tag, values, T=kind, name=scope), collections)


@export("summary.image")
def image(
    name: str,
    tensor: TensorLike,
    max_outputs: int = 3,
    collections: CollectionKeys | None = None,
    family: str | None = None,
) -> Tensor:
    """A summary of images [batch, height, width, channels], with 1, 3 or 4 channels.

    uint8 images are shown as they are. Floats are scaled, each image by itself: so that its largest value is
    255 or, with negative values in it, so that 0 is 128 and the largest absolute value 1 or 255.
    """
    _check_count("ImageSummary", "max_images", max_outputs)
    with _scope(name, family, values=[tensor]) as (tag, scope):
        kind = type_of("ImageSummary", tensor)
        summary = apply("ImageSummary", tag, tensor, max_images=max_outputs, T=kind, name=scope)
        return _collected(summary, collections)


@export("summary.audio")
def audio(
    name: str,
    tensor: TensorLike,
    sample_rate: TensorLike,
    max_outputs: int = 3,
    collections: CollectionKeys | None = None,
    family: str | None = None,
) -> Tensor:
    """A summary of sounds [batch, frames] or [batch, frames, channels] between -1 and 1."""
    _check_count("AudioSummaryV2", "max_outputs", max_outputs)
    with _scope(name, family, values=[tensor]) as (tag, scope):
        rate = to_tensor(sample_rate, dtypes.float32, name="sample_rate")
        summary = apply("AudioSummaryV2", tag, tensor, rate, max_outputs=max_outputs, name=scope)
        return _collected(summary, collections)


@export("summary.text")
def text(name: str, tensor: Tensor, collections: CollectionKeys | None = None) -> Tensor:
    """A summary of strings; TensorBoard reads them as Markdown, and up to two dimensions as a table."""
    if tensor.dtype.base_dtype != dtypes.string:
        raise ValueError(f"Expected tensor {tensor.name} to have dtype string, got {tensor.dtype!r}")
    from tensorfleet.base.protos import SummaryMetadata

    metadata = SummaryMetadata(plugin_data=SummaryMetadata.PluginData(plugin_name="text"))
    return tensor_summary(name, tensor, summary_metadata=metadata, collections=collections)


@export("summary.tensor_summary")
def tensor_summary(
    name: str,
    tensor: TensorLike,
    summary_description: str | None = None,
    collections: CollectionKeys | None = None,
    summary_metadata: Message | None = None,
    family: str | None = None,
    display_name: str | None = None,
) -> Tensor:
    """A summary of a whole tensor; `summary_metadata` names the TensorBoard plugin that shows it."""
    from tensorfleet.base.protos import SummaryMetadata

    metadata = SummaryMetadata()
    if summary_metadata is not None:
        # By its bytes, since the message may be TensorFlow's own.
        metadata.MergeFromString(summary_metadata.SerializeToString())
    if summary_description is not None:
        metadata.summary_description = summary_description
    if display_name is not None:
        metadata.display_name = display_name
    with _scope(name, family, values=[tensor]) as (tag, scope):
        summary = apply("TensorSummaryV2", tag, tensor, metadata.SerializeToString(), name=scope)
        return _collected(summary, collections)


@export("summary.merge")
def merge(
    inputs: Sequence[Tensor], collections: CollectionKeys | None = None, name: str | None = None
) -> Tensor:
    """One summary with the values of all of `inputs`. No two may have the same tag."""
    name = _cleaned(name)
    with name_scope(name, "Merge", inputs):
        if isinstance(inputs, (list, tuple)) and not inputs:
            raise ValueError(
                "List argument 'inputs' to 'MergeSummary' Op with length 0 shorter than minimum length 1."
            )
        return _collected(apply("MergeSummary", inputs, name=name), collections, ())


@export("summary.merge_all")
def merge_all(
    key: Hashable = GraphKeys.SUMMARIES, scope: str | None = None, name: str | None = None
) -> Tensor | None:
    """All summaries of the default graph in one; None when there are none."""
    summaries = get_default_graph().get_collection(key, scope)
    return merge(summaries, name=name) if summaries else None


@export("summary.get_summary_description")
def get_summary_description(node_def: NodeDef) -> Any:
    """The `SummaryDescription` that a TensorSummary node carries."""
    if node_def.op != "TensorSummary":
        raise ValueError(f"Can't get_summary_description on {node_def.op}")
    from google.protobuf import json_format

    described = _message("SummaryDescription")()
    json_format.Parse(node_def.attr["description"].s.decode() or "{}", described)
    return described

"""The messages users configure sessions with, under their public names, loaded when first used."""

from __future__ import annotations

from typing import Any

# Public name -> message. A nested name such as OptimizerOptions.L0 comes with its message.
MESSAGES = {
    "ConfigProto": "ConfigProto",
    "GPUOptions": "GPUOptions",
    "GraphOptions": "GraphOptions",
    "OptimizerOptions": "OptimizerOptions",
    "RunOptions": "RunOptions",
    "RunMetadata": "RunMetadata",
    "GraphDef": "GraphDef",
    "NodeDef": "NodeDef",
    "AttrValue": "AttrValue",
    "MetaGraphDef": "MetaGraphDef",
    "NameAttrList": "NameAttrList",
    "TensorInfo": "TensorInfo",
    "Event": "Event",
    "Summary": "Summary",
    "SummaryMetadata": "SummaryMetadata",
    "SessionLog": "SessionLog",
    "LogMessage": "LogMessage",
    "HistogramProto": "HistogramProto",
    "train.Example": "Example",
    "train.Feature": "Feature",
    "train.Features": "Features",
    "train.FeatureList": "FeatureList",
    "train.FeatureLists": "FeatureLists",
    "train.SequenceExample": "SequenceExample",
    "train.BytesList": "BytesList",
    "train.FloatList": "FloatList",
    "train.Int64List": "Int64List",
    "train.ClusterDef": "ClusterDef",
    "train.JobDef": "JobDef",
    "train.ServerDef": "ServerDef",
    "train.SaverDef": "SaverDef",
}


def message(name: str) -> Any:
    """The message class behind a public name."""
    from tensorfleet import protos

    return getattr(protos, MESSAGES[name])

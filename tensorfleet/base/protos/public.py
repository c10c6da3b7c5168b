"""The messages that have a public name, such as `tf.ConfigProto`: loaded when first used."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from google.protobuf.message import Message

# A nested name such as OptimizerOptions.L0 comes with its message.
NAMES = """
    ConfigProto GPUOptions GraphOptions OptimizerOptions RunOptions RunMetadata GraphDef NodeDef AttrValue
    MetaGraphDef NameAttrList TensorInfo Event Summary SummaryMetadata SessionLog LogMessage HistogramProto
    train.Example train.Feature train.Features train.FeatureList train.FeatureLists train.SequenceExample
    train.BytesList train.FloatList train.Int64List train.ClusterDef train.JobDef train.ServerDef
    train.SaverDef profiler.OpLogProto profiler.AdviceProto
"""


def message(name: str) -> type[Message]:
    """The message class behind a public name."""
    from tensorfleet.base import protos

    result: type[Message] = getattr(protos, name.rpartition(".")[2])
    return result

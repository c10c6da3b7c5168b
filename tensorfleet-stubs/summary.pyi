# Written by tools/make_stubs.py.
from tensorfleet.api.summary.summary import audio as audio
from tensorfleet.api.summary.summary import get_summary_description as get_summary_description
from tensorfleet.api.summary.summary import histogram as histogram
from tensorfleet.api.summary.summary import image as image
from tensorfleet.api.summary.summary import merge as merge
from tensorfleet.api.summary.summary import merge_all as merge_all
from tensorfleet.api.summary.summary import scalar as scalar
from tensorfleet.api.summary.summary import tensor_summary as tensor_summary
from tensorfleet.api.summary.summary import text as text
from tensorfleet.api.summary.writer import FileWriter as FileWriter
from tensorfleet.api.summary.writer import FileWriterCache as FileWriterCache
from tensorfleet.base.protos.event_pb2 import Event as Event
from tensorfleet.base.protos.event_pb2 import SessionLog as SessionLog
from tensorfleet.base.protos.event_pb2 import Summary as Summary
from tensorfleet.base.protos.event_pb2 import SummaryDescription as SummaryDescription
from tensorfleet.base.protos.event_pb2 import TaggedRunMetadata as TaggedRunMetadata
import typing
def all_v2_summary_ops() -> typing.Any: ...
def initialize(graph: typing.Any = ..., session: typing.Any = ...) -> typing.Any: ...

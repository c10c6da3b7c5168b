# Written by tools/make_stubs.py.
from tensorfleet.base.protos.profile_pb2 import AdviceProto as AdviceProto
from tensorfleet.base.protos.profile_pb2 import OpLogProto as OpLogProto
from tensorfleet_legacy.profiler.model_analyzer import GraphNodeProto as GraphNodeProto
from tensorfleet_legacy.profiler.model_analyzer import MultiGraphNodeProto as MultiGraphNodeProto
from tensorfleet_legacy.profiler.model_analyzer import profile as profile
from tensorfleet_legacy.profiler.model_analyzer_advice import advise as advise
from tensorfleet_legacy.profiler.model_analyzer_profiler import Profiler as Profiler
from tensorfleet_legacy.profiler.option_builder import ProfileOptionBuilder as ProfileOptionBuilder
from tensorfleet_legacy.profiler.tfprof_logger import write_op_log as write_op_log

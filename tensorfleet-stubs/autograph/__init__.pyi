# Written by tools/make_stubs.py.
from tensorfleet.api.autograph.public import set_verbosity as set_verbosity
from tensorfleet.api.autograph.public import to_code as to_code
from tensorfleet.api.autograph.public import to_graph as to_graph
from tensorfleet.api.autograph.public import trace as trace
from tensorfleet.autograph import experimental as experimental

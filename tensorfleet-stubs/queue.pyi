# Written by tools/make_stubs.py.
from tensorfleet.ops.state.queues import FIFOQueue as FIFOQueue
from tensorfleet.ops.state.queues import PaddingFIFOQueue as PaddingFIFOQueue
from tensorfleet.ops.state.queues import PriorityQueue as PriorityQueue
from tensorfleet.ops.state.queues import QueueBase as QueueBase
from tensorfleet.ops.state.queues import RandomShuffleQueue as RandomShuffleQueue

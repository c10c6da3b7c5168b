# Written by tools/make_stubs.py.
from tensorfleet_legacy.contrib.slim.queues import NestedQueueRunnerError as NestedQueueRunnerError
from tensorfleet_legacy.contrib.slim.queues import queue_runners as _QueueRunners
QueueRunners = _QueueRunners

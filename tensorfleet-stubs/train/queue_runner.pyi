# Written by tools/make_stubs.py.
from tensorfleet.api.train.queue_runner import QueueRunner as QueueRunner
from tensorfleet.api.train.queue_runner import add_queue_runner as add_queue_runner
from tensorfleet.api.train.queue_runner import start_queue_runners as start_queue_runners

# Written by tools/make_stubs.py.
from tensorfleet_legacy.contrib.learn.graph_actions import _run_with_monitors as _run_with_monitors
from tensorfleet_legacy.contrib.learn.graph_actions import clear_summary_writers as clear_summary_writers
from tensorfleet_legacy.contrib.learn.graph_actions import evaluate as evaluate
from tensorfleet_legacy.contrib.learn.graph_actions import get_summary_writer as get_summary_writer
from tensorfleet_legacy.contrib.learn.graph_actions import infer as infer
from tensorfleet_legacy.contrib.learn.graph_actions import run_feeds as run_feeds
from tensorfleet_legacy.contrib.learn.graph_actions import run_feeds_iter as run_feeds_iter
from tensorfleet_legacy.contrib.learn.graph_actions import run_n as run_n
from tensorfleet_legacy.contrib.learn.graph_actions import train as train

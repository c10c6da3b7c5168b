# Written by tools/make_stubs.py.
from tensorfleet_legacy.contrib.slim.evaluation import evaluate_once as evaluate_once
from tensorfleet_legacy.contrib.slim.evaluation import evaluation_loop as evaluation_loop

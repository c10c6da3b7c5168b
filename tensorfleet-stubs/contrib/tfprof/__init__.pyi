# Written by tools/make_stubs.py.
from tensorfleet.contrib.tfprof import model_analyzer as model_analyzer

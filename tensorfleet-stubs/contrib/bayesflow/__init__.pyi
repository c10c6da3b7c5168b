# Written by tools/make_stubs.py.
from tensorfleet.contrib.bayesflow import monte_carlo as monte_carlo
from tensorfleet.contrib.bayesflow import python as python

# Written by tools/make_stubs.py.
from tensorfleet.contrib.solvers import lanczos as lanczos
from tensorfleet.contrib.solvers import least_squares as least_squares
from tensorfleet.contrib.solvers import linear_equations as linear_equations
from tensorfleet.contrib.solvers import python as python
from tensorfleet.contrib.solvers import util as util

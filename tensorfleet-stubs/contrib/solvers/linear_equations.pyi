# Written by tools/make_stubs.py.
from tensorfleet_legacy.contrib.solvers.linear_equations import conjugate_gradient as conjugate_gradient

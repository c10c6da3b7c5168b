# Written by tools/make_stubs.py.
from tensorfleet_legacy.contrib.solvers.linear_equations import create_operator as create_operator
from tensorfleet_legacy.contrib.solvers.linear_equations import dot as dot
from tensorfleet_legacy.contrib.solvers.linear_equations import identity_operator as identity_operator
from tensorfleet_legacy.contrib.solvers.linear_equations import l2norm as l2norm
from tensorfleet_legacy.contrib.solvers.linear_equations import l2norm_squared as l2norm_squared
from tensorfleet_legacy.contrib.solvers.linear_equations import l2normalize as l2normalize

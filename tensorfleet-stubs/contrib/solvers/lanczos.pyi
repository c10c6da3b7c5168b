# Written by tools/make_stubs.py.
from tensorfleet_legacy.contrib.solvers.linear_equations import bidiag_matmul as bidiag_matmul
from tensorfleet_legacy.contrib.solvers.linear_equations import lanczos_bidiag as lanczos_bidiag

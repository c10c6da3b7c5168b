# Written by tools/make_stubs.py.
from tensorfleet.contrib.integrate import python as python
from tensorfleet_legacy.contrib.integrate.odes import odeint as odeint
from tensorfleet_legacy.contrib.integrate.odes import odeint_fixed as odeint_fixed

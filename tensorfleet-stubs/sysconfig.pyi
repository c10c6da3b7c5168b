# Written by tools/make_stubs.py.
from tensorfleet.base.platform.sysconfig import get_compile_flags as get_compile_flags
from tensorfleet.base.platform.sysconfig import get_include as get_include
from tensorfleet.base.platform.sysconfig import get_lib as get_lib
from tensorfleet.base.platform.sysconfig import get_link_flags as get_link_flags
import builtins
CXX11_ABI_FLAG: builtins.int
MONOLITHIC_BUILD: builtins.int

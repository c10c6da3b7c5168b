# Written by tools/make_stubs.py.
import builtins
COMPILER_VERSION: builtins.str
GIT_VERSION: builtins.str
GRAPH_DEF_VERSION: builtins.int
GRAPH_DEF_VERSION_MIN_CONSUMER: builtins.int
GRAPH_DEF_VERSION_MIN_PRODUCER: builtins.int
VERSION: builtins.str

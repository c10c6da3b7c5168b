# Written by tools/make_stubs.py.
import builtins
ASSETS_DIRECTORY: builtins.str
ASSETS_KEY: builtins.str
GRAPH_KEY: builtins.str
INIT_OP_KEY: builtins.str
META_GRAPH_DEF_FILENAME: builtins.str
SIGNATURES_KEY: builtins.str
VARIABLES_FILENAME: builtins.str
VARIABLES_FILENAME_PATTERN: builtins.str
VERSION_FORMAT_SPECIFIER: builtins.str

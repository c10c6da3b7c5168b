# Written by tools/make_stubs.py.
import builtins
ASSETS_DIRECTORY: builtins.str
ASSETS_KEY: builtins.str
LEGACY_INIT_OP_KEY: builtins.str
MAIN_OP_KEY: builtins.str
SAVED_MODEL_FILENAME_PB: builtins.str
SAVED_MODEL_FILENAME_PBTXT: builtins.str
SAVED_MODEL_SCHEMA_VERSION: builtins.int
VARIABLES_DIRECTORY: builtins.str
VARIABLES_FILENAME: builtins.str

# Written by tools/make_stubs.py.
import builtins
GPU: builtins.str
SERVING: builtins.str
TPU: builtins.str
TRAINING: builtins.str

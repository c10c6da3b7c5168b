# Written by tools/make_stubs.py.
import builtins
CLASSIFY_INPUTS: builtins.str
CLASSIFY_METHOD_NAME: builtins.str
CLASSIFY_OUTPUT_CLASSES: builtins.str
CLASSIFY_OUTPUT_SCORES: builtins.str
DEFAULT_SERVING_SIGNATURE_DEF_KEY: builtins.str
PREDICT_INPUTS: builtins.str
PREDICT_METHOD_NAME: builtins.str
PREDICT_OUTPUTS: builtins.str
REGRESS_INPUTS: builtins.str
REGRESS_METHOD_NAME: builtins.str
REGRESS_OUTPUTS: builtins.str

# Written by tools/make_stubs.py.
from tensorfleet.api.saved_model.builder import SavedModelBuilder as _Builder
from tensorfleet.api.saved_model.builder import main_op_with_restore as main_op_with_restore
from tensorfleet.api.saved_model.builder import simple_save as simple_save
from tensorfleet.api.saved_model.loader import load as load
from tensorfleet.api.saved_model.loader import maybe_saved_model_directory as _contains_saved_model
from tensorfleet.api.saved_model.loader import maybe_saved_model_directory as maybe_saved_model_directory
from tensorfleet.api.saved_model.signatures import build_signature_def as build_signature_def
from tensorfleet.api.saved_model.signatures import build_tensor_info as build_tensor_info
from tensorfleet.api.saved_model.signatures import classification_signature_def as classification_signature_def
from tensorfleet.api.saved_model.signatures import get_tensor_from_tensor_info as get_tensor_from_tensor_info
from tensorfleet.api.saved_model.signatures import is_valid_signature as is_valid_signature
from tensorfleet.api.saved_model.signatures import predict_signature_def as predict_signature_def
from tensorfleet.api.saved_model.signatures import regression_signature_def as regression_signature_def
from tensorfleet.saved_model import builder as builder
from tensorfleet.saved_model import constants as constants
from tensorfleet.saved_model import loader as loader
from tensorfleet.saved_model import main_op as main_op
from tensorfleet.saved_model import signature_constants as signature_constants
from tensorfleet.saved_model import signature_def_utils as signature_def_utils
from tensorfleet.saved_model import tag_constants as tag_constants
from tensorfleet.saved_model import utils as utils
import builtins
ASSETS_DIRECTORY: builtins.str
ASSETS_KEY: builtins.str
Builder = _Builder
CLASSIFY_INPUTS: builtins.str
CLASSIFY_METHOD_NAME: builtins.str
CLASSIFY_OUTPUT_CLASSES: builtins.str
CLASSIFY_OUTPUT_SCORES: builtins.str
DEFAULT_SERVING_SIGNATURE_DEF_KEY: builtins.str
GPU: builtins.str
LEGACY_INIT_OP_KEY: builtins.str
MAIN_OP_KEY: builtins.str
PREDICT_INPUTS: builtins.str
PREDICT_METHOD_NAME: builtins.str
PREDICT_OUTPUTS: builtins.str
REGRESS_INPUTS: builtins.str
REGRESS_METHOD_NAME: builtins.str
REGRESS_OUTPUTS: builtins.str
SAVED_MODEL_FILENAME_PB: builtins.str
SAVED_MODEL_FILENAME_PBTXT: builtins.str
SAVED_MODEL_SCHEMA_VERSION: builtins.int
SERVING: builtins.str
TPU: builtins.str
TRAINING: builtins.str
VARIABLES_DIRECTORY: builtins.str
VARIABLES_FILENAME: builtins.str
contains_saved_model = _contains_saved_model

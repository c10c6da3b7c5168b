# Written by tools/make_stubs.py.
from tensorfleet_legacy.tutorials.mnist import evaluation as evaluation
from tensorfleet_legacy.tutorials.mnist import inference as inference
from tensorfleet_legacy.tutorials.mnist import loss as loss
from tensorfleet_legacy.tutorials.mnist import training as training
import builtins
IMAGE_PIXELS: builtins.int
IMAGE_SIZE: builtins.int
NUM_CLASSES: builtins.int

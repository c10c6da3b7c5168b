# Written by tools/make_stubs.py.
from tensorfleet_legacy.contrib.layers.optimizers import add_gradients_summaries as add_gradients_summaries
from tensorfleet_legacy.contrib.layers.optimizers import clip_gradient_norms as clip_gradient_norms
from tensorfleet_legacy.contrib.layers.optimizers import multiply_gradients as multiply_gradients
from tensorfleet_legacy.contrib.slim.learning import create_train_op as create_train_op
from tensorfleet_legacy.contrib.slim.learning import train as train
from tensorfleet_legacy.contrib.slim.learning import train_step as train_step

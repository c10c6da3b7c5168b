# Written by tools/make_stubs.py.
from tensorfleet.api.train.global_step import get_or_create_global_step as get_or_create_global_step
from tensorfleet.contrib.slim import data_decoder as data_decoder
from tensorfleet.contrib.slim import data_provider as data_provider
from tensorfleet.contrib.slim import dataset as dataset
from tensorfleet.contrib.slim import dataset_data_provider as dataset_data_provider
from tensorfleet.contrib.slim import evaluation as evaluation
from tensorfleet.contrib.slim import initializers as initializers
from tensorfleet.contrib.slim import layers as layers
from tensorfleet.contrib.slim import learning as learning
from tensorfleet.contrib.slim import losses as losses
from tensorfleet.contrib.slim import metrics as metrics
from tensorfleet.contrib.slim import model_analyzer as model_analyzer
from tensorfleet.contrib.slim import nets as nets
from tensorfleet.contrib.slim import ops as ops
from tensorfleet.contrib.slim import optimizers as optimizers
from tensorfleet.contrib.slim import parallel_reader as parallel_reader
from tensorfleet.contrib.slim import prefetch_queue as prefetch_queue
from tensorfleet.contrib.slim import python as python
from tensorfleet.contrib.slim import queues as queues
from tensorfleet.contrib.slim import regularizers as regularizers
from tensorfleet.contrib.slim import summaries as summaries
from tensorfleet.contrib.slim import tfexample_decoder as tfexample_decoder
from tensorfleet.contrib.slim import utils as utils
from tensorfleet.contrib.slim import variables as variables
from tensorfleet_legacy.contrib.slim.learning import create_train_op as create_train_op
import typing
def __getattr__(name: str) -> typing.Any: ...

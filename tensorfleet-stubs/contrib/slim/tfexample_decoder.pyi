# Written by tools/make_stubs.py.
from tensorfleet_legacy.contrib.slim.tfexample_decoder import BackupHandler as BackupHandler
from tensorfleet_legacy.contrib.slim.tfexample_decoder import BoundingBox as BoundingBox
from tensorfleet_legacy.contrib.slim.tfexample_decoder import Image as Image
from tensorfleet_legacy.contrib.slim.tfexample_decoder import ItemHandler as ItemHandler
from tensorfleet_legacy.contrib.slim.tfexample_decoder import ItemHandlerCallback as ItemHandlerCallback
from tensorfleet_legacy.contrib.slim.tfexample_decoder import LookupTensor as LookupTensor
from tensorfleet_legacy.contrib.slim.tfexample_decoder import SparseTensor as SparseTensor
from tensorfleet_legacy.contrib.slim.tfexample_decoder import TFExampleDecoder as TFExampleDecoder
from tensorfleet_legacy.contrib.slim.tfexample_decoder import Tensor as Tensor

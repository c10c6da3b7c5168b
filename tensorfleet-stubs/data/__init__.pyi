# Written by tools/make_stubs.py.
from tensorfleet.api.data.dataset import Dataset as Dataset
from tensorfleet.api.data.iterator import Iterator as Iterator
from tensorfleet.api.data.iterator import get_output_classes as get_output_classes
from tensorfleet.api.data.iterator import get_output_shapes as get_output_shapes
from tensorfleet.api.data.iterator import get_output_types as get_output_types
from tensorfleet.api.data.iterator import make_initializable_iterator as make_initializable_iterator
from tensorfleet.api.data.iterator import make_one_shot_iterator as make_one_shot_iterator
from tensorfleet.api.data.options import Options as Options
from tensorfleet.api.data.readers import FixedLengthRecordDataset as FixedLengthRecordDataset
from tensorfleet.api.data.readers import TFRecordDataset as TFRecordDataset
from tensorfleet.api.data.readers import TextLineDataset as TextLineDataset
from tensorfleet.api.data.specs import DatasetSpec as DatasetSpec
from tensorfleet.data import experimental as experimental

# Written by tools/make_stubs.py.
from tensorfleet_legacy.tutorials.input_data import DataSet as DataSet
from tensorfleet_legacy.tutorials.input_data import Datasets as Datasets
from tensorfleet_legacy.tutorials.input_data import dense_to_one_hot as dense_to_one_hot
from tensorfleet_legacy.tutorials.input_data import load_mnist as load_mnist
from tensorfleet_legacy.tutorials.input_data import read_data_sets as read_data_sets

# Written by tools/make_stubs.py.
from tensorfleet.api.train.mutable_tables import DenseHashTable as DenseHashTable

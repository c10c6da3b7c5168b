# Written by tools/make_stubs.py.
from tensorfleet.base.nest import assert_same_structure as assert_same_structure
from tensorfleet.base.nest import flatten as flatten
from tensorfleet.base.nest import is_nested as is_nested
from tensorfleet.base.nest import map_structure as map_structure
from tensorfleet.base.nest import pack_sequence_as as pack_sequence_as

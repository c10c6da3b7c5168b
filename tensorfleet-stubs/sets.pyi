# Written by tools/make_stubs.py.
from tensorfleet.ops.array.sets import set_difference as _difference
from tensorfleet.ops.array.sets import set_difference as set_difference
from tensorfleet.ops.array.sets import set_intersection as _intersection
from tensorfleet.ops.array.sets import set_intersection as set_intersection
from tensorfleet.ops.array.sets import set_size as _size
from tensorfleet.ops.array.sets import set_size as set_size
from tensorfleet.ops.array.sets import set_union as _union
from tensorfleet.ops.array.sets import set_union as set_union
difference = _difference
intersection = _intersection
size = _size
union = _union

# Written by tools/make_stubs.py.
from tensorfleet.ops.array.gather import gather_nd as gather_nd
from tensorfleet.ops.array.scatter import scatter_nd as scatter_nd
from tensorfleet.ops.array.shape import reshape as reshape
from tensorfleet.ops.array.space_blocks import batch_to_space_nd as batch_to_space_nd
from tensorfleet.ops.array.space_blocks import space_to_batch_nd as space_to_batch_nd
from tensorfleet.ops.array.tile_roll_reverse import reverse as reverse
from tensorfleet.ops.array.tile_roll_reverse import roll as roll
from tensorfleet.ops.array.tile_roll_reverse import tile as tile

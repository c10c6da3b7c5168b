# Written by tools/make_stubs.py.
from tensorfleet.ops.ragged.constants import constant as constant
from tensorfleet.ops.ragged.constants import constant_value as constant_value
from tensorfleet.ops.ragged.functions import map_flat_values as map_flat_values
from tensorfleet.ops.ragged.functions import ragged_placeholder as _placeholder
from tensorfleet.ops.ragged.functions import ragged_range as _range
from tensorfleet.ops.ragged.functions import stack_dynamic_partitions as stack_dynamic_partitions
from tensorfleet.ops.ragged.joining import stack as stack
from tensorfleet.ops.ragged.masks import boolean_mask as boolean_mask
from tensorfleet.ops.ragged.segment_ids import row_splits_to_segment_ids as row_splits_to_segment_ids
from tensorfleet.ops.ragged.segment_ids import segment_ids_to_row_splits as segment_ids_to_row_splits
from tensorfleet.ops.ragged.value import RaggedTensorValue as RaggedTensorValue
placeholder = _placeholder
range = _range

# Written by tools/make_stubs.py.
from tensorfleet.graph.sparse_tensor import SparseTensor as SparseTensor
from tensorfleet.ops.sparse.arrange import sparse_concat as _concat
from tensorfleet.ops.sparse.arrange import sparse_reshape as _reshape
from tensorfleet.ops.sparse.arrange import sparse_slice as _slice
from tensorfleet.ops.sparse.cross import sparse_cross as _cross
from tensorfleet.ops.sparse.cross import sparse_cross_hashed as _cross_hashed
from tensorfleet.ops.sparse.dense import sparse_placeholder as _placeholder
from tensorfleet.ops.sparse.dense import sparse_tensor_to_dense as _to_dense
from tensorfleet.ops.sparse.elements import sparse_reduce_max as _reduce_max
from tensorfleet.ops.sparse.elements import sparse_reduce_max_sparse as _reduce_max_sparse
from tensorfleet.ops.sparse.elements import sparse_reduce_sum as _reduce_sum
from tensorfleet.ops.sparse.elements import sparse_reduce_sum_sparse as _reduce_sum_sparse
from tensorfleet.ops.sparse.elements import sparse_softmax as _softmax
from tensorfleet.ops.sparse.math import sparse_add as _add
from tensorfleet.ops.sparse.math import sparse_maximum as _maximum
from tensorfleet.ops.sparse.math import sparse_minimum as _minimum
from tensorfleet.ops.sparse.math import sparse_tensor_dense_matmul as _matmul
from tensorfleet.ops.sparse.math import sparse_tensor_dense_matmul as _sparse_dense_matmul
from tensorfleet.ops.sparse.order import from_dense as from_dense
from tensorfleet.ops.sparse.order import sparse_expand_dims as _expand_dims
from tensorfleet.ops.sparse.order import sparse_eye as _eye
from tensorfleet.ops.sparse.order import sparse_fill_empty_rows as _fill_empty_rows
from tensorfleet.ops.sparse.order import sparse_mask as _mask
from tensorfleet.ops.sparse.order import sparse_merge as _merge
from tensorfleet.ops.sparse.order import sparse_reorder as _reorder
from tensorfleet.ops.sparse.order import sparse_reset_shape as _reset_shape
from tensorfleet.ops.sparse.order import sparse_retain as _retain
from tensorfleet.ops.sparse.order import sparse_to_indicator as _to_indicator
from tensorfleet.ops.sparse.order import sparse_transpose as _transpose
from tensorfleet.ops.sparse.segments import sparse_segment_mean as _segment_mean
from tensorfleet.ops.sparse.segments import sparse_segment_sqrt_n as _segment_sqrt_n
from tensorfleet.ops.sparse.segments import sparse_segment_sum as _segment_sum
from tensorfleet.ops.state.accumulators import SparseConditionalAccumulator as SparseConditionalAccumulator
import builtins
import typing
add = _add
concat = _concat
cross = _cross
cross_hashed = _cross_hashed
expand_dims = _expand_dims
eye = _eye
fill_empty_rows = _fill_empty_rows
mask = _mask
matmul = _matmul
maximum = _maximum
merge = _merge
minimum = _minimum
placeholder = _placeholder
reduce_max = _reduce_max
reduce_max_sparse = _reduce_max_sparse
reduce_sum = _reduce_sum
reduce_sum_sparse = _reduce_sum_sparse
reorder = _reorder
reset_shape = _reset_shape
reshape = _reshape
retain = _retain
segment_mean = _segment_mean
segment_sqrt_n = _segment_sqrt_n
segment_sum = _segment_sum
slice = _slice
softmax = _softmax
sparse_dense_matmul = _sparse_dense_matmul
def split(keyword_required: typing.Any = ..., sp_input: typing.Any = ..., num_split: builtins.int | None = ..., axis: builtins.int | None = ..., name: builtins.str | None = ..., split_dim: builtins.int | None = ...) -> typing.Any: ...
to_dense = _to_dense
to_indicator = _to_indicator
transpose = _transpose

"""The inner functions that take their arguments as in TensorFlow 2: the same work, in another order of arguments."""

from __future__ import annotations

import ast
import functools
import inspect
from collections.abc import Callable
from typing import Any

from tensorfleet.base.naming import export, find, homes, publish, publish_lazily
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.sparse_tensor import SparseTensor

# inner name | public name | arguments by place; `a=b` where version 1 says b (`_`: nothing), `a:X` where the default
# is X.
_REORDERED = """
    array_ops.boolean_mask_v2 | boolean_mask | tensor mask axis name
    array_ops.depth_to_space_v2 | nn.depth_to_space | input block_size data_format name
    array_ops.extract_image_patches_v2 | image.extract_patches | images sizes strides rates padding name
    array_ops.gather_v2 | gather | params indices validate_indices axis batch_dims name
    array_ops.listdiff | setdiff1d | x y out_idx=index_dtype name
    array_ops.pad_v2 | pad | tensor paddings mode constant_values name
    array_ops.gather_nd_v2 | gather_nd | params indices batch_dims name
    array_ops.ones_like_v2 | ones_like | input=tensor dtype name
    array_ops.ones_like_impl | ones_like | tensor dtype name optimize
    array_ops.reverse_sequence_v2 | reverse_sequence | input seq_lengths seq_axis batch_axis name
    array_ops.shape_v2 | shape | input out_type name
    array_ops.size_v2 | size | input out_type name
    array_ops.space_to_batch_v2 | space_to_batch_nd | input block_shape paddings name
    array_ops.space_to_depth_v2 | nn.space_to_depth | input block_size data_format name
    array_ops.transpose_v2 | transpose | a perm conjugate name
    array_ops.zeros_like_v2 | zeros_like | input=tensor dtype name
    array_ops.zeros_like_impl | zeros_like | tensor dtype name optimize
    check_ops.assert_equal_v2 | assert_equal | x y message summarize name
    check_ops.assert_greater_v2 | assert_greater | x y message summarize name
    check_ops.assert_greater_equal_v2 | assert_greater_equal | x y message summarize name
    check_ops.assert_integer_v2 | assert_integer | x message name
    check_ops.assert_less_v2 | assert_less | x y message summarize name
    check_ops.assert_less_equal_v2 | assert_less_equal | x y message summarize name
    check_ops.assert_near_v2 | assert_near | x y rtol atol message summarize name
    check_ops.assert_negative_v2 | assert_negative | x message summarize name
    check_ops.assert_non_negative_v2 | assert_non_negative | x message summarize name
    check_ops.assert_non_positive_v2 | assert_non_positive | x message summarize name
    check_ops.assert_none_equal_v2 | assert_none_equal | x y message summarize name
    check_ops.assert_positive_v2 | assert_positive | x message summarize name
    check_ops.assert_rank_v2 | assert_rank | x rank message name
    check_ops.assert_rank_at_least_v2 | assert_rank_at_least | x rank message name
    check_ops.assert_rank_in_v2 | assert_rank_in | x ranks message name
    check_ops.assert_scalar_v2 | assert_scalar | tensor message name
    check_ops.assert_shapes | debugging.assert_shapes | shapes data summarize message name
    check_ops.assert_shapes_v2 | debugging.assert_shapes | shapes data summarize message name
    check_ops.assert_type_v2 | assert_type | tensor tf_type message name
    confusion_matrix.confusion_matrix | confusion_matrix | labels predictions num_classes weights dtype name
    control_flow_ops.case_v2 | case | pred_fn_pairs default exclusive strict name
    control_flow_ops.cond_for_tf_v2 | cond | pred true_fn false_fn name strict:True
    control_flow_ops.tuple_v2 | tuple | tensors control_inputs name
    control_flow_ops.while_loop_v2 | while_loop | cond body loop_vars shape_invariants parallel_iterations back_prop swap_memory maximum_iterations name return_same_structure:True
    ctc_ops.ctc_loss_dense | nn.ctc_loss_v2 | labels logits label_length logit_length logits_time_major unique blank_index:0 name
    functional_ops.foldl_v2 | foldl | fn elems initializer parallel_iterations back_prop swap_memory name
    functional_ops.foldr_v2 | foldr | fn elems initializer parallel_iterations back_prop swap_memory name
    functional_ops.scan_v2 | scan | fn elems initializer parallel_iterations back_prop swap_memory infer_shape reverse name
    gradients_impl.gradients_v2 | gradients | ys xs grad_ys name gate_gradients aggregation_method stop_gradients unconnected_gradients
    gradients_impl.HessiansV2 | hessians | ys xs gate_gradients aggregation_method name
    image_ops_impl.crop_and_resize_v2 | image.crop_and_resize | image boxes box_indices crop_size method extrapolation_value name
    image_ops_impl.draw_bounding_boxes_v2 | image.draw_bounding_boxes | images boxes colors name
    linalg_ops.norm_v2 | norm | tensor ord axis keepdims name
    math_ops.argmax_v2 | argmax | input axis output_type name
    math_ops.argmin_v2 | argmin | input axis output_type name
    math_ops.bincount | math.bincount | arr weights minlength maxlength dtype name=_
    math_ops.count_nonzero_v2 | count_nonzero | input axis keepdims dtype name
    math_ops.reduce_max_with_dims | reduce_max | input_tensor axis keepdims name _
    math_ops.reduce_min_with_dims | reduce_min | input_tensor axis keepdims name _
    math_ops.reduce_sum_with_dims | reduce_sum | input_tensor axis keepdims name _
    math_ops.scalar_mul_v2 | scalar_mul | scalar x name
    math_ops.sparse_segment_mean_v2 | sparse_segment_mean | data indices segment_ids num_segments name
    math_ops.sparse_segment_sqrt_n_v2 | sparse_segment_sqrt_n | data indices segment_ids num_segments name
    math_ops.sparse_segment_sum_v2 | sparse_segment_sum | data indices segment_ids num_segments name
    nn_impl.batch_norm_with_global_normalization_v2 | nn.batch_norm_with_global_normalization | input mean variance beta gamma variance_epsilon scale_after_normalization name
    nn_impl.depthwise_conv2d_v2 | nn.depthwise_conv2d | input filter strides padding data_format dilations name
    nn_impl.l2_normalize_v2 | nn.l2_normalize | x axis epsilon name
    nn_impl.moments_v2 | nn.moments | x axes shift keepdims=keep_dims:False name
    nn_impl.normalize | linalg.normalize | tensor ord axis name
    nn_impl.separable_conv2d_v2 | nn.separable_conv2d | input depthwise_filter pointwise_filter strides padding data_format dilations name
    nn_impl.sigmoid_cross_entropy_with_logits_v2 | nn.sigmoid_cross_entropy_with_logits | labels logits name
    nn_impl.sufficient_statistics_v2 | nn.sufficient_statistics | x axes shift keepdims name
    nn_impl.weighted_cross_entropy_with_logits_v2 | nn.weighted_cross_entropy_with_logits | labels logits pos_weight name
    nn_impl.weighted_moments_v2 | nn.weighted_moments | x axes frequency_weights keepdims name
    nn_ops.conv2d_v2 | nn.conv2d | input filters strides padding data_format dilations name
    nn_ops.conv2d_backprop_filter_v2 | nn.conv2d_backprop_filter | input filter_sizes out_backprop strides padding data_format dilations name
    nn_ops.conv2d_backprop_input_v2 | nn.conv2d_backprop_input | input_sizes filters out_backprop strides padding data_format dilations name
    nn_ops.conv2d_transpose_v2 | nn.conv2d_transpose | input filters output_shape strides padding data_format dilations name
    nn_ops.conv1d_v2 | nn.conv1d | input filters stride padding data_format dilations name
    nn_ops.conv3d_v2 | nn.conv3d | input filters strides padding data_format dilations name
    nn_ops.conv3d_transpose_v2 | nn.conv3d_transpose | input=value filters output_shape strides padding data_format dilations name
    nn_ops.convolution_v2 | nn.convolution | input filters=filter strides padding:VALID data_format dilations name
    nn_ops.convolution_internal | nn.convolution | input filters=filter strides padding:VALID data_format dilations name
    nn_ops.crelu_v2 | nn.crelu | features axis name
    nn_ops.dilation2d_v2 | nn.dilation2d | input filters strides padding _ dilations name
    nn_ops.erosion2d_v2 | nn.erosion2d | value filters=kernel strides padding _ dilations=rates name
    nn_ops.fractional_avg_pool_v2 | nn.fractional_avg_pool | value pooling_ratio pseudo_random overlapping seed name
    nn_ops.fractional_max_pool_v2 | nn.fractional_max_pool | value pooling_ratio pseudo_random overlapping seed name
    nn_ops.in_top_k_v2 | nn.in_top_k | targets predictions k name
    nn_ops.log_softmax_v2 | nn.log_softmax | logits axis name
    nn_ops.max_pool_with_argmax_v2 | nn.max_pool_with_argmax | input ksize strides padding data_format output_dtype include_batch_in_index name
    nn_ops.pool_v2 | nn.pool | input window_shape pooling_type strides padding:VALID data_format dilations name
    nn_ops.softmax_v2 | nn.softmax | logits axis name
    nn_ops.softmax_cross_entropy_with_logits_v2_helper | nn.softmax_cross_entropy_with_logits_v2 | labels logits axis name dim
    nn_ops.sparse_softmax_cross_entropy_with_logits_v2 | nn.sparse_softmax_cross_entropy_with_logits | labels logits name
    numerics.verify_tensor_all_finite_v2 | verify_tensor_all_finite | x message name
    parsing_ops.decode_csv_v2 | decode_csv | records record_defaults field_delim use_quote_delim na_value select_cols name
    parsing_ops.parse_example_v2 | parse_example | serialized features example_names name
    parsing_ops.parse_single_example_v2 | parse_single_example | serialized features example_names name
    parsing_ops.parse_single_example_v2_unoptimized | parse_single_example | serialized features example_names name
    random_ops.random_poisson_v2 | random_poisson | shape lam dtype seed name
    sparse_ops.serialize_many_sparse_v2 | serialize_many_sparse | sp_input out_type name
    sparse_ops.serialize_sparse_v2 | serialize_sparse | sp_input out_type name
    sparse_ops.sparse_add_v2 | sparse_add | a b threshold
    sparse_ops.sparse_concat_v2 | sparse_concat | axis sp_inputs expand_nonconcat_dims name
    sparse_ops.sparse_merge_impl | sparse_merge | sp_ids sp_values vocab_size name already_sorted
    sparse_ops.sparse_split_v2 | sparse_split | sp_input num_split axis name
    string_ops.reduce_join_v2 | reduce_join | inputs axis keepdims separator name
    string_ops.string_length_v2 | strings.length | input unit name
    string_ops.string_split_v2 | strings.split | source=input sep maxsplit
    string_ops.substr_v2 | strings.substr | input pos len unit name
"""


def reordered(public: str, places: list[str]) -> Callable:
    """A public function called by the places of its arguments in version 2."""
    target = find(public)
    known = inspect.signature(target).parameters
    renamed, parameters = {}, []
    for place in places:
        name, _, default = place.partition(":")
        name, _, old = name.partition("=")
        renamed[name] = old or name
        value = _value(default) if default else known[renamed[name]].default if renamed[name] != "_" else None
        parameters.append(inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=value))
    defaults = {
        renamed[p.name]: p.default for p, place in zip(parameters, places, strict=True) if ":" in place
    }
    names = [p.name for p in parameters]

    @functools.wraps(target)
    def call(*args: Any, **kwargs: Any) -> Any:
        if len(args) > len(names):
            raise TypeError(f"{call.__name__}() takes at most {len(names)} arguments, {len(args)} given")
        given = {**dict(zip(names, args, strict=False)), **kwargs}
        taken = {renamed.get(k, k): v for k, v in given.items()}
        taken.pop("_", None)
        return target(**{**defaults, **taken})

    call.__signature__ = _signature(parameters)  # type: ignore[attr-defined]
    return call


def _value(written: str) -> Any:
    try:
        return ast.literal_eval(written)
    except (ValueError, SyntaxError):
        return written


def _signature(parameters: list[inspect.Parameter]) -> inspect.Signature:
    """Arguments as in version 2, where none without a default stands behind one that has it."""
    seen, result = False, []
    for parameter in parameters:
        seen = seen or parameter.default is not inspect.Parameter.empty
        missing = seen and parameter.default is inspect.Parameter.empty
        result.append(parameter.replace(default=None) if missing else parameter)
    return inspect.Signature(result)


_LINES = homes((f"python.ops.{line.split()[0]}", line) for line in _REORDERED.strip().splitlines())


def _load(name: str) -> Callable:
    _, public, places = _LINES[name].split("|")
    return reordered(public.strip(), places.split())


publish_lazily(_load, *_LINES)


@export("python.ops.array_ops.batch_to_space_v2")
def batch_to_space_v2(input: Any, block_shape: Any, crops: Any, name: str | None = None) -> Tensor:
    """`tf.batch_to_space_nd`, where one number stands for the blocks of an image."""
    blocks = [block_shape] * 2 if isinstance(block_shape, int) else block_shape
    return find("batch_to_space_nd")(input, blocks, crops, name=name)


def _sparse_reduction(kind: str) -> Callable:
    def reduce_v2(
        sp_input: SparseTensor,
        axis: Any = None,
        keepdims: Any = None,
        output_is_sparse: bool = False,
        name: str | None = None,
    ) -> Tensor | SparseTensor:
        """The sums, or the largest values, along dimensions of a sparse tensor: dense or sparse."""
        reduce = find(f"sparse_reduce_{kind}{'_sparse' if output_is_sparse else ''}")
        return reduce(sp_input, axis, keepdims)

    reduce_v2.__name__ = reduce_v2.__qualname__ = f"sparse_reduce_{kind}_v2"
    return reduce_v2


for _kind in ("max", "sum"):
    publish(_sparse_reduction(_kind), f"python.ops.sparse_ops.sparse_reduce_{_kind}_v2")

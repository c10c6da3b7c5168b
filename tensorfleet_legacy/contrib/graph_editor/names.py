"""`tf.contrib.graph_editor`: choosing, copying and rewiring parts of a graph that is made already.

Each file is read when one of its names is used.
"""

from __future__ import annotations

from tensorfleet_legacy.lazy_names import publish_from

_NAMES = {
    "util": """
        ControlOutputs ListView check_graphs concatenate_unique find_corresponding find_corresponding_elem flatten_tree
        get_consuming_ops get_generating_ops get_predefined_collection_names get_tensors get_unique_graph is_iterable
        make_list_of_op make_list_of_t make_placeholder_from_dtype_and_shape make_placeholder_from_tensor
        placeholder_name scope_basename scope_dirname scope_finalize transform_tree
    """,
    "select": """
        _get_input_ts _get_output_ts can_be_regex check_cios compute_boundary_ts filter_ops filter_ops_from_regex
        filter_ts filter_ts_from_regex get_backward_walk_ops get_forward_walk_ops get_name_scope_ops get_ops_ios
        get_walks_intersection_ops get_walks_union_ops get_within_boundary_ops make_regex select_ops
        select_ops_and_ts select_ts
    """,
    "subgraph": "SubGraphView make_view make_view_from_scope",
    "transform": """
        Transformer TransformerInfo assign_renamed_collections_handler copy copy_op_handler
        copy_with_input_replacements graph_replace keep_t_if_possible_handler replace_t_with_placeholder_handler
        transform_op_if_inside_handler
    """,
    "reroute": """
        add_control_inputs remove_control_inputs reroute_inputs reroute_ios reroute_outputs reroute_ts swap_inputs
        swap_ios swap_outputs swap_ts
    """,
    "edit": """
        bypass connect detach detach_control_inputs detach_control_outputs detach_inputs detach_outputs
    """,
    "match": "OpMatcher op_type",
}
_EDITOR = "contrib.graph_editor"
for _file, _names in _NAMES.items():
    _place = "tests.match" if _file == "match" else _file
    publish_from(f"{_EDITOR}.{_file}", _names, f"{_EDITOR}.{_place}")
    if _file != "match":
        _public = " ".join(name for name in _names.split() if not name.startswith("_"))
        publish_from(f"{_EDITOR}.{_file}", _public, _EDITOR)
publish_from(f"{_EDITOR}.util", "ph=make_placeholder_from_dtype_and_shape", _EDITOR)
publish_from(f"{_EDITOR}.subgraph", "sgv=make_view sgv_scope=make_view_from_scope", _EDITOR)
# Where TensorFlow itself keeps some of them.
_SELECTORS = """
    check_graphs concatenate_unique get_consuming_ops get_generating_ops get_tensors get_unique_graph is_iterable
    make_list_of_op make_list_of_t
"""
publish_from(f"{_EDITOR}.util", _SELECTORS, "python.ops.op_selector")

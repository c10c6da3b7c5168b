"""Functions of TensorFlow's inside."""

import collections
import functools
import pickle

import numpy as np
import pytest
from tensorfleet.core.framework.attr_value_pb2 import AttrValue
from tensorfleet.python.framework import (
    common_shapes,
    device,
    dtypes,
    errors_impl,
    ops,
    sparse_tensor,
    tensor_shape,
    tensor_util,
    test_ops,
    test_util,
)
from tensorfleet.python.layers import utils
from tensorfleet.python.ops import (
    array_ops,
    confusion_matrix,
    control_flow_util,
    gradients_impl,
    init_ops,
    math_ops,
    resources,
    state_ops,
    variable_scope,
    weights_broadcast_ops,
)
from tensorfleet.python.training import input as inputs
from tensorfleet.python.util import function_utils, nest, object_identity, tf_decorator

import tensorfleet as tf
from tests.support.sessions import run


def test_types_of_references_have_names():
    assert dtypes.float32_ref is tf.float32._as_ref
    assert dtypes.string_ref.name == "string_ref"
    assert init_ops.Constant is tf.constant_initializer


def test_shapes_that_broadcast():
    s = tf.TensorShape
    assert common_shapes.broadcast_shape(s([2, 1]), s([3])).as_list() == [2, 3]
    assert common_shapes.broadcast_shape(s([None, 1]), s([4, None])).as_list() == [4, None]
    assert common_shapes.broadcast_shape(s(None), s([3])).ndims is None
    assert not common_shapes.is_broadcast_compatible(s([2]), s([3]))
    with pytest.raises(ValueError, match="Incompatible shapes for broadcasting"):
        common_shapes.broadcast_shape(s([2]), s([3]))


def test_lengths_of_convolutions():
    assert utils.conv_output_length(4, 2, "valid", 2) == 2
    assert utils.conv_output_length(4, 2, "same", 2) == 2
    assert utils.conv_output_length(4, 2, "full", 1) == 5
    assert utils.conv_input_length(3, 2, "valid", 1) == 4
    assert utils.deconv_output_length(4, 3, "valid", 2) == 9
    assert utils.convert_data_format("channels_first", 4) == "NCHW"
    assert (
        run(
            utils.smart_cond(
                tf.placeholder_with_default(True, []), lambda: tf.constant(1), lambda: tf.constant(2)
            )
        )
        == 1
    )


def test_a_variable_without_a_python_object():
    v = state_ops.variable_op([2], tf.float32, name="bare")
    assert v.dtype == tf.float32._as_ref and v.shape.as_list() == [2]
    assert state_ops.variable_op([2], tf.float32, set_shape=False).shape.ndims is None
    with tf.Session() as s:
        assert s.run(tf.assign(v, [1.0, 2.0])).tolist() == [1, 2]
    assert not tf.global_variables()


def test_resources_are_registered_and_initialized_together(session):
    handle = test_ops.stub_resource_handle_op(container="a", shared_name="b")
    resources.register_resource(
        handle, test_ops.resource_create_op(handle), test_ops.resource_initialized_op(handle)
    )
    missing = resources.report_uninitialized_resources()
    assert session.run(missing).tolist() == [handle.name.encode()]
    session.run(resources.initialize_resources(resources.shared_resources()))
    assert session.run(missing).tolist() == []
    with pytest.raises(tf.errors.AlreadyExistsError, match="already exists"):
        session.run(test_ops.resource_create_op(tf.stack([handle])))


def test_conversions_and_errors():
    assert sparse_tensor.is_sparse(tf.SparseTensor([[0]], [1], [1]))
    assert not ops.is_dense_tensor_like(3)
    assert isinstance(
        errors_impl._make_specific_exception(None, None, "x", 3), tf.errors.InvalidArgumentError
    )
    with pytest.warns(UserWarning, match="Unknown error code"):
        assert type(errors_impl._make_specific_exception(None, None, "x", 99)) is tf.errors.UnknownError
    device.check_valid("/job:a/task:1")
    with pytest.raises(ValueError):
        device.check_valid("/nonsense:x")
    result = math_ops._as_indexed_slices(tf.constant([[1.0], [2.0]]))
    assert run(result.indices).tolist() == [0, 1]
    assert run(math_ops.reduced_shape([2, 3, 4], [0, -1])).tolist() == [1, 3, 1]
    with pytest.raises(LookupError):
        ops._gradient_registry.lookup("NoSuchOp")
    kept = ops.convert_n_to_tensor_or_indexed_slices([result, None, 1])
    assert kept[0] is result and kept[1] is None and kept[2].dtype == tf.int32


def test_ranks_are_made_to_fit():
    labels, predictions = confusion_matrix.remove_squeezable_dimensions(np.ones([3]), np.ones([3, 1]))
    assert labels.shape == predictions.shape == [3]
    op = weights_broadcast_ops.assert_broadcastable(1.0, tf.ones([2, 2]))
    assert "static_scalar_check_success" in op.name
    with pytest.raises(ValueError, match="weights can not be broadcast to values"):
        weights_broadcast_ops.assert_broadcastable(tf.ones([3]), tf.ones([2, 2]))


def test_where_an_operation_lies():
    seen = []

    def body(i):
        seen.append(i.op)
        return i + 1

    out = tf.while_loop(lambda i: i < 3, body, [0])
    assert control_flow_util.IsInWhileContext(seen[0])
    assert not control_flow_util.IsInWhileContext(tf.constant(1).op)
    assert control_flow_util.IsLoopExit(out.op)
    outside = tf.constant(1)
    control_flow_util.CheckInputFromValidContext(tf.identity(outside).op, outside.op)
    with pytest.raises(ValueError, match="is in a while loop"):
        control_flow_util.CheckInputFromValidContext(outside.op, seen[0])


def test_structures_of_different_depth():
    shallow, deep = [0, (1, 2)], [[1, 2], ({"a": 3}, 4)]
    assert nest.flatten_up_to(shallow, deep) == [[1, 2], {"a": 3}, 4]
    assert nest.map_structure_up_to(shallow, str, deep) == ["[1, 2]", ("{'a': 3}", "4")]
    with pytest.raises(TypeError, match="input must also be a sequence"):
        nest.flatten_up_to([[0]], [1])
    with pytest.raises(ValueError, match="the same sequence length"):
        nest.assert_shallow_structure([0, 1], [1])
    Point = collections.namedtuple("Point", "x y")
    assert nest.flatten_with_joined_string_paths({"p": Point(1, [2])}) == [("p/x", 1), ("p/y/0", 2)]
    assert nest.map_structure_with_paths(lambda p, v: (p, v), {"a": [1]}) == {"a": [("a/0", 1)]}
    assert nest.flatten_dict_items({(4, 5): ("a", "b"), 6: "c"}) == {4: "a", 5: "b", 6: "c"}
    assert nest.get_traverse_shallow_structure(lambda s: not isinstance(s, tuple), [[1], (2,)]) == [
        [True],
        False,
    ]
    assert nest.list_to_tuple([1, [2], {"a": [3]}]) == (1, (2,), {"a": (3,)})


def test_functions_are_seen_through_decorators():
    def f(a, b=1):
        return a + b

    def wrapped(*args, **kwargs):
        return f(*args, **kwargs) * 10

    result = tf_decorator.make_decorator(f, wrapped, "tenfold")
    assert result(1) == 20 and result.__name__ == "f"
    decorators, target = tf_decorator.unwrap(result)
    assert target is f and decorators[0].decorator_name == "tenfold"
    assert function_utils.fn_args(f) == ("a", "b")
    assert function_utils.fn_args(functools.partial(f, b=2)) == ("a",)
    assert function_utils.has_kwargs(wrapped) and not function_utils.has_kwargs(f)


def test_objects_by_identity():
    a, b = [1], [1]
    table = object_identity.ObjectIdentityDictionary()
    table[a] = 1
    assert a in table and b not in table and table[a] == 1
    result = object_identity.ObjectIdentitySet([a])
    result.add(b)
    assert len(result) == 2


def test_the_store_of_variables_finds_by_full_name():
    store = variable_scope._get_default_variable_store()
    v = store.get_variable("a/v", [1])
    assert store.get_variable("a/v", [1]) is v and v.op.name == "a/v"
    with variable_scope._pure_variable_scope("pure"):
        assert tf.get_variable("v", []).op.name == "pure/v"
        assert tf.constant(1, name="c").op.name == "c"


def test_variables_refuse_what_they_cannot_start_from():
    def body(i):
        tf.Variable(tf.constant(2.0))
        return i + 1

    with pytest.raises(ValueError, match="is from inside a control-flow construct"):
        tf.while_loop(lambda i: i < 1, body, [0])
    handle = tf.raw_ops.VarHandleOp(dtype=tf.int32, shape=[1])
    with pytest.raises(ValueError, match="Shapes must be equal rank, but are 1 and 0"):
        tf.raw_ops.AssignVariableOp(resource=handle, value=1)
    with pytest.raises(ValueError, match="wrong dtype. Expected int32 got float32"):
        tf.raw_ops.ReadVariableOp(resource=handle, dtype=tf.float32)


def test_arguments_of_the_wrong_kind_are_told():
    x = tf.constant(1)
    with pytest.raises(TypeError, match="Control input must be Operation or Tensor"):
        tf.tuple([x], control_inputs=[1])
    with pytest.raises(TypeError, match="List of Tensors when single Tensor expected"):
        tf.constant([x])
    with pytest.raises(ValueError, match="Shape must be rank 1 but is rank 2"):
        tf.fill([[1]], 1.0)
    with pytest.raises(ValueError, match="Need at least one param"):
        tf.nn.embedding_lookup([], [1])
    image, weights = np.ones([1, 2, 2, 1], np.float32), np.ones([1, 1, 1, 1], np.float32)
    with pytest.raises(tf.errors.UnimplementedError, match="strides in the batch and depth"):
        run(tf.nn.conv2d(image, weights, [2, 1, 1, 1], "SAME"))


def test_operations_are_changed_by_hand():
    x, y = test_ops.int_output(), test_ops.int_output()
    z = test_ops.int_input_int_output(x)
    z.op._add_control_input(y.op)
    z.op._remove_all_control_inputs()
    assert z.op.control_inputs == []
    z.op._set_attr("note", AttrValue(i=2))
    assert z.op.get_attr("note") == 2
    with pytest.raises(ValueError, match="looks like a Tensor name"):
        z.graph.as_graph_element("a:0:0")
    with pytest.raises(TypeError, match="input_map must be a dictionary"):
        tf.import_graph_def(tf.GraphDef(), input_map=[1])


def test_products_with_second_derivatives_and_shapes_of_messages():
    x = tf.constant([2.0, 3.0])
    (product,) = gradients_impl._hessian_vector_product([x * x * x], [x], [tf.constant([1.0, 2.0])])
    assert run(product).tolist() == [12, 36]
    assert tensor_util.ShapeEquals(tf.make_tensor_proto([[1, 2]]), [1, 2])


def test_what_an_op_costs_is_what_was_registered_for_its_type():
    ops = tf.python.framework.ops

    @ops.RegisterStatistics("CostsSeven", "flops")
    def seven(graph, node):
        return ops.OpStats("flops", 7)

    with pytest.raises(KeyError, match="already"):
        ops.RegisterStatistics("CostsSeven", "flops")(seven)
    node = tf.NodeDef(op="CostsSeven", name="n")
    total = ops.OpStats("flops")
    total += ops.get_stats_for_node_def(tf.get_default_graph(), node, "flops")
    total += ops.get_stats_for_node_def(tf.get_default_graph(), node, "flops")
    assert total.value == 14
    assert ops.get_stats_for_node_def(tf.get_default_graph(), node, "bytes").value is None
    with pytest.raises(ValueError, match="bytes"):
        total += ops.OpStats("bytes", 1)


def test_how_a_collection_is_written_can_be_asked_for():
    ops = tf.python.framework.ops
    v = tf.Variable(1.0, name="v")
    write, read = ops.get_to_proto_function("variables"), ops.get_from_proto_function("variables")
    assert read(write(v)).name == "v:0"
    assert ops.get_to_proto_function("unheard of") is None


def test_an_input_that_is_not_there_cannot_be_replaced():
    x = tf.constant(1)
    with pytest.raises(tf.errors.OutOfRangeError, match=r"Input index \[1\] is greater than"):
        x.op._update_input(1, x)
    y = x + 1
    with tf.Graph().as_default():
        other = tf.constant(2)
    with pytest.raises(ValueError, match="must be from the same graph"):
        y.op._update_input(0, other)
    sums = tf.zeros([3, 1]) + tf.ones([3, 1])
    with pytest.raises(
        tf.errors.InvalidArgumentError, match=r"Cannot update edge, incompatible shapes: \[2\] and \[3,1\]"
    ):
        sums.op._update_input(0, tf.zeros([2]))


def test_a_shape_that_contradicts_is_told_as_for_inputs():
    x = tf.placeholder(tf.float32, [None, 2])
    with pytest.raises(ValueError, match="Shapes must be equal rank, but are 2 and 1"):
        x.set_shape([0])
    with pytest.raises(ValueError, match=r"Dimension 1 in both .* 2 and 1. Shapes are \[\?,2\] and \[2,1\]"):
        x.set_shape([2, 1])


def test_small_things_that_operations_and_tensors_know():
    x = tf.placeholder(tf.float32, [2, None])
    assert x._shape_tuple() == (2, None)
    assert x._shape_as_list() == [2, None]
    assert tf.placeholder(tf.float32)._shape_as_list() is None
    assert tf.placeholder(tf.float32)._shape_tuple() is None
    with tf.control_dependencies([x]):
        y = tf.constant(1.0, name="y")
    assert x.op._control_outputs == [y.op]
    with pytest.raises(ValueError, match="Operation 'y' has no attr named 'nothing'"):
        y.op.get_attr("nothing")
    rows = -tf.IndexedSlices(tf.constant([[1.0], [2.0]]), tf.constant([0, 3]))
    assert run(rows.values).tolist() == [[-1.0], [-2.0]]
    assert tf.python.framework.ops.strip_name_scope("a//b/c", "a") == "b/c"


def test_shapes_without_shortcuts():
    known = tf.zeros([2, 3])
    assert array_ops.shape_internal(known, optimize=False).op.type == "Shape"
    assert array_ops.size_internal(known, optimize=False).op.type == "Size"
    assert array_ops.rank_internal(known, optimize=False).op.type == "Rank"
    assert array_ops.rank_internal(known).op.type == "Const"
    assert run(tensor_util.shape_tensor((tf.Dimension(2), 3))).tolist() == [2, 3]
    assert tensor_shape.unknown_shape(rank=2).as_list() == tensor_shape.unknown_shape(ndims=2).as_list()
    with pytest.raises(TypeError, match="'int' and 'Dimension', please use //"):
        6 / tf.Dimension(2)
    with pytest.raises(TypeError, match="Cannot convert"):
        tf.Dimension(tf.string)


def test_labels_of_kernels_and_versions_of_graphs():
    with tf.get_default_graph()._kernel_label_map({"KernelLabel": "overload_2"}):
        labelled = test_ops.kernel_label()
    assert run(labelled) == b"My label is: overload_2"
    assert labelled.op.inputs == () and labelled.op._input_types == []
    with pytest.raises(NotImplementedError, match="removed in version 8"):
        test_ops.old()
    with tf.Graph().as_default() as graph, tf.Session() as session:
        test_util.set_producer_version(graph, 7)
        session.run(test_ops.old())
        test_util.set_producer_version(graph, 8)
        assert graph.graph_def_versions.producer == 7


def test_scopes_that_are_entered_again():
    scope = ops.name_scope_v2("a")
    with scope as outer, scope as inner:
        assert (outer, inner, scope.name) == ("a/", "a/a/", "a")
    with tf.name_scope("b"), tf.name_scope("/") as root:
        assert root == "/"


def test_names_may_stand_for_what_stands_for_a_tensor():
    class Named:
        def _as_graph_element(self):
            return "x:0"

    x = tf.constant(1.0, name="x")
    assert tf.get_default_graph().as_graph_element(Named()) is x


def test_messages_about_lists_of_inputs():
    library = test_ops._op_def_lib
    with pytest.raises(TypeError, match="Expected list for 'a' argument to 'TypeList' Op, not 17"):
        library.apply_op("TypeList", a=17)
    with pytest.raises(TypeError, match=r"have types \[int32, <NOT CONVERTIBLE TO TENSOR>\]"):
        library.apply_op("TypeList", a=[tf.constant(1), None])
    with pytest.raises(
        TypeError, match="type list of string, int32 that does not match type list string, bool of"
    ):
        library.apply_op("TypeListTwice", a=["a", True], b=["b", 6])
    with pytest.raises(TypeError, match="'a' has DataType int32 not in list of allowed values: bool, string"):
        library.apply_op("TypeListRestrict", a=[True, 12])
    with pytest.raises(
        TypeError, match="Expected int32 passed to parameter 'a' of op 'Simple', got {'b': 1} of type"
    ):
        library.apply_op("Simple", a={"b": 1})
    with pytest.raises(TypeError, match="Don't know how to convert 3 to a func for argument f"):
        library.apply_op("FuncAttr", f=3)
    with pytest.raises(TypeError, match=r"have types \[int32, string\] that don't all match"):
        library.apply_op("ListInput", a=[tf.constant(1), tf.constant("s")])


def test_errors_of_codes_that_are_not_known():
    with pytest.warns(UserWarning, match="Unknown error code: 37"):
        result = errors_impl._make_specific_exception(None, None, None, 37)
    assert isinstance(result, tf.errors.UnknownError)
    assert pickle.loads(pickle.dumps(result)).message is None
    with pytest.warns(UserWarning, match="Unknown class exception"):
        assert isinstance(errors_impl.error_code_from_exception_type("no class"), tf.errors.OpError)


def test_elements_of_batches_in_order_of_their_keys():
    element = {"z": 1, 1: 42, ("a", "b"): 100}
    assert inputs._as_tensor_list(element) == [100, 42, 1]
    assert inputs._as_original_type(element, [100, 42, 1]) == element
    assert inputs._as_original_type([1, 2], [3, 4]) == [3, 4]


def test_whether_a_graph_was_entered():
    with tf.Graph().as_default():
        assert ops.has_default_graph()


def test_a_branch_of_version_2_is_a_cond():
    from tensorfleet.python.ops import cond_v2

    x = tf.constant(2.0)
    pred = tf.placeholder(tf.bool)
    y = cond_v2.cond_v2(pred, lambda: x * 3.0, lambda: x, name="either")
    with tf.Session() as sess:
        assert sess.run([y, tf.gradients(y, x)[0]], {pred: True}) == [6, 3]
        assert sess.run(y, {pred: False}) == 2


def test_what_products_cost_is_known():
    ops = tf.python.framework.ops
    product = tf.matmul(tf.ones([16, 25]), tf.ones([16, 9]), transpose_a=True)
    assert ops.get_stats_for_node_def(product.graph, product.op.node_def, "flops").value == 7200
    assert ops.get_stats_for_node_def(product.graph, product.op.node_def, "bytes").value is None


def test_a_template_whose_function_is_one_of_the_graph():
    from tensorfleet.python.ops import template

    def scaled(x):
        return x * tf.get_variable("v", initializer=2.0)

    with tf.Graph().as_default(), tf.Session() as session:
        result = template.make_template_internal("t", scaled, create_graph_function_=True)
        results = [result(tf.constant(3.0)), result(tf.constant(4.0))]
        session.run(tf.global_variables_initializer())
        assert session.run(results) == [6, 8]


def test_weights_and_values_that_are_arrays_are_broadcast():
    from tensorfleet.python.ops import weights_broadcast_ops

    result = weights_broadcast_ops.broadcast_weights(np.array([[2], [3]]), np.ones((2, 2)))
    np.testing.assert_array_equal(run(result), [[2, 2], [3, 3]])


def test_parts_of_training_are_where_its_tests_look_for_them(tmp_path):
    training = tf.python.training
    path = training.checkpoint_management._GetCheckpointFilename(str(tmp_path), None)
    assert path == str(tmp_path / "checkpoint")
    result = training.server_lib._make_server_def({"a": ["h:1"]}, None, None, None, None)
    assert (result.job_name, result.task_index, result.protocol) == ("a", 0, "grpc")
    with pytest.raises(ValueError, match="Must specify an explicit `task_index`"):
        training.server_lib._make_server_def({"a": ["h:1", "h:2"]}, None, None, None, None)
    assert training.session_manager._maybe_name(None) == "None"
    assert tf.python.layers.convolutional.deconv2d is tf.layers.conv2d_transpose


def test_what_libraries_import_of_tracking_and_columns_is_there():
    tracking = tf.python.training.tracking
    with tracking.base.no_automatic_dependency_tracking_scope(None):
        assert tracking.base.TrackableReference("a", 1).ref == tracking.data_structures.NoDependency(1)
    columns = tf.python.feature_column.feature_column_lib
    assert columns.is_feature_column_v2([tf.feature_column.numeric_column("x")])
    assert not columns.is_feature_column_v2(["x"])
    assert columns.DenseFeatures is tf.keras.layers.DenseFeatures


def test_the_module_of_the_framework_and_the_folder_of_ops_are_one_name():
    from tensorfleet.python import math_ops, ops

    assert ops.control_dependencies is tf.control_dependencies
    assert math_ops.add_n is tf.add_n and ops.math_ops is math_ops

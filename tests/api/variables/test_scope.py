"""Variables by name: scopes, reuse, getters, partitions, regularizers, collections."""

import numpy as np
import pytest

import tensorfleet as tf


def test_reuse_finds_the_same_variable():
    with tf.variable_scope("a"):
        v = tf.get_variable("v", [2])
    with tf.variable_scope("a", reuse=True):
        assert tf.get_variable("v", [2]) is v
    with tf.variable_scope("a", reuse=tf.AUTO_REUSE):
        assert tf.get_variable("v", [2]) is v
        assert tf.get_variable("w", [2]).name == "a/w:0"
    with tf.variable_scope("a") as scope:
        scope.reuse_variables()
        assert tf.get_variable("v") is v


def test_reuse_of_what_does_not_exist_is_refused():
    with (
        tf.variable_scope("a", reuse=True),
        pytest.raises(ValueError, match="does not exist, or was not created"),
    ):
        tf.get_variable("v", [2])


def test_reuse_with_another_shape_or_type_is_refused():
    with tf.variable_scope("a", reuse=tf.AUTO_REUSE):
        tf.get_variable("v", [2])
        with pytest.raises(ValueError, match="Trying to share variable a/v, but specified shape"):
            tf.get_variable("v", [3])
        with pytest.raises(ValueError, match="Trying to share variable a/v, but specified dtype"):
            tf.get_variable("v", [2], dtype=tf.int32)


def test_reuse_is_inherited_and_scopes_nest():
    with tf.variable_scope("a"), tf.variable_scope("b"):
        v = tf.get_variable("v", [1])
    assert v.name == "a/b/v:0"
    with tf.variable_scope("a", reuse=True), tf.variable_scope("b"):
        assert tf.get_variable("v", [1]) is v


def test_defaults_of_a_scope(session):
    with tf.variable_scope(
        "a", initializer=tf.ones_initializer(), dtype=tf.float64, use_resource=True
    ) as scope:
        v = tf.get_variable("v", [2])
    assert v.dtype == tf.float64
    assert type(v).__name__ == "ResourceVariable"
    with tf.variable_scope(scope):
        assert tf.get_variable("w", [2]).name == "a/w:0"
    session.run(v.initializer)
    assert session.run(v).tolist() == [1, 1]


def test_custom_getters_wrap_each_other():
    calls = []

    def getter(tag):
        def get(getter, name, *args, **kwargs):
            calls.append((tag, name))
            return getter(name, *args, **kwargs)

        return get

    with (
        tf.variable_scope("a", custom_getter=getter("outer")),
        tf.variable_scope("b", custom_getter=getter("inner")),
    ):
        tf.get_variable("v", [1])
    assert calls == [("inner", "a/b/v"), ("outer", "a/b/v")]


def test_regularization_losses_are_collected(session):
    with tf.variable_scope("a", regularizer=lambda v: 2.0 * tf.nn.l2_loss(v)):
        v = tf.get_variable("v", [2], initializer=tf.ones_initializer())
    (loss,) = tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES)
    session.run(v.initializer)
    assert session.run(loss) == 2


def test_partitioned_variable_is_one_tensor_of_several_variables(session):
    initial = np.arange(10, dtype=np.float32).reshape(5, 2)
    with tf.variable_scope("a", partitioner=tf.fixed_size_partitioner(2)):
        v = tf.get_variable("v", initializer=tf.constant(initial))
    assert [p.name for p in v] == ["a/v/part_0:0", "a/v/part_1:0"]
    assert [p.shape.as_list() for p in v] == [[3, 2], [2, 2]]
    session.run(tf.global_variables_initializer())
    np.testing.assert_array_equal(session.run(tf.convert_to_tensor(v)), initial)
    np.testing.assert_array_equal(session.run(v + 1.0), initial + 1)


@pytest.mark.parametrize(
    ("partitioner", "parts"),
    [
        (tf.variable_axis_size_partitioner(64), 4),
        (tf.min_max_variable_partitioner(3, min_slice_size=16), 3),
        (tf.fixed_size_partitioner(100), 8),
    ],
)
def test_partitioners_cut_by_size(partitioner, parts):
    v = tf.get_variable("v", [8, 8], partitioner=partitioner, initializer=tf.zeros_initializer())
    assert len(v) == parts


def test_local_variables_stay_out_of_the_global_ones():
    v = tf.get_local_variable("v", [1])
    assert tf.local_variables() == [v]
    assert tf.global_variables() == []
    assert not v.trainable


def test_collections_and_trainable():
    v = tf.Variable(1.0, trainable=False, collections=["mine", tf.GraphKeys.GLOBAL_VARIABLES])
    assert tf.get_collection("mine") == [v]
    assert tf.trainable_variables() == []


def test_initial_value_may_use_another_variable(session):
    a = tf.Variable(3.0)
    b = tf.Variable(a.initialized_value() * 2.0)
    c = tf.Variable(b * 2.0)
    session.run(tf.global_variables_initializer())
    assert session.run([a, b, c]) == [3, 6, 12]


def test_report_of_uninitialized_variables(session):
    a, b = tf.Variable(1.0, name="a"), tf.Variable(1.0, name="b", use_resource=True)
    report = tf.report_uninitialized_variables()
    assert session.run(report).tolist() == [b"a", b"b"]
    session.run(a.initializer)
    assert session.run(report).tolist() == [b"b"]
    assert session.run([tf.is_variable_initialized(a), tf.is_variable_initialized(b)]) == [True, False]


@pytest.mark.parametrize("use_resource", [False, True])
def test_assign_family_and_slices(use_resource, session):
    v = tf.Variable(np.zeros(3, np.float32), use_resource=use_resource)
    session.run(v.initializer)
    assert session.run(v.assign([1.0, 2.0, 3.0])).tolist() == [1, 2, 3]
    assert session.run(v.assign_add([1.0, 1.0, 1.0])).tolist() == [2, 3, 4]
    assert session.run(v.assign_sub([1.0, 1.0, 1.0])).tolist() == [1, 2, 3]
    session.run(v[1].assign(9.0))
    assert session.run(v).tolist() == [1, 9, 3]
    session.run(v.scatter_add(tf.IndexedSlices(tf.constant([1.0, 1.0]), tf.constant([0, 0]))))
    assert session.run(v).tolist() == [3, 9, 3]
    v.load([7.0, 7.0, 7.0], session)
    assert v.eval(session).tolist() == [7, 7, 7]


def test_creator_scope_sees_every_variable():
    names = []

    def creator(next_creator, **kwargs):
        names.append(kwargs["name"])
        return next_creator(**kwargs)

    with tf.variable_creator_scope(creator):
        tf.Variable(1.0, name="a")
        tf.get_variable("b", [1])
    assert names == ["a", "b"]


def test_variable_without_an_initial_value_is_refused():
    with pytest.raises(ValueError, match="initial_value must be specified"):
        tf.Variable()
    with pytest.raises(ValueError, match="must be fully defined"):
        tf.get_variable("v", [None, 2])


def test_unused_config_field_is_mentioned_once():
    tf.constant(1)
    with pytest.warns(UserWarning, match="share_cluster_devices_in_session has no effect"):
        tf.Session(config=tf.ConfigProto(share_cluster_devices_in_session=True)).close()
    tf.Session(config=tf.ConfigProto(share_cluster_devices_in_session=True)).close()


def test_partitioned_variable_without_an_initializer(session):
    v = tf.get_variable("z", [4, 2], partitioner=tf.fixed_size_partitioner(2))
    session.run(tf.global_variables_initializer())
    assert session.run(tf.convert_to_tensor(v)).shape == (4, 2)


def test_a_custom_getter_is_told_whether_the_variable_is_trained():
    seen = {}

    def note(getter, name, *args, **kwargs):
        seen[name] = kwargs["trainable"]
        return getter(name, *args, **kwargs)

    with tf.Graph().as_default(), tf.variable_scope("s", custom_getter=note):
        tf.get_variable("a", [1])
        tf.get_variable("b", [1], trainable=False)
        tf.get_variable("c", [1], synchronization=tf.VariableSynchronization.ON_READ)
    assert seen == {"s/a": True, "s/b": False, "s/c": False}


def test_a_scope_is_left_only_by_the_block_that_is_innermost():
    outer = tf.variable_scope("outer")
    outer.__enter__()
    with tf.variable_scope("inner"), pytest.raises(RuntimeError, match="Improper nesting of variable_scope"):
        outer.__exit__(None, None, None)
    outer.__exit__(None, None, None)
    assert tf.get_variable_scope().name == ""


def test_creators_are_left_in_order_and_belong_to_a_graph(graph):
    def creator(next_creator, **kwargs):
        return next_creator(**{**kwargs, "name": "chosen"})

    outer = tf.variable_creator_scope(creator)
    outer.__enter__()
    with tf.variable_creator_scope(creator), tf.Graph().as_default():
        assert tf.Variable(1.0, name="mine").name == "mine:0"
    with (
        tf.variable_creator_scope(creator),
        pytest.raises(RuntimeError, match="without proper nesting"),
    ):
        outer.__exit__(None, None, None)
    graph._variable_creator_stack = []
    assert tf.Variable(1.0, name="mine").name == "mine:0"


def test_reuse_of_a_scope_object_is_its_own():
    with tf.variable_scope("a") as a:
        pass
    with tf.variable_scope("b", reuse=True) as b, tf.variable_scope(a) as again:
        assert not again.reuse
    with tf.variable_scope(b, reuse=False) as again:
        assert again.reuse


def test_without_an_auxiliary_name_scope_a_scope_object_keeps_its_names():
    with tf.variable_scope("outer"), tf.variable_scope("inner") as inner:
        pass
    with tf.name_scope("here"), tf.variable_scope(inner, auxiliary_name_scope=False) as again:
        assert again.original_name_scope == "outer/inner/"
        assert tf.constant(1, name="c").name == "here/c:0"
    with pytest.raises(TypeError, match="auxiliary_name_scope must be"):
        tf.variable_scope("a", auxiliary_name_scope="no")


def test_a_function_that_needs_nothing_makes_the_value_itself():
    assert tf.get_variable("plain", initializer=lambda: [2]).dtype.base_dtype == tf.int32
    assert tf.get_variable("optional", initializer=lambda x=1: [2.0]).shape == [1]
    with pytest.raises(ValueError, match="The initializer passed is not valid"):
        tf.get_variable("needs", initializer=lambda shape: [2])
    with pytest.raises(ValueError, match="custom_getter which is not callable: 3"):
        tf.get_variable("v", [1], custom_getter=3)


def test_synchronization_decides_what_trains_unless_it_is_said():
    on_read = tf.VariableSynchronization.ON_READ
    assert not tf.Variable(1.0, synchronization=on_read).trainable
    said = tf.Variable(
        1.0, trainable=True, synchronization=on_read, aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA
    )
    assert said in tf.trainable_variables()
    variable = tf.Variable(variable_def=said.to_proto())
    assert (variable.synchronization, variable.aggregation) == (said.synchronization, said.aggregation)


def test_a_variable_may_be_made_with_an_open_shape(session):
    v = tf.Variable([[1.0]], shape=tf.TensorShape(None))
    assert v.shape.ndims is None
    w = tf.Variable([[1.0]], shape=[None, 1], use_resource=True)
    grown = w.assign([[1.0], [2.0]])
    session.run(tf.global_variables_initializer())
    assert session.run(v).shape == (1, 1)
    assert session.run(grown).shape == (2, 1)


def test_a_resource_variable_is_assigned_in_its_own_graph_and_never_copied():
    import copy

    with tf.Graph().as_default() as own:
        v = tf.get_variable("v", initializer=1.0, use_resource=True)
        cached = tf.get_variable("c", initializer=1.0, use_resource=True, caching_device="/cpu:0")
        assert tf.Variable(variable_def=cached.to_proto())._cached_value is cached._cached_value
    assert {v.assign(2.0).graph, v.assign_add(2.0).graph, v.assign_sub(2.0).graph} == {own}
    with pytest.raises(NotImplementedError, match="eager execution"):
        copy.deepcopy(v)


@pytest.mark.parametrize("name", ["assign", "assign_add", "assign_sub"])
def test_what_is_no_variable_is_not_assigned(name):
    with pytest.raises(AttributeError, match=f"'Tensor' object has no attribute '{name}'"):
        getattr(tf, name)(tf.constant(1), 2)


def test_an_initializer_may_need_to_be_told_that_there_are_no_parts(session):
    def start(shape, dtype, partition_info):
        return tf.fill(shape, tf.cast(3.0 if partition_info is None else 4.0, dtype))

    whole = tf.get_variable("whole", [2], initializer=start)
    session.run(whole.initializer)
    assert session.run(whole).tolist() == [3.0, 3.0]


def test_a_custom_getter_that_passes_no_reuse_finds_the_variable_that_is_there():
    def with_a_part(getter, name, **settings):
        return getter(f"{name}/part", shape=settings["shape"])

    with tf.variable_scope("model", custom_getter=with_a_part):
        assert tf.get_variable("w", [2]) is tf.get_variable("w", [2])


def test_a_scope_without_a_name_scope_has_its_own_name_for_one():
    pure = tf.python.ops.variable_scope._pure_variable_scope
    with tf.variable_scope("model"), tf.name_scope("step"):
        with pure("layer") as scope:
            assert (scope.name, scope.original_name_scope) == ("model/layer", "layer")
        with tf.variable_scope("other") as other, pure(other) as scope:
            assert scope.original_name_scope == "model/step/other/"

"""`tf.test` as users' tests use it."""

import numpy as np
import pytest
from tensorfleet.python.keras import testing_utils

import tensorfleet as tf


class Case(tf.test.TestCase):
    __test__ = False

    def runTest(self):
        """A test to hang the assertions on."""


@pytest.fixture
def case():
    case = Case()
    case.setUp()
    yield case
    case.tearDown()


class TestOwnTests(tf.test.TestCase):
    def test_each_test_starts_with_an_empty_graph(self):
        self.assertEmpty(tf.get_default_graph().get_operations())
        tf.constant(1)

    def test_and_so_does_the_next(self):
        self.assertEmpty(tf.get_default_graph().get_operations())
        self.assertEqual(tf.get_default_graph().seed, 87654321)


def test_tensors_are_evaluated(case):
    case.assertAllClose(tf.constant([1.0, 2.0]), [1.0, 2.0 + 1e-7])
    case.assertAllEqual(tf.constant([1, 2]) * 2, [2, 4])
    assert case.evaluate({"a": tf.constant(3)}) == {"a": 3}


def test_anything_is_made_an_array(case):
    with case.test_session():
        for value in (tf.constant([1, 2]), [1, 2], np.array([1, 2]), tf.Variable([1, 2]).initial_value):
            array = case._GetNdArray(value)
            assert isinstance(array, np.ndarray) and array.tolist() == [1, 2]


def test_structures_are_compared_part_by_part(case):
    case.assertAllClose({"a": [1.0, np.ones([2, 2])]}, {"a": [1.0, np.ones([2, 2])]})
    with pytest.raises(AssertionError, match=r"a\[x\]\[1\] is different"):
        case.assertAllClose({"x": [1.0, np.ones(2)]}, {"x": [1.0, np.zeros(2)]})
    with pytest.raises(AssertionError, match="mismatched keys"):
        case.assertAllClose({"a": 1}, {"b": 1})


@pytest.mark.parametrize(
    "fails",
    [
        lambda c: c.assertAllClose([1.0, 2.0], [1.0, 2.1]),
        lambda c: c.assertAllClose([1.0], [np.nan]),
        lambda c: c.assertAllClose([1.0, 2.0], [1.0]),
        lambda c: c.assertAllEqual([1, 2], [1, 3]),
        lambda c: c.assertAllEqual([1, 2], [[1, 2]]),
        lambda c: c.assertAllEqual([[1], [2, 3]], [[1], [2, 4]]),
        lambda c: c.assertNotAllEqual([1], [1]),
        lambda c: c.assertNotAllClose([1.0], [1.0]),
        lambda c: c.assertNear(1, 2, 0.1),
        lambda c: c.assertArrayNear([1], [2], 0.1),
        lambda c: c.assertNDArrayNear(np.ones(2), np.zeros(2), 0.1),
        lambda c: c.assertShapeEqual(np.ones(2), tf.constant([1, 2, 3])),
        lambda c: c.assertAllGreater([1, 2], 1),
        lambda c: c.assertAllLess([1, 2], 2),
        lambda c: c.assertAllGreaterEqual([1, 2], 2),
        lambda c: c.assertAllLessEqual([1, 2], 1),
        lambda c: c.assertAllInSet([1, 2], {1}),
        lambda c: c.assertAllInRange([1, 2], 0, 2, open_upper_bound=True),
        lambda c: c.assertDTypeEqual(tf.constant(1), np.float32),
        lambda c: c.assertDeviceEqual("/cpu:0", "/cpu:1"),
        lambda c: c.assertProtoEquals("node { name: 'a' }", tf.GraphDef()),
        lambda c: c.assertStartsWith("abc", "b"),
        lambda c: c.assertAllCloseAccordingToType(np.float16(1), np.float16(1.1)),
    ],
)
def test_assertions_that_do_not_hold_fail(case, fails):
    with pytest.raises(AssertionError):
        fails(case)


def test_assertions_that_hold_pass(case):
    case.assertAllEqual([1.0, np.nan], [1.0, np.nan])
    case.assertAllEqual([[1], [2, None]], [[1], [2, None]])
    case.assertNear(np.array([1.5]), 1.5, 1e-6)
    case.assertNear(1, 1.05, 0.1)
    case.assertArrayNear([1], [1.05], 0.1)
    case.assertShapeEqual(np.ones([2, 3]), tf.zeros([2, 3]))
    case.assertAllInRange([1, 2], 1, 2)
    case.assertAllInSet([1, 1], [1, 2])
    case.assertDTypeEqual(tf.constant(1), np.int32)
    case.assertDeviceEqual("/cpu:0", "/device:CPU:0")
    case.assertAllCloseAccordingToType(np.float16(1), np.float16(1.001))
    graph_def = tf.Graph().as_graph_def()
    case.assertProtoEqualsVersion("", graph_def)
    case.assertProtoEquals(graph_def, graph_def)


def test_an_op_error_is_expected_by_its_text(case):
    broken = tf.constant(1) // tf.constant(0)
    with case.session() as sess:
        with case.assertRaisesOpError("division by zero"):
            sess.run(broken)
        with pytest.raises(AssertionError, match="Exception of type"):
            with case.assertRaisesOpError("something else"):
                sess.run(broken)
    with pytest.raises(AssertionError, match="not raised"):
        with case.assertRaisesOpError(""):
            pass


def test_an_op_error_is_expected_by_the_name_of_an_operation_it_is_about(case):
    first, second = tf.no_op(name="first"), tf.no_op(name="second")
    second._original_op = first
    for name in ("first", "second"):
        with case.assertRaisesOpError(name):
            raise tf.errors.InternalError(second.node_def, second, "broken")
    with pytest.raises(AssertionError, match="broken"):
        with case.assertRaisesOpError("third"):
            raise tf.errors.InternalError(second.node_def, second, "broken")


def test_elements_outside_a_range_are_listed_with_their_places(case):
    with pytest.raises(AssertionError, match=r"2 of the 4 element\(s\).*\n\[0 1\] : 7.0\n\[1 0\] : nan"):
        case.assertAllInRange(np.array([[1.0, 7.0], [np.nan, 2.0]]), 0, 5)
    with pytest.raises(AssertionError, match=r"\.\.\.$"):
        case.assertAllInRange(np.arange(20), -2, -1)


def test_the_cached_session_keeps_variables(case):
    v = tf.Variable(3)
    with case.cached_session() as first:
        first.run(v.initializer)
    with case.test_session() as second:
        assert second is first
        assert v.eval() == 3
    with case.session() as other:
        assert other is not first
        assert other is tf.get_default_session()
    with pytest.raises(ValueError, match="different"):
        with case.cached_session(graph=tf.Graph()):
            pass


def test_errors_in_checked_threads_fail_the_test(case):
    thread = case.checkedThread(target=lambda x: 1 / x, args=(0,))
    thread.start()
    with pytest.raises(AssertionError, match="Error in checkedThread: division by zero"):
        thread.join()
    fine = case.checkedThread(target=lambda: None)
    fine.start()
    fine.join()


def test_threads_must_be_joined():
    case = Case()
    case.setUp()
    thread = case.checkedThread(target=lambda: None)
    thread.start()
    thread._thread.join()
    with pytest.raises(AssertionError, match="not joined"):
        case.tearDown()


def test_temporary_directories_stay_for_the_test(case):
    assert case.get_temp_dir() == case.get_temp_dir()
    assert case.get_temp_dir().startswith(tf.test.get_temp_dir())


def test_gradients_by_graph_and_by_small_steps_agree(session):
    x = tf.constant([1.0, 2.0, 3.0])
    y = tf.reduce_sum(x * x) * x
    graph, numeric = tf.test.compute_gradient(x, [3], y, [3], x_init_value=np.array([1.0, 2.0, 3.0]))
    expected = np.diag([14.0] * 3) + 2 * np.outer([1, 2, 3], [1, 2, 3])
    np.testing.assert_allclose(graph, expected)
    np.testing.assert_allclose(numeric, expected, rtol=1e-2)
    assert tf.test.compute_gradient_error([x], [[3]], y, [3]) < 1e-2


def test_gradients_by_rows_are_compared_too(session):
    table = tf.placeholder(tf.float64, [4, 2])
    y = tf.gather(table, [1, 1, 3])
    assert tf.test.compute_gradient_error(table, [4, 2], y, [3, 2]) < 1e-6


def test_a_wrong_gradient_is_found(session):
    x = tf.constant([1.0, 2.0])
    y = tf.stop_gradient(x) * x
    assert tf.test.compute_gradient_error(x, [2], y, [2], x_init_value=[1.0, 2.0]) == pytest.approx(
        2, rel=1e-2
    )


def test_graph_defs_are_compared_whatever_the_order():
    with tf.Graph().as_default() as graph:
        tf.constant(1, name="a")
        tf.constant(2, name="b")
    one, two = graph.as_graph_def(), graph.as_graph_def()
    nodes = list(two.node)
    del two.node[:]
    two.node.extend(reversed(nodes))
    tf.test.assert_equal_graph_def(one, two)
    two.node[0].name = "c"
    with pytest.raises(AssertionError, match="unexpected node"):
        tf.test.assert_equal_graph_def(one, two)


def test_attributes_are_put_back():
    class Thing:
        colour = "red"

    with tf.test.StubOutForTesting() as stubs:
        stubs.Set(Thing, "colour", "blue")
        stubs.SmartSet(Thing, "colour", "green")
        assert Thing.colour == "green"
        with pytest.raises(AttributeError):
            stubs.SmartSet(Thing, "size", 1)
    assert Thing.colour == "red"


def test_devices_are_told():
    assert tf.test.is_gpu_available() == bool(tf.test.gpu_device_name())
    assert not tf.test.is_built_with_cuda()
    assert tf.test.mock.Mock is not None


def test_what_is_written_to_a_stream_can_be_captured(tmp_path):
    class Writes(tf.test.TestCase):
        def runTest(self):
            """Nothing."""

    case = Writes()
    with open(tmp_path / "stream", "w") as stream:
        with case.captureWritesToStream(stream) as captured:
            stream.write("inside")
        stream.write("outside")
    assert captured.contents() == "inside"
    assert (tmp_path / "stream").read_text() == "outside"


def test_gradients_of_a_function_of_arrays():
    from tensorfleet.python.ops import gradient_checker_v2 as checker

    with tf.Graph().as_default(), tf.Session():
        ours, numeric = checker.compute_gradient(
            lambda a, b: tf.matmul(a, b), [np.ones((2, 3)), np.ones((3, 1))]
        )
        assert [j.shape for j in ours] == [(2, 6), (2, 3)]
        assert checker.max_error(ours, numeric) < 1e-6
        slices = tf.Session().run(
            tf.IndexedSlices(tf.constant([[2.0]]), tf.constant([1]), tf.constant([3, 1]))
        )
        assert checker._to_numpy(slices).tolist() == [[0.0], [2.0], [0.0]]
        with pytest.raises(ValueError, match="must be a list"):
            checker.compute_gradient(lambda a: a, np.ones(2))


def test_structures_of_tensors_and_distances(case):
    a, b = tf.constant([1.0, 2.0]), tf.constant([1.0, 2.0])
    case.assertAllClose([a, b], [[1.0, 2.0], b])
    assert case._NDArrayNear(np.ones(2), np.ones(2), 1e-6)
    with case.cached_session(), pytest.raises(ValueError, match="force_gpu"):
        case.cached_session(force_gpu=True).__enter__()


def test_graphs_that_differ_in_their_nodes_are_told_apart_by_one_of_them():
    with tf.Graph().as_default() as graph:
        empty = graph.as_graph_def()
        tf.constant(1, name="one")
    with pytest.raises(AssertionError, match="^Found unexpected node '{{node one}}'"):
        tf.test.assert_equal_graph_def(graph.as_graph_def(), empty)
    with pytest.raises(AssertionError, match="^Did not find expected node '{{node one}}'"):
        tf.test.assert_equal_graph_def(empty, graph.as_graph_def())


def test_samples_of_classes_lie_around_one_centre_each():
    (x, y), (more, classes) = testing_utils.get_test_data(40, 10, (3,), 2, random_seed=1)
    assert x.shape == (40, 3)
    assert x.dtype == np.float32
    assert more.shape == (10, 3)
    assert set(classes) <= set(y) == {0, 1}
    assert all(x[y == c].std(0).max() < 2 for c in (0, 1))


def test_ragged_tensors_are_compared_row_by_row():
    case = tf.test.TestCase()
    ragged = tf.ragged.constant([[1], [2, 3]])
    case.assertAllEqual(ragged, [[1], [2, 3]])
    case.assertAllEqual(tf.ragged.constant_value([[1], [2, 3]]), ragged)
    with pytest.raises(AssertionError, match="Lists differ"):
        case.assertAllEqual(ragged, [[1], [2]])


def test_ragged_tensors_are_close_when_their_rows_are(case):
    with tf.Graph().as_default(), tf.Session().as_default():
        result = tf.ragged.constant([[1, 2], [3]])
        case.assertAllClose(result, [[1, 2], [3]])
        case.assertAllClose(
            tf.ragged.constant([[1.0, 2.0], [3.0]]), tf.ragged.constant([[1.0, 2.0], [3.0 + 1e-9]])
        )
        for other in ([[1], [2, 3]], [[1, 2], [3], [4]], [[1, 2], [4]]):
            with pytest.raises(AssertionError):
                case.assertAllClose(result, tf.ragged.constant(other))


def test_names_that_tables_are_shared_by_may_be_left_out_of_a_comparison():
    defs = []
    for shared in ("hash_table_1", "hash_table_2"):
        with tf.Graph().as_default() as graph:
            tf.raw_ops.HashTableV2(key_dtype=tf.string, value_dtype=tf.int64, shared_name=shared)
            defs.append(graph.as_graph_def())
    with pytest.raises(AssertionError, match="hash_table_"):
        tf.test.assert_equal_graph_def(*defs)
    tf.test.assert_equal_graph_def(*defs, hash_table_shared_name=True)

"""`tf.data.Dataset`: what each transformation gives, and what it says when it cannot."""

import collections
import threading

import numpy as np
import pytest

import tensorfleet as tf

Dataset = tf.data.Dataset
experimental = tf.data.experimental
Invalid = tf.errors.InvalidArgumentError


def plain(value):
    if hasattr(value, "dense_shape"):
        return plain(tuple(value))
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    if isinstance(value, tuple):
        return tuple(plain(v) for v in value)
    return np.asarray(value).tolist()


def elements(dataset, limit=100):
    """All elements; errors as (class, message) in their places."""
    following = dataset.make_one_shot_iterator().get_next()
    result = []
    with tf.Session() as session:
        while len(result) < limit:
            try:
                result.append(plain(session.run(following)))
            except tf.errors.OutOfRangeError as e:
                assert e.message == "End of sequence"
                break
            except tf.errors.OpError as e:
                result.append((type(e), str(e)))
    return result


Pair = collections.namedtuple("Pair", "left right")


def test_elements_have_the_structure_they_are_made_with():
    assert elements(Dataset.from_tensors((1, {"b": [2.0], "a": "x"}))) == [(1, {"b": [2.0], "a": b"x"})]
    assert elements(Dataset.from_tensor_slices(Pair([1, 2], ["a", "b"]))) == [(1, b"a"), (2, b"b")]
    result = Dataset.from_tensor_slices({"a": [[1.0], [2.0]]})
    assert result.output_types == {"a": tf.float32} and result.output_classes == {"a": tf.Tensor}
    assert (
        result.output_shapes["a"].as_list() == [1]
        and repr(result) == "<DatasetV1Adapter shapes: {a: (1,)}, types: {a: tf.float32}>"
    )
    with pytest.raises(ValueError, match="not compatible"):
        Dataset.from_tensor_slices(([1, 2], [1, 2, 3]))


def test_numbers():
    assert elements(Dataset.range(3)) == [0, 1, 2]
    assert elements(Dataset.range(10, 0, -3)) == [10, 7, 4, 1]
    assert elements(experimental.Counter(3, 2).take(2)) == [3, 5]


def test_several_datasets():
    both = Dataset.zip((Dataset.range(3), {"x": Dataset.range(9).map(lambda x: x * x)}))
    assert elements(both) == [(0, {"x": 0}), (1, {"x": 1}), (2, {"x": 4})]
    assert elements(Dataset.range(2).concatenate(Dataset.range(7, 9))) == [0, 1, 7, 8]
    assert elements(Dataset.from_tensor_slices(["a", "b"]).enumerate(5)) == [(5, b"a"), (6, b"b")]
    order = Dataset.from_tensor_slices(np.array([1, 0, 0, 1], np.int64))
    assert elements(experimental.choose_from_datasets([Dataset.range(3), Dataset.range(7, 9)], order)) == [
        7,
        0,
        1,
        8,
    ]
    with pytest.raises(TypeError, match="different types"):
        Dataset.range(2).concatenate(Dataset.from_tensors(1.0))
    with pytest.raises(TypeError, match="do not support Python lists"):
        Dataset.zip([Dataset.range(2)])


@pytest.mark.parametrize("failing", [0, 1])
@pytest.mark.parametrize("beyond", ["", "prefetch", "shuffle", "batch"])
def test_datasets_side_by_side_stay_together_behind_an_error(failing, beyond, session):
    parts = [Dataset.range(9), Dataset.range(9)]
    parts[failing] = parts[failing].map(lambda x: x + 0 // (3 - x))
    both = Dataset.zip(tuple(parts))
    if beyond == "batch":
        both = both.apply(tf.data.experimental.ignore_errors()).batch(4)
    else:
        both = getattr(both, beyond)(4) if beyond else both
    following = both.make_one_shot_iterator().get_next()
    result, failed = [], 0
    while True:
        try:
            result.append(session.run(following))
        except tf.errors.OutOfRangeError:
            break
        except tf.errors.InvalidArgumentError:
            failed += 1
    pairs = sorted((int(a), int(b)) for x, y in result for a, b in zip(np.ravel(x), np.ravel(y), strict=True))
    assert pairs == [(i, i) for i in range(9) if i != 3] and failed == (beyond != "batch")


def test_functions_see_components_as_arguments():
    result = Dataset.from_tensor_slices(([1, 2], [3, 4])).map(lambda a, b: {"sum": a + b, "a": [a, a]})
    assert elements(result) == [{"sum": 4, "a": [1, 1]}, {"sum": 6, "a": [2, 2]}]
    assert elements(Dataset.range(2).map(lambda x: [x, x + 1], num_parallel_calls=2)) == [(0, 1), (1, 2)]
    with pytest.raises(TypeError, match="Unsupported return value"):
        Dataset.range(2).map(lambda x: None)


def test_functions_may_use_tensors_branches_and_python():
    three = tf.constant(1, tf.int64) + 2
    assert elements(Dataset.range(3).map(lambda x: x * three)) == [0, 3, 6]
    assert elements(Dataset.range(3).map(lambda x: tf.cond(x > 1, lambda: x * 10, lambda: -x))) == [0, -1, 20]
    doubled = Dataset.range(3).map(lambda x: tf.py_func(lambda v: v * 2, [x], tf.int64))
    assert elements(doubled) == [0, 2, 4]


def test_functions_read_variables_as_they_are(session):
    variable = tf.get_variable("v", initializer=np.int64(2), use_resource=True)
    iterator = Dataset.range(3).map(lambda x: x + variable).make_initializable_iterator()
    following = iterator.get_next()
    session.run(variable.initializer)
    session.run(iterator.initializer)
    assert session.run(following) == 2
    session.run(variable.assign(10))
    assert session.run(following) == 11


def test_an_error_in_a_function_names_the_element_and_leaves_the_rest():
    numbers = Dataset.from_tensor_slices([2, 0, 4])
    result = elements(numbers.map(lambda x: 12 // x))
    assert result[0] == 6 and result[2] == 3
    kind, text = result[1]
    assert kind is Invalid and "division by zero" in text and "in element 1 of the dataset" in text
    assert "test_dataset.py" in text
    assert elements(numbers.map(lambda x: 12 // x).apply(experimental.ignore_errors())) == [6, 3]
    scanned = numbers.apply(experimental.scan(1, lambda state, x: (state, 12 // x)))
    assert "in element 1 of the dataset" in elements(scanned)[1][1]
    with tf.Session() as session, pytest.raises(Invalid, match="in element 1 of the dataset"):
        session.run(numbers.reduce(1, lambda state, x: state + 12 // x))
    batches = elements(numbers.repeat(2).map(lambda x: 12 // x).batch(2))
    assert batches[0][0] is Invalid and batches[1] == [3, 6]


def test_filter_and_take_while():
    assert elements(Dataset.range(10).filter(lambda x: tf.equal(x % 3, 0))) == [0, 3, 6, 9]
    assert elements(Dataset.range(10).apply(experimental.take_while(lambda x: x < 3))) == [0, 1, 2]
    with pytest.raises(ValueError, match="must return a scalar boolean tensor"):
        Dataset.range(3).filter(lambda x: x)


def test_datasets_of_datasets():
    assert elements(Dataset.range(4).flat_map(lambda x: Dataset.range(x))) == [0, 0, 1, 0, 1, 2]
    repeated = lambda x: Dataset.from_tensors(x).repeat(3)  # noqa: E731
    turns = Dataset.range(3).interleave(repeated, cycle_length=2, block_length=2)
    assert elements(turns) == [0, 0, 1, 1, 0, 1, 2, 2, 2]
    windows = Dataset.range(5).window(3, shift=2).flat_map(lambda w: w.batch(3))
    assert elements(windows) == [[0, 1, 2], [2, 3, 4], [4]]
    with pytest.raises(TypeError, match="`map_func` must return a `Dataset` object"):
        Dataset.range(3).flat_map(lambda x: x)


def test_batches():
    assert elements(Dataset.range(5).batch(2)) == [[0, 1], [2, 3], [4]]
    dropped = Dataset.range(5).batch(2, drop_remainder=True)
    assert elements(dropped) == [[0, 1], [2, 3]] and dropped.output_shapes.as_list() == [2]
    assert elements(Dataset.range(6).batch(4).unbatch()) == list(range(6))
    ragged = Dataset.range(1, 4).map(lambda x: tf.fill([x], x))
    kind, text = elements(ragged.batch(2))[0]
    words = "Cannot batch tensors with different shapes in component 0. First element had shape [1] and element 1 had"
    assert kind is Invalid and words in text
    assert elements(Dataset.range(4).apply(experimental.map_and_batch(lambda x: x * 2, 3))) == [
        [0, 2, 4],
        [6],
    ]
    assert "batch_size must be greater than zero" in elements(Dataset.range(5).batch(0), 1)[0][1]


def test_padded_batches():
    ragged = Dataset.range(1, 4).map(lambda x: tf.fill([x], x))
    assert elements(ragged.padded_batch(2, [None])) == [[[1, 0], [2, 2]], [[3, 3, 3]]]
    filled = ragged.padded_batch(3, [4], np.int64(-1))
    assert elements(filled) == [[[1, -1, -1, -1], [2, 2, -1, -1], [3, 3, 3, -1]]]
    kind, text = elements(ragged.padded_batch(3, [1]))[0]
    assert (
        kind is tf.errors.DataLossError
        and "Attempted to pad to a smaller size than the input element" in text
    )


def test_choosing():
    numbers = Dataset.range(6)
    assert elements(numbers.take(2)) == [0, 1] and elements(numbers.take(-1)) == list(range(6))
    assert (
        elements(numbers.skip(4)) == [4, 5] and elements(numbers.skip(-1)) == elements(numbers.skip(9)) == []
    )
    assert elements(numbers.shard(3, 1)) == [1, 4] and elements(numbers.shard(3, 1).batch(2)) == [[1, 4]]
    assert elements(numbers.repeat(2).apply(experimental.unique())) == list(range(6))
    assert elements(numbers.take(2).repeat(3)) == [0, 1] * 3 and elements(Dataset.range(0).repeat()) == []
    assert elements(numbers.repeat(), limit=8) == [0, 1, 2, 3, 4, 5, 0, 1]


def test_shuffling_keeps_every_element_and_repeats_with_its_seed():
    once = elements(Dataset.range(50).shuffle(20, seed=3))
    assert sorted(once) == list(range(50)) and once != list(range(50))
    assert all(value < 20 + place for place, value in enumerate(once))  # only the buffer's elements can come
    assert once == elements(Dataset.range(50).shuffle(20, seed=3))
    rounds = elements(Dataset.range(20).shuffle(20, seed=1).repeat(2))
    assert sorted(rounds[:20]) == sorted(rounds[20:]) == list(range(20)) and rounds[:20] != rounds[20:]
    same = elements(Dataset.range(20).shuffle(20, seed=1, reshuffle_each_iteration=False).repeat(2))
    assert same[:20] == same[20:]
    mapped = elements(
        Dataset.range(20).map(lambda x: (x, tf.as_string(x) if hasattr(tf, "as_string") else x)).shuffle(5)
    )
    assert sorted(a for a, _ in mapped) == list(range(20))
    uneven = elements(Dataset.range(9).map(lambda x: tf.fill([x], x)).shuffle(4))
    assert sorted(len(v) for v in uneven) == list(range(9))


def test_each_graph_seed_has_its_order():
    def order(seed):
        with tf.Graph().as_default():
            tf.set_random_seed(seed)
            return elements(Dataset.range(30).shuffle(30))

    assert order(1) == order(1) != order(2)


def test_state_passed_along():
    assert elements(Dataset.range(4).apply(experimental.scan(np.int64(10), lambda s, x: (s + x, s)))) == [
        10,
        10,
        11,
        13,
    ]
    with tf.Session() as session:
        total = Dataset.range(5).reduce((np.int64(0), 1.0), lambda s, x: (s[0] + x, s[1] * 2))
        assert session.run(total) == (10, 32.0)
        assert session.run(experimental.get_single_element(Dataset.from_tensors((1, "a")))) == (1, b"a")
    with pytest.raises(TypeError, match="new state must match the initial state"):
        Dataset.range(5).reduce(1.0, lambda s, x: x)


def test_groups():
    grouped = Dataset.range(8).apply(
        experimental.group_by_window(lambda x: x % 2, lambda key, window: window.batch(3), window_size=3)
    )
    assert elements(grouped) == [[0, 2, 4], [1, 3, 5], [6], [7]]
    lengths = Dataset.from_tensor_slices([1, 5, 2, 6, 3]).map(lambda n: tf.fill([n], n))
    buckets = lengths.apply(experimental.bucket_by_sequence_length(lambda x: tf.shape(x)[0], [4], [2, 2]))
    assert [np.shape(b) for b in elements(buckets)] == [(2, 2), (2, 6), (1, 3)]


def test_generators():
    def generate():
        for i in range(3):
            yield i, [1.5] * i

    result = Dataset.from_generator(generate, (tf.int32, tf.float32), ((), [None]))
    assert elements(result) == [(0, []), (1, [1.5]), (2, [1.5, 1.5])]
    assert elements(Dataset.from_generator(lambda n: iter(range(n)), tf.int64, args=(2,)).repeat(2)) == [
        0,
        1,
        0,
        1,
    ]
    kind, text = elements(Dataset.from_generator(lambda: iter([1, "x"]), tf.int64))[1]
    assert kind is Invalid and "could not be converted to the expected type" in text
    kind, text = elements(Dataset.from_generator(lambda: iter([[1, 2]]), tf.int64, [1]))[0]
    assert kind is Invalid and "element of shape (2,) where an element of shape (1,) was expected" in text


def test_a_generator_is_closed_with_its_session():
    closed = threading.Event()

    def generate():
        try:
            while True:
                yield 1
        finally:
            closed.set()

    following = Dataset.from_generator(generate, tf.int32).make_one_shot_iterator().get_next()
    with tf.Session() as session:
        assert session.run(following) == 1
    assert closed.is_set()


def test_caches(tmp_path):
    calls = []

    def note(value):
        calls.append(int(value))
        return value

    def counted():
        return Dataset.range(3).map(lambda x: tf.py_func(note, [x], tf.int64))

    assert elements(counted().cache().repeat(3)) == [0, 1, 2] * 3 and calls == [0, 1, 2]
    name = str(tmp_path / "sub" / "cache")
    for _ in range(2):
        assert elements(counted().cache(name).repeat(2)) == [0, 1, 2] * 2
    assert calls == [0, 1, 2] * 2
    texts = Dataset.from_tensor_slices((["a", "bc"], [[1.0], [2.0]])).cache(str(tmp_path / "texts"))
    assert elements(texts) == elements(texts) == [(b"a", [1.0]), (b"bc", [2.0])]


def test_sparse_components():
    sparse = tf.SparseTensor([[0, 1], [1, 2]], [5, 6], [2, 3])
    assert elements(Dataset.from_tensor_slices(sparse)) == [([[1]], [5], [3]), ([[2]], [6], [3])]
    batched = Dataset.from_tensor_slices(sparse).batch(2)
    assert (
        elements(batched) == [([[0, 1], [1, 2]], [5, 6], [2, 3])]
        and batched.output_classes is tf.SparseTensor
    )
    dense = Dataset.from_tensor_slices(sparse).map(lambda s: tf.sparse_tensor_to_dense(s))
    assert elements(dense) == [[0, 5, 0], [0, 0, 6]]


def test_options_are_kept_and_merged():
    options = tf.data.Options()
    options.experimental_threading.private_threadpool_size = 3
    result = Dataset.range(3).with_options(options).map(lambda x: x)
    assert result.options().experimental_threading.private_threadpool_size == 3
    assert elements(result) == [0, 1, 2]
    with pytest.raises(AttributeError, match="Cannot set the property"):
        options.wrong = 1


def test_csv_files_name_the_file_and_the_record(tmp_path):
    path = tmp_path / "c.csv"
    path.write_bytes(b'h,h\n1,2\n3,x\n5\n7,"8"\n')
    result = elements(experimental.CsvDataset([str(path)], [tf.int32, tf.int32], header=True))
    assert result[0] == (1, 2) and result[3] == (7, 8)
    assert (
        result[1][0] is Invalid
        and f"Field 1 in record 1 is not a valid int32: x (file: {path}, at byte" in result[1][1]
    )
    assert f"Expect 2 fields but have 1 in record 2 (file: {path}, at byte" in result[2][1]


def test_datasets_are_written_to_record_files(tmp_path):
    path = str(tmp_path / "r")
    with tf.Session() as session:
        session.run(experimental.TFRecordWriter(path).write(Dataset.from_tensor_slices(["a", "bc"])))
    assert list(tf.python_io.tf_record_iterator(path)) == [b"a", b"bc"]
    assert elements(tf.data.TFRecordDataset(path)) == [b"a", b"bc"]


def test_random_numbers():
    once = elements(experimental.RandomDataset(seed=1).take(5))
    assert once == elements(experimental.RandomDataset(seed=1).take(5)) and len(set(once)) == 5
    mixed = experimental.sample_from_datasets([Dataset.range(5), Dataset.range(10, 15)], [0.5, 0.5], seed=1)
    assert sorted(elements(mixed)) == [*range(5), *range(10, 15)]


def test_whole_pipelines(tmp_path):
    path = str(tmp_path / "c.csv")
    (tmp_path / "c.csv").write_bytes(b"a,b,c\n1,2.5,x\n3,4,y\n")
    result = experimental.make_csv_dataset(path, 2, label_name="b", num_epochs=1, shuffle=False)
    assert elements(result) == [({"a": [1, 3], "c": [b"x", b"y"]}, [2.5, 4.0])]
    records = str(tmp_path / "r")
    with tf.python_io.TFRecordWriter(records) as writer:
        for i in range(4):
            feature = tf.train.Feature(int64_list=tf.train.Int64List(value=[i]))
            writer.write(
                tf.train.Example(features=tf.train.Features(feature={"n": feature})).SerializeToString()
            )
    wanted = {"n": tf.FixedLenFeature([], tf.int64)}
    result = experimental.make_batched_features_dataset(records, 2, wanted, num_epochs=1, shuffle=False)
    assert elements(result) == [{"n": [0, 1]}, {"n": [2, 3]}]


def test_functions_may_loop_and_choose():
    def collatz(x):
        steps = tf.while_loop(
            lambda n, count: n > 1,
            lambda n, count: (tf.cond(tf.equal(n % 2, 0), lambda: n // 2, lambda: 3 * n + 1), count + 1),
            [x, tf.constant(0)],
        )[1]
        return tf.case([(steps > 6, lambda: -steps), (steps > 2, lambda: steps * 10)], lambda: steps)

    expected = [0, 1, -7, 2, 50, -8]
    assert elements(Dataset.range(1, 7).map(collatz)) == expected
    assert elements(Dataset.range(1, 7).map(collatz, num_parallel_calls=2)) == expected
    assert elements(Dataset.range(1, 7).map(collatz).batch(4)) == [expected[:4], expected[4:]]
    assert elements(Dataset.range(1, 7).filter(lambda x: collatz(x) > 0)) == [2, 4, 5]


def test_map_takes_what_it_took_in_contrib():
    numbers = tf.contrib.data.Dataset.range(3).map(lambda x: x * x, num_threads=2, output_buffer_size=4)
    element = numbers.make_one_shot_iterator().get_next()
    with tf.Session() as sess:
        assert [sess.run(element) for _ in range(3)] == [0, 1, 4]


def test_options_that_contradict_each_other_are_refused():
    first, second = tf.data.Options(), tf.data.Options()
    first.experimental_optimization.autotune, second.experimental_optimization.autotune = True, False
    dataset = Dataset.range(3).with_options(first)
    assert dataset.with_options(first).options() == first
    with pytest.raises(ValueError, match="Cannot merge incompatible values for field: autotune"):
        dataset.with_options(second)
    assert tf.data.Options().experimental_stats == experimental.StatsOptions()


@pytest.mark.parametrize(
    ("shape", "kind", "told"),
    [
        (
            [1],
            ValueError,
            r"The padded shape \(1,\) is not compatible with the .* input component shape \(3,\)",
        ),
        (
            [[1, 1], [1, 1]],
            ValueError,
            r"must be a 1-D tensor of tf.int64 values, but its shape was \(2, 2\)",
        ),
        ([1.5], TypeError, "must be a 1-D tensor of tf.int64 values, but its element type was float32"),
    ],
)
def test_shapes_that_cannot_be_padded_to_are_refused(shape, kind, told):
    with pytest.raises(kind, match=told):
        tf.data.Dataset.from_tensors([1, 2, 3]).padded_batch(5, shape)


def test_components_that_do_not_fit_are_refused():
    uneven = tf.data.Dataset.from_tensors((np.arange(7), np.arange(8)))
    with pytest.raises(ValueError, match="components have different batch sizes"):
        uneven.unbatch()
    with pytest.raises(TypeError, match="must be a `tf.data.Dataset` of scalar `tf.string` elements"):
        tf.data.TextLineDataset(tf.data.Dataset.from_tensors([["a"], ["b"]]))
    assert elements(tf.data.TextLineDataset([])) == []


def test_a_function_that_says_the_end_spoils_its_batch_only():
    def stop(i):
        if i == 3:
            raise StopIteration
        return i

    called = tf.data.experimental.map_and_batch(lambda i: tf.py_func(stop, [i], tf.int64), 2)
    following = tf.data.Dataset.range(6).apply(called).make_one_shot_iterator().get_next()
    with tf.Session() as sess:
        assert sess.run(following).tolist() == [0, 1]
        with pytest.raises(tf.errors.InvalidArgumentError, match="produced OutOfRangeError"):
            sess.run(following)
        assert sess.run(following).tolist() == [4, 5]


def test_slices_of_a_sparse_tensor_are_in_order():
    sparse = tf.sparse_placeholder(tf.int64)
    iterator = tf.data.Dataset.from_sparse_tensor_slices(sparse).make_initializable_iterator()
    with tf.Session() as sess:
        with pytest.raises(tf.errors.UnimplementedError, match="must be ordered in the batch dimension"):
            sess.run(iterator.initializer, {sparse: tf.SparseTensorValue([[1, 0], [0, 0]], [1, 2], [2, 1])})
        with pytest.raises(tf.errors.InvalidArgumentError, match="Number of values must match"):
            sess.run(iterator.initializer, {sparse: tf.SparseTensorValue(np.zeros((0, 2)), [1], [0, 1])})

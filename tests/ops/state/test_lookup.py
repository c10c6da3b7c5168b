"""Tables of the session: filled once, changed, shared, saved."""

import numpy as np
import pytest

import tensorfleet as tf

L = tf.contrib.lookup


@pytest.fixture
def words(tmp_path):
    path = tmp_path / "words.txt"
    path.write_text("brain\nsalad\nsurgery\n")
    return str(path)


def table(default=-1):
    init = tf.lookup.KeyValueTensorInitializer(["a", "b", "c"], [1, 2, 3])
    return tf.lookup.StaticHashTable(init, default)


def test_a_static_table(session):
    result = table()
    keys = tf.placeholder(tf.string, [None])
    values = result.lookup(keys)
    with pytest.raises(tf.errors.FailedPreconditionError, match="Table not initialized"):
        session.run(values, {keys: ["a"]})
    assert tf.get_collection(tf.GraphKeys.TABLE_INITIALIZERS) == [result.initializer]
    session.run(tf.tables_initializer())
    session.run(result.initializer)  # the same entries again
    assert session.run(values, {keys: ["b", "x"]}).tolist() == [2, -1]
    assert session.run(result.size()) == 3
    assert values.shape.as_list() == [None]
    with pytest.raises(TypeError, match="Signature mismatch. Keys must be dtype"):
        result.lookup(tf.constant([1]))


@pytest.mark.parametrize("more", [[], [b"of more than twenty-four letters"]])
def test_many_strings_are_looked_up_at_once(session, more):
    keys = [b"", b"a", b"a\0", b"\0", b"w\xff", *(b"w%d" % i**3 for i in range(2, 2000)), *more]
    asked = np.array(
        [keys[i % len(keys)] for i in range(0, 9000, 3)] + [b"b", b"a\0\0", b"w8" * 20] * 200, object
    )
    expected = [keys.index(key) if key in keys else -1 for key in asked.tolist()]
    names = {value: b"=" + key for value, key in enumerate(keys)}
    entries = tf.lookup.KeyValueTensorInitializer(tf.constant(keys), tf.range(len(keys), dtype=tf.int64))
    numbers = tf.lookup.StaticHashTable(entries, -1)
    texts = tf.constant([names[i] for i in range(len(keys))])
    strings = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(tf.constant(keys), texts), "none")
    session.run([numbers.initializer, strings.initializer])
    place = tf.placeholder(tf.string, [None, 2])
    result, named = session.run([numbers.lookup(place), strings.lookup(place)], {place: asked.reshape(-1, 2)})
    assert result.ravel().tolist() == expected
    assert named.ravel().tolist() == [names.get(i, b"none") for i in expected]


def test_other_entries_are_refused_once_it_is_filled(session):
    keys = tf.placeholder(tf.string, [None])
    table = tf.lookup.StaticHashTable(
        tf.lookup.KeyValueTensorInitializer(keys, tf.ones_like(keys, tf.int64)), 0
    )
    session.run(table.initializer, {keys: ["a"]})
    with pytest.raises(tf.errors.FailedPreconditionError, match="Table already initialized"):
        session.run(table.initializer, {keys: ["b"]})


def test_words_of_a_file_to_ids_and_back(session, words):
    ids = L.index_table_from_file(words, num_oov_buckets=2)
    back = L.index_to_string_table_from_file(words)
    plain = L.index_table_from_file(vocabulary_file=words, vocab_size=2, default_value=42)
    tf.tables_initializer().run()
    result = session.run(ids.lookup(tf.constant(["salad", "surgery", "tarkus"])))
    assert result[:2].tolist() == [1, 2] and result[2] in (3, 4)
    assert session.run(ids.size()) == 5
    assert session.run(plain.lookup(tf.constant(["salad", "surgery"]))).tolist() == [1, 42]
    assert session.run(back.lookup(tf.constant([0, 2, 9], tf.int64))).tolist() == [
        b"brain",
        b"surgery",
        b"UNK",
    ]


def test_ids_of_a_tensor(session):
    strong = L.StrongHashSpec([1, 2])
    ids = L.index_table_from_tensor(["a", "b"], num_oov_buckets=3, hasher_spec=strong)
    numbers = L.index_table_from_tensor([7, 8], dtype=tf.int32, num_oov_buckets=1)
    texts = L.index_to_string_table_from_tensor(["a", "b"], default_value="?")
    session.run(tf.tables_initializer())
    assert session.run(ids.lookup(tf.constant(["a", "b"]))).tolist() == [0, 1]
    assert session.run(numbers.lookup(tf.constant([8, 5]))).tolist() == [1, 2]
    assert session.run(texts.lookup(tf.constant([1, 5], tf.int64))).tolist() == [b"b", b"?"]


def test_the_old_functions(session):
    indices = L.string_to_index(tf.constant(["b", "x"]), mapping=["a", "b"])
    texts = L.index_to_string(tf.constant([1, 5], tf.int64), mapping=["a", "b"])
    tf.initialize_all_tables().run()
    assert session.run(indices).tolist() == [1, -1]
    assert session.run(texts).tolist() == [b"b", b"UNK"]


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda: L.index_table_from_file(""), ValueError, "vocabulary_file must be specified"),
        (
            lambda: L.index_table_from_file("x", -1),
            ValueError,
            "num_oov_buckets must be greater or equal than 0",
        ),
        (lambda: L.index_table_from_file("x", vocab_size=0), ValueError, "vocab_size must be greater than 0"),
        (
            lambda: L.index_table_from_file("x", key_dtype=tf.float32),
            TypeError,
            "Only integer and string keys",
        ),
        (lambda: L.index_table_from_tensor(None), ValueError, "mapping must be specified"),
        (lambda: L.index_table_from_tensor(["a"], dtype=tf.int64), ValueError, "Expected integer, got"),
        (lambda: L.StrongHashSpec([1]), ValueError, "key must have size 2"),
        (lambda: L.StrongHashSpec([-1, 2]), TypeError, "Must be unsigned integer values"),
        (lambda: L.IdTableWithHashBuckets(None, 0), ValueError, "oov_buckets must be > 0"),
        (lambda: L.IdTableWithHashBuckets(None, 1, hasher_spec=3), TypeError, "hasher_spec must be of type"),
    ],
)
def test_wrong_arguments(make, error, text):
    with pytest.raises(error, match=text):
        make()


def test_sessions_share_a_table_by_name(server):
    def build():
        init = tf.lookup.KeyValueTensorInitializer(["a"], [5])
        return L.HashTable(init, -1, shared_name="shared")

    with tf.Graph().as_default(), tf.Session(server.target) as first:
        first.run(build().initializer)
    with tf.Graph().as_default(), tf.Session(server.target) as second:
        assert second.run(build().lookup(tf.constant("a"))) == 5


def test_tables_of_different_graphs_are_different(server):
    for value in (5, 6):
        with tf.Graph().as_default(), tf.Session(server.target) as session:
            result = L.index_table_from_tensor([f"word{value}"])
            session.run(tf.tables_initializer())
            assert session.run(result.lookup(tf.constant(f"word{value}"))) == 0


def test_tables_of_one_file_are_one(words):
    names = {
        tf.lookup.StaticHashTable(init, -1).resource_handle.op.get_attr("shared_name")
        for init in (L.TextFileIdTableInitializer(words), L.TextFileIdTableInitializer(words))
    }
    assert names == {f"hash_table_{words}_-2_-1".encode()}


def test_a_mutable_table(session):
    table = L.MutableHashTable(tf.string, tf.int64, -1)
    keys = tf.constant(["a", "b", "c"])
    session.run(table.insert(keys, [1, 2, 3]))
    session.run(table.insert(["a"], [9]))
    session.run(table.remove(tf.constant(["b", "x"])))
    assert session.run(table.lookup(keys)).tolist() == [9, -1, 3]
    assert session.run(table.size()) == 2
    got = session.run(table.export())
    assert sorted(zip(*[x.tolist() for x in got], strict=True)) == [(b"a", 9), (b"c", 3)]
    with pytest.raises(tf.errors.InvalidArgumentError, match="Expected shape"):
        session.run(table.insert(["a", "b"], [1]))


def test_values_may_be_rows(session):
    table = L.MutableHashTable(tf.int64, tf.float32, default_value=[0.0, 0.5])
    session.run(table.insert([4], [[1.0, 2.0]]))
    result = table.lookup(tf.constant([[4], [5]], tf.int64))
    assert result.shape.as_list() == [2, 1, 2]
    assert session.run(result).tolist() == [[[1, 2]], [[0, 0.5]]]


def test_keys_of_a_dense_table_may_be_rows(session):
    table = L.MutableDenseHashTable(
        tf.int64, tf.int64, -1, empty_key=[0, 0], deleted_key=[-1, -1], initial_num_buckets=4
    )
    session.run(table.insert([[1, 2], [3, 4]], [5, 6]))
    result = table.lookup(tf.constant([[3, 4], [9, 9]], tf.int64))
    assert result.shape.as_list() == [2]
    assert session.run(result).tolist() == [6, -1]
    session.run(table.insert_or_assign([[i, 1] for i in range(5, 9)], [1, 2, 3, 4]))
    assert session.run(table.export())[0].shape == (8, 2)
    session.run(table.erase(tf.constant([[3, 4]], tf.int64)))
    assert session.run(table.size()) == 5


@pytest.mark.parametrize(
    "make",
    [
        lambda: L.MutableHashTable(tf.string, tf.float32, 0.0, name="t"),
        lambda: L.MutableHashTable(tf.string, tf.float32, [0.0, 0.0], name="t"),
        lambda: L.MutableDenseHashTable(tf.string, tf.float32, 0.0, "", "-", 8, name="t"),
    ],
)
def test_mutable_tables_are_saved_with_the_variables(tmp_path, make):
    path = str(tmp_path / "model")
    with tf.Graph().as_default(), tf.Session() as session:
        result = make()
        rows = np.ones((2, *result._value_shape.as_list()), np.float32)
        session.run(result.insert(["a", "b"], rows))
        tf.train.Saver().save(session, path)
    with tf.Graph().as_default(), tf.Session() as session:
        result = make()
        session.run(result.insert(["z"], rows[:1]))
        tf.train.Saver().restore(session, path)
        assert session.run(result.size()) == 2
        assert session.run(result.lookup(tf.constant(["b"]))).tolist() == rows[:1].tolist()


def test_a_table_is_read_from_one_file():
    start = tf.lookup.TextFileInitializer(
        tf.constant(["a.txt", "b.txt"]),
        tf.string,
        tf.lookup.TextFileIndex.WHOLE_LINE,
        tf.int64,
        tf.lookup.TextFileIndex.LINE_NUMBER,
    )
    with pytest.raises(ValueError, match="rank 0"):
        tf.lookup.StaticHashTable(start, -1)


def test_a_table_made_inside_a_loop_is_one_table(session):
    keys, values = tf.constant([1, 2, 3]), tf.constant([5, 10, 15])

    def found(key):
        table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(keys, values), -1)
        return table.lookup(key)

    once = tf.map_fn(found, tf.constant([2, 4, 1]))
    again = tf.map_fn(found, tf.constant([3]))
    session.run(tf.tables_initializer())
    assert session.run(once).tolist() == [10, -1, 5]
    assert session.run(again).tolist() == [15]


def test_buckets_alone_have_a_size(session):
    assert session.run(tf.lookup.StaticVocabularyTable(None, 5).size()) == 5


@pytest.mark.parametrize(
    ("options", "phrase"),
    [
        (
            {"empty_key": 17, "deleted_key": -1, "initial_num_buckets": 12},
            "Number of buckets must be at least 4",
        ),
        ({"empty_key": 17, "deleted_key": [1, 2]}, "Empty and deleted keys must have same shape"),
    ],
)
def test_a_dense_table_is_checked_when_it_is_made(options, phrase):
    table = tf.contrib.lookup.MutableDenseHashTable(tf.int64, tf.int64, default_value=-1, **options)
    with tf.Session() as s, pytest.raises(tf.errors.InvalidArgumentError, match=phrase):
        s.run(table.size())


def test_keys_of_a_dense_table_have_its_shape(session):
    table = tf.contrib.lookup.MutableDenseHashTable(
        tf.int64, tf.int64, default_value=-1, empty_key=0, deleted_key=-1
    )
    pairs = tf.constant([[11, 2], [12, 1]], tf.int64)
    for act in (table.lookup(pairs), table.insert(pairs, pairs)):
        with pytest.raises(tf.errors.InvalidArgumentError, match="Expected key shape"):
            session.run(act)


def test_a_hasher_that_is_not_known_is_told_at_the_look_up():
    table = tf.contrib.lookup.IdTableWithHashBuckets(
        None, 2, hasher_spec=tf.contrib.lookup.HasherSpec("my-awesome-hash", None)
    )
    with pytest.raises(ValueError, match="Unknown hasher my-awesome-hash"):
        table.lookup(tf.constant(["a"]))


def test_ids_are_those_of_integers_or_strings():
    with pytest.raises(TypeError, match="Invalid key_dtype, expected integer or string"):
        tf.contrib.lookup.IdTableWithHashBuckets(None, 5, key_dtype=tf.bool)


def test_a_dense_table_grows_as_if_every_key_were_new_and_keeps_what_was_removed(session):
    table = tf.lookup.experimental.DenseHashTable(
        tf.int64, tf.int64, default_value=-1, empty_key=0, deleted_key=-1, initial_num_buckets=4
    )

    def put(keys, values):
        session.run(table.insert(tf.constant(keys, tf.int64), tf.constant(values, tf.int64)))

    put([11, 12, 13], [0, 1, 2])
    session.run(table.remove(tf.constant([12, 99], tf.int64)))
    keys, values = session.run(table.export())
    pairs = zip(keys.ravel().tolist(), values.ravel().tolist(), strict=True)
    assert sorted(pairs) == [(-1, 1), (0, 0), (11, 0), (13, 2)]
    put([13, 14, 15, 16, 17], [3, 4, 5, 6, 7])
    assert len(session.run(table.export()[0])) == 16 and session.run(table.size()) == 6


def test_a_table_is_not_initialized_with_nothing(session):
    table = tf.contrib.lookup.index_table_from_tensor(np.array([], np.str_), num_oov_buckets=1)
    with pytest.raises(tf.errors.InvalidArgumentError, match="keys and values cannot be empty"):
        session.run(table.initializer)

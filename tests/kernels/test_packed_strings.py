"""Many strings in one buffer: every op gives what it gives for a few of them as objects."""

import numpy as np
import pytest

import tensorfleet as tf
from tensorfleet.kernels.packed_strings import Strings, strings_in, together
from tensorfleet.kernels.string_buffers import Buffer, texts_of

COUNT, FEW = 2500, 100


def vector(values):
    return np.fromiter(values, object, len(values))


def random_texts(letters, longest, seed=0):
    random = np.random.RandomState(seed)
    lengths = random.randint(0, longest + 1, COUNT)
    return vector([bytes(random.choice(letters, n).astype(np.uint8)) for n in lengths])


TEXTS = {
    "words": vector([b"word %d of some text" % (i % 700) for i in range(COUNT)]),
    "letters": random_texts(list(b"ab o1,"), 12),
    "any bytes": random_texts(range(256), 20),
    "zeros": random_texts([0, 0, 97], 9),
    "long": random_texts(list(b"xyz o"), 90),
    "characters": vector([("日本é a"[: i % 6] * (i % 4)).encode() for i in range(COUNT)]),
    "empty": vector([b""] * COUNT),
}
NUMBERS = vector([b"%d" % (i * 7919 % 10**8 - 10**6) for i in range(COUNT)])
DECIMALS = vector([b"%s%d.%d" % (b"-" if i % 3 else b"", i % 91, i * 7) for i in range(COUNT)])
WRITTEN = vector([b"d29yZCA%04d" % (i % 1000) + b"A" * (i % 2) for i in range(COUNT)])
RAW = vector([(b"%08d" % i) for i in range(COUNT)])
KEYS = [b"word %d of some text" % i for i in range(0, 700, 3)] + [b"", b"a", b"o", b"\0", b"ab"]


def looked_up(x):
    entries = tf.lookup.KeyValueTensorInitializer(tf.constant(KEYS), tf.range(len(KEYS), dtype=tf.int64))
    return tf.lookup.StaticHashTable(entries, -1).lookup(x)


# What gives one result for each string.
EACH = {
    "length": lambda x: tf.strings.length(x),
    "characters": lambda x: tf.strings.length(x, unit="UTF8_CHAR"),
    "from the end": lambda x: tf.substr(x, -tf.strings.length(x), tf.strings.length(x) // 2),
    "to the end": lambda x: tf.substr(x, 0, -1),
    "first": lambda x: tf.substr(x, 0, 3),
    "first characters": lambda x: tf.substr(x, 0, 2, unit="UTF8_CHAR"),
    "fast": lambda x: tf.string_to_hash_bucket_fast(x, 2**61),
    "strong": lambda x: tf.string_to_hash_bucket_strong(x, 2**61, [3, 4]),
    "murmur": lambda x: tf.string_to_hash_bucket(x, 2**61),
    "encoded": lambda x: tf.encode_base64(x),
    "padded": lambda x: tf.encode_base64(x, pad=True),
    "there and back": lambda x: tf.decode_base64(tf.encode_base64(x)),
    "looked up": looked_up,
    "matched": lambda x: tf.strings.regex_full_match(x, "word 1.*text"),
    "maybe empty": lambda x: tf.strings.regex_full_match(x, "[ab]*"),
    "rewritten": lambda x: tf.regex_replace(x, "[0-9o]+", "<\\0>"),
    "removed": lambda x: tf.regex_replace(x, "o", ""),
    "joined": lambda x: tf.string_join([x, tf.substr(x, 0, 1)], "-"),
    "upper": lambda x: tf.strings.upper(tf.substr(x, 0, 4)),
    "stripped": lambda x: tf.string_strip(x),
}
# What gives a sparse tensor.
SPLIT = {
    "at spaces": lambda x: tf.string_split(x),
    "at any of two": lambda x: tf.string_split(x, "o,", skip_empty=False),
    "into bytes": lambda x: tf.string_split(x, ""),
    "at whitespace": lambda x: tf.strings.split(x),
    "at a letter": lambda x: tf.strings.split(x, sep="o"),
    "at two letters": lambda x: tf.strings.split(x, sep="or"),
    "once": lambda x: tf.strings.split(x, sep="o", maxsplit=1),
}


class Runner:
    """An op on strings that are fed: as objects, or packed by another op before."""

    def __init__(self, function, packed):
        self.graph = tf.Graph()
        with self.graph.as_default():
            self.given = tf.placeholder(tf.string, [None])
            self.made = function(tf.substr(self.given, 2, -1) if packed else self.given)
            self.session = tf.Session()
            self.session.run(tf.tables_initializer())
        self.before = b"xy" if packed else b""

    def __call__(self, texts):
        return self.session.run(self.made, {self.given: vector([self.before + t for t in texts])})


def in_pieces(function, texts):
    run = Runner(function, False)
    return [run(texts[i : i + FEW]) for i in range(0, len(texts), FEW)]


@pytest.mark.parametrize("packed", [False, True], ids=["objects", "packed"])
@pytest.mark.parametrize("texts", TEXTS)
@pytest.mark.parametrize("name", EACH)
def test_many_strings_give_what_a_few_do(name, texts, packed):
    wanted = np.concatenate(in_pieces(EACH[name], TEXTS[texts]))
    made = Runner(EACH[name], packed)(TEXTS[texts])
    assert made.dtype == wanted.dtype
    assert made.tolist() == wanted.tolist()


@pytest.mark.parametrize("texts", TEXTS)
@pytest.mark.parametrize("name", ["rewritten", "removed"])
def test_strings_are_rewritten_together_as_each_is_alone(name, texts):
    run = Runner(EACH[name], False)
    some = TEXTS[texts][:60]
    assert run(some).tolist() == [run([text])[0] for text in some]


@pytest.mark.parametrize("count", [0, 1, 3, 300])
@pytest.mark.parametrize("texts", TEXTS)
def test_a_buffer_gives_its_strings_as_objects(texts, count):
    some = TEXTS[texts][:count].tolist()
    assert texts_of(Buffer.of(some)).tolist() == some


@pytest.mark.parametrize("packed", [False, True], ids=["objects", "packed"])
@pytest.mark.parametrize("texts", TEXTS)
@pytest.mark.parametrize("name", SPLIT)
def test_many_strings_are_cut_as_a_few_are(name, texts, packed):
    pieces = in_pieces(SPLIT[name], TEXTS[texts])
    made = Runner(SPLIT[name], packed)(TEXTS[texts])
    rows = np.concatenate([p.indices + [FEW * i, 0] for i, p in enumerate(pieces)])
    assert made.indices.tolist() == rows.tolist()
    assert made.values.tolist() == [v for p in pieces for v in p.values]
    assert made.dense_shape.tolist() == [COUNT, max(p.dense_shape[1] for p in pieces)]


@pytest.mark.parametrize("packed", [False, True], ids=["objects", "packed"])
@pytest.mark.parametrize(
    ("texts", "function"),
    [
        (NUMBERS, lambda x: tf.string_to_number(x, tf.int32)),
        (NUMBERS, lambda x: tf.string_to_number(x, tf.int64)),
        (NUMBERS, lambda x: tf.string_to_number(x, tf.float32)),
        (DECIMALS, lambda x: tf.string_to_number(x, tf.float64)),
        (WRITTEN, tf.decode_base64),
        (RAW, lambda x: tf.decode_raw(x, tf.uint8)),
        (RAW, lambda x: tf.decode_raw(x, tf.int16)),
        (RAW, lambda x: tf.decode_raw(x, tf.float32, little_endian=False)),
    ],
)
def test_many_strings_are_read_as_a_few_are(texts, function, packed):
    wanted = np.concatenate(in_pieces(function, texts))
    np.testing.assert_array_equal(Runner(function, packed)(texts), wanted)


@pytest.mark.parametrize("packed", [False, True], ids=["objects", "packed"])
@pytest.mark.parametrize("texts", TEXTS)
def test_strings_that_occur_twice_are_found_as_in_a_dictionary(texts, packed):
    given = np.concatenate([TEXTS[texts], TEXTS[texts][::-1]])
    values, index, counts = Runner(lambda x: tuple(tf.unique_with_counts(x)), packed)(given)
    numbers = {}
    assert index.tolist() == [numbers.setdefault(t, len(numbers)) for t in given]
    assert values.tolist() == list(numbers)
    assert counts.tolist() == np.bincount(index).tolist()


MOVES = {
    "reshaped": lambda x: tf.reshape(x, [50, -1]),
    "sliced": lambda x: x[10:-10:3],
    "part": lambda x: tf.slice(x, [5], [400]),
    "gathered": lambda x: tf.gather(x, [[3, 1], [COUNT - 1, 3]]),
    "gathered by rows": lambda x: tf.gather_nd(tf.reshape(x, [50, -1]), [[1], [3], [1]]),
    "transposed": lambda x: tf.transpose(tf.reshape(x, [50, -1])),
    "backwards": lambda x: tf.reverse(x, [0]),
    "tiled": lambda x: tf.tile(x, [2]),
    "unstacked": lambda x: tf.unstack(tf.reshape(x, [5, -1]))[2],
    "split": lambda x: tf.split(x, 5)[4],
    "more dimensions": lambda x: tf.squeeze(tf.expand_dims(x, 1), [1])[None],
    "broadcast": lambda x: tf.broadcast_to(x, [2, COUNT]),
    "one": lambda x: x[7],
    "joined": lambda x: tf.concat([x, x[:5]], 0),
}


@pytest.mark.parametrize("name", MOVES)
def test_packed_strings_are_moved_as_objects_are(name):
    texts = TEXTS["any bytes"]
    wanted, made = (Runner(MOVES[name], packed)(texts) for packed in (False, True))
    assert np.shape(made) == np.shape(wanted)
    assert np.asarray(made).tolist() == np.asarray(wanted).tolist()


def test_what_is_wrong_with_one_of_many_packed_strings_is_told():
    run = Runner(lambda x: tf.string_to_number(x, tf.int32), True)
    with pytest.raises(tf.errors.InvalidArgumentError, match="could not correctly convert string: 12x"):
        run(vector([b"7"] * COUNT + [b"12x"]))
    short = Runner(lambda x: tf.substr(x, 2, 1), True)
    with pytest.raises(
        tf.errors.InvalidArgumentError, match="pos 2 out of range for string b'a' at index 2500"
    ):
        short(vector([b"abc"] * COUNT + [b"a"]))


def test_numbers_are_written_together_as_one_by_one():
    numbers = np.array([0, 7, -10, 2**31 - 1, -(2**31), 99999] * 300, np.int32)
    parts = np.array([0.0, -0.0, 1.5, -2.25, 123456.789, 1e-7] * 300, np.float32)
    with tf.Session() as session:
        made, pieces = session.run([tf.as_string(numbers), tf.as_string(parts)])
    assert made.tolist() == [b"%d" % n for n in numbers]
    assert pieces.tolist() == [b"%f" % p for p in parts.tolist()]


def test_a_variable_of_strings_is_never_stale():
    texts = TEXTS["words"].copy()
    variable = tf.Variable(texts, use_resource=True, trainable=False)
    firsts = tf.substr(variable.read_value(), 0, 6)
    changed = tf.scatter_update(variable, [3, 5], [b"another", b"others"])
    new = tf.placeholder(tf.string, [COUNT])
    assigned = tf.assign(variable, new)
    with tf.Session() as session:
        session.run(variable.initializer)
        for _ in range(2):
            assert session.run(firsts).tolist() == [t[:6] for t in texts]
        session.run(changed.op if hasattr(changed, "op") else changed)
        texts[3], texts[5] = b"another", b"others"
        for _ in range(2):
            assert session.run(firsts).tolist() == [t[:6] for t in texts]
        session.run(assigned.op, {new: texts[::-1]})
        assert session.run(firsts).tolist() == [t[:6] for t in texts[::-1]]


def test_what_is_fetched_is_the_callers_to_change():
    variable = tf.Variable(TEXTS["words"], trainable=False)
    firsts = tf.substr(variable, 0, 6)
    with tf.Session() as session:
        session.run(variable.initializer)
        for fetched in (variable, firsts):
            before = session.run(fetched)
            wanted = before.tolist()
            before[:] = b"changed"
            assert session.run(fetched).tolist() == wanted


def test_packed_strings_go_through_branches_loops_functions_and_queues():
    given = tf.placeholder(tf.string, [None])
    packed = tf.substr(given, 1, -1)
    chosen = tf.cond(tf.size(packed) > 3, lambda: tf.substr(packed, 1, -1), lambda: packed)
    looped = tf.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, tf.substr(x, 1, -1)), [0, packed])[1]
    called = tf.py_func(lambda x: x[::-1], [packed], tf.string)
    queue = tf.FIFOQueue(1, tf.string)
    texts = vector([b"%010d" % i for i in range(COUNT)])
    with tf.Session() as session:
        made = session.run([chosen, looped, called, queue.enqueue(packed)], {given: texts})
        assert made[0].tolist() == [t[2:] for t in texts]
        assert made[1].tolist() == [t[4:] for t in texts]
        assert made[2].tolist() == [t[1:] for t in texts][::-1]
        assert session.run(queue.dequeue()).tolist() == [t[1:] for t in texts]


@pytest.mark.parametrize("texts", TEXTS)
def test_all_forms_are_of_the_same_strings(texts):
    given = TEXTS[texts]
    strings = Strings.of(given)
    assert strings.lengths.tolist() == [len(t) for t in given]
    assert texts_of(strings.buffer).tolist() == given.tolist()
    columns = strings.columns()
    if columns is None:
        assert max(map(len, given)) > 63
    else:
        assert [c.tobytes()[: len(t)] for c, t in zip(columns.T, given, strict=True)] == given.tolist()
        assert not any(any(c.tobytes()[len(t) :]) for c, t in zip(columns.T, given, strict=True))
        assert texts_of(Buffer.of_columns(columns, strings.lengths)).tolist() == given.tolist()
    back = strings_in(Buffer.of(given.tolist()[::-1]), given.shape)
    assert np.asarray(back).tolist() == given.tolist()[::-1]
    assert texts_of(back.apart()).tolist() == given.tolist()[::-1]


def test_few_strings_stay_objects():
    few = vector([b"a", b"b"])
    assert together(few) is None
    assert isinstance(strings_in(Buffer.of([b"a", b"b"]), (2,)), np.ndarray)


def test_a_tensor_of_another_shape_shares_what_was_made():
    strings = Strings.of(TEXTS["words"])
    (other,) = strings.moved(lambda array: (array.reshape(50, -1),))
    assert other.shape == (50, COUNT // 50)
    assert other.buffer is strings.buffer
    assert np.asarray(other).shape == other.shape

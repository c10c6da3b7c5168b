"""Examples that are walked through in step give what each of them gives alone."""

import numpy as np
import pytest

import tensorfleet as tf
from tensorfleet.kernels import example_layouts as parsing_layouts
from tensorfleet.kernels import example_walk as parsing_walk
from tensorfleet.kernels.packed_strings import Strings
from tensorfleet.ops.input.example_ops import ExampleBatch

FEATURES = {b"x": tf.float32, b"number": tf.int64, b"a name of more than eight letters": tf.string}


def feature(kind, values):
    result = tf.train.Feature()
    getattr(result, kind).value.extend(values)
    return result


def record(random, longest=12, names=None):
    features = {
        "x": feature("float_list", random.rand(random.randint(longest))),
        "number": feature(
            "int64_list", random.randint(-5, 2 ** random.randint(3, 60), random.randint(longest))
        ),
        "a name of more than eight letters": feature(
            "bytes_list", [random.bytes(random.randint(longest)) for _ in range(random.randint(3))]
        ),
    }
    chosen = features if names is None else {name: features[name] for name in names if name in features}
    return tf.train.Example(features=tf.train.Features(feature=chosen)).SerializeToString()


def told(records):
    """All values of all features and how many each record has, or what is wrong."""
    result = []
    try:
        batch = ExampleBatch(records, [])
    except tf.errors.InvalidArgumentError as e:
        return e.message
    for key, dtype in FEATURES.items():
        try:
            values, counts = batch.flat(key, dtype)
            result.append(
                (np.asarray(values).tobytes() if dtype != tf.string else list(values), counts.tolist())
            )
        except (tf.errors.InvalidArgumentError, ValueError) as e:
            result.append(str(e))
    return result


@pytest.fixture
def alone(monkeypatch):
    """The same of records that are scanned one by one."""

    def scanned(records):
        with monkeypatch.context() as patch:
            patch.setattr(parsing_walk, "MIN_WALKED_RECORDS", 1 << 60)
            patch.setattr(parsing_layouts, "_WORTH_IT", 1 << 60)
            return told(records)

    return scanned


@pytest.mark.parametrize("longest", [1, 2, 12, 40, 300, 6000])
@pytest.mark.parametrize("count", [12, 100])
def test_features_of_any_length(alone, longest, count):
    random = np.random.RandomState(longest)
    records = [record(random, longest) for _ in range(count)]
    batch = ExampleBatch(records, [])
    assert not batch.alone
    assert told(records) == alone(records)


def test_few_or_one_of_an_order_are_left(alone):
    random = np.random.RandomState(3)
    some = [["x"], ["number", "x"], ["x", "number"], [], None]
    records = [record(random, names=some[random.randint(5)]) for _ in range(200)]
    assert told(records) == alone(records)
    assert told(records[:20]) == alone(records[:20])


def test_strings_in_a_buffer(alone):
    random = np.random.RandomState(4)
    records = [record(random) for _ in range(300)]
    packed = Strings.of(np.fromiter(records, object, len(records)))
    assert told(packed) == alone(records)


def test_numbers_that_are_not_packed_and_features_that_come_twice(alone):
    random = np.random.RandomState(5)
    records = [record(random) for _ in range(40)]
    # A feature "x" of one float, without the length of the list; and its only entry once more.
    entry = b"\x0a\x0e\x0a\x01x\x12\x09\x12\x07\x0d\x00\x00\x80\x3f\x18\x01"
    records[7] = b"\x0a" + bytes([len(entry)]) + entry
    records[9] = records[8] + records[8]
    records[11] = b""
    assert told(records) == alone(records)


@pytest.mark.parametrize("seed", range(60))
def test_damaged_records_give_what_they_give_alone(alone, seed):
    random = np.random.RandomState(seed)
    records = [bytearray(record(random, 6)) for _ in range(24)]
    for _ in range(random.randint(1, 4)):
        damaged = records[random.randint(24)]
        if not damaged:
            continue
        at = random.randint(len(damaged))
        if random.randint(3):
            damaged[at] = random.choice([0, 0x0A, 0x12, 0x1A, 0x7F, 0x80, 0xFF, random.randint(256)])
        else:
            del damaged[at:]
    whole = [bytes(r) for r in records]
    assert told(whole) == alone(whole)

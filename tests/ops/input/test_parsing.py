"""Serialized Examples, CSV lines and raw bytes as tensors."""

import gzip
import zlib

import numpy as np
import pytest

import tensorfleet as tf

Invalid = tf.errors.InvalidArgumentError


def feature(values):
    values = values if isinstance(values, list) else [values]
    if values and isinstance(values[0], bytes):
        return tf.train.Feature(bytes_list=tf.train.BytesList(value=values))
    if values and isinstance(values[0], float):
        return tf.train.Feature(float_list=tf.train.FloatList(value=values))
    return tf.train.Feature(int64_list=tf.train.Int64List(value=values))


def example(**features):
    by_name = {k: feature(v) for k, v in features.items()}
    return tf.train.Example(features=tf.train.Features(feature=by_name)).SerializeToString()


A = {"a": tf.FixedLenFeature([], tf.int64)}


def test_fixed_features_of_a_batch(session):
    records = [example(a=i - 2, b=[float(i), 0.5], c=b"x%d" % i) for i in range(5)]
    wanted = {**A, "b": tf.FixedLenFeature([2], tf.float32), "c": tf.FixedLenFeature([1], tf.string)}
    parsed = tf.parse_example(records, wanted)
    assert parsed["b"].shape == [5, 2] and parsed["a"].op.type == "ParseExample"
    result = session.run(parsed)
    assert result["a"].tolist() == [-2, -1, 0, 1, 2] and result["a"].dtype == np.int64
    assert result["b"].tolist() == [[i, 0.5] for i in range(5)] and result["b"].dtype == np.float32
    assert result["c"].tolist() == [[b"x%d" % i] for i in range(5)]


@pytest.mark.parametrize("size", [1, 5, 6, 40])
def test_records_of_many_layouts_in_one_batch(session, size):
    random = np.random.RandomState(size)
    rows = []
    for _ in range(size):
        kind = random.randint(4)
        numbers = [int(n) for n in random.randint(-(2**40), 2**40, 2)] if kind else [1, 300]
        rows.append({"a": numbers, "f": [float(random.randint(9))] * (kind + 1), "s": [b"t" * kind]})
    records = [example(**r) for r in rows]
    wanted = {"a": tf.FixedLenFeature([2], tf.int64), "f": tf.VarLenFeature(tf.float32)}
    wanted["s"] = tf.FixedLenFeature([], tf.string)
    result = session.run(tf.parse_example(records, wanted))
    assert result["a"].tolist() == [r["a"] for r in rows]
    assert result["s"].tolist() == [r["s"][0] for r in rows]
    assert result["f"].values.tolist() == [v for r in rows for v in r["f"]]
    assert result["f"].dense_shape.tolist() == [size, max(len(r["f"]) for r in rows)]


def test_many_alike_records_are_read_as_one_matrix(session):
    random = np.random.RandomState(0)
    images = [random.bytes(64) for _ in range(32)]
    floats = random.rand(32, 7).astype(np.float32)
    records = [example(i=images[k], f=floats[k].tolist(), n=[k, 1000 + k]) for k in range(32)]
    wanted = {"i": tf.FixedLenFeature([], tf.string), "f": tf.FixedLenFeature([7], tf.float32)}
    result = session.run(tf.parse_example(records, {**wanted, "n": tf.FixedLenFeature([2], tf.int64)}))
    assert result["i"].tolist() == images and (result["f"] == floats).all()
    assert result["n"].tolist() == [[k, 1000 + k] for k in range(32)]


def test_records_alike_whose_list_of_numbers_is_empty_have_no_numbers(session):
    result = session.run(tf.parse_example([example(a=[], s=b"t")] * 20, {"a": tf.VarLenFeature(tf.int64)}))
    assert result["a"].values.tolist() == [] and result["a"].dense_shape.tolist() == [20, 0]


def test_defaults_stand_for_missing_features(session):
    wanted = {"a": tf.FixedLenFeature([2], tf.int64, default_value=[7, 8])}
    parsed = tf.parse_example([example(), example(a=[1, 2])], wanted)
    assert session.run(parsed)["a"].tolist() == [[7, 8], [1, 2]]


@pytest.mark.parametrize(
    ("features", "wanted", "words"),
    [
        ({"a": 1}, {"z": tf.FixedLenFeature([], tf.int64)}, "Feature: z .data type: int64. is required"),
        ({"a": 1}, {"a": tf.FixedLenFeature([], tf.float32)}, "Data types don't match. Data type: int64"),
        ({"a": [1, 2]}, {"a": tf.FixedLenFeature([3], tf.int64)}, r"Values size: 2 but output shape: \[3\]"),
        ({"a": 1}, {"a": tf.VarLenFeature(tf.string)}, "Expected type: string, Actual type: int64"),
    ],
)
def test_errors_name_the_record_and_the_feature(session, features, wanted, words):
    with pytest.raises(Invalid, match=words) as caught:
        session.run(tf.parse_example([example(**features)], wanted, example_names=["rec"]))
    assert "Name: rec" in str(caught.value)


def test_every_cut_of_a_record_is_refused_or_lacks_the_feature(session):
    record = example(a=1, b=[1.5, 2.5], c=[b"xy", b""])
    serialized = tf.placeholder(tf.string, [None])
    wanted = {"b": tf.FixedLenFeature([2], tf.float32), "c": tf.FixedLenFeature([2], tf.string), **A}
    parsed = tf.parse_example(serialized, wanted)
    for cut in range(len(record)):
        with pytest.raises(Invalid, match="Could not parse example input|required but could not be found"):
            session.run(parsed, {serialized: [record, record[:cut]]})


def test_rows_of_any_number_are_filled_up(session):
    wanted = {"a": tf.FixedLenSequenceFeature([2], tf.int64, allow_missing=True, default_value=-1)}
    parsed = tf.parse_example([example(a=[1, 2]), example(a=[3, 4, 5, 6]), example()], wanted)
    assert session.run(parsed)["a"].tolist() == [[[1, 2], [-1, -1]], [[3, 4], [5, 6]], [[-1, -1], [-1, -1]]]
    with pytest.raises(ValueError, match="requires allow_missing to be True"):
        tf.parse_example([b""], {"a": tf.FixedLenSequenceFeature([], tf.int64)})


def test_one_example(session):
    wanted = {**A, "v": tf.VarLenFeature(tf.string), "s": tf.FixedLenSequenceFeature([], tf.float32, True)}
    parsed = tf.parse_single_example(example(a=3, v=[b"p", b"q"], s=[1.0, 2.0, 3.0]), wanted)
    assert parsed["a"].op.type == "ParseSingleExample" and parsed["a"].shape == []
    result = session.run(parsed)
    assert (
        result["a"] == 3 and result["v"].values.tolist() == [b"p", b"q"] and result["s"].tolist() == [1, 2, 3]
    )
    with pytest.raises(ValueError, match="must be a scalar"):
        tf.parse_single_example([b""], A)


@pytest.mark.parametrize(
    ("feature", "words"),
    [
        (tf.FixedLenFeature([], None), "Missing type for feature a"),
        (tf.FixedLenFeature(None, tf.int64), "Missing shape for feature a"),
        (tf.FixedLenFeature([None], tf.int64), "Consider using FixedLenSequenceFeature"),
        (tf.SparseFeature("", "v", tf.float32, 3), "Missing index_key"),
        (3, "Unsupported int 3"),
    ],
)
def test_what_is_no_feature_is_refused(feature, words):
    with pytest.raises(ValueError, match=words):
        tf.parse_example([b""], {"a": feature})


def test_sparse_features_are_put_together_from_their_parts(session):
    records = [example(i=[5, 1], j=[0, 2], v=[1.0, 2.0]), example(i=[0], j=[1], v=[4.0])]
    wanted = {"s": tf.SparseFeature("i", "v", tf.float32, 10), "i": tf.VarLenFeature(tf.int64)}
    result = session.run(tf.parse_example(records, wanted))
    assert sorted(result) == ["i", "s"] and result["s"].indices.tolist() == [[0, 1], [0, 5], [1, 0]]
    assert result["s"].values.tolist() == [2.0, 1.0, 4.0] and result["s"].dense_shape.tolist() == [2, 10]
    matrix = tf.SparseFeature(["i", "j"], "v", tf.float32, [10, 3])
    result = session.run(tf.parse_example(records, {"s": matrix}))
    assert result["s"].indices.tolist() == [[0, 1, 2], [0, 5, 0], [1, 0, 1]]


def sequence(context, lists):
    by_name = {k: tf.train.FeatureList(feature=[feature(f) for f in v]) for k, v in lists.items()}
    return tf.train.SequenceExample(
        context=tf.train.Features(feature={k: feature(v) for k, v in context.items()}),
        feature_lists=tf.train.FeatureLists(feature_list=by_name),
    ).SerializeToString()


def test_sequences(session):
    record = sequence({"c": 5}, {"f": [[1, 2], [3]], "g": [[1.0], [2.0], [3.0]]})
    wanted = {"f": tf.VarLenFeature(tf.int64), "g": tf.FixedLenSequenceFeature([1], tf.float32)}
    context, lists = tf.parse_single_sequence_example(record, {"c": tf.FixedLenFeature([], tf.int64)}, wanted)
    context, lists = session.run((context, lists))
    assert context["c"] == 5 and lists["g"].tolist() == [[1], [2], [3]]
    assert lists["f"].indices.tolist() == [[0, 0], [0, 1], [1, 0]] and lists["f"].values.tolist() == [1, 2, 3]
    short = sequence({"c": 6}, {"f": [[9]], "g": [[4.0]]})
    batch = tf.io.parse_sequence_example([record, short], {"c": tf.VarLenFeature(tf.int64)}, wanted)
    _, lists, lengths = session.run(batch)
    assert lists["g"].tolist() == [[[1], [2], [3]], [[4], [0], [0]]] and lengths["g"].tolist() == [3, 1]
    assert lists["f"].dense_shape.tolist() == [2, 2, 2]
    with pytest.raises(Invalid, match="Feature list 'h' is required"):
        session.run(tf.parse_single_sequence_example(record, None, {"h": wanted["g"]}))


@pytest.mark.parametrize("rows", [1, 300])
def test_many_csv_columns_are_read_together_and_one_by_one(session, rows):
    lines = [
        b",".join(b"%d,%.2f,x%d,-%d,1e%d" % (i + r, i / 4, i, i, i % 3) for i in range(60))
        for r in range(rows)
    ]
    kinds = [[0], [0.0], ["none"], [0], [0.0]]
    columns = session.run(tf.decode_csv(lines, kinds * 60))
    for i in range(60):
        whole, part, text, negative, power = columns[5 * i : 5 * i + 5]
        assert whole.tolist() == [i + r for r in range(rows)] and whole.dtype == np.int32
        assert part.tolist() == [i / 4] * rows and power.tolist() == [10.0 ** (i % 3)] * rows
        assert text.tolist() == [b"x%d" % i] * rows and negative.tolist() == [-i] * rows


def test_csv(session):
    lines = ['1,2.5,"a,""b"""', "-3,,"]
    columns = tf.decode_csv(lines, [[0], [7.0], ["none"]])
    assert [c.shape.as_list() for c in columns] == [[2]] * 3
    a, b, c = session.run(columns)
    assert a.tolist() == [1, -3] and b.tolist() == [2.5, 7] and c.tolist() == [b'a,"b"', b"none"]
    (picked,) = session.run(tf.decode_csv(["1\t2\tNA"], [[9]], "\t", na_value="NA", select_cols=[2]))
    assert picked.tolist() == [9]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("1", "Expect 2 fields but have 1 in record 1"),
        ("1,2,3", "Expect 2 fields but have 3 in record 1"),
        ("x,2", "Field 0 in record 1 is not a valid int32: x"),
        ("1,y", "Field 1 in record 1 is not a valid float: y"),
        ("1_0,1", "not a valid int32: 1_0"),
        ("99999999999,1", "not a valid int32"),
        (",1", "Field 0 is required but missing in record 1!"),
        ('1,"2', "Quoted field has to end with quote"),
        ('1,"2"3', "Quote inside a string has to be escaped"),
        ("1,2\n", "Unquoted fields cannot have quotes/CRLFs inside"),
        ("", "Expect 2 fields but have 0 in record 1"),
    ],
)
def test_bad_csv_lines_are_named(session, line, words):
    columns = tf.decode_csv(["1,2", line], [tf.constant([], tf.int32), [0.0]])
    with pytest.raises(Invalid, match=words):
        session.run(columns)


def test_raw_bytes(session):
    raw = tf.decode_raw([b"\1\0\2\0", b"\3\0\4\0"], tf.int16)
    assert raw.shape.as_list() == [2, None] and session.run(raw).tolist() == [[1, 2], [3, 4]]
    assert session.run(tf.decode_raw(b"\0\1", tf.int16, little_endian=False)).tolist() == [1]
    with pytest.raises(Invalid, match="all be the same size, but element 1 has size 2 != 4"):
        session.run(tf.decode_raw([b"ab", b"abcd"], tf.int16))
    with pytest.raises(Invalid, match="length 3 that is not a multiple of 2, the size of int16"):
        session.run(tf.decode_raw([b"abc"], tf.int16))


@pytest.mark.parametrize("value", [np.float32([[1, 2]]), np.int64(3), np.array([b"a", b""], object)])
def test_tensors_in_strings(session, value):
    kind = tf.as_dtype(value.dtype)
    again = session.run(tf.parse_tensor(tf.serialize_tensor(value), kind))
    np.testing.assert_array_equal(again, value)
    with pytest.raises(Invalid, match="Type mismatch between parsed tensor"):
        session.run(tf.parse_tensor(tf.serialize_tensor(value), tf.uint8))


def test_packed_strings(session):
    packed = {"ZLIB": zlib.compress(b"hello"), "GZIP": gzip.compress(b"hello"), "": b"hello"}
    for kind, data in packed.items():
        assert session.run(tf.decode_compressed([data], kind)).tolist() == [b"hello"]
    with pytest.raises(tf.errors.DataLossError, match="inflate.. failed with error -3"):
        session.run(tf.decode_compressed([b"hello"], "GZIP"))
    with pytest.raises(Invalid, match="supported compressions"):
        session.run(tf.decode_compressed([b"hello"], "LZ4"))


def test_examples_in_json(session):
    (data,) = session.run(
        tf.decode_json_example(['{"features": {"feature": {"a": {"int64List": {"value": ["1"]}}}}}'])
    )
    assert tf.train.Example.FromString(data).features.feature["a"].int64_list.value == [1]
    with pytest.raises(Invalid, match="Error while parsing JSON"):
        session.run(tf.decode_json_example(["{"]))


def test_a_key_cannot_be_dense_and_sparse():
    features = {"v": tf.FixedLenFeature([], tf.float32), "s": tf.SparseFeature("i", "v", tf.float32, 5)}
    with pytest.raises(ValueError, match="Dense and sparse keys must not intersect"):
        tf.parse_example([b""], features)


def test_a_string_of_one_example_is_a_scalar_to_other_operations(session):
    feature = {"a": tf.train.Feature(bytes_list=tf.train.BytesList(value=[b"xy"]))}
    example = tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString()
    value = tf.parse_single_example(tf.constant(example), {"a": tf.FixedLenFeature((), tf.string)})["a"]
    assert session.run(tf.reshape(value, [1])).tolist() == [b"xy"]
    assert session.run(tf.stack([value, value])).tolist() == [b"xy", b"xy"]


@pytest.mark.parametrize(
    ("lists", "words"),
    [
        (
            {"f": [[1, 2], [1.0, 2.0]]},
            "Feature list: f, Index: 1.  Data types don't match. Expected type: int64  Feature is: float_list",
        ),
        (
            {"f": [[1, 2], [1, 2, 3]]},
            r"Key: f, Index: 1.  Number of int64 values != expected.  values size: 3 but output shape: \[2\]",
        ),
    ],
)
def test_errors_in_sequences_name_the_place_in_the_list(session, lists, words):
    wanted = {"f": tf.FixedLenSequenceFeature([2], tf.int64)}
    with pytest.raises(Invalid, match=f"Name: rec, {words}"):
        session.run(tf.parse_single_sequence_example(sequence({}, lists), None, wanted, example_name="rec"))


def test_a_number_of_strings_that_does_not_fill_rows(session):
    wanted = {"a": tf.FixedLenSequenceFeature([2], tf.string, allow_missing=True)}
    with pytest.raises(
        Invalid, match="Key: a, Index: 0.  Number of bytes values is not a multiple of stride"
    ):
        session.run(tf.parse_example([example(a=[b"x", b"y", b"z"])], wanted))


def test_a_shape_with_an_unknown_dimension_is_told_as_given():
    with pytest.raises(ValueError, match=r"feature c need to be known but received \(1, None\)"):
        tf.parse_example([example()], {"c": tf.FixedLenFeature((1, None), tf.int64)})


def test_raw_bytes_cut_or_filled_to_a_length(session):
    from tensorfleet.python.ops import parsing_ops

    words = tf.constant(["ab", "cdef"])
    result = session.run(parsing_ops.decode_raw(words, tf.uint8, fixed_length=3))
    assert result.tolist() == [[97, 98, 0], [99, 100, 101]]
    with pytest.raises(Invalid):
        session.run(parsing_ops.decode_raw_v1(words, tf.uint8))


def test_what_is_no_tensor_is_told(session):
    with pytest.raises(Invalid, match="Could not parse `serialized` as TensorProto: 'bogus'"):
        session.run(tf.io.parse_tensor("bogus", tf.int32))


def test_the_defaults_of_csv_columns_are_a_list():
    with pytest.raises(TypeError, match="Expected list for 'record_defaults'"):
        tf.decode_csv(tf.constant("1,2"), np.zeros(2))


@pytest.mark.parametrize("count", [0, 1, 2])
def test_empty_strings_hold_no_numbers(session, count):
    text = tf.placeholder(tf.string, [None])
    assert session.run(tf.decode_raw(text, tf.float16), {text: [""] * count}).shape == (count, 0)

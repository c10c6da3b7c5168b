"""Strings: hashed, spelled, matched, taken apart. What TensorFlow gives is in the numbers here."""

import numpy as np
import pytest

import tensorfleet as tf
from tensorfleet.kernels import hashing


def test_fingerprints_are_farmhash():
    result = hashing.fingerprint64([b"", b"a", b"hello", b"x" * 17, b"y" * 33, b"q" * 1000]).tolist()
    assert result[0] == 0x9AE16A3B2F90404F
    assert result[1] == 12917804110809363939
    assert len(set(result)) == 6


def test_siphash_is_the_published_one():
    """The test vector of the SipHash paper."""
    key = (0x0706050403020100, 0x0F0E0D0C0B0A0908)
    assert hashing.siphash64([bytes(range(15))], key).tolist() == [0xA129CA6149BE45E5]


def test_hashing_keeps_the_shape(session):
    words = tf.constant([[b"a", b"b"], [b"a", b"c"]])
    result = session.run(tf.string_to_hash_bucket_fast(words, 1000))
    assert result.shape == (2, 2) and result.dtype == np.int64 and result[0, 0] == result[1, 0]
    assert (result < 1000).all()


def test_old_and_new_argument_names(session):
    assert session.run(tf.string_to_number(input=[b"1"])) == session.run(tf.string_to_number([b"1"]))
    assert session.run(tf.string_to_hash_bucket(input=[b"a"], num_buckets=9)) < 9
    assert session.run(tf.strings.split(source=[b"a b"])).values.tolist() == [b"a", b"b"]


def test_patterns_are_those_of_re2(session):
    matches = tf.strings.regex_full_match([b"hello", b"hello\n", "日".encode()], b".|hello$")
    assert session.run(matches).tolist() == [True, False, True]
    assert tf.strings.regex_full_match([b"a"], "a").op.type == "StaticRegexFullMatch"
    assert tf.strings.regex_full_match([b"a"], tf.constant("a")).op.type == "RegexFullMatch"
    with pytest.raises(
        tf.errors.InvalidArgumentError, match=r"Invalid pattern: \(\?!a\), error: invalid perl"
    ):
        session.run(tf.strings.regex_full_match([b"a"], b"(?!a)"))


def test_splitting_a_line_of_a_file(session):
    line = tf.placeholder(tf.string, [None])
    words = tf.sparse_tensor_to_dense(tf.string_split(line, ","), default_value="")
    ids = tf.string_to_number(words.op.inputs[2], tf.int32)
    assert session.run(words, {line: [b"1,2", b"3"]}).tolist() == [[b"1", b"2"], [b"3", b""]]
    assert session.run(ids, {line: ["1,2", "3"]}).tolist() == [1, 2, 3]


def test_strings_stay_bytes(session):
    assert session.run(tf.string_join([b"\xff", b"\x00"])) == b"\xff\x00"
    assert session.run(tf.substr(b"\xff\x00\xfe", 1, 2)) == b"\x00\xfe"
    assert session.run(tf.reduce_join([[b"\x00", b"\xff"]], 1)).tolist() == [b"\x00\xff"]


_TEXTS = [b"", b"a", b"ab 12", b" x,\ty ", b",,", "日本 7é".encode(), b"1\n2", b"\xffq", b"a" * 300]
_ZEROS = [b"\0", b"a\0b"]
_NUMBERS = [
    b"0",
    b"-0",
    b"12",
    b"-3.25",
    b"+.5",
    b"7.",
    b"1e3",
    b" 4 ",
    b"inf",
    b"0x10",
    b"1234567890123456789",
]
_WHOLE = [b"0", b"-12", b"+7", b"0012", b" 5 ", b"123456789012345678"]
_COLUMNS = [[0.0], [0], [""], [0.5]]
_LINES = [b"1.5,2,x,3", b"-.25,-7,,4e1", b"0,0,y z,12345.678"]
_QUOTED = [*_LINES, b'1,2,"a,b",']


@pytest.mark.parametrize(
    ("function", "texts"),
    [
        (lambda x: tf.strings.length(x, unit="UTF8_CHAR"), _TEXTS + _ZEROS),
        (lambda x: tf.string_to_hash_bucket_fast(x, 2**60), _TEXTS + _ZEROS),
        (lambda x: tf.string_to_hash_bucket_strong(x, 2**60, [1, 2]), _TEXTS),
        (lambda x: tf.string_to_number(x, tf.float64), _NUMBERS),
        (lambda x: tf.string_to_number(x, tf.int64), _WHOLE),
        (lambda x: tf.decode_base64(x), [b"", b"YQ", b"YWI", b"__79", b"AAAA"]),
        (lambda x: tf.decode_base64(x), [b"YQ==", b"YWI=", b"YQ"]),
        (lambda x: tf.regex_replace(x, "[^a-z]+", r"<\0>"), _TEXTS + _ZEROS),
        (lambda x: tf.regex_replace(x, r"\s|1.", ""), _TEXTS),
        (lambda x: tf.regex_replace(x, "a*", "-"), _TEXTS),
        (lambda x: tf.strings.regex_full_match(x, r"a.*|\s*x.+"), [t for t in _TEXTS if t.isascii()]),
        (lambda x: tf.decode_csv(x, _COLUMNS), _LINES),
        (lambda x: tf.decode_csv(x, _COLUMNS), _QUOTED),
        (lambda x: tf.as_string(tf.string_to_number(x) / 3), [b"1", b"-0", b"1e-9", b"-250000", b"5e6"]),
        (lambda x: tf.as_string(tf.string_to_number(x, tf.int64)), _WHOLE),
    ],
)
def test_many_strings_give_what_each_gives(session, function, texts):
    given = tf.placeholder(tf.string, [None])
    result = function(given)
    few = [session.run(result, {given: [text]}) for text in texts]
    many = session.run(result, {given: texts * 100})
    if isinstance(result, list):
        few, many = np.moveaxis(np.array(few, object)[..., 0], 0, 1), np.array(many, object)
        assert many.tolist() == np.tile(few, 100).tolist()
    else:
        assert many.dtype == few[0].dtype and many.tolist() == np.concatenate(few).tolist() * 100


@pytest.mark.parametrize("zeros", [[], _ZEROS])
@pytest.mark.parametrize(
    "split",
    [
        lambda x: tf.string_split(x, ", "),
        lambda x: tf.string_split(x, " ", skip_empty=False),
        lambda x: tf.string_split(x, ""),
        lambda x: tf.strings.split(x),
        lambda x: tf.strings.split(x, ","),
    ],
)
def test_many_strings_are_split_as_each_is(session, split, zeros):
    given = tf.placeholder(tf.string, [None])
    words, texts = split(given), (_TEXTS + zeros) * 100
    many = session.run(words, {given: texts})
    few = [session.run(words, {given: [text]}).values.tolist() for text in _TEXTS + zeros] * 100
    assert many.values.tolist() == [word for row in few for word in row]
    assert many.indices.tolist() == [[i, j] for i, row in enumerate(few) for j in range(len(row))]
    assert many.dense_shape.tolist() == [len(few), max(map(len, few))]


@pytest.mark.parametrize("texts", [[b"1", b"x"], [b"1", b""], [b"1_0"], [b"1" * 30 + b"."]])
def test_one_of_many_strings_that_spells_no_number_is_named(session, texts):
    given = tf.placeholder(tf.string, [None])
    with pytest.raises(
        tf.errors.InvalidArgumentError, match="could not correctly convert string: " + texts[-1].decode()
    ):
        session.run(tf.string_to_number(given, tf.int32), {given: [b"12"] * 300 + texts})


def _substr(texts, pos, len):
    with tf.Graph().as_default(), tf.Session() as sess:
        return sess.run(tf.substr(tf.constant(texts), pos, len)).tolist()


@pytest.mark.parametrize(("pos", "length"), [(2, 3), (0, 1), (-4, 2), (-4, 4), (1, 64), (3, 100), (0, -1)])
def test_parts_of_many_strings_are_those_of_each(pos, length):
    texts = [b"\0%03d" % i + bytes(i % 70) for i in range(600)]
    end = None if length < 0 or (pos + length == 0 and pos < 0) else pos + length
    assert _substr(texts, pos=pos, len=length) == [t[pos:end] for t in texts]


def test_a_string_too_short_among_many_is_refused():
    with pytest.raises(tf.errors.InvalidArgumentError, match="pos 3 out of range"):
        _substr([b"letters"] * 500 + [b"ab"], pos=3, len=2)


def test_words_of_ragged_strings_and_of_matrices_are_rows_of_rows(session):
    matrix = [["a,b", "c"], ["d", "e,f,g"]]
    wanted = [[[b"a", b"b"], [b"c"]], [[b"d"], [b"e", b"f", b"g"]]]
    assert session.run(tf.strings.split(matrix, ",", result_type="RaggedTensor")).to_list() == wanted
    ragged = tf.ragged.constant([["a,b"], ["c", "d"]])
    assert session.run(tf.strings.split(ragged, ",", result_type="RaggedTensor")).to_list() == [
        [[b"a", b"b"]],
        [[b"c"], [b"d"]],
    ]
    assert session.run(tf.strings.split(ragged, ",")).dense_shape.tolist() == [2, 2, 2]


def test_values_of_ragged_tensors_are_split_into_bytes_and_characters(session):
    value = tf.ragged.constant_value([[b"ab"], [b"c", b""]])
    assert session.run(tf.strings.bytes_split(value)).to_list() == [[[b"a", b"b"]], [[b"c"], []]]
    assert session.run(tf.strings.unicode_decode(value, "UTF-8")).to_list() == [[[97, 98]], [[99], []]]


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        (b"\x00a\x20\xac", "UTF-16"),
        (b"\xff\xfea\x00\xac\x20", "UTF-16"),
        (b"\x00\x00\x00a\x00\x00\x20\xac", "UTF-32"),
    ],
)
def test_without_a_mark_the_high_byte_is_first(session, text, encoding):
    result = session.run(tf.strings.unicode_transcode([text], encoding, "UTF-8"))
    assert result.tolist() == ["a€".encode()]


def test_what_stands_for_no_character_is_a_character(session):
    with pytest.raises(
        tf.errors.InvalidArgumentError, match="replacement_char out of unicode codepoint range"
    ):
        session.run(tf.strings.unicode_decode("x", "UTF-8", replacement_char=11141111))


def test_allowed_strings_are_told_in_the_order_of_the_op():
    with pytest.raises(ValueError, match='not in: "strict", "replace", "ignore"'):
        tf.strings.unicode_transcode("x", "UTF-8", "UTF-8", errors="invalid")


@pytest.mark.parametrize("splits", [[0, 8], [-1, 6], [0, 3, 2]])
def test_rows_of_ngrams_lie_within_the_data(session, splits):
    grams = tf.raw_ops.StringNGrams(
        data=list("abcdef"),
        data_splits=np.array(splits),
        separator="",
        ngram_widths=[2],
        left_pad="",
        right_pad="",
        pad_width=0,
        preserve_short_sequences=False,
    )
    with pytest.raises(tf.errors.InvalidArgumentError, match="Invalid split value"):
        session.run(grams)

"""Strings: hashed, spelled, matched, taken apart. What TensorFlow gives is in the numbers here."""

import numpy as np
import pytest

import tensorfleet as tf
from tensorfleet.ops import hashing


def test_fingerprints_are_farmhash():
    found = hashing.fingerprint64([b"", b"a", b"hello", b"x" * 17, b"y" * 33, b"q" * 1000]).tolist()
    assert found[0] == 0x9AE16A3B2F90404F
    assert found[1] == 12917804110809363939
    assert len(set(found)) == 6


def test_siphash_is_the_published_one():
    """The test vector of the SipHash paper."""
    key = (0x0706050403020100, 0x0F0E0D0C0B0A0908)
    assert hashing.siphash64([bytes(range(15))], key).tolist() == [0xA129CA6149BE45E5]


def test_hashing_keeps_the_shape(session):
    words = tf.constant([[b"a", b"b"], [b"a", b"c"]])
    found = session.run(tf.string_to_hash_bucket_fast(words, 1000))
    assert found.shape == (2, 2) and found.dtype == np.int64 and found[0, 0] == found[1, 0]
    assert (found < 1000).all()


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

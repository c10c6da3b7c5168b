"""Patterns: RE2's, in a time that grows linearly with the text."""

import subprocess
import sys
import textwrap

import numpy as np
import pytest

import tensorfleet as tf
from tensorfleet.ops.string import regex

_LIMIT = 60  # seconds; backtracking would take years


def run_apart(program):
    """What a program prints. A pattern that never ends cannot be interrupted in this process."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, timeout=_LIMIT
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|a)*$", "(a|aa)+$", "(.*)*x", "(a*)*(a*)*c"])
def test_no_pattern_takes_exponential_time(pattern):
    printed = run_apart(f"""
        import tensorfleet as tf
        texts = [b"a" * 40 + b"b"] * 20
        with tf.Session() as sess:
            print(sess.run(tf.strings.regex_full_match(texts[:1], {pattern!r}))[0])
            print(sess.run(tf.strings.regex_full_match(texts, {pattern!r})).any())
            print(len(sess.run(tf.regex_replace(texts, {pattern!r}, "-"))))
    """)
    assert printed == ["False", "False", "20"]


def test_numbers_of_many_digits_are_refused_in_linear_time():
    printed = run_apart("""
        import tensorfleet as tf
        with tf.Session() as sess:
            for text in (b"1" * 300_000 + b"x", b"0x" + b"f" * 300_000 + b"g"):
                try:
                    sess.run(tf.string_to_number([text]))
                except tf.errors.InvalidArgumentError:
                    print("refused")
    """)
    assert printed == ["refused", "refused"]


def test_a_pattern_that_would_take_too_much_memory_is_refused(session):
    with pytest.raises(tf.errors.InvalidArgumentError, match="pattern too large - compile failed"):
        session.run(tf.strings.regex_full_match([b"a"], r"((\pL{30}){30}){1}"))


def test_a_pattern_that_is_not_text_is_refused(session):
    with pytest.raises(tf.errors.InvalidArgumentError, match="invalid UTF-8"):
        session.run(tf.strings.regex_full_match([b"a"], b"\xff"))


TEXTS = [b"", b"a", b"ab", b"ba a", "日本é a".encode(), b"\xff a\xfe", b"a\0b", b"", b"aaa bbb", b"A1_"]
PATTERNS = [
    b"a",
    b"a*",
    b"^a|b$",
    rb"\Aa",
    rb"a\z",
    b"[^a]+",
    rb"\b",
    b"(?m)^a$",
    b"(?s).",
    rb"\Qa",
    b"(a)(b)?",
    b"",
]


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("more", [[], [b"a\nb", b"\n"]], ids=["one line each", "some of several lines"])
def test_many_strings_are_matched_as_each_is_alone(pattern, more):
    texts = [np.array([t], object) for t in TEXTS + more]
    many = np.array(TEXTS + more, object)
    alone = [regex._matches(t, pattern)[0] for t in texts]
    assert regex._matches(many, pattern).tolist() == alone
    for rewrite in (b"-", rb"<\0>", b"\n", b""):
        alone = [regex._replaced(t, pattern, rewrite, True)[0] for t in texts]
        assert np.asarray(regex._replaced(many, pattern, rewrite, True)).tolist() == alone

"""Many strings in base64 and back: the same as one by one."""

import base64

import numpy as np
import pytest

import tensorfleet as tf
from tensorfleet.base import errors

TEXTS = [bytes((7 * n + i) % 256 for i in range(n % 90)) for n in range(700)]


def run(op, *args, **options):
    with tf.Graph().as_default(), tf.Session() as sess:
        return sess.run(op(tf.constant(np.array([*args, None], object)[:-1]), **options)).tolist()


@pytest.mark.parametrize("pad", [True, False])
def test_many_strings_are_encoded_as_python_does(pad):
    wanted = [base64.urlsafe_b64encode(t) for t in TEXTS]
    assert run(tf.encode_base64, *TEXTS, pad=pad) == [w if pad else w.rstrip(b"=") for w in wanted]


@pytest.mark.parametrize("pad", [True, False])
def test_many_strings_are_decoded_again(pad):
    written = [base64.urlsafe_b64encode(t) for t in TEXTS]
    assert run(tf.decode_base64, *(w if pad else w.rstrip(b"=") for w in written)) == TEXTS


@pytest.mark.parametrize("wrong", [b"abc+", b"ab c", b"abcde", b"=abc", b"\xffabc"])
def test_one_wrong_string_among_many_is_refused(wrong):
    with pytest.raises(errors.InvalidArgumentError, match="base64|Base64"):
        run(tf.decode_base64, *[b"YWJj"] * 500, wrong)

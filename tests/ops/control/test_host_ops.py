"""Python functions and printing inside a graph."""

import gc
import re
import sys
import threading
import weakref

import numpy as np
import pytest

import tensorfleet as tf
from tests.support.waiting import in_background


def test_a_function_gets_arrays_and_gives_arrays(session):
    y = tf.py_func(lambda x: x + 1, [tf.constant([1.0, 2.0])], tf.float32)
    assert y.shape.rank is None and y.op.type == "PyFunc"
    np.testing.assert_array_equal(session.run(y * 2), [4, 6])


def test_a_function_may_change_the_arrays_it_is_given(session):
    def change(x):
        x += 1
        return x

    v = tf.Variable(np.zeros(5, "f"))
    c = tf.constant(np.zeros(5, "f"))
    session.run(v.initializer)
    changed = [tf.py_func(change, [t], tf.float32) for t in (v, c, tf.identity(v), v * 1.0)]
    for _ in range(2):
        for item in session.run(changed):
            assert item.tolist() == [1.0] * 5
    assert not session.run(v).any() and not session.run(c).any()


def test_scalars_and_strings(session):
    seen = []

    def f(number, text, texts):
        seen.extend([type(number), type(text), texts.dtype])
        return number, text + b"!", ["ä", "b"][0], texts

    out = tf.py_func(
        f, [1.5, "abc", ["x", "y"]], [tf.float32, tf.string, tf.string, tf.string], stateful=False
    )
    got = session.run(out)
    assert seen == [np.float32, bytes, np.dtype(object)]
    assert got[1] == b"abc!" and got[2] == "ä".encode() and got[3].tolist() == [b"x", b"y"]
    assert out[0].op.type == "PyFuncStateless"


@pytest.mark.parametrize(
    "raised, seen",
    [
        (ValueError, tf.errors.InvalidArgumentError),
        (TypeError, tf.errors.InvalidArgumentError),
        (StopIteration, tf.errors.OutOfRangeError),
        (NotImplementedError, tf.errors.UnimplementedError),
        (KeyError, tf.errors.UnknownError),
    ],
)
def test_what_a_function_raises_is_shown(session, raised, seen):
    def broken(x):
        raise raised("no luck")

    with pytest.raises(seen, match=f"{raised.__name__}: .*no luck") as caught:
        session.run(tf.py_func(broken, [1.0], tf.float32))
    assert "in broken" in str(caught.value)


def test_results_of_another_type_or_number_are_refused(session):
    with pytest.raises(
        tf.errors.InvalidArgumentError, match="0-th value returned by pyfunc_.* is double, but expects float"
    ):
        session.run(tf.py_func(lambda: np.float64(1), [], tf.float32))
    with pytest.raises(tf.errors.InvalidArgumentError, match="returns 2 values, but expects to see 1 values"):
        session.run(tf.py_func(lambda: (1, 2), [], [tf.int64]))


def test_a_function_with_no_results_is_an_operation(session):
    calls = []
    op = tf.py_func(calls.append, [7], [])
    session.run(op)
    assert calls == [7]


def test_a_function_lives_as_long_as_its_graph():
    class Callable:
        def __call__(self):
            return np.float32(1)

    f = Callable()
    gone = weakref.ref(f)
    with tf.Graph().as_default():
        y = tf.py_func(f, [], tf.float32)
        del f
        gc.collect()
        assert tf.Session().run(y) == 1
    del y
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize(
    "value, summarize, text",
    [
        ([1, 2, 3, 4], None, "[1 2 3...]"),
        ([[1, 2], [3, 4]], 10, "[[1 2][3 4]]"),
        ([[1, 2], [3, 4]], 3, "[[1 2][3...]...]"),
        ([1 / 3, 0.1, 1e10, 1e-7, float("nan")], -1, "[0.333333343 0.1 1e+10 1e-07 nan]"),
        ([True, False], None, "[1 0]"),
        (5, None, "[5]"),
        ("x", None, "[x]"),
        (np.zeros([0, 3], np.float32), None, "[]"),
    ],
)
def test_print_writes_values_as_tensorflow_does(session, capsys, value, summarize, text):
    y = tf.Print(tf.constant(2.0), [tf.constant(value)], "value: ", summarize=summarize)
    assert session.run(y) == 2
    assert capsys.readouterr().err == f"value: {text}\n"


def test_print_stops_after_first_n(session, capsys):
    x = tf.constant(1.0)
    y = tf.Print(x, [x], "now", first_n=2)
    for _ in range(4):
        session.run(y)
    assert capsys.readouterr().err == "now[1]\n" * 2
    assert session.run(tf.gradients(y, x)[0]) == 1


def test_tf_print_formats_tensors_between_words(session, capsys):
    op = tf.print("loss:", tf.constant(0.5), {"a": tf.constant([1, 2])}, output_stream=sys.stdout, sep="|")
    session.run(op)
    assert capsys.readouterr().out == "loss:|0.5|{'a': [1 2]}\n"
    session.run(tf.print(tf.range(10), output_stream=sys.stdout))
    assert capsys.readouterr().out == "[0 1 2 ... 7 8 9]\n"


def test_a_python_function_that_does_not_return_is_left_behind_when_its_session_is_closed():
    never, began = threading.Event(), threading.Event()

    def function(v):
        began.set()
        never.wait(600)
        return v

    with tf.Graph().as_default():
        q = tf.FIFOQueue(1, tf.float32)
        both = [tf.py_func(function, [tf.constant(1.0)], tf.float32), q.dequeue()]
        sess = tf.Session(config=tf.ConfigProto(operation_timeout_in_ms=500_000))
        running = in_background(sess.run, both)
        assert began.wait(60)
        sess.close()
        with pytest.raises(tf.errors.OpError):
            running.result(60)
    never.set()


def test_a_generator_that_does_not_return_is_left_behind_at_the_deadline():
    never = threading.Event()

    def numbers():
        never.wait(600)
        yield 1

    with tf.Graph().as_default():
        number = tf.data.Dataset.from_generator(numbers, tf.int64).make_one_shot_iterator().get_next()
        with tf.Session() as sess:
            with pytest.raises(tf.errors.DeadlineExceededError, match="has not returned in time"):
                sess.run(number, options=tf.RunOptions(timeout_in_ms=200))
    never.set()


def test_a_python_function_that_does_not_return_is_left_behind_at_the_deadline():
    never = threading.Event()
    with tf.Graph().as_default():
        x = tf.constant(1.0)
        waits = tf.py_func(lambda v: never.wait(600) and v, [x], tf.float32)
        quick = tf.py_func(lambda v: v + np.float32(1.0), [x], tf.float32)
        fails = tf.py_func(lambda v: [][1], [x], tf.float32)
        config = tf.ConfigProto(operation_timeout_in_ms=60_000)
        with tf.Session(config=config) as sess:
            assert sess.run(quick) == 2.0
            with pytest.raises(tf.errors.UnknownError, match="IndexError"):
                sess.run(fails)
            with pytest.raises(tf.errors.DeadlineExceededError, match="has not returned in time"):
                sess.run(waits, options=tf.RunOptions(timeout_in_ms=200))
    never.set()


def test_py_func_encodes_text_in_arrays_of_objects_and_refuses_other_objects(session):
    (mixed,) = tf.py_func(lambda: np.array([b"a", "\u00e9"], object), [], [tf.string])
    assert session.run(mixed).tolist() == [b"a", "\u00e9".encode()]
    for bad, message in (
        (lambda: {"a": 1}, "Unsupported object type dict"),
        (lambda: np.zeros(1, [("a", np.float32)]), "Unsupported numpy data type"),
    ):
        (result,) = tf.py_func(bad, [], [tf.int64])
        with pytest.raises(tf.errors.InternalError, match=message):
            session.run(result)
    assert tf.py_func(lambda x: None, [1], [], stateful=False) == []


def test_text_of_many_axes_is_set_as_tensorflow_does(session):
    cube = np.arange(8).reshape(2, 1, 2, 2)
    assert session.run(tf.strings.format("{}", [cube])).decode() == (
        "[[[[0 1]\n   [2 3]]]\n\n\n [[[4 5]\n   [6 7]]]]"
    )


@pytest.mark.parametrize(
    ("stream", "letter"), [(tf.logging.info, "I"), (tf.logging.WARN, "W"), (tf.logging.error, "E")]
)
def test_printing_to_the_log(session, capfd, stream, letter):
    session.run(tf.print(tf.range(3), output_stream=stream))
    assert re.search(rf": {letter} print\] \[0 1 2\]\n", capfd.readouterr().err)

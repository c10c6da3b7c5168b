"""AutoGraph: the same Python with tensors as with numbers."""

import functools
import warnings

import numpy as np
import pytest

import tensorfleet as tf
from tests.support.sessions import run


def absolute(x):
    if x < 0:
        below = -x
        y = below
    else:
        y = x
    return y


def early(x):
    if x > 10:
        return x
    if x > 5:
        return x * 10
    return -x


def odd_sum(n):
    total = 0
    i = 0
    while i < n:
        i += 1
        if i % 2 < 1:
            continue
        if i > 7:
            break
        total += i
    return total


def nested(n):
    total = 0
    for i in range(n):
        for j in range(i):
            if j > 3 or i < 2:
                break
            total += i * j
        else:
            total += 100
    return total


def between(x):
    inside = (x > 0 and not x > 9) or x < -100
    return 1 if inside else 0


def helped(x):
    def twice(v):
        if v > 3:
            return v * 2
        return v

    partly = functools.partial(helper, offset=1)
    return twice(x) + partly(x)


def helper(v, offset=0):
    while v > 4:
        v -= 3
    return v + offset


def swapped(n):
    a, b = 1, 1
    for _ in range(n):
        a, b = b, a + b
    return a


def with_try(x):
    try:
        if x > 2:
            y = x + 1
        else:
            y = x
    finally:
        y = y * 2
    return y


FUNCTIONS = [absolute, early, odd_sum, nested, between, helped, swapped, with_try]


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("x", [-3, 0, 1, 4, 6, 8, 12])
def test_a_tensor_gives_what_a_number_gives(function, x):
    converted = tf.autograph.to_graph(function)
    assert run(converted(tf.constant(x))) == function(x)
    assert converted(x) == function(x)  # Python stays Python


def test_rows_of_a_tensor_and_a_range_of_tensors():
    def total(rows):
        result = tf.zeros([2])
        for row in rows:
            result += row
        for i in tf.range(3, 0, -1):
            result += tf.cast(i, tf.float32)
        return result

    rows = np.array([[1, 2], [3, 4], [5, 6]], np.float32)
    unknown = tf.placeholder_with_default(rows, [None, 2])
    np.testing.assert_array_equal(run(tf.autograph.to_graph(total)(unknown)), rows.sum(0) + 6)


def test_a_loop_over_a_dataset_ends_where_it_says():
    def total(dataset):
        result = tf.constant(0, tf.int64)
        for x in dataset:
            if x > 3:
                break
            result += x
        return result

    assert run(tf.autograph.to_graph(total)(tf.data.Dataset.range(10))) == 6


def test_functions_of_datasets_are_converted():
    dataset = tf.data.Dataset.range(5).map(lambda x: x * 10 if x > 2 else -x)
    dataset = dataset.filter(lambda x: x > 20 or x < 0)
    value = tf.data.make_one_shot_iterator(dataset).get_next()
    with tf.Session() as sess:
        assert [sess.run(value) for _ in range(4)] == [-1, -2, 30, 40]


def test_attributes_are_variables_too():
    class Counter:
        def __init__(self):
            self.count = tf.constant(0)

        def add(self, x):
            if x > 0:
                self.count = self.count + x
            return self.count

    counter = Counter()
    assert run(tf.autograph.to_graph(counter.add)(tf.constant(5))) == 5
    assert run(counter.count) == 5


def test_elements_of_containers_are_variables_too():
    def chosen(x):
        held = {"a": x, "b": x + 1}
        row = [x, x]
        if x > 0:
            held["a"] = held["b"] * 10
            row[1] = x * 100
        return held["a"], row[1]

    converted = tf.autograph.to_graph(chosen)
    assert run(converted(tf.constant(1))) == chosen(1) and run(converted(tf.constant(-1))) == chosen(-1)


def test_pythons_own_functions_take_tensors():
    def sizes(x):
        return len(x), int(x[0]), float(len(x)), abs(x[1])

    result = run(tf.autograph.to_graph(sizes)(tf.placeholder_with_default([1.5, -2.5], [None])))
    assert result == (2, 1, 2.0, 2.5)


def test_printing_and_asserting_happen_with_the_step(capfd):
    def told(x):
        print("value", x, str, x.dtype)
        assert x > 0, "not positive"
        return x

    converted = tf.function(told)
    x = tf.placeholder(tf.int32, [])
    y = converted(x)
    assert "value" not in capfd.readouterr().out
    with tf.Session() as sess:
        assert sess.run(y, {x: 3}) == 3
        assert "value 3 <class 'str'> <dtype: 'int32'>" in capfd.readouterr().out
        with pytest.raises(tf.errors.InvalidArgumentError, match="not positive"):
            sess.run(y, {x: -3})


ERRORS = {
    "one branch sets it": (
        "if x > 0:\n  y = 1\n return y",
        ValueError,
        "must also be initialized in the else branch",
    ),
    "one branch returns": (
        "if x > 0:\n  return 1",
        ValueError,
        "A value must also be returned from the else branch",
    ),
    "two types": (
        "if x > 0:\n  y = 1\n else:\n  y = 1.5\n return y",
        TypeError,
        '"y" has dtype int32 in the TRUE branch, but dtype=float32 in the FALSE branch',
    ),
    "two structures": (
        "if x > 0:\n  y = (1, 2)\n else:\n  y = 1\n return y",
        TypeError,
        '"y" does not have the same nested structure in the TRUE and FALSE branches',
    ),
    "set in a loop": (
        "while x > 0:\n  y = x\n  x -= 1\n return y",
        ValueError,
        r"must be defined before the loop: \('y',\)",
    ),
    "returned in a loop": (
        "while x > 0:\n  return x\n return 0",
        ValueError,
        "return statements are not supported within a TensorFlow loop",
    ),
    "another type": (
        "y = 0\n while x > 0:\n  y = tf.cast(y, tf.float32)\n  x -= 1\n return y",
        TypeError,
        '"y" has dtype int32 before the loop, but dtype float32 after one iteration',
    ),
    "another shape": (
        "y = tf.zeros([1])\n while x > 0:\n  y = tf.concat([y, y], 0)\n  x -= 1\n return y",
        ValueError,
        r'"y" has shape \(1,\) before the loop, but shape \(2,\) after one iteration',
    ),
}


@pytest.mark.parametrize(("body", "kind", "phrase"), ERRORS.values(), ids=ERRORS.keys())
def test_what_a_graph_cannot_have_is_told(tmp_path, body, kind, phrase):
    path = tmp_path / "program.py"
    path.write_text(f"def f(x):\n {body}\n")
    names = {"tf": tf, "__name__": "program"}
    exec(compile(path.read_text(), str(path), "exec"), names)
    with pytest.raises(kind, match=phrase):
        tf.autograph.to_graph(names["f"])(tf.constant(1))


def test_old_spellings_in_a_source_are_not_warned_of_again(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(
        "def f(x):\n if x > 0:\n  return tf.strings.regex_replace('a1', '\\d', 'x')\n return 'y'\n"
    )
    names = {"tf": tf, "__name__": "program"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        code = compile(path.read_text(), str(path), "exec")
    exec(code, names)
    assert run(tf.autograph.to_graph(names["f"])(tf.constant(1))) == b"ax"


def test_what_is_not_to_be_converted_is_not():
    @tf.autograph.experimental.do_not_convert
    def plain(x):
        return 1 if x > 0 else 2

    with pytest.raises(TypeError, match="AutoGraph is disabled in this function"):
        tf.function(lambda x: plain(x))(tf.constant(1))
    with pytest.raises(TypeError, match="AutoGraph is disabled in this function"):
        tf.function(absolute, autograph=False)(tf.constant(1))


def test_the_source_of_a_converted_function():
    text = tf.autograph.to_code(absolute)
    assert text.startswith("def absolute(x):") and "ag__.if_stmt(" in text
    compile(text, "converted", "exec")


def test_errors_point_at_the_lines_of_the_program():
    def fails(x):
        if x > 0:
            y = x
        else:
            y = undefined_name  # noqa: F821
        return y

    with pytest.raises(NameError, match="undefined_name") as caught:
        tf.autograph.to_graph(fails)(tf.constant(1))
    last = caught.traceback[-1]
    assert str(last.path) == __file__ and "undefined_name" in str(last.statement)


def test_a_generator_cannot_be_converted():
    def numbers():
        yield 1

    with pytest.raises(Exception, match="generator"):
        tf.autograph.to_graph(numbers)


def test_tensors_are_compared_by_their_elements():
    @tf.function
    def steps_to_one(n):
        steps = 0
        while n != 1:
            n = n // 2 if n % 2 == 0 else 3 * n + 1
            steps += 1
        return steps

    n = tf.placeholder(tf.int32, [])
    with tf.Session() as session:
        assert session.run(steps_to_one(n), {n: 27}) == 111

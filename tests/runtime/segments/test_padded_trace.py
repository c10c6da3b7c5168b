"""Training with another length in each step: few programs, and the numbers that numpy computes."""

import numpy as np
import pytest

import tensorfleet as tf
from tensorfleet.runtime.segments import compiled
from tensorfleet.runtime.segments.padded_sizes import rounded

LENGTHS = [
    11,
    14,
    9,
    19,
    12,
    23,
    10,
    17,
    21,
    13,
    16,
    25,
    30,
    27,
    22,
    26,
    15,
    18,
    20,
    24,
    28,
    29,
    11,
    13,
    17,
    8,
]


def model(weighted):
    """A layer over words of sentences, a table of logits, and the mean loss."""
    words = tf.placeholder(tf.int32, [None, 3], name="words")
    wanted = tf.placeholder(tf.int32, [None, 3], name="wanted")
    vectors = tf.one_hot(words, 7)
    w = tf.get_variable("w", initializer=np.linspace(-0.5, 0.5, 56, dtype=np.float32).reshape(7, 8))
    v = tf.get_variable("v", initializer=np.linspace(0.4, -0.5, 56, dtype=np.float32).reshape(8, 7))
    hidden = tf.tanh(tf.matmul(tf.reshape(vectors, [-1, 7]), w))
    logits = tf.reshape(tf.matmul(hidden, v), [-1, 3, 7])
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=wanted, logits=logits)
    loss = weighted(losses)
    train = tf.train.AdamOptimizer(0.01).minimize(loss)
    return words, wanted, loss, logits, train


def fed(words, wanted, length):
    random = np.random.RandomState(length)
    return {words: random.randint(0, 7, (length, 3)), wanted: random.randint(0, 7, (length, 3))}


def trained(weighted=tf.reduce_mean, lengths=LENGTHS):
    """The results of all steps, and the program."""
    with tf.Graph().as_default(), tf.Session() as session:
        words, wanted, loss, logits, train = model(weighted)
        session.run(tf.global_variables_initializer())
        fetches = [train, loss, logits]
        results = [session.run(fetches, fed(words, wanted, n))[1:] for n in lengths]
        program = session._prepare(fetches, {words: None, wanted: None}).program
    return results, program


def padded_programs(program):
    made = [p for item in program.items if hasattr(item, "compiler") for p in item.compiler.programs.values()]
    return [p for p in made if p is not None and p.padding is not None]


@pytest.fixture
def in_numpy(monkeypatch):
    def use():
        monkeypatch.setattr(compiled.Compiler, "wanted", lambda self: False)

    return use


def test_padded_programs_compute_what_numpy_does(always_compile, in_numpy):
    padded, program = trained()
    assert padded_programs(program)
    in_numpy()
    plain, _ = trained()
    for (loss, logits), (right, rows), length in zip(padded, plain, LENGTHS, strict=True):
        assert logits.shape == (length, 3, 7)
        assert logits.flags.writeable
        np.testing.assert_allclose(loss, right, rtol=1e-5)
        np.testing.assert_allclose(logits, rows, rtol=1e-4, atol=1e-5)


def test_few_programs_serve_all_lengths(always_compile):
    _, program = trained(lengths=LENGTHS * 2)
    assert program._divided is None
    assert len(padded_programs(program)) == len({rounded(n) for n in LENGTHS if n > 8})


def test_a_check_that_fails_is_explained_by_numpy(always_compile):
    with tf.Graph().as_default(), tf.Session() as session:
        words, wanted, loss, _, train = model(tf.reduce_mean)
        session.run(tf.global_variables_initializer())
        for n in LENGTHS:
            session.run([train, loss], fed(words, wanted, n))
        assert padded_programs(session._prepare([train, loss], {words: None, wanted: None}).program)
        wrong = fed(words, wanted, 18)
        wrong[wanted][17, 2] = 7
        with pytest.raises(tf.errors.InvalidArgumentError, match="label"):
            session.run([train, loss], wrong)


@pytest.mark.parametrize(
    "number",
    [
        lambda length: tf.floormod(length, 2),
        lambda length: tf.equal(length, 18),
        lambda length: tf.gather(np.arange(100) % 3, length),
        lambda length: length * length,
    ],
)
def test_numbers_that_two_lengths_do_not_tell_are_not_padded(number, always_compile, in_numpy):
    def weighted(losses):
        return tf.reduce_mean(losses) * (1.0 + tf.cast(number(tf.shape(losses)[0]), tf.float32))

    made, program = trained(weighted)
    assert not padded_programs(program)
    in_numpy()
    plain, _ = trained(weighted)
    np.testing.assert_allclose([loss for loss, _ in made], [loss for loss, _ in plain], rtol=1e-5)


def test_random_numbers_that_depend_on_the_length_are_not_padded(always_compile):
    def noisy(losses):
        return tf.reduce_mean(losses * tf.random_uniform(tf.shape(losses), seed=3))

    _, program = trained(noisy)
    assert not padded_programs(program)


def test_training_gives_the_same_numbers_every_time(always_compile):
    first, _ = trained()
    second, _ = trained()
    assert [float(loss) for loss, _ in first] == [float(loss) for loss, _ in second]


def test_lengths_that_come_back_have_programs_of_their_own(always_compile):
    _, program = trained(lengths=[10, 20, 30] * 6)
    assert not padded_programs(program)

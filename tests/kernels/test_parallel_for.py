"""Work divided among threads: every range once, errors in order, no waiting for one another for ever."""

import os
import subprocess
import sys
import threading

import numpy as np
import pytest

import tensorfleet as tf
from tensorfleet.kernels import parallel_for as side_by_side
from tensorfleet.kernels import rows, string_buffers
from tensorfleet.kernels.parallel_for import in_parts
from tensorfleet.ops.image import boxes as images_boxes
from tensorfleet.ops.image import crop as images_crop
from tensorfleet.ops.math import segments

WAIT = 30


@pytest.fixture
def cores(monkeypatch):
    """How many cores the machine seems to have."""
    return lambda count: monkeypatch.setattr(side_by_side, "core_count", lambda: count)


@pytest.fixture(autouse=True)
def helpers(monkeypatch, cores):
    """Up to three helpers of the test's own, whatever the machine has."""
    cores(4)
    monkeypatch.setattr(side_by_side, "_wanted", {})
    result = side_by_side._Helpers()
    monkeypatch.setattr(side_by_side, "_helpers", result)
    return result


def together(parts):
    """A function that lets parts go on when so many have come."""
    barrier = threading.Barrier(parts)
    return lambda: barrier.wait(WAIT)


def test_ranges_make_up_the_whole_and_run_side_by_side():
    result, meet = [], together(4)

    def work(start, stop):
        meet()
        result.append((start, stop, threading.get_ident()))

    in_parts(work, 10, 2)
    ranges = sorted(result)
    assert [r[:2] for r in ranges] == [(0, 2), (2, 5), (5, 7), (7, 10)]
    assert len({r[2] for r in ranges}) == 4
    assert threading.get_ident() in {r[2] for r in ranges}


@pytest.mark.parametrize(("count", "least", "has"), [(0, 5, 4), (1, 1, 4), (9, 5, 4), (3, 1, 1)])
def test_little_is_done_by_the_caller_alone(count, least, has, helpers, cores):
    cores(has)
    results = []
    in_parts(lambda start, stop: results.append((start, stop, threading.get_ident())), count, least)
    assert results == [(0, count, threading.get_ident())]
    assert not helpers.made


def test_no_range_is_shorter_than_asked():
    results = []
    in_parts(lambda start, stop: results.append(stop - start), 11, 5)
    assert sorted(results) == [5, 6]


def test_the_error_of_the_first_range_is_raised_when_all_have_ended():
    ended, meet = [], together(4)

    def work(start, stop):
        meet()
        ended.append(start)
        if start:
            raise ValueError(f"from {start}")

    with pytest.raises(ValueError, match="^from 1$"):
        in_parts(work, 4, 1)
    assert sorted(ended) == [0, 1, 2, 3]
    results = []
    in_parts(lambda start, stop: results.append(start), 4, 1)  # and the helpers go on helping
    assert sorted(results) == [0, 1, 2, 3]


def test_what_numpy_warns_of_is_the_same_in_all_parts():
    zeros, meet = np.zeros(4), together(4)

    def work(start, stop):
        meet()
        zeros[start:stop] = 1 / zeros[start:stop]

    with np.errstate(divide="ignore"):
        in_parts(work, 4, 1)
    assert np.isinf(zeros).all()
    zeros[:] = 0
    with np.errstate(divide="raise"), pytest.raises(FloatingPointError):
        in_parts(work, 4, 1)


def test_parts_may_be_divided_again():
    table = np.zeros((4, 8), int)

    def row(i):
        def work(start, stop):
            table[i, start:stop] += 1

        in_parts(work, 8, 1)

    in_parts(lambda start, stop: [row(i) for i in range(start, stop)], 4, 1)
    assert (table == 1).all()


def test_many_threads_divide_at_once(helpers):
    counts, start = np.zeros((16, 1000), int), together(16)

    def client(i):
        def work(first, last):
            counts[i, first:last] += 1

        start()
        for _ in range(100):
            in_parts(work, 1000, 10)

    threads = [threading.Thread(target=client, args=(i,)) for i in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WAIT)
    assert (counts == 100).all()
    assert helpers.made <= 3


def test_busy_helpers_are_not_waited_for(cores):
    go, begun = threading.Event(), together(3)
    cores(2)

    def held(start, stop):
        begun()
        go.wait(WAIT)

    other = threading.Thread(target=in_parts, args=(held, 2, 1))
    other.start()
    begun()  # the other thread has one part and the helper the other
    results = []
    in_parts(lambda start, stop: results.append((start, stop)), 2, 1)
    assert results == [(0, 2)]
    go.set()
    other.join(WAIT)
    assert not other.is_alive()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_a_forked_process_makes_helpers_of_its_own():
    program = """
import os, threading
import tensorfleet as tf
from tensorfleet.kernels import parallel_for as side_by_side
def names():
    found, barrier = set(), threading.Barrier(2)
    def work(start, stop):
        barrier.wait(30)
        found.add(threading.current_thread().name)
    side_by_side.in_parts(work, 2, 1)
    return found
side_by_side.core_count = lambda: 2
assert len(names()) == 2
child = os.fork()
if not child:
    os._exit(0 if len(names()) == 2 else 1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)


def test_a_session_says_how_many_threads():
    program = """
import threading
import tensorfleet as tf
import tensorfleet as tf
from tensorfleet.kernels import parallel_for as side_by_side
side_by_side.core_count = lambda: 8
def parts():
    found = []
    side_by_side.in_parts(lambda start, stop: found.append(stop), 100, 1)
    return len(found)
assert parts() == 8
tf.Session(config=tf.ConfigProto(intra_op_parallelism_threads=1)).close()
assert parts() == 1
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)


R = np.random.RandomState(0)
SQUARE = R.rand(160, 16, 16).astype(np.float32)
POSITIVE = SQUARE @ SQUARE.swapaxes(1, 2) + np.eye(16, dtype=np.float32)
ROWS = R.rand(4000, 128).astype(np.float32)
SOME = R.randint(0, 1000, 4000)
GROUPS = np.sort(R.randint(0, 400, 4000))
IMAGES = R.rand(12, 40, 40, 16).astype(np.float32)
PICTURES = R.rand(2, 60, 70, 3).astype(np.float32)
WORDS = np.array([b"word %d" % i for i in R.randint(0, 9000, 40_000)], object)
BOXES = R.rand(2, 900, 1, 4).astype(np.float32)
SCORES = R.rand(2, 900, 20).astype(np.float32)


def changed(make):
    """The rows of a variable and of what belongs to it, after an update."""

    def build():
        table = tf.Variable(np.ones((1000, 128), np.float32))
        with tf.control_dependencies([make(table)]):
            return [tf.identity(v) for v in tf.global_variables()]

    return build


def trained(optimizer):
    return changed(lambda table: optimizer.apply_gradients([(tf.IndexedSlices(ROWS, SOME), table)]))


def found():
    entries = tf.lookup.KeyValueTensorInitializer(
        np.unique(WORDS)[::2], np.arange(len(np.unique(WORDS)[::2]))
    )
    return tf.lookup.StaticHashTable(entries, -1).lookup(tf.constant(WORDS))


def crops():
    x = tf.constant(PICTURES)
    boxes = np.array([[0.1, 0.1, 0.9, 0.8]] * 40, np.float32)
    y = tf.image.crop_and_resize(x, boxes, [0, 1] * 20, [50, 50])
    return tf.gradients(y * y, x)[0]


DIVIDED = {
    "eigenvectors": lambda: tf.self_adjoint_eig(POSITIVE),
    "eigenvalues": lambda: tf.self_adjoint_eigvals(POSITIVE),
    "inverse": lambda: tf.matrix_inverse(POSITIVE),
    "solve": lambda: tf.matrix_solve(POSITIVE, SQUARE),
    "cholesky": lambda: tf.cholesky(POSITIVE),
    "qr": lambda: tf.qr(SQUARE.reshape(4, 40, 16, 16)),
    "svd": lambda: tf.svd(SQUARE),
    "determinant": lambda: tf.matrix_determinant(SQUARE),
    "root": lambda: tf.linalg.sqrtm(POSITIVE),
    "scatter_max": changed(lambda table: tf.scatter_max(table, SOME, ROWS)),
    "scatter_div": changed(lambda table: tf.scatter_div(table, SOME, ROWS + 1)),
    "adagrad": trained(tf.train.AdagradOptimizer(0.1)),
    "ftrl": trained(tf.train.FtrlOptimizer(0.1)),
    "unsorted": lambda: tf.unsorted_segment_max(ROWS, SOME, 1000),
    "highest": lambda: tf.segment_max(ROWS, GROUPS),
    "max_pool": lambda: tf.nn.fractional_max_pool(IMAGES, [1, 1.4, 1.6, 1], seed=1, deterministic=True)[0],
    "avg_pool": lambda: tf.nn.fractional_avg_pool(IMAGES, [1, 1.4, 1.6, 1], seed=1, deterministic=True)[0],
    "crops": crops,
    "fingerprints": lambda: tf.string_to_hash_bucket_fast(WORDS, 1000),
    "strong": lambda: tf.string_to_hash_bucket_strong(WORDS, 1000, [1, 2]),
    "table": found,
    "poisson": lambda: tf.random_poisson([2.0, 30.0], [10_000], seed=1),
    "gamma": lambda: tf.random_gamma([10_000], [0.5, 1.0, 3.0], seed=1),
    "boxes": lambda: tf.image.combined_non_max_suppression(BOXES, SCORES, 30, 100),
}


@pytest.mark.parametrize("name", DIVIDED)
def test_what_is_divided_is_the_same_to_the_last_bit(name, helpers, cores, monkeypatch):
    shares = {
        segments: "_ELEMENTS_PER_THREAD",
        rows: "_PART",
        images_boxes: "_BOXES_PER_THREAD",
        images_crop: "_NUMBERS_PER_THREAD",
        string_buffers: "_PART",
    }
    for module, share in shares.items():
        monkeypatch.setattr(module, share, getattr(module, share) >> 5)  # what would be too little
    results = []
    for count in (4, 1):
        cores(count)
        with tf.Graph().as_default():
            tf.set_random_seed(1)
            wanted = DIVIDED[name]()
            with tf.Session() as session:
                session.run([tf.global_variables_initializer(), tf.tables_initializer()])
                results.append(tf.contrib.framework.nest.flatten(session.run(wanted)))
        assert helpers.made > 0  # it was divided
    for one, other in zip(*results, strict=True):
        np.testing.assert_array_equal(one, other)


def test_an_error_in_one_part_of_a_batch_is_that_of_the_batch():
    singular = SQUARE.copy()
    singular[150] = 0
    with tf.Graph().as_default(), tf.Session() as session:
        for item in (tf.matrix_inverse(singular), tf.matrix_solve(singular, SQUARE)):
            with pytest.raises(tf.errors.InvalidArgumentError, match="not invertible"):
                session.run(item)


def test_without_threads_the_caller_does_all(monkeypatch, helpers):
    def refuse(self):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    results = []
    in_parts(lambda start, stop: results.append((start, stop)), 8, 1)
    assert results == [(0, 8)]
    assert not helpers.made

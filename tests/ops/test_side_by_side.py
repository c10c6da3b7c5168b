"""Work divided among threads: every range once, errors in order, no waiting for one another for ever."""

import os
import subprocess
import sys
import threading

import numpy as np
import pytest

from tensorfleet.ops import side_by_side
from tensorfleet.ops.side_by_side import in_parts

WAIT = 30


@pytest.fixture(autouse=True)
def helpers(monkeypatch):
    """Three helpers of the test's own, whatever the machine has."""
    found = side_by_side._Helpers()
    found._most = 3
    monkeypatch.setattr(side_by_side, "_helpers", found)
    return found


def together(parts):
    """A function that lets parts go on when so many have come."""
    barrier = threading.Barrier(parts)
    return lambda: barrier.wait(WAIT)


def test_ranges_make_up_the_whole_and_run_side_by_side():
    found, meet = [], together(4)

    def work(start, stop):
        meet()
        found.append((start, stop, threading.get_ident()))

    in_parts(work, 10, 2)
    ranges = sorted(found)
    assert [r[:2] for r in ranges] == [(0, 2), (2, 5), (5, 7), (7, 10)]
    assert len({r[2] for r in ranges}) == 4
    assert threading.get_ident() in {r[2] for r in ranges}


@pytest.mark.parametrize(("count", "least"), [(0, 5), (1, 1), (9, 5), (3, 0)])
def test_little_is_done_by_the_caller_alone(count, least, helpers):
    helpers._most = 0 if least == 0 else 3
    found = []
    in_parts(lambda start, stop: found.append((start, stop, threading.get_ident())), count, least)
    assert found == [(0, count, threading.get_ident())]
    assert not helpers._made


def test_no_range_is_shorter_than_asked():
    found = []
    in_parts(lambda start, stop: found.append(stop - start), 11, 5)
    assert sorted(found) == [5, 6]


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
    found = []
    in_parts(lambda start, stop: found.append(start), 4, 1)  # and the helpers go on helping
    assert sorted(found) == [0, 1, 2, 3]


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
    assert helpers._made <= 3


def test_busy_helpers_are_not_waited_for(helpers):
    go, begun = threading.Event(), together(3)
    helpers._most = 1

    def held(start, stop):
        begun()
        go.wait(WAIT)

    other = threading.Thread(target=in_parts, args=(held, 2, 1))
    other.start()
    begun()  # the other thread has one part and the helper the other
    found = []
    in_parts(lambda start, stop: found.append((start, stop)), 2, 1)
    assert found == [(0, 2)]
    go.set()
    other.join(WAIT)
    assert not other.is_alive()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_process_makes_helpers_of_its_own():
    program = """
import os, threading
from tensorfleet.ops import side_by_side
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
from tensorfleet.ops import side_by_side
side_by_side.core_count = lambda: 8
tf.Session(config=tf.ConfigProto(intra_op_parallelism_threads=1)).close()
found = []
side_by_side.in_parts(lambda start, stop: found.append(stop), 100, 1)
assert found == [100]
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)

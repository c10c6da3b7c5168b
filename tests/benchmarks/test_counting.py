"""What is measured as counting is what counts, and all of it can be turned off and on."""

import pytest

import tensorfleet as tf
from tensorfleet.base import counters


@pytest.fixture
def counting(script):
    return script("counting")


class _Work:
    count = seconds = 0
    value = 0

    def step(self, seconds):
        took = seconds
        if self.value >= 0:
            self.count += 1
        else:
            self.seconds += took
        self.value += 3
        return self.value

    def plain(self):
        return self.value


def test_only_what_counts_is_left_out(counting):
    work = _Work()
    assert counting.uncounted(_Work.step)(work, 1.0) == 3
    assert (work.count, work.value) == (0, 3)


def test_a_function_that_counts_nothing_is_refused(counting):
    with pytest.raises(ValueError, match=r"_Work.plain counts nothing"):
        counting.uncounted(_Work.plain)


def test_steps_are_counted_while_it_is_on_only(counting):
    counters.forget()
    switch = counting.Switch()
    x = tf.placeholder(tf.float32, [])
    try:
        with tf.Session() as session:
            for on in (True, False, True):
                switch.turn(on)
                assert [session.run(x + 1.0, {x: float(i)}) for i in range(3)] == [1.0, 2.0, 3.0]
    finally:
        switch.turn(True)
    assert counters.steps.count == 6 and counters.steps.seconds > 0


def test_the_cost_is_the_median_of_the_rounds_with_its_range(counting):
    rounds = [{"off": [2.0, 1.0], "on": [2.0, 1.0 + i / 100]} for i in range(11)]
    middle, low, high = counting.cost_of(rounds, 1)
    assert middle == pytest.approx(0.05) and 0 <= low < middle < high <= 0.1
    assert counting.cost_of(rounds, 0) == (0.0, 0.0, 0.0)

"""Faults at an exact message, step or write of a process."""

import os
import signal
import textwrap

import pytest

import tensorfleet as tf
from tensorfleet.testing import fork_server
from tensorfleet.testing.fault_points import FaultPoints
from tests.support.waiting import until

SECONDS = 60

SAVER = """
    import sys
    import tensorfleet as tf
    from tensorfleet.testing import fault_points

    points, path = sys.argv[1:]
    v = tf.Variable(1.0)
    saver = tf.train.Saver()
    with tf.Session() as sess:
        sess.run(v.initializer)
        fault_points.watch(points)
        saver.save(sess, path, write_meta_graph=False)
"""


@pytest.fixture
def points(tmp_path):
    made = FaultPoints(tmp_path / "points")
    yield made
    made.close()


@pytest.fixture
def save(tmp_path, points):
    """Saves in a process that is watched; gives the process."""
    script = tmp_path / "saver.py"
    script.write_text(textwrap.dedent(SAVER))
    children = []

    def start(name):
        (tmp_path / name).mkdir(exist_ok=True)
        arguments = [points.path, str(tmp_path / name / "model")]
        children.append(
            fork_server.start("saver", script=str(script), arguments=arguments, env=dict(os.environ))
        )
        return children[-1]

    yield start
    for child in children:
        child.kill()
        child.wait(SECONDS)


def test_points_are_counted_without_a_fault(save, points):
    assert save("a").wait(SECONDS) == 0
    assert points.passed > 4
    assert points.last.startswith("renames checkpoint")
    assert not points.is_armed


def test_a_process_killed_at_any_write_of_a_save_leaves_a_whole_checkpoint_or_none(save, points, tmp_path):
    names, nth = [], 1
    while True:
        points.arm(nth)
        code = save(f"save{nth}").wait(SECONDS)
        if points.is_armed:
            break
        assert code == -signal.SIGKILL
        names.append(points.last)
        path = tf.train.latest_checkpoint(str(tmp_path / f"save{nth}"))
        if path is not None:
            assert tf.train.load_variable(path, "Variable") == 1.0
        nth += 1
    assert code == 0
    assert any(name.startswith("writes model.data") for name in names)
    assert any(name.startswith("renames model.index") for name in names)
    assert tf.train.latest_checkpoint(str(tmp_path / "save1")) is None


def test_a_process_stops_at_its_point_and_goes_on(save, points):
    points.arm(2, "stop")
    child = save("a")
    until(lambda: not points.is_armed, "the process stops")
    assert child.poll() is None
    child.send_signal(signal.SIGCONT)
    assert child.wait(SECONDS) == 0


@pytest.mark.parametrize(("nth", "fault"), [(0, "kill"), (1, "burn")])
def test_a_point_or_a_fault_that_does_not_exist_is_refused(points, nth, fault):
    with pytest.raises(
        tf.errors.InvalidArgumentError, match="give a number from 1 on, and one of kill, stop"
    ):
        points.arm(nth, fault)

"""What planning does to the process around it."""

import gc

import pytest

import tensorfleet as tf
from tensorfleet.runtime import engine


@pytest.fixture
def collector():
    """Leaves Python's garbage collector as it was."""
    enabled = gc.isenabled()
    yield
    (gc.enable if enabled else gc.disable)()


@pytest.mark.parametrize("enabled", [True, False])
def test_the_garbage_collector_is_paused_by_a_plan_and_then_as_before(
    collector, session, monkeypatch, enabled
):
    during, frozen = [], gc.get_freeze_count()  # Python 3.12 freezes some objects itself
    whole = engine.make_plan
    monkeypatch.setattr(engine, "make_plan", lambda *args: during.append(gc.isenabled()) or whole(*args))
    monkeypatch.setattr(engine, "_MANY_OPS", 1)
    (gc.enable if enabled else gc.disable)()
    assert session.run(tf.placeholder_with_default(1.0, []) + 1.0) == 2.0
    assert during == [False]
    assert gc.isenabled() == enabled
    assert gc.get_freeze_count() <= frozen


def test_a_plan_that_fails_leaves_the_collector_running(collector, session, monkeypatch):
    def fail(*args):
        raise tf.errors.InternalError(None, None, "no plan")

    monkeypatch.setattr(engine, "make_plan", fail)
    gc.enable()
    with pytest.raises(tf.errors.InternalError, match="no plan"):
        session.run(tf.placeholder_with_default(1.0, []) + 1.0)
    assert gc.isenabled()

"""A worker that a coordinator has started: what its monitored session does is what the strategy says is its part."""

import os
from types import SimpleNamespace

import pytest

import tensorfleet as tf

coordinator = tf.python.distribute.distribute_coordinator
current = tf.python.distribute.distribute_coordinator_context.get_current_worker_context


def worker(cluster=None, task_type=None, task_id=None, **says):
    does = {"experimental_should_init": True, "should_checkpoint": True, "should_save_summary": True, **says}
    strategy = SimpleNamespace(extended=SimpleNamespace(**does))
    return coordinator._WorkerContext(strategy, cluster, task_type, task_id)


@pytest.mark.parametrize("saves", [True, False])
def test_a_worker_saves_where_its_strategy_says_so(tmp_path, saves):
    step = tf.train.get_or_create_global_step()
    count = tf.assign_add(step, 1)
    tf.summary.scalar("step", step)
    with worker(should_checkpoint=saves, should_save_summary=saves) as context:
        assert current() is context
        with tf.train.MonitoredTrainingSession(
            checkpoint_dir=str(tmp_path), save_checkpoint_steps=2, save_summaries_steps=1
        ) as sess:
            for _ in range(3):
                sess.run(count)
    assert current() is None
    assert bool(tf.train.latest_checkpoint(str(tmp_path))) == saves
    assert any("tfevents" in name for name in os.listdir(tmp_path)) == saves
    tf.summary.FileWriterCache.clear()


def test_a_worker_knows_who_leads():
    cluster = {"worker": ["a:1", "b:1"]}
    assert worker().is_chief and worker().master_target == ""
    assert worker(cluster, "worker", 0).is_chief and not worker(cluster, "worker", 1).is_chief
    assert worker(cluster, "worker", 1).master_target == "grpc://b:1"
    assert not worker({"chief": ["c:1"], **cluster}, "worker", 0).is_chief


def test_workers_are_not_nested():
    with worker(), pytest.raises(ValueError, match="You cannot run distribute coordinator"):
        worker().__enter__()


def test_names_are_where_tensorflows_own_modules_have_them():
    from tensorfleet.python.distribute import distribution_strategy_context as inside

    assert inside.get_strategy is tf.distribute.get_strategy
    assert tf.python.distribute.reduce_util.ReduceOp is tf.distribute.ReduceOp
    assert tf.python.distribute.mirrored_strategy.MirroredStrategy is tf.distribute.MirroredStrategy

"""Evaluating checkpoints."""

import pytest

import tensorfleet as tf
from tensorfleet.api.train import evaluation

training = tf.contrib.training


def save(folder, value, step):
    """A checkpoint with one variable and the step."""
    with tf.Graph().as_default(), tf.Session() as session:
        tf.get_variable("v", initializer=value)
        tf.train.get_or_create_global_step()
        session.run(tf.global_variables_initializer())
        return tf.train.Saver().save(session, str(folder / "model"), global_step=step)


def test_the_operations_are_run_so_many_times_and_the_final_ones_once(tmp_path):
    path = save(tmp_path, 3.0, 1)
    v = tf.get_variable("v", initializer=0.0)
    seen = tf.get_variable("seen", initializer=0.0, collections=[tf.GraphKeys.LOCAL_VARIABLES])
    hooks = [training.StopAfterNEvalsHook(5)]
    result = training.evaluate_once(
        path, eval_ops=seen.assign_add(v), final_ops={"sum": tf.identity(seen)}, hooks=hooks
    )
    assert result == {"sum": 15.0}
    assert len(hooks) == 1


def test_an_operation_may_count_steps_too(tmp_path):
    path = save(tmp_path, 3.0, 1)
    tf.get_variable("v", initializer=0.0)
    step = training.get_or_create_eval_step()
    seen = tf.get_variable("seen", initializer=0.0, collections=[tf.GraphKeys.LOCAL_VARIABLES])
    ops = {"more": step.assign_add(1), "seen": seen.assign_add(1.0)}
    result = training.evaluate_once(
        path, eval_ops=ops, final_ops=tf.identity(seen), hooks=[training.StopAfterNEvalsHook(6)]
    )
    assert result == 3.0
    assert training.get_or_create_eval_step() is step


def test_without_operations_only_the_final_ones_are_run(tmp_path):
    path = save(tmp_path, 3.0, 1)
    v = tf.get_variable("v", initializer=0.0)
    assert training.evaluate_once(path, final_ops=v + 1.0) == 4.0


def test_every_new_checkpoint_is_evaluated(tmp_path):
    save(tmp_path, 1.0, 1)
    v = tf.get_variable("v", initializer=0.0)
    tf.summary.scalar("v", v)
    tf.train.get_or_create_global_step()
    seen = []

    def next_one():
        if seen:
            return True
        seen.append(save(tmp_path, 2.0, 2))
        return False

    logs = tmp_path / "logs"
    hooks = [training.SummaryAtEndHook(log_dir=str(logs))]
    result = training.evaluate_repeatedly(
        str(tmp_path),
        final_ops=tf.identity(v),
        eval_interval_secs=0,
        hooks=hooks,
        timeout=0.0,
        timeout_fn=next_one,
    )
    assert result == 2.0 and len(seen) == 1
    tf.summary.FileWriterCache.clear()
    written = [e for f in logs.iterdir() for e in tf.train.summary_iterator(str(f)) if e.HasField("summary")]
    assert len(written) == 2


def test_the_iterator_ends_when_nothing_comes(tmp_path):
    assert list(tf.train.checkpoints_iterator(str(tmp_path), timeout=0.0)) == []
    path = save(tmp_path, 1.0, 1)
    assert list(tf.train.checkpoints_iterator(str(tmp_path), timeout=0.0)) == [path]
    assert evaluation.wait_for_new_checkpoint(str(tmp_path), path, 0.01, timeout=0.02) is None


def test_the_hook_wants_one_place_to_write_to(tmp_path):
    with pytest.raises(ValueError, match="exactly one"):
        training.SummaryAtEndHook()


def test_the_copy_of_the_step_is_made_once_and_only_of_a_step():
    from tensorfleet.python.training import training_util

    assert training_util._get_or_create_global_step_read() is None
    tf.train.create_global_step()
    assert training_util._get_global_step_read() is None
    copy = training_util._get_or_create_global_step_read()
    assert training_util._get_or_create_global_step_read() is copy is training_util._get_global_step_read()


def test_a_given_list_of_checkpoints_gets_the_latest():
    paths = ["model-1"]
    state = tf.train.generate_checkpoint_state_proto("/models", "/models/model-2", paths)
    assert paths == list(state.all_model_checkpoint_paths) == ["model-1", "/models/model-2"]

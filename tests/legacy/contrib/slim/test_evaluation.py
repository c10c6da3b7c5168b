"""Evaluating checkpoints as slim does."""

import pytest

import tensorfleet as tf

slim = tf.contrib.slim


@pytest.fixture
def saved(tmp_path):
    with tf.Graph().as_default(), tf.Session() as session:
        tf.get_variable("v", initializer=3.0)
        tf.train.create_global_step()
        session.run(tf.global_variables_initializer())
        return tf.train.Saver().save(session, str(tmp_path / "model"))


def program():
    v = tf.get_variable("v", initializer=0.0)
    tf.train.create_global_step()
    mean, update = tf.metrics.mean(v + 1.0)
    tf.summary.scalar("mean", mean)
    return mean, update


def test_a_checkpoint_is_evaluated_so_many_times(saved, tmp_path):
    mean, update = program()
    calls = tf.get_local_variable("calls", initializer=0)
    result = slim.evaluation.evaluate_once(
        "",
        saved,
        str(tmp_path / "eval"),
        num_evals=3,
        eval_op=[update, calls.assign_add(1)],
        final_op=[mean, calls],
    )
    assert result == [4.0, 3]
    assert list((tmp_path / "eval").glob("events*"))


def test_variables_may_have_other_names_in_the_checkpoint(saved, tmp_path):
    average = tf.get_variable("average", initializer=0.0)
    step = tf.train.create_global_step()
    result = slim.evaluation.evaluate_once(
        "",
        saved,
        str(tmp_path / "eval"),
        final_op=average,
        summary_op=None,
        variables_to_restore={"v": average, "global_step": step},
    )
    assert result == 3.0
    assert not (tmp_path / "eval").exists()


def test_each_new_checkpoint_is_evaluated(saved, tmp_path):
    mean, update = program()
    result = slim.evaluation.evaluation_loop(
        "",
        str(tmp_path),
        str(tmp_path / "eval"),
        eval_op=update,
        final_op=mean,
        eval_interval_secs=0,
        max_number_of_evaluations=1,
    )
    assert result == 4.0

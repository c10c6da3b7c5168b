"""`tf.contrib.summary`: operations that write summaries to event files themselves."""

import glob

import numpy as np
import pytest
from tensorfleet.contrib import summary

import tensorfleet as tf


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default():
        yield


def events(folder):
    (path,) = glob.glob(f"{folder}/*tfevents*")
    return list(tf.train.summary_iterator(path))[1:]


def tags(folder):
    return [v.tag for e in events(folder) for v in e.summary.value]


def test_summaries_of_every_kind_are_written(tmp_path):
    with (
        summary.create_file_writer(str(tmp_path), max_queue=0).as_default(),
        summary.always_record_summaries(),
    ):
        summary.scalar("number", 2.0, step=7)
        summary.generic("tensor", [1, 2], step=7)
        summary.histogram("values", [1.0, 2.0], family="all", step=7)
        summary.image("picture", np.zeros([1, 2, 2, 1], np.float32), step=7)
        summary.audio("sound", [[0.5]], 8000.0, 1, step=7)
        shown = summary.graph(tf.GraphDef(), step=3)
    with tf.Session() as sess:
        sess.run(summary.summary_writer_initializer_op())
        sess.run(summary.all_summary_ops())
        sess.run(shown)
    result = events(tmp_path)
    assert sorted(tags(tmp_path)) == ["all/all/values", "number", "picture/image/0", "sound/audio", "tensor"]
    assert {e.step for e in result if e.HasField("summary")} == {7}
    assert [e.step for e in result if e.HasField("graph_def")] == [3]
    (number,) = [v for e in result for v in e.summary.value if v.tag == "number"]
    assert number.simple_value == 2.0


def test_summaries_wait_until_there_are_more_than_the_queue_holds(tmp_path):
    writer = summary.create_file_writer(str(tmp_path), max_queue=1, flush_millis=10**8)
    with writer.as_default(), summary.always_record_summaries(), tf.name_scope("scope"):
        summary.scalar("x", 1.0, step=1)
    with tf.Session() as sess:
        sess.run([writer.init(), writer.init()])
        for expected in (0, 2, 2):
            sess.run(summary.all_summary_ops())
            assert len(events(tmp_path)) == expected
        sess.run(summary.flush(writer))
        assert tags(tmp_path) == ["scope/x"] * 3
        sess.run(summary.all_summary_ops())
        sess.run(writer.close())
        assert len(events(tmp_path)) == 4
        with pytest.raises(tf.errors.NotFoundError, match="not open"):
            sess.run(summary.all_summary_ops())


def test_summaries_are_written_at_some_steps_only(tmp_path):
    step = tf.train.get_or_create_global_step()
    more = tf.assign_add(step, 1)
    with tf.Session() as sess, summary.create_file_writer(str(tmp_path), max_queue=0).as_default():
        with summary.record_summaries_every_n_global_steps(3):
            summary.initialize()
            summary.scalar("x", 1.0)
            sess.run(step.initializer)
            for _ in range(7):
                sess.run(summary.all_summary_ops())
                sess.run(more)
    assert [e.step for e in events(tmp_path)] == [0, 3, 6]


def test_a_branch_and_a_loop_write_the_summaries_made_in_them(tmp_path):
    taken = tf.placeholder(tf.bool, [])

    def noted(value):
        summary.scalar("x", 1.0, step=1)
        return value

    with (
        summary.create_file_writer(str(tmp_path), max_queue=0).as_default(),
        summary.always_record_summaries(),
    ):
        chosen = tf.cond(taken, lambda: noted(tf.constant(1)), lambda: tf.constant(0))
        counted = tf.while_loop(lambda i: i < 2, lambda i: noted(i + 1), [0])
    assert summary.all_summary_ops() == []
    with tf.Session() as sess:
        sess.run(summary.summary_writer_initializer_op())
        assert sess.run(chosen, {taken: False}) == 0
        assert events(tmp_path) == []
        assert sess.run(chosen, {taken: True}) == 1
        assert sess.run(counted) == 2
    assert tags(tmp_path) == ["cond/x", "while/x", "while/x"]


def test_nothing_is_written_without_a_writer_or_a_condition(tmp_path):
    assert summary.scalar("x", 1.0, step=1).type == "NoOp"
    nowhere = summary.create_file_writer(None)
    with nowhere.as_default():
        assert [nowhere.init().type, nowhere.flush().type, nowhere.close().type] == ["NoOp"] * 3
    with summary.create_file_writer(str(tmp_path)).as_default(), summary.never_record_summaries():
        assert not summary.should_record_summaries()
        assert summary.scalar("x", 1.0, step=1).op.type == "Const"
    with pytest.raises(RuntimeError, match="as_default"):
        summary.initialize()
    with pytest.raises(TypeError, match="GraphDef"):
        summary.graph("")
    assert summary.eval_dir("model", "small").endswith("model/eval_small")

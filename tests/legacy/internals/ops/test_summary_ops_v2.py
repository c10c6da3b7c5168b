"""`tf.compat.v2.summary`: summaries as tensors, written by the operations themselves."""

import numpy as np
import pytest

import tensorfleet as tf

summary = tf.compat.v2.summary


def written(folder):
    """(step, tag, plugin, value) of everything in the event files of a folder."""
    return [
        (event.step, v.tag, v.metadata.plugin_data.plugin_name, tf.make_ndarray(v.tensor))
        for path in sorted(folder.iterdir())
        for event in tf.train.summary_iterator(str(path))
        for v in event.summary.value
    ]


def run(writer, times=1):
    with tf.Session() as sess:
        sess.run([tf.global_variables_initializer(), writer.init()])
        result = [sess.run(tf.summary.all_v2_summary_ops()) for _ in range(times)]
        sess.run(writer.close())
    return result


def test_numbers_and_texts_have_the_tag_of_their_scope(tmp_path):
    writer = summary.create_file_writer(str(tmp_path))
    with writer.as_default(), tf.name_scope("train"):
        summary.scalar("the loss", 0.5, step=7, description="how wrong")
        summary.text("note", ["a", "b"], step=7)
    assert run(writer) == [[True, True]]
    loss, note = sorted(written(tmp_path), key=lambda row: row[2])
    assert loss == (7, "train/the loss", "scalars", 0.5)
    assert note[:3] == (7, "train/note", "text") and note[3].tolist() == [b"a", b"b"]


@pytest.mark.parametrize(
    ("data", "rows"),
    [
        ([0.0, 1.0, 2.0, 4.0], [[0, 2, 2], [2, 4, 2]]),
        ([3.0, 3.0], [[2.5, 3.5, 2]]),
        ([], np.zeros([0, 3])),
    ],
)
def test_values_are_counted_in_buckets(data, rows, tmp_path):
    writer = summary.create_file_writer(str(tmp_path))
    with writer.as_default():
        summary.histogram("values", tf.constant(data, tf.float32), step=0, buckets=2)
    run(writer)
    [(_, _, kind, value)] = written(tmp_path)
    assert kind == "histograms"
    np.testing.assert_array_equal(value, rows)


def test_pictures_are_a_size_and_some_files(tmp_path):
    writer = summary.create_file_writer(str(tmp_path))
    with writer.as_default():
        summary.image("seen", tf.zeros([5, 3, 4, 1]), step=0, max_outputs=2)
    run(writer)
    [(_, _, kind, value)] = written(tmp_path)
    assert kind == "images" and value[:2].tolist() == [b"4", b"3"] and len(value) == 4
    assert value[2].startswith(b"\x89PNG")


def test_a_condition_and_a_step_hold_for_a_block(tmp_path):
    step = tf.Variable(0, dtype=tf.int64, use_resource=True)
    writer = summary.create_file_writer(str(tmp_path))
    summary.experimental.set_step(step)
    try:
        with writer.as_default(), summary.record_if(lambda: tf.equal(step % 2, 0)):
            with tf.control_dependencies([summary.scalar("x", 1.0)]):
                tf.add_to_collection("advance", step.assign_add(1))
        assert summary.experimental.get_step() is step
    finally:
        summary.experimental.set_step(None)
    with tf.Session() as sess:
        sess.run([tf.global_variables_initializer(), writer.init()])
        for _ in range(4):
            sess.run(tf.get_collection("advance"))
        sess.run(writer.flush())
    assert [row[0] for row in written(tmp_path)] == [0, 2]


def test_nothing_is_written_without_a_writer_and_not_without_a_step(tmp_path):
    with tf.Session() as sess:
        assert not sess.run(summary.scalar("x", 1.0))
        with summary.create_noop_writer().as_default():
            assert not sess.run(summary.scalar("x", 1.0, step=1))
    with summary.create_file_writer(str(tmp_path)).as_default():
        with pytest.raises(ValueError, match="No step set via 'step' argument"):
            summary.scalar("x", 1.0)
    with pytest.raises(ValueError, match="logdir cannot be None"):
        summary.create_file_writer(None)

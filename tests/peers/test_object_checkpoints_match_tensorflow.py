"""Checkpoints of objects written here are read by TensorFlow, and the other way round; warm starts are the same."""

import numpy as np
import pytest

import tensorfleet


@pytest.fixture(params=["ours to theirs", "theirs to ours"])
def pair(request, tensorflow):
    """(the one that writes, the one that reads)"""
    there = (tensorfleet, tensorflow)
    return there if request.param == "ours to theirs" else there[::-1]


def program(tf, scale, resource):
    net = tf.Module("net")
    net.w = tf.get_variable("w", initializer=tf.constant([scale, 2 * scale]), use_resource=resource)
    net.parts = [
        tf.get_variable("a", initializer=3 * scale),
        {"b/c": tf.get_variable("b", initializer=4 * scale)},
    ]
    optimizer = tf.train.AdamOptimizer(0.1)
    train = optimizer.minimize(tf.reduce_sum(net.w) ** 2 + net.parts[0] ** 2)
    checkpoint = tf.train.Checkpoint(net=net, optimizer=optimizer, both=[net.w])
    return net, optimizer, train, checkpoint


def values(tf, net, optimizer, session):
    slots = [optimizer.get_slot(v, n) for n in optimizer.get_slot_names() for v in (net.w, net.parts[0])]
    return session.run([net.w, net.parts[0], net.parts[1]["b/c"], *slots, *optimizer.variables()[:2]])


@pytest.mark.parametrize("resource", [False, True])
def test_objects_cross(pair, tmp_path, resource):
    writer, reader = pair
    with writer.Graph().as_default(), writer.Session() as session:
        net, optimizer, train, checkpoint = program(writer, 1.0, resource)
        session.run(writer.global_variables_initializer())
        session.run(train)
        path = checkpoint.save(str(tmp_path / "ckpt"), session=session)
        expected = values(writer, net, optimizer, session)
    with reader.Graph().as_default(), reader.Session() as session:
        net, optimizer, _, checkpoint = program(reader, 9.0, resource)
        status = checkpoint.restore(reader.train.latest_checkpoint(str(tmp_path)))
        status.assert_consumed()
        status.initialize_or_restore(session)
        for got, wanted in zip(values(reader, net, optimizer, session), expected, strict=True):
            np.testing.assert_array_equal(got, wanted)
        assert session.run(checkpoint.save_counter) == 1
    assert path.endswith("ckpt-1")


def test_both_write_the_same_keys(tensorflow, tmp_path):
    written = []
    for tf in (tensorfleet, tensorflow):
        with tf.Graph().as_default(), tf.Session() as session:
            *_, checkpoint = program(tf, 1.0, True)
            session.run(tf.global_variables_initializer())
            path = checkpoint.save(str(tmp_path / tf.__name__), session=session)
            written.append(tf.train.list_variables(path))
    assert written[0] == written[1]


def test_a_manager_of_one_goes_on_where_the_other_stopped(pair, tmp_path):
    for tf in pair:
        with tf.Graph().as_default(), tf.Session() as session:
            v = tf.get_variable("v", initializer=1.0)
            checkpoint = tf.train.Checkpoint(v=v)
            manager = tf.train.CheckpointManager(checkpoint, str(tmp_path), max_to_keep=3)
            status = checkpoint.restore(manager.latest_checkpoint)
            status.initialize_or_restore(session)
            manager.save()
            manager.save()
            kept = [p.rsplit("-", 1)[1] for p in manager.checkpoints]
    assert kept == ["2", "3", "4"]


def test_warm_starts_with_vocabularies_are_the_same(tensorflow, tmp_path):
    for name, words in (("old", "abcde"), ("new", "ecxay")):
        (tmp_path / name).write_text("".join(f"{w}\n" for w in words))
    table = np.arange(10, dtype=np.float32).reshape(5, 2)
    with tensorflow.Graph().as_default(), tensorflow.Session() as session:
        tensorflow.get_variable("t", initializer=table)
        tensorflow.get_variable("u", initializer=table.T)
        session.run(tensorflow.global_variables_initializer())
        saved = tensorflow.train.Saver().save(session, str(tmp_path / "model"))
    results = []
    for tf in (tensorfleet, tensorflow):
        with tf.Graph().as_default(), tf.Session() as session:
            zeros = tf.zeros_initializer()
            t = tf.get_variable("t", [7, 2], initializer=zeros, partitioner=tf.fixed_size_partitioner(2))
            u = tf.get_variable("u", [2, 5], initializer=zeros)
            files = [str(tmp_path / "new"), 5, 2, str(tmp_path / "old"), 4]
            across = tf.train.VocabInfo(str(tmp_path / "new"), 5, 0, str(tmp_path / "old"), axis=1)
            tf.train.warm_start(saved, None, {"t": tf.train.VocabInfo(*files, None), "u": across})
            session.run(tf.global_variables_initializer())
            results.append(session.run([tf.convert_to_tensor(t), u]))
    for ours, theirs in zip(*results, strict=True):
        np.testing.assert_array_equal(ours, theirs)

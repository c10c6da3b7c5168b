"""Records of LMDB databases."""

import pytest

import tensorfleet as tf


def read_all(paths, many=None):
    with tf.Graph().as_default(), tf.Session() as sess:
        queue = tf.train.string_input_producer(paths, num_epochs=1, shuffle=False)
        reader = tf.LMDBReader()
        result = reader.read(queue) if many is None else reader.read_up_to(queue, many)
        sess.run(tf.local_variables_initializer())
        threads = tf.train.start_queue_runners(sess, coord := tf.train.Coordinator())
        rows = []
        with pytest.raises(tf.errors.OutOfRangeError):
            while True:
                rows.append(sess.run(result))
        coord.request_stop()
        coord.join(threads)
        return rows


def test_keys_and_values_in_the_order_of_the_keys(tmp_path):
    lmdb = pytest.importorskip("lmdb")
    paths = []
    for n in range(2):
        paths.append(str(tmp_path / f"base{n}"))
        with lmdb.open(paths[-1]) as base, base.begin(write=True) as transaction:
            for i in (2, 0, 1):
                transaction.put(b"%d-%d" % (n, i), b"value %d" % i)
    expected = [(b"%d-%d" % (n, i), b"value %d" % i) for n in range(2) for i in range(3)]
    assert [tuple(row) for row in read_all(paths)] == expected
    batches = read_all([f"{paths[0]}/data.mdb"], 2)
    assert [keys.tolist() for keys, _ in batches] == [[b"0-0", b"0-1"], [b"0-2"]]


def test_without_the_package_it_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "lmdb", None)
    with tf.Graph().as_default(), tf.Session() as sess:
        queue = tf.FIFOQueue(1, tf.string)
        sess.run(queue.enqueue(str(tmp_path)))
        with pytest.raises(tf.errors.UnimplementedError, match="pip install lmdb"):
            sess.run(tf.LMDBReader().read(queue))

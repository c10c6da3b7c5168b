"""Values put aside under keys."""

import pytest
from tensorfleet.python.ops.data_flow_ops import MapStagingArea, RecordInput

import tensorfleet as tf
from tests.support.waiting import in_background


def test_an_element_is_taken_by_its_key(session):
    area = MapStagingArea([tf.float32, tf.int32], shapes=[[], [2]], names=["x", "v"])
    key = tf.placeholder(tf.int64, [])
    put = area.put(key, {"x": 1.5, "v": [1, 2]})
    _, taken = area.get(key)
    session.run(put, {key: 3})
    session.run(put, {key: 1})
    assert session.run(area.peek(3))["x"] == 1.5
    assert session.run(area.size()) == 2
    assert session.run(taken, {key: 3})["v"].tolist() == [1, 2]
    assert session.run(area.size()) == 1
    session.run(area.clear())
    assert session.run(area.size()) == 0
    assert taken["v"].shape == [2]


def test_parts_come_one_by_one_and_keys_in_order(session):
    area = MapStagingArea([tf.int32, tf.int32], ordered=True)
    key, values = area.get()
    for k in (7, 2):
        session.run(area.put(k, [10 * k], [0]))
        assert session.run(area.incomplete_size()) == 1
        session.run(area.put(k, [k], [1]))
    assert session.run([key, *values]) == [2, 20, 2]
    first = area.get(indices=[1])
    assert session.run([first[0], *first[1]]) == [7, 7]
    with pytest.raises(tf.errors.InvalidArgumentError, match="has already been removed"):
        session.run(area.get(7, [1])[1])
    assert session.run(area.get(7, [0])[1]) == [70]


def test_a_part_is_put_only_once_and_what_never_fits_is_refused(session):
    area = MapStagingArea([tf.int32, tf.int32], memory_limit=8)
    session.run(area.put(1, [1], [0]))
    with pytest.raises(tf.errors.InvalidArgumentError, match="was already initialized"):
        session.run(area.put(1, [1], [0]))
    with pytest.raises(tf.errors.ResourceExhaustedError, match="memory limit of '8'"):
        session.run(area.put(2, [[1, 2, 3]], [0]))


def test_putting_waits_for_room_and_taking_for_values(session):
    area = MapStagingArea([tf.int32], capacity=1)
    waiting = in_background(session.run, area.get(5)[1])
    session.run(area.put(5, [50], [0]))
    assert waiting.result(60) == [50]
    session.run(area.put(1, [1], [0]))
    with pytest.raises(tf.errors.DeadlineExceededError):
        session.run(area.put(2, [2], [0]), options=tf.RunOptions(timeout_in_ms=50))


def test_arguments_that_do_not_fit():
    named, plain = MapStagingArea([tf.int32], names=["a"]), MapStagingArea([tf.int32])
    with pytest.raises(ValueError, match="do not match names"):
        named.put(1, {"b": 1})
    with pytest.raises(ValueError, match="must enqueue a dictionary"):
        named.put(1, [1], [0])
    with pytest.raises(ValueError, match="Indices must be supplied"):
        plain.put(1, [1])
    with pytest.raises(ValueError, match="doesn't match number of values"):
        plain.put(1, [1], [0, 1])
    with pytest.raises(ValueError, match="not created with names"):
        plain.get(1, ["a"])


def test_each_pass_over_record_files_gives_every_record_once(tmp_path, session):
    for name in "ab":
        with tf.python_io.TFRecordWriter(str(tmp_path / name)) as writer:
            for i in range(6):
                writer.write(f"{name}{i}".encode())
    batches = RecordInput(str(tmp_path / "*"), batch_size=2, buffer_size=4, seed=3, batches=2).get_yield_op()
    expected = {f"{n}{i}".encode() for n in "ab" for i in range(6)}
    for _ in range(2):
        seen = [r for _ in range(3) for batch in session.run(batches) for r in batch]
        assert len(seen) == 12 and set(seen) == expected
    with pytest.raises(tf.errors.NotFoundError):
        session.run(RecordInput(str(tmp_path / "nothing*")).get_yield_op())


def test_what_is_taken_is_where_it_is_asked_for():
    area = MapStagingArea([tf.float32])
    with tf.device("/cpu:0"):
        _, (value,) = area.get(1)
        (seen,) = area.peek(1)
        key, _ = area.get()
    assert {t.device for t in (value, seen, key)} == {"/device:CPU:0"}
    assert area.get()[0].op.name == "MapStagingArea_get_nokey_1"

"""Iterators saved in checkpoints: restored, they give exactly what would have come."""

import types

import numpy as np
import pytest

import tensorfleet as tf
from tests.support.sessions import all_of

Dataset = tf.data.Dataset
experimental = tf.data.experimental


@pytest.fixture(autouse=True)
def files(tmp_path):
    (tmp_path / "a.txt").write_text("".join(f"a{i}\n" for i in range(5)))
    (tmp_path / "b.txt").write_text("".join(f"b{i}\n" for i in range(4)))
    (tmp_path / "c.csv").write_text("1,x\n2,y\n3,z\n")
    with tf.python_io.TFRecordWriter(str(tmp_path / "r.tfrecord")) as writer:
        for i in range(7):
            writer.write(b"record %d" % i)
    return tmp_path


def slow(x):
    return tf.py_func(lambda v: v * 10, [x], tf.int64)


def grouped(d):
    return d.apply(
        experimental.group_by_window(lambda x: x % 2, lambda key, group: group.batch(3), window_size=3)
    )


PIPELINES = {
    "range": lambda at: Dataset.range(7),
    "slices": lambda at: Dataset.from_tensor_slices((np.arange(6.0), ["a", "b", "c", "d", "e", "f"])),
    "batch": lambda at: Dataset.range(9).batch(2),
    "padded": lambda at: Dataset.range(1, 7).map(lambda x: tf.fill([x], x)).padded_batch(2, [-1]),
    "unbatch": lambda at: Dataset.range(9).batch(4).unbatch(),
    "window": lambda at: Dataset.range(9).window(3, shift=2).flat_map(lambda w: w.batch(3)),
    "take": lambda at: Dataset.range(20).skip(3).take(9).shard(2, 1),
    "repeat": lambda at: Dataset.range(3).repeat(3),
    "shuffled positions": lambda at: Dataset.range(9).shuffle(4, seed=3).repeat(2),
    "shuffled": lambda at: Dataset.range(9).map(lambda x: x * x).shuffle(4, seed=3).repeat(3).batch(4),
    "shuffled strings": lambda at: (
        Dataset.from_tensor_slices(list("abcdef")).map(tf.identity).shuffle(3, seed=1)
    ),
    "map": lambda at: Dataset.range(7).map(lambda x: x + 1).filter(lambda x: x % 3 > 0),
    "parallel map": lambda at: Dataset.range(9).map(slow, num_parallel_calls=3),
    "flat map": lambda at: Dataset.range(5).flat_map(lambda x: Dataset.range(x)),
    "interleave": lambda at: Dataset.range(4).interleave(lambda x: Dataset.range(x, x + 3), 2, 2),
    "parallel interleave": lambda at: Dataset.range(4).interleave(
        lambda x: Dataset.range(x, x + 3), 2, 2, num_parallel_calls=2
    ),
    "zip": lambda at: Dataset.zip((Dataset.range(6), Dataset.range(9).map(lambda x: -x))),
    "concatenate": lambda at: Dataset.range(3).concatenate(Dataset.range(10, 14)),
    "choose": lambda at: experimental.choose_from_datasets(
        [Dataset.range(3), Dataset.range(10, 13)],
        Dataset.from_tensor_slices(np.array([1, 0, 0, 1, 1], np.int64)),
    ),
    "scan": lambda at: Dataset.range(6).apply(experimental.scan(np.int64(0), lambda s, x: (s + x, s + x))),
    "groups": lambda at: grouped(Dataset.range(10)),
    "unique": lambda at: Dataset.from_tensor_slices([1, 2, 1, 3, 2, 4]).apply(experimental.unique()),
    "take while": lambda at: Dataset.range(9).apply(experimental.take_while(lambda x: x < 5)),
    "prefetch": lambda at: Dataset.range(9).map(lambda x: x * 2).prefetch(3),
    "lines": lambda at: tf.data.TextLineDataset([f"{at}/a.txt", f"{at}/b.txt"]).batch(2),
    "records": lambda at: tf.data.TFRecordDataset(f"{at}/r.tfrecord").prefetch(2),
    "csv": lambda at: experimental.CsvDataset(f"{at}/c.csv", [tf.int32, tf.string]),
    "cache": lambda at: Dataset.range(4).cache(),
}


def plain(value):
    return tuple(plain(v) for v in value) if isinstance(value, tuple) else np.asarray(value).tolist()


def rest(session, following):
    return [plain(element) for element in all_of(session, following)]


@pytest.mark.parametrize("name", PIPELINES)
def test_a_restored_iterator_goes_on_where_it_was(files, name):
    iterator = PIPELINES[name](files).make_initializable_iterator()
    following = iterator.get_next()
    saver = tf.train.Saver([experimental.make_saveable_from_iterator(iterator)], max_to_keep=None)
    paths, given = [], []
    with tf.Session() as session:
        session.run(iterator.initializer)
        while True:
            paths.append(saver.save(session, str(files / "saved"), len(paths), write_meta_graph=False))
            try:
                given.append(plain(session.run(following)))
            except tf.errors.OutOfRangeError:
                break
        paths.append(saver.save(session, str(files / "saved"), len(paths), write_meta_graph=False))
    assert len(given) > 2
    for count, path in enumerate(paths):
        with tf.Session() as session:
            saver.restore(session, path)
            assert rest(session, following) == given[count:], f"after {count} elements"


def test_iterators_are_saved_among_the_variables(files):
    following = Dataset.range(9).make_one_shot_iterator()
    element, total = following.get_next(), tf.get_variable("total", initializer=np.int64(0))
    tf.add_to_collection(tf.GraphKeys.SAVEABLE_OBJECTS, experimental.make_saveable_from_iterator(following))
    step, saver = total.assign_add(element), tf.train.Saver()
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(step), session.run(step)
        path = saver.save(session, str(files / "model"))
    with tf.Session() as session:
        saver.restore(session, path)
        assert session.run(step) == 0 + 1 + 2
    assert sorted(n for n, _ in tf.train.list_variables(path)) == ["OneShotIterator:0-state", "total"]


def test_an_iterator_that_is_fed_must_be_initialized_before_it_is_restored(files):
    limit = tf.placeholder(tf.int64, [])
    iterator = Dataset.range(limit).make_initializable_iterator()
    following = iterator.get_next()
    saver = tf.train.Saver([experimental.make_saveable_from_iterator(iterator)])
    with tf.Session() as session:
        with pytest.raises(tf.errors.FailedPreconditionError, match="not been initialized"):
            saver.save(session, str(files / "model"))
        session.run(iterator.initializer, {limit: 5})
        session.run(following)
        path = saver.save(session, str(files / "model"))
    with tf.Session() as session:
        with pytest.raises(tf.errors.FailedPreconditionError, match="Run its initializer, then restore"):
            saver.restore(session, path)
        session.run(iterator.initializer, {limit: 5})
        saver.restore(session, path)
        assert rest(session, following) == [1, 2, 3, 4]


def test_the_state_of_another_pipeline_is_refused(files):
    def saver_for(dataset):
        iterator = dataset.make_initializable_iterator()
        iterator.get_next()
        return iterator, tf.train.Saver([experimental.make_saveable_from_iterator(iterator)])

    with tf.Graph().as_default(), tf.Session() as session:
        iterator, saver = saver_for(Dataset.range(9))
        session.run(iterator.initializer)
        path = saver.save(session, str(files / "model"))
    with tf.Graph().as_default(), tf.Session() as session:
        _, saver = saver_for(Dataset.range(9).repeat(2))
        with pytest.raises(tf.errors.InvalidArgumentError, match="another dataset than this one"):
            saver.restore(session, path)


def test_a_generator_cannot_be_saved(files, session):
    iterator = Dataset.from_generator(lambda: iter(range(3)), tf.int64).make_initializable_iterator()
    saver = tf.train.Saver([experimental.make_saveable_from_iterator(iterator)])
    session.run(iterator.initializer)
    with pytest.raises(tf.errors.FailedPreconditionError, match="in a generator cannot be saved"):
        saver.save(session, str(files / "model"))


def test_a_hook_keeps_the_input_beside_the_model(files):
    config = types.SimpleNamespace(
        save_checkpoints_steps=2, save_checkpoints_secs=None, num_worker_replicas=1
    )
    estimator = types.SimpleNamespace(model_dir=str(files / "run"), config=config)

    def train(steps):
        with tf.Graph().as_default():
            tf.train.get_or_create_global_step()
            iterator = Dataset.range(100).shuffle(10, seed=5).make_one_shot_iterator()
            element = iterator.get_next()
            advance = tf.assign_add(tf.train.get_global_step(), 1)
            hook = experimental.CheckpointInputPipelineHook(estimator)
            with tf.train.MonitoredTrainingSession(
                checkpoint_dir=estimator.model_dir, hooks=[hook], save_checkpoint_steps=2
            ) as session:
                return [int(session.run([element, advance])[0]) for _ in range(steps)]

    first, second = train(4), train(3)
    with tf.Graph().as_default(), tf.Session() as session:
        following = Dataset.range(100).shuffle(10, seed=5).make_one_shot_iterator().get_next()
        assert first + second == [int(session.run(following)) for _ in range(7)]


def test_an_iterator_is_saved_under_a_name_of_ones_own(files):
    iterator = Dataset.range(10).make_initializable_iterator()
    element = iterator.get_next()
    kind = tf.python.data.ops.iterator_ops._IteratorSaveable
    saver = tf.train.Saver({"place": kind(iterator._iterator_resource, name="place")})
    with tf.Session() as sess:
        sess.run(iterator.initializer)
        sess.run(element)
        path = saver.save(sess, str(files / "one"))
        sess.run(iterator.initializer)
        saver.restore(sess, path)
        assert sess.run(element) == 1
    assert "place-state" in tf.train.load_checkpoint(path).get_variable_to_shape_map()


def test_the_place_of_an_iterator_is_written_into_a_file_as_a_tensor(files):
    ops = tf.python.ops.gen_dataset_ops
    iterator = Dataset.range(10).make_initializable_iterator()
    element, name = iterator.get_next(), str(files / "place")
    state = tf.io.serialize_tensor(ops.serialize_iterator(iterator._iterator_resource))
    read = tf.io.parse_tensor(tf.io.read_file(name), tf.variant)
    save = tf.io.write_file(name, state)
    restore = ops.deserialize_iterator(iterator._iterator_resource, read)
    with tf.Session() as sess:
        sess.run(iterator.initializer)
        assert [sess.run(element) for _ in range(3)] == [0, 1, 2]
        sess.run(save)
    with tf.Session() as sess:
        sess.run(iterator.initializer)
        sess.run(restore)
        assert sess.run(element) == 3

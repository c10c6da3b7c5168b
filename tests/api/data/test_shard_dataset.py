"""Workers that share an input shard by shard: in one process, on a cluster, and with workers that are killed."""

import re
from collections import Counter
from pathlib import Path

import pytest

import tensorfleet as tf
from tensorfleet.testing.cluster import free_addresses
from tests.support.tasks import Tasks, output, read_until

PROGRAM = Path(__file__).parent / "programs" / "shard_reader.py"


def elements(dataset):
    with tf.Session() as sess:
        return read(sess, dataset)


def read(sess, dataset):
    following = tf.data.make_initializable_iterator(dataset)
    sess.run(following.initializer)
    element, result = following.get_next(), []
    while True:
        try:
            result.append(sess.run(element).tolist())
        except tf.errors.OutOfRangeError:
            return result


def test_a_process_alone_reads_all_shards():
    with tf.Graph().as_default():
        assert sorted(elements(tf.fleet.shard_dataset(tf.data.Dataset.range(10), 3, num_epochs=2))) == sorted(
            [*range(10), *range(10)]
        )


def test_a_function_makes_the_dataset_of_a_shard():
    with tf.Graph().as_default():
        dataset = tf.fleet.shard_dataset(
            lambda shard: tf.data.Dataset.range(10 * shard, 10 * shard + 4).batch(2), 2, num_epochs=1
        )
        assert dataset.output_shapes.as_list() == [None]
        assert elements(dataset) == [[0, 1], [2, 3], [10, 11], [12, 13]]


def test_who_closes_its_session_leaves_the_rest_of_its_shard_to_the_next(serve):
    spec = tf.train.ClusterSpec(free_addresses(ps=1, worker=2))
    _ps, *workers = [serve(spec, job, i) for job, i in (("ps", 0), ("worker", 0), ("worker", 1))]
    got = []
    for i, worker in enumerate(workers):
        with tf.Graph().as_default(), tf.device(f"/job:worker/task:{i}"):
            dataset = tf.fleet.shard_dataset(tf.data.Dataset.range(10), 1, worker.target, num_epochs=1)
            following = tf.data.make_initializable_iterator(dataset)
            element = following.get_next()
            with tf.Session(worker.target) as sess:
                sess.run(following.initializer)
                if i == 0:
                    got += [sess.run(element) for _ in range(4)]
                else:
                    got += read(sess, dataset)
    assert got == list(range(10))


def test_readers_that_disagree_are_told(serve):
    spec = tf.train.ClusterSpec(free_addresses(ps=1, worker=1))
    _ps, worker = serve(spec, "ps", 0), serve(spec, "worker", 0)
    with tf.Graph().as_default(), tf.device("/job:worker/task:0"), tf.Session(worker.target) as sess:
        read(sess, tf.fleet.shard_dataset(tf.data.Dataset.range(4), 2, worker.target, num_epochs=1))
        with pytest.raises(tf.errors.InvalidArgumentError, match="'input' is shared with other numbers"):
            read(sess, tf.fleet.shard_dataset(tf.data.Dataset.range(4), 4, worker.target, num_epochs=1))


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"num_shards": 0}, "num_shards must be a whole number of 1 or more, not 0."),
        ({"num_shards": 2, "num_epochs": 1.5}, "num_epochs must be a whole number of 1 or more, not 1.5."),
        ({"num_shards": 2, "at_death": "stop"}, 'at_death must be "repeat" or "skip", not \'stop\'.'),
    ],
)
def test_bad_arguments_are_refused(arguments, text):
    with tf.Graph().as_default(), pytest.raises(ValueError, match=re.escape(text)):
        tf.fleet.shard_dataset(tf.data.Dataset.range(4), **arguments)


SHARDS, SIZE, EPOCHS = 20, 25, 2


def records(text):
    return [int(number) for number in re.findall(r"^used (\d+)$", text, re.MULTILINE)]


@pytest.mark.slow
@pytest.mark.parametrize("at_death", ["repeat", "skip"])
def test_each_record_is_used_once_an_epoch_but_for_the_shard_of_a_killed_worker(at_death):
    cluster = free_addresses(ps=1, worker=3)
    program = PROGRAM, SHARDS, SIZE, EPOCHS, at_death
    with Tasks() as tasks:
        server = tasks.start(*program, task=(cluster, "ps", 0))
        workers = [tasks.start(*program, task=(cluster, "worker", i)) for i in range(3)]
        before = []
        read_until(workers[2], lambda line: before.append(line) or len(before) > 30)
        workers[2].kill()
        rest, _ = workers[2].communicate()
        killed = records("".join(before) + rest)
        successor = tasks.start(*program, task=(cluster, "worker", 2))
        texts = [output(worker) for worker in (workers[0], workers[1], successor)]
        server.kill()
        said = server.communicate()[0]
    counts = Counter(number for text in texts for number in records(text))
    counts.update(killed)
    wrong = {number for number in range(SHARDS * SIZE) if counts[number] != EPOCHS}
    # Only the records of one shard, which the worker had when it was killed.
    assert len({number // SIZE for number in wrong}) <= 1
    if at_death == "repeat":
        assert all(counts[number] == EPOCHS + 1 for number in wrong)
        assert re.search(
            r"Shard \d+ of 'input' \(epoch \d\) is dealt again: .*worker/task:2 has gone", said
        ), said
    else:
        assert all(counts[number] == EPOCHS - 1 for number in wrong)

"""The input patterns of TensorFlow 1 programs, as people wrote them: readers, queues, runners, time limits, datasets."""

import subprocess
import sys
import textwrap
import threading

import numpy as np
import pytest

import tensorfleet as tf
from tensorfleet.testing.cluster import ProcessCluster, free_addresses
from tests.support.sessions import elements
from tests.support.waiting import in_background


@pytest.fixture
def csv(tmp_path):
    path = tmp_path / "my_test.csv"
    path.write_text("x1,x2,target\n1.,,44\n4.,5.,1\n7.,,0\n")
    return str(path)


def test_decode_csv_fills_in_defaults(capsys):
    default1 = tf.constant([5.0])
    default2 = tf.constant([6])
    default3 = tf.constant([7])
    dec = tf.decode_csv(tf.constant("1.,,44"), record_defaults=[default1, default2, default3])
    with tf.Session() as sess:
        print(tf.constant("1.,,44"))
        assert sess.run(dec) == [1.0, 6, 44]
    assert capsys.readouterr().out == 'Tensor("Const_4:0", shape=(), dtype=string)\n'


def features_and_target(line):
    x1, x2, target = tf.decode_csv(line, record_defaults=[[-1.0], [-1.0], [-1]])
    return tf.stack([x1, x2]), target


def test_a_reader_puts_records_into_a_shuffling_queue_until_the_files_end(csv, session):
    names = tf.FIFOQueue(capacity=10, dtypes=[tf.string], shapes=[()])
    name = tf.placeholder(tf.string)
    add_name, no_more_names = names.enqueue([name]), names.close()
    key, line = tf.TextLineReader(skip_header_lines=1).read(names)
    features, target = features_and_target(line)
    instances = tf.RandomShuffleQueue(
        10, 0, [tf.float32, tf.int32], [[2], []], name="instance_q", shared_name="shared_instance_q"
    )
    add, no_more = instances.enqueue([features, target]), instances.close()
    batch = instances.dequeue_up_to(2)
    session.run(add_name, {name: csv})
    session.run(no_more_names)
    with pytest.raises(tf.errors.OutOfRangeError, match="is closed and has insufficient elements"):
        while True:
            session.run(add)
    session.run(no_more)
    results = []
    with pytest.raises(tf.errors.OutOfRangeError):
        while True:
            x, y = session.run(batch)
            results += zip(x.tolist(), y.tolist(), strict=True)
    assert sorted(results) == [([1.0, -1.0], 44), ([4.0, 5.0], 1), ([7.0, -1.0], 0)]


def test_the_key_names_file_and_line(csv, session):
    names = tf.train.string_input_producer([csv], num_epochs=1)
    key, _ = tf.TextLineReader(skip_header_lines=1).read(names)
    session.run(tf.local_variables_initializer())
    tf.train.start_queue_runners(session)
    assert session.run(key) == f"{csv}:2".encode()


def test_queue_runner_and_coordinator(csv, session):
    names = tf.FIFOQueue(10, [tf.string], [()])
    _, line = tf.TextLineReader(skip_header_lines=1).read(names)
    instances = tf.RandomShuffleQueue(10, 0, [tf.float32, tf.int32], [[2], []])
    runner = tf.train.QueueRunner(instances, [instances.enqueue(features_and_target(line))] * 5)
    batch = instances.dequeue_up_to(2)
    session.run(names.enqueue_many([[csv]]))
    session.run(names.close())
    coord = tf.train.Coordinator()
    threads = runner.create_threads(session, coord=coord, start=True)
    results = []
    try:
        while True:
            results += session.run(batch)[1].tolist()
    except tf.errors.OutOfRangeError:
        coord.request_stop()
    coord.join(threads)
    assert sorted(results) == [0, 1, 44]


def test_string_input_producer_and_shuffle_batch(csv, session):
    def read_and_push_instance(names, queue):
        _, line = tf.TextLineReader(skip_header_lines=1).read(names)
        return queue.enqueue(features_and_target(line))

    names = tf.train.string_input_producer([csv, csv], num_epochs=2)
    queue = tf.RandomShuffleQueue(20, 2, [tf.float32, tf.int32], [[2], []])
    pushes = [read_and_push_instance(names, queue) for _ in range(2)]
    tf.train.add_queue_runner(tf.train.QueueRunner(queue, pushes))
    batch = queue.dequeue_up_to(3)
    session.run(tf.local_variables_initializer())
    coord = tf.train.Coordinator()
    threads = tf.train.start_queue_runners(session, coord)
    results = []
    with pytest.raises(tf.errors.OutOfRangeError):
        while not coord.should_stop():
            results += session.run(batch)[1].tolist()
    coord.request_stop()
    coord.join(threads)
    assert sorted(results) == [0] * 4 + [1] * 4 + [44] * 4


def test_a_time_limit_on_queue_operations():
    queue = tf.FIFOQueue(capacity=10, dtypes=[tf.float32], shapes=[()])
    value = tf.placeholder(tf.float32)
    put, take = queue.enqueue([value]), queue.dequeue()
    config = tf.ConfigProto()
    config.operation_timeout_in_ms = 1000
    with tf.Session(config=config) as sess:
        sess.run(put, {value: 1.0})
        assert sess.run(take) == 1.0
        with pytest.raises(tf.errors.DeadlineExceededError):
            sess.run(take)
        sess.run(put, {value: 2.0})
        assert sess.run(take) == 2.0


def test_a_dataset_repeats_and_batches_across_its_rounds():
    dataset = tf.data.Dataset.from_tensor_slices(np.arange(10))
    result = elements(dataset.repeat(3).batch(7))
    assert [len(b) for b in result] == [7, 7, 7, 7, 2]
    assert [v for b in result for v in b] == list(range(10)) * 3


def test_an_iterator_moves_once_per_run_however_often_it_is_fetched(session):
    following = tf.data.Dataset.from_tensor_slices(np.arange(10)).batch(4).make_one_shot_iterator().get_next()
    first, second = session.run([following, following])
    assert first.tolist() == second.tolist() == [0, 1, 2, 3]
    assert session.run([following, following])[1].tolist() == [4, 5, 6, 7]


def test_interleave_takes_from_several_in_turn(session):
    dataset = tf.data.Dataset.from_tensor_slices(np.arange(10)).repeat(3).batch(7)
    dataset = dataset.interleave(
        lambda v: tf.data.Dataset.from_tensor_slices(v), cycle_length=3, block_length=2
    )
    following = dataset.make_one_shot_iterator().get_next()
    items = [int(session.run(following)) for _ in range(18)]
    assert items == [0, 1, 7, 8, 4, 5, 2, 3, 9, 0, 6, 7, 4, 5, 1, 2, 8, 9]


def test_lines_of_a_csv_file_through_a_dataset(csv):
    dataset = tf.data.TextLineDataset(csv).skip(1).map(features_and_target)
    items = [(x.tolist(), int(y)) for x, y in elements(dataset)]
    assert items == [([1.0, -1.0], 44), ([4.0, 5.0], 1), ([7.0, -1.0], 0)]


PRODUCER = """
import sys
import tensorfleet as tf

with tf.device("/job:ps/task:0"):
    queue = tf.FIFOQueue(10, [tf.float32], [[2]], name="queue", shared_name="shared_queue")
values = tf.placeholder(tf.float32, [2])
put = queue.enqueue([values])
with tf.Session(sys.argv[1]) as sess:
    for i in range(5):
        sess.run(put, {values: [i, i + 1]})
    sess.run(queue.close())
"""


def test_a_producer_client_and_a_training_client_share_a_queue(tmp_path):
    program = tmp_path / "producer.py"
    program.write_text(textwrap.dedent(PRODUCER))
    with ProcessCluster(ps=1) as cluster:
        target = cluster.target("ps", 0)
        producer = subprocess.Popen([sys.executable, str(program), target])
        try:
            with tf.device("/job:ps/task:0"):
                queue = tf.FIFOQueue(10, [tf.float32], [[2]], name="queue", shared_name="shared_queue")
                total = tf.get_variable("total", [2], initializer=tf.zeros_initializer())
            step = total.assign_add(queue.dequeue())
            with tf.Session(target) as sess:
                sess.run(total.initializer)
                for _ in range(5):
                    last = sess.run(step, options=tf.RunOptions(timeout_in_ms=120_000))
                with pytest.raises(tf.errors.OutOfRangeError, match="closed and has insufficient elements"):
                    sess.run(step, options=tf.RunOptions(timeout_in_ms=120_000))
            assert last.tolist() == [10.0, 15.0]
            assert producer.wait(60) == 0
        finally:
            producer.kill()
            producer.wait()


def test_dequeue_many_waits_until_there_are_enough(session):
    queue = tf.PaddingFIFOQueue(50, [tf.float32], [[None, None]])
    value = tf.placeholder(tf.float32, [None, None])
    put, take = queue.enqueue([value]), queue.dequeue_many(2)
    session.run(put, {value: [[1.0, 2.0]]})
    consumer = in_background(session.run, take)
    session.run(put, {value: [[3.0], [4.0]]})
    assert consumer.result(60).tolist() == [[[1.0, 2.0], [0.0, 0.0]], [[3.0, 0.0], [4.0, 0.0]]]


def test_networks_on_several_tasks_answer_over_queues_within_a_time_limit():
    """One client asks, each network has a graph of its own, another client collects; a network that is late is left out."""
    servers = in_process_servers()
    late = threading.Event()

    def queues():
        with tf.device("/job:ps/task:0"):
            asked = [tf.FIFOQueue(9, [tf.float32], [[2]], shared_name=f"asked_{i}") for i in range(3)]
            return asked, tf.FIFOQueue(9, [tf.float32], [[]], shared_name="answers")

    def bottom():
        with tf.Graph().as_default():
            inputs = tf.placeholder(tf.float32, [2])
            put = [queue.enqueue([inputs]) for queue in queues()[0]]
            with tf.Session(servers[0].target) as sess:
                sess.run(put, {inputs: [1.0, 2.0]})

    def network(i):
        with tf.Graph().as_default():
            asked, answers = queues()
            with tf.device(f"/job:worker/task:{i}"):
                prediction = tf.reduce_sum(asked[i].dequeue()) * (i + 1)
            question = tf.identity(prediction)
            output = tf.placeholder(tf.float32, [])
            answer = answers.enqueue([output])
            with tf.Session(servers[1 + i].target) as sess:
                value = sess.run(question)
                assert i != 2 or late.wait(60)
                sess.run(answer, {output: value})

    running = [in_background(bottom), *(in_background(network, i) for i in range(3))]
    try:
        opinion = queues()[1].dequeue()
        with tf.Session(servers[0].target) as sess:
            patient = tf.RunOptions(timeout_in_ms=60_000)
            result = {float(sess.run(opinion, options=patient)) for _ in range(2)}
            with pytest.raises(tf.errors.DeadlineExceededError):
                sess.run(opinion, options=tf.RunOptions(timeout_in_ms=200))
            assert result == {3.0, 6.0}
            late.set()
            assert sess.run(opinion, options=patient) == 9.0
    finally:
        late.set()
        for part in running:
            part.result(60)
        for server in servers:
            server.stop()


def in_process_servers():
    spec = free_addresses(ps=1, worker=3)
    return [tf.train.Server(spec, "ps", 0), *(tf.train.Server(spec, "worker", i) for i in range(3))]

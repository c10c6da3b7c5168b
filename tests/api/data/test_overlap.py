"""Input that goes on beside the step: who runs at the same time as whom, told by events and never by the clock."""

import threading

import numpy as np
import pytest

import tensorfleet as tf
from tensorfleet.testing.cluster import free_addresses
from tests.support.sessions import elements

Dataset = tf.data.Dataset
PATIENCE = 60  # seconds after which a thread that should have been let go is stuck


def call(function, *values):
    return tf.py_func(function, list(values), tf.int64)


def all_of(dataset):
    return [np.asarray(element).tolist() for element in elements(dataset)]


def mapping_threads():
    return {t for t in threading.enumerate() if t.name == "tensorfleet-map"}


def test_a_parallel_map_calls_its_function_with_several_elements_at_once():
    together = threading.Barrier(3, timeout=PATIENCE)

    def meet(x):
        together.wait()
        return x * 10

    result = Dataset.range(6).map(lambda x: call(meet, x), num_parallel_calls=3)
    assert all_of(result) == [0, 10, 20, 30, 40, 50]


def test_map_and_batch_calls_its_function_with_several_elements_at_once():
    together = threading.Barrier(2, timeout=PATIENCE)

    def meet(x):
        together.wait()
        return x

    fused = tf.data.experimental.map_and_batch(lambda x: call(meet, x), 2, num_parallel_calls=2)
    assert all_of(Dataset.range(4).apply(fused)) == [[0, 1], [2, 3]]


def test_results_keep_the_order_of_the_elements():
    second = threading.Event()

    def first_waits(x):
        if x == 1:
            second.set()
        assert x != 0 or second.wait(PATIENCE)
        return x

    assert all_of(Dataset.range(4).map(lambda x: call(first_waits, x), num_parallel_calls=2)) == [0, 1, 2, 3]


def test_an_error_in_a_parallel_map_names_its_element_and_leaves_the_rest(session):
    def odd(x):
        if x % 2 == 0:
            raise ValueError(f"{x} is even")
        return x

    following = (
        Dataset.range(1, 6)
        .map(lambda x: call(odd, x), num_parallel_calls=4)
        .make_one_shot_iterator()
        .get_next()
    )
    results = []
    for _ in range(5):
        try:
            results.append(int(session.run(following)))
        except tf.errors.InvalidArgumentError as e:
            results.append(e.message)
    with pytest.raises(tf.errors.OutOfRangeError):
        session.run(following)
    assert [results[0], results[2], results[4]] == [1, 3, 5]
    assert "2 is even" in results[1] and "in element 1 of the dataset" in results[1]
    assert "4 is even" in results[3] and "in element 3 of the dataset" in results[3]


def test_threads_of_a_parallel_map_end_with_the_session():
    before = mapping_threads()
    following = (
        Dataset.range(100)
        .map(lambda x: call(lambda v: v, x), num_parallel_calls=3)
        .make_one_shot_iterator()
        .get_next()
    )
    with tf.Session() as session:
        assert session.run(following) == 0
        threads = mapping_threads() - before
        assert 1 <= len(threads) <= 3
    for thread in threads:
        thread.join(PATIENCE)
        assert not thread.is_alive()


def test_waiting_for_a_mapped_element_ends_with_the_deadline(session):
    gate = threading.Event()

    def stuck(x):
        gate.wait(PATIENCE)
        return x

    following = (
        Dataset.range(3)
        .map(lambda x: call(stuck, x), num_parallel_calls=2)
        .make_one_shot_iterator()
        .get_next()
    )
    with pytest.raises(tf.errors.DeadlineExceededError):
        session.run(following, options=tf.RunOptions(timeout_in_ms=50))
    gate.set()
    assert [session.run(following) for _ in range(3)] == [0, 1, 2]


def test_a_parallel_interleave_reads_several_datasets_at_once():
    together = threading.Barrier(2, timeout=PATIENCE)

    def meet(x):
        together.wait()
        return x

    def inner(x):
        return Dataset.from_tensors(x).map(lambda v: call(meet, v))

    result = Dataset.range(2).interleave(inner, cycle_length=2, num_parallel_calls=2)
    assert all_of(result) == [0, 1]


def test_a_parallel_interleave_keeps_the_order_of_a_plain_one():
    def inner(x):
        return Dataset.range(x * 10, x * 10 + x)

    for cycle, block in ((1, 1), (2, 1), (3, 2), (2, 5)):
        plain = Dataset.range(6).interleave(inner, cycle, block)
        parallel = Dataset.range(6).interleave(inner, cycle, block, num_parallel_calls=cycle)
        assert all_of(parallel) == all_of(plain)


def overlapping():
    """A producer that tells when an element is made, and a step that ends only once the next one is."""
    items = [threading.Event() for _ in range(6)]

    def produce(x):
        items[int(x)].set()
        return x

    def consume(x):
        return x if items[int(x) + 1].wait(PATIENCE) else np.int64(-1)

    return produce, consume


def test_the_next_element_is_prefetched_while_the_step_runs(session):
    produce, consume = overlapping()
    dataset = Dataset.range(5).map(lambda x: call(produce, x)).prefetch(1)
    step = call(consume, dataset.make_one_shot_iterator().get_next())
    assert [session.run(step) for _ in range(4)] == [0, 1, 2, 3]


def test_a_staging_area_is_filled_while_the_step_runs(session):
    produce, consume = overlapping()
    element = Dataset.range(5).map(lambda x: call(produce, x)).make_one_shot_iterator().get_next()
    area = tf.contrib.staging.StagingArea([tf.int64], shapes=[[]])
    put, (staged,) = area.put([element]), area.get()
    step = call(consume, staged)
    session.run(put)
    assert [session.run([step, put])[0] for _ in range(4)] == [0, 1, 2, 3]


def test_a_queue_runner_fills_its_queue_while_the_step_runs(session):
    produce, consume = overlapping()
    number = tf.train.range_input_producer(6, num_epochs=1, shuffle=False, capacity=1).dequeue()
    result = call(produce, tf.cast(number, tf.int64))
    result.set_shape([])
    step = call(consume, tf.train.batch([result], 1, capacity=1)[0])
    session.run(tf.local_variables_initializer())
    coordinator = tf.train.Coordinator()
    threads = tf.train.start_queue_runners(session, coordinator)
    assert [session.run(step) for _ in range(4)] == [0, 1, 2, 3]
    coordinator.request_stop()
    session.close()
    coordinator.join(threads, stop_grace_period_secs=PATIENCE, ignore_live_threads=True)


def test_a_function_waits_for_a_queue_that_is_filled_later(session):
    queue = tf.FIFOQueue(10, tf.int64, shapes=[()])
    fill = queue.enqueue([10])
    iterator = Dataset.range(1).map(lambda x: x + queue.dequeue()).make_initializable_iterator()
    following = iterator.get_next()
    session.run(iterator.initializer)
    results = []
    thread = threading.Thread(target=lambda: results.append(session.run(following)))
    thread.start()
    thread.join(0.2)  # so that it waits; filled sooner, the queue would give its element at once
    session.run(fill)
    thread.join(PATIENCE)
    assert results == [10]


def test_the_next_batch_is_shipped_to_a_remote_trainer_while_its_step_runs(serve):
    produce, consume = overlapping()
    cluster = free_addresses(reader=1, trainer=1)
    _, trainer = (serve(cluster, job_name=job) for job in ("reader", "trainer"))
    with tf.device("/job:reader/task:0"):
        element = Dataset.range(5).map(lambda x: call(produce, x)).make_one_shot_iterator().get_next()
    with tf.device("/job:trainer/task:0"):
        area = tf.contrib.staging.StagingArea([tf.int64], shapes=[[]])
        put, (staged,) = area.put([element]), area.get()
        step = call(consume, staged)
    with tf.Session(trainer.target) as session:
        session.run(put)
        assert [session.run([step, put])[0] for _ in range(4)] == [0, 1, 2, 3]

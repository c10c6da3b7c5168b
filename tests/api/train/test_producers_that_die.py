"""Whatever fails behind a queue, its consumer gets what came before it, and then that failure, on the first line."""

import numpy as np
import pytest

import tensorfleet as tf


def failing_after(count):
    """Gives 0, 1, ... and then fails."""
    numbers = iter(range(count))

    def following():
        for number in numbers:
            return np.int64(number)
        raise ValueError("no number left")

    return tf.py_func(following, [], tf.int64, stateful=True)


def in_batches(_):
    return tf.train.batch([failing_after(3)], 1, shapes=[[]])


def shuffled(_):
    return tf.train.shuffle_batch([failing_after(3)], 1, 10, 0, shapes=[[]])


def joined(_):
    return tf.train.batch_join([[failing_after(3)]], 1, shapes=[[]])


def shuffled_and_joined(_):
    return tf.train.shuffle_batch_join([[failing_after(3)]], 1, 10, 0, shapes=[[]])


def perhaps(_):
    return tf.train.maybe_batch([failing_after(3)], True, 1, shapes=[[]])


def from_a_generator(_):
    def generate():
        yield from range(3)
        raise RuntimeError("no number left")

    number = tf.data.Dataset.from_generator(generate, tf.int64, []).make_one_shot_iterator().get_next()
    return tf.train.batch([number], 1)


def from_a_mapped_dataset(_):
    numbers = tf.data.Dataset.range(9).map(lambda x: 10 // (3 - x), num_parallel_calls=2).prefetch(2)
    return tf.train.batch([numbers.make_one_shot_iterator().get_next()], 1)


def from_files(folder):
    (folder / "there").write_text("1\n2\n3\n")
    names = [str(folder / "there"), str(folder / "missing")]
    queue = tf.train.string_input_producer(names, num_epochs=1, shuffle=False)
    return tf.train.batch([tf.TextLineReader().read(queue)[1]], 1)


def from_slices(_):
    (text,) = tf.train.slice_input_producer([["1", "2", "3", "x"]], num_epochs=1, shuffle=False)
    return tf.train.batch([tf.string_to_number(text)], 1)


def from_rows(_):
    row = tf.train.input_producer([[1.0], [2.0], [3.0], [0.0]], num_epochs=1, shuffle=False).dequeue()
    return tf.train.batch([tf.check_numerics(1 / row, "a row")], 1)


def from_a_range(_):
    number = tf.train.range_input_producer(9, num_epochs=1, shuffle=False).dequeue()
    return tf.train.batch([10 // (3 - number)], 1)


def of_another_shape(_):
    queue = tf.FIFOQueue(10, [tf.float32], [[2]])
    size = tf.cast(failing_after(3), tf.int32) // 2 + 2  # 2, 2, 3
    row = tf.placeholder_with_default(tf.ones([size]), None)
    tf.train.add_queue_runner(tf.train.QueueRunner(queue, [queue.enqueue([row])]))
    return queue.dequeue()


def without_names(_):
    names = tf.placeholder_with_default(tf.constant([], tf.string), [None])
    return tf.train.string_input_producer(names, shuffle=False).dequeue()


DEATHS = {
    in_batches: (3, tf.errors.InvalidArgumentError, "ValueError: no number left"),
    shuffled: (3, tf.errors.InvalidArgumentError, "ValueError: no number left"),
    joined: (3, tf.errors.InvalidArgumentError, "ValueError: no number left"),
    shuffled_and_joined: (3, tf.errors.InvalidArgumentError, "ValueError: no number left"),
    perhaps: (3, tf.errors.InvalidArgumentError, "ValueError: no number left"),
    from_a_generator: (3, tf.errors.UnknownError, "RuntimeError: no number left"),
    from_a_mapped_dataset: (3, tf.errors.InvalidArgumentError, "Integer division by zero"),
    from_files: (3, tf.errors.NotFoundError, "missing; No such file or directory"),
    from_slices: (3, tf.errors.InvalidArgumentError, "could not correctly convert string: x"),
    from_rows: (3, tf.errors.InvalidArgumentError, "a row : Tensor had Inf values"),
    from_a_range: (3, tf.errors.InvalidArgumentError, "Integer division by zero"),
    of_another_shape: (2, tf.errors.InvalidArgumentError, "Shape mismatch in tuple component 0"),
    without_names: (0, tf.errors.InvalidArgumentError, "requires a non-null input tensor"),
}


@pytest.mark.parametrize("producer", DEATHS, ids=lambda p: p.__name__)
def test_the_consumer_gets_what_came_before_and_then_the_failure(tmp_path, producer, session):
    count, kind, text = DEATHS[producer]
    batch, result = producer(tmp_path), []
    session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
    coordinator = tf.train.Coordinator()
    threads = tf.train.start_queue_runners(session, coordinator)
    with pytest.raises(kind) as caught:
        try:
            while True:
                result.append(session.run(batch))
        except tf.errors.OutOfRangeError:
            coordinator.request_stop()
        coordinator.join(threads, stop_grace_period_secs=60)
    assert len(result) == count
    assert text in str(caught.value).splitlines()[0]


@pytest.mark.parametrize("producer", [in_batches, from_a_generator, from_files], ids=lambda p: p.__name__)
@pytest.mark.parametrize("loop", ["monitored session", "supervisor"])
def test_training_loops_end_with_the_failure(tmp_path, producer, loop):
    _, kind, text = DEATHS[producer]
    batch = producer(tmp_path)
    tf.train.get_or_create_global_step()
    with pytest.raises(kind) as caught:
        if loop == "supervisor":
            supervisor = tf.train.Supervisor(logdir=None, summary_op=None)
            with supervisor.managed_session() as session:
                while not supervisor.should_stop():
                    session.run(batch)
        else:
            with tf.train.MonitoredTrainingSession() as session:
                while not session.should_stop():
                    session.run(batch)
    assert text in str(caught.value).splitlines()[0]


def test_a_python_thread_that_feeds_a_queue(session):
    """The other way to write a producer: a thread of one's own, under the coordinator."""
    queue = tf.FIFOQueue(10, [tf.int64], [[]])
    number = tf.placeholder(tf.int64, [])
    put, take, end = queue.enqueue([number]), queue.dequeue(), queue.close(cancel_pending_enqueues=True)
    coordinator, result = tf.train.Coordinator(), []

    def produce():
        with coordinator.stop_on_exception():
            try:
                for i in range(3):
                    session.run(put, {number: i})
                raise KeyError("the source is gone")
            finally:
                session.run(end)

    thread = tf.train.LooperThread(coordinator, None, target=produce)
    thread.start()
    with pytest.raises(KeyError, match="the source is gone"):
        try:
            while True:
                result.append(int(session.run(take)))
        except tf.errors.OutOfRangeError:
            coordinator.join([thread])
    assert result == [0, 1, 2]

"""The graphs of queues, accumulators and input pipelines are TensorFlow's, operation by operation."""

import pytest

import tensorfleet as tf


def fifo(tf):
    q = tf.FIFOQueue(3, [tf.float32, tf.int32], [[], [2]], name="q")
    q.enqueue((1.0, [2, 3]))
    q.enqueue_many(([1.0], [[2, 3]]))
    q.dequeue()
    q.dequeue_many(2)
    q.dequeue_up_to(2)
    q.size()
    q.close()
    q.close(cancel_pending_enqueues=True)
    q.is_closed()


def other_queues(tf):
    tf.RandomShuffleQueue(5, 1, tf.int32, [[]], seed=3).dequeue_many(2)
    tf.PaddingFIFOQueue(5, [tf.int32], [[None]], shared_name="sh").dequeue_many(2)
    q = tf.PriorityQueue(5, [tf.string], [[]])
    q.enqueue((1, "a"))
    q.dequeue()


def chosen(tf):
    queues = [tf.FIFOQueue(3, tf.float32), tf.FIFOQueue(3, tf.float32)]
    tf.QueueBase.from_list(tf.placeholder(tf.int32), queues).enqueue(1.0)


def accumulators(tf):
    a = tf.ConditionalAccumulator(tf.float32, shape=[2], name="a")
    a.apply_grad([1.0, 2.0], local_step=3)
    a.take_grad(1)
    a.num_accumulated()
    a.set_global_step(5)
    s = tf.SparseConditionalAccumulator(tf.float32, shape=[3, 1], reduction_type="SUM")
    s.apply_grad([0], [[1.0]])
    s.take_indexed_slices_grad(2)
    s.num_accumulated()


def strings(tf):
    tf.train.string_input_producer(["a", "b"], num_epochs=2)


def strings_in_order(tf):
    tf.train.string_input_producer(["a", "b"], shuffle=False, shared_name="sh", name="nm")


def unknown_strings(tf):
    tf.train.string_input_producer(tf.placeholder(tf.string), shuffle=False)


def numbers(tf):
    tf.train.range_input_producer(5, shuffle=False, num_epochs=1)


def slices(tf):
    tf.train.slice_input_producer(
        [tf.constant([1, 2, 3]), tf.constant([[1.0], [2.0], [3.0]])], num_epochs=1, seed=3
    )


def rows(tf):
    tf.train.input_producer(tf.constant([[1, 2], [3, 4]]), shuffle=False, summary_name="frac")


def batch(tf):
    tf.train.batch([tf.constant(1), tf.constant([1.0, 2.0])], batch_size=2)


def batch_of_dictionaries(tf):
    tensors = {"b": tf.constant(1), "a": tf.constant([1.0, 2.0])}
    tf.train.batch(
        tensors, 2, num_threads=2, allow_smaller_final_batch=True, name="nm", shared_name="sh", capacity=50
    )


def batch_of_many(tf):
    tf.train.batch([tf.constant([1, 2])], batch_size=2, enqueue_many=True)


def padded(tf):
    tf.train.batch([tf.placeholder(tf.int32, [None])], batch_size=2, dynamic_pad=True)


def join(tf):
    tf.train.batch_join(
        [[tf.constant(1), tf.constant("a")], [tf.constant(2), tf.constant("b")]], batch_size=2
    )


def shuffled(tf):
    tf.train.shuffle_batch([tf.constant(1)], batch_size=2, capacity=20, min_after_dequeue=5, seed=1)


def shuffled_join(tf):
    tf.train.shuffle_batch_join(
        [[tf.constant(1)], [tf.constant(3)]], 2, 20, 5, allow_smaller_final_batch=True
    )


def always(tf):
    tf.train.maybe_batch([tf.constant(1)], True, batch_size=2)


def never(tf):
    tf.train.maybe_batch([tf.constant(1)], False, batch_size=2)


def maybe(tf):
    tf.train.maybe_batch([tf.constant(1)], tf.placeholder(tf.bool, []), batch_size=2)


def maybe_rows(tf):
    tf.train.maybe_batch([tf.constant([1, 2])], tf.placeholder(tf.bool, [2]), batch_size=2, enqueue_many=True)


def maybe_join(tf):
    tf.train.maybe_batch_join([[tf.constant(1)], [tf.constant(2)]], tf.placeholder(tf.bool, []), batch_size=2)


def maybe_shuffled(tf):
    tf.train.maybe_shuffle_batch([tf.constant(1)], 2, 20, 5, tf.placeholder(tf.bool, []))


def sparse(tf):
    tf.train.batch([tf.SparseTensor([[0]], [1], [2]), tf.constant(1)], batch_size=2)


def sparse_rows(tf):
    tf.train.batch([tf.SparseTensor([[0, 0]], [1], [2, 2])], batch_size=2, enqueue_many=True)


PROGRAMS = [
    fifo,
    other_queues,
    chosen,
    accumulators,
    strings,
    strings_in_order,
    unknown_strings,
    numbers,
    slices,
    rows,
]
PROGRAMS += [
    batch,
    batch_of_dictionaries,
    batch_of_many,
    padded,
    join,
    shuffled,
    shuffled_join,
    always,
    never,
]
PROGRAMS += [maybe, maybe_rows, maybe_join, maybe_shuffled, sparse, sparse_rows]


def described(module, program):
    """Names, types, inputs, control inputs and shapes of all operations, and the queue runners."""
    with module.Graph().as_default() as graph:
        program(module)
        ops = sorted(
            (
                o.name,
                o.type,
                tuple(t.name for t in o.inputs),
                tuple(sorted(c.name for c in o.control_inputs)),
                tuple(str(t.shape) for t in o.outputs),
            )
            for o in graph.get_operations()
        )
        runners = [str(r.to_proto()) for r in graph.get_collection("queue_runners")]
        names = {
            k: [getattr(x, "name", x) for x in graph.get_collection(k)]
            for k in ("summaries", "local_variables")
        }
    return ops, runners, names


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_graphs_are_the_same(tensorflow, program):
    ours, theirs = described(tf, program), described(tensorflow, program)
    assert [o for o in ours[0] if o not in theirs[0]] == []
    assert [o for o in theirs[0] if o not in ours[0]] == []
    assert ours[1:] == theirs[1:]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_graphs_travel_to_tensorflow(tensorflow, program):
    with tf.Graph().as_default() as graph:
        program(tf)
    proto = tensorflow.GraphDef.FromString(graph.as_graph_def().SerializeToString())
    with tensorflow.Graph().as_default() as copy:
        tensorflow.import_graph_def(proto, name="")
        assert len(copy.get_operations()) == len(graph.get_operations())

"""Queues: order, shapes, names, kinds and sharing, as in TensorFlow."""

import numpy as np
import pytest

import tensorfleet as tf

# -- the plain things ----------------------------------------------------------------------------------


def test_first_in_first_out(session):
    q = tf.FIFOQueue(10, tf.float32)
    x = tf.placeholder(tf.float32)
    enqueue, dequeue = q.enqueue(x), q.dequeue()
    for v in (1.0, 2.0, 3.0):
        session.run(enqueue, {x: v})
    assert session.run(q.size()) == 3
    assert [session.run(dequeue) for _ in range(3)] == [1, 2, 3]


def test_many_at_a_time(session):
    q = tf.FIFOQueue(10, [tf.float32, tf.string], shapes=[[2], []])
    session.run(q.enqueue_many([[[1, 2], [3, 4], [5, 6]], ["a", "b", "c"]]))
    numbers, texts = session.run(q.dequeue_many(2))
    assert numbers.tolist() == [[1, 2], [3, 4]]
    assert texts.tolist() == [b"a", b"b"]
    numbers, text = session.run(q.dequeue())
    assert numbers.tolist() == [5, 6]
    assert text == b"c"


def test_batches_cut_across_enqueues(session):
    q = tf.FIFOQueue(20, tf.int32, shapes=[[]])
    session.run(q.enqueue_many([[0, 1, 2]]))
    session.run(q.enqueue(3))
    session.run(q.enqueue_many([[4, 5, 6]]))
    assert session.run(q.dequeue_many(5)).tolist() == [0, 1, 2, 3, 4]
    assert session.run(q.dequeue_many(2)).tolist() == [5, 6]


def test_nothing_at_a_time(session):
    q = tf.FIFOQueue(10, [tf.float32, tf.int32], shapes=[[2], []])
    session.run(q.enqueue_many([np.zeros((0, 2)), np.zeros(0, np.int32)]))
    assert session.run(q.size()) == 0
    for take in (q.dequeue_many(0), q.dequeue_up_to(0)):
        a, b = session.run(take)
        assert (a.shape, b.shape) == ((0, 2), (0,))
        assert (a.dtype, b.dtype) == (np.float32, np.int32)


def test_the_queue_keeps_what_was_fed_not_the_callers_array(session):
    q = tf.FIFOQueue(10, tf.float32, shapes=[[2]])
    x = tf.placeholder(tf.float32)
    fed = np.array([1, 2], np.float32)
    session.run(q.enqueue(x), {x: fed})
    session.run(q.enqueue_many([x]), {x: np.array([fed])})
    fed[:] = 9
    got = session.run(q.dequeue_many(2))
    assert got.tolist() == [[1, 2], [1, 2]]
    got[:] = 5  # and what comes out is the caller's


def test_components_with_names_are_dictionaries(session):
    q = tf.FIFOQueue(10, [tf.float32, tf.int32], shapes=[[], []], names=["a", "b"])
    session.run(q.enqueue({"a": 1.0, "b": 2}))
    assert session.run(q.dequeue()) == {"a": 1.0, "b": 2}
    session.run(q.enqueue_many({"b": [1, 2], "a": [3.0, 4.0]}))
    got = session.run(q.dequeue_many(2))
    assert got["b"].tolist() == [1, 2]
    with pytest.raises(ValueError, match="Keys in dictionary to enqueue do not match names of Queue"):
        q.enqueue({"a": 1.0})
    with pytest.raises(ValueError, match="You must enqueue a dictionary in a Queue with names"):
        q.enqueue((1.0, 2))
    with pytest.raises(ValueError, match="Queue must have names to enqueue a dictionary"):
        tf.FIFOQueue(10, tf.float32).enqueue({"a": 1.0})


def test_properties(graph):
    q = tf.FIFOQueue(10, [tf.float32, tf.int32], shapes=[2, []], names=["a", "b"], shared_name="s", name="Q")
    assert (q.name, q.dtypes, q.names) == ("Q", [tf.float32, tf.int32], ["a", "b"])
    assert [s.as_list() for s in q.shapes] == [[2], []]
    node = q.queue_ref.op.node_def
    assert (node.op, node.device, node.attr["shared_name"].s) == ("FIFOQueueV2", "", b"s")
    assert [s.rank for s in tf.FIFOQueue(1, [tf.int32]).shapes] == [None]


def test_names_of_operations(graph):
    with tf.name_scope("s"):
        q = tf.FIFOQueue(3, [tf.float32, tf.int32], [[], []])
        q.enqueue((1.0, 2))
        q.enqueue_many(([1.0], [2]))
        q.dequeue()
        q.dequeue_many(2)
        q.dequeue_up_to(2)
        q.size()
        q.close()
        q.is_closed()
        q.dequeue_many(2, name="dm")
    names = [o.name for o in graph.get_operations() if o.type != "Const"]
    assert names == [
        "s/fifo_queue",
        "s/fifo_queue_enqueue",
        "s/fifo_queue_EnqueueMany",
        "s/fifo_queue_Dequeue",
        "s/fifo_queue_DequeueMany",
        "s/fifo_queue_DequeueUpTo",
        "s/fifo_queue_Size",
        "s/fifo_queue_Close",
        "s/fifo_queue_Is_Closed",
        "s/dm",
    ]
    assert graph.get_tensor_by_name("s/fifo_queue_enqueue/component_1:0") is not None
    assert graph.get_tensor_by_name("s/dm/n:0") is not None


def test_queue_creation_waits_for_no_control_dependency():
    with tf.control_dependencies([tf.constant(1)]):
        q = tf.FIFOQueue(3, tf.float32)
        size = q.size()
    assert q.queue_ref.op.control_inputs == []
    assert size.op.inputs[0] is q.queue_ref


def test_graph_def_round_trip_keeps_the_shapes(graph):
    q = tf.PaddingFIFOQueue(3, [tf.float32], [[None, 2]], name="q")
    q.dequeue_many(5)
    with tf.Graph().as_default() as copy:
        tf.import_graph_def(graph.as_graph_def(), name="")
        assert copy.get_tensor_by_name("q_DequeueMany:0").shape.as_list() == [5, None, 2]


def test_old_graphs_with_reference_handles_run(graph, session):
    """GraphDefs from before queues were resources."""
    from tensorfleet.graph.apply import apply, apply_op

    ref = apply("FIFOQueue", component_types=[tf.int32], capacity=3)
    q = tf.QueueBase([tf.int32], None, None, ref)
    enqueue, dequeue = q.enqueue(7), q.dequeue()
    assert enqueue.type == "QueueEnqueue"
    assert apply_op("QueueSize", ref).type == "QueueSize"
    session.run(enqueue)
    assert session.run(q.size()) == 1
    assert session.run(dequeue) == 7


def test_one_of_several_queues(session):
    q1, q2 = tf.FIFOQueue(10, tf.float32), tf.FIFOQueue(15, tf.float32)
    index = tf.placeholder(tf.int32)
    chosen = tf.QueueBase.from_list(index, [q1, q2])
    session.run(chosen.enqueue(3.0), {index: 1})
    assert session.run([q1.size(), q2.size()]) == [0, 1]
    assert session.run(chosen.dequeue(), {index: 1}) == 3.0
    with pytest.raises(tf.errors.InvalidArgumentError, match="is not in"):
        session.run(chosen.enqueue(3.0), {index: 2})
    with pytest.raises(TypeError, match="matching component dtypes"):
        tf.QueueBase.from_list(1, [q1, tf.FIFOQueue(10, tf.int32)])
    for wrong in ([], "a", [q1, "a"]):
        with pytest.raises(TypeError, match="A list of queues expected"):
            tf.QueueBase.from_list(1, wrong)
    sized = [tf.FIFOQueue(3, tf.float32, shapes=[[n]]) for n in (2, 3)]
    assert tf.QueueBase.from_list(1, sized).shapes[0].as_list() == [None]


# -- shapes and types --------------------------------------------------------------------------------


def test_shapes_are_checked_in_the_graph():
    q = tf.FIFOQueue(3, [tf.float32], [[2]])
    with pytest.raises(ValueError, match=r"Shapes \(3,\) and \(2,\) are incompatible"):
        q.enqueue([[1.0, 2.0, 3.0]])
    with pytest.raises(ValueError, match="incompatible"):
        q.enqueue_many([[[1.0, 2.0, 3.0]]])
    with pytest.raises(ValueError, match="must have rank at least 1"):
        q.enqueue_many([1.0])
    with pytest.raises(ValueError, match="float32"):
        q.enqueue([tf.constant([1, 2])])
    two = tf.FIFOQueue(3, [tf.float32, tf.float32], [[], []])
    with pytest.raises(ValueError, match="not compatible"):
        two.enqueue_many([[1.0], [1.0, 2.0]])
    with pytest.raises(ValueError, match="Input 'n' must be >= 0, but is -1"):
        q.dequeue_many(-1)


def test_shapes_are_checked_when_running(session):
    q = tf.FIFOQueue(3, [tf.float32], [[2]])
    x = tf.placeholder(tf.float32)
    with pytest.raises(
        tf.errors.InvalidArgumentError,
        match=r"Shape mismatch in tuple component 0. Expected \[2\], got \[3\]",
    ):
        session.run(q.enqueue([x]), {x: [1, 2, 3]})
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"component 0. Expected \[1,2\], got \[1,3\]"):
        session.run(q.enqueue_many([x]), {x: [[1, 2, 3]]})
    with pytest.raises(
        tf.errors.InvalidArgumentError, match=r"Shape mismatch in tuple component 0.*got \[\]"
    ):
        session.run(q.enqueue_many([x]), {x: 1.0})
    free = tf.FIFOQueue(3, [tf.float32, tf.float32])
    with pytest.raises(tf.errors.InvalidArgumentError, match="Component 1 has 2, and should have 1"):
        session.run(free.enqueue_many([x, x * [[1.0], [2.0]]]), {x: [[1.0]]})
    with pytest.raises(
        tf.errors.InvalidArgumentError, match="Wrong number of components in tuple. Expected 2, got 1"
    ):
        session.run(free.enqueue((x,)), {x: 1.0})
    with pytest.raises(
        tf.errors.InvalidArgumentError, match="require the components to have specified shapes"
    ):
        session.run(free.dequeue_many(2))
    n = tf.placeholder(tf.int32)
    with pytest.raises(tf.errors.InvalidArgumentError, match="DequeueManyOp requested -2 < 0 elements"):
        session.run(q.dequeue_many(n), {n: -2})
    with pytest.raises(tf.errors.InvalidArgumentError, match="DequeueUpToOp requested -1 < 0 elements"):
        session.run(q.dequeue_up_to(-1))


def test_constructors_check_their_arguments():
    with pytest.raises(ValueError, match=r"received len\(shapes\)=2, len\(dtypes\)=1"):
        tf.FIFOQueue(3, [tf.float32], [[2], [3]])
    with pytest.raises(ValueError, match="List of names must have the same length"):
        tf.FIFOQueue(3, [tf.float32], names=["a", "b"])
    with pytest.raises(ValueError, match="All shapes must be fully defined"):
        tf.FIFOQueue(3, [tf.float32], shapes=[[None]])
    with pytest.raises(ValueError, match="a list of shapes must be provided"):
        tf.PaddingFIFOQueue(3, [tf.float32], shapes=None)


def test_dequeued_shapes_are_known():
    q = tf.FIFOQueue(3, [tf.float32], [[2]])
    n = tf.placeholder(tf.int32)
    assert q.dequeue().shape.as_list() == [2]
    assert q.dequeue_many(4).shape.as_list() == [4, 2]
    assert q.dequeue_many(n).shape.as_list() == [None, 2]
    assert q.dequeue_up_to(4).shape.as_list() == [None, 2]
    assert tf.FIFOQueue(3, [tf.float32]).dequeue_many(4).shape.rank is None


# -- the other kinds ----------------------------------------------------------------------------------


def test_random_shuffle_queue_draws_as_tensorflow_does(session):
    q = tf.RandomShuffleQueue(20, 2, tf.int32, [[]], seed=3)
    session.run(q.enqueue_many([list(range(10))]))
    assert session.run(q.dequeue_many(4)).tolist() == [7, 1, 4, 5]
    assert session.run(q.dequeue()) == 6


def test_random_shuffle_queue_checks_min_after_dequeue(session):
    for capacity, keep, text in (
        (0, 0, "min_after_dequeue 0 must be < capacity 0"),
        (5, -1, "min_after_dequeue -1 must be >= 0"),
        (5, 5, "min_after_dequeue 5 must be < capacity 5"),
    ):
        with pytest.raises(tf.errors.InvalidArgumentError, match=text):
            session.run(tf.RandomShuffleQueue(capacity, keep, tf.float32).size())


def test_padding_queue_pads_to_the_longest(session):
    q = tf.PaddingFIFOQueue(10, [tf.float32, tf.string], [[None], [None, 2]])
    many = q.dequeue_many(2)
    assert [t.shape.as_list() for t in many] == [[2, None], [2, None, 2]]
    session.run(q.enqueue(([1.0], [["a", "b"]])))
    session.run(q.enqueue(([1.0, 2.0], [["a", "b"], ["c", "d"]])))
    numbers, texts = session.run(many)
    assert numbers.tolist() == [[1, 0], [1, 2]]
    assert texts[0].tolist() == [[b"a", b"b"], [b"", b""]]
    x = tf.placeholder(tf.float32)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"Expected \[\?\], got \[\]"):
        session.run(q.enqueue((x, [["a", "b"]])), {x: 1.0})
    empty, texts = session.run(q.dequeue_many(0))
    assert (empty.shape, texts.shape) == ((0, 0), (0, 0, 2))


def test_padding_queue_of_one_size_needs_no_padding(session):
    q = tf.PaddingFIFOQueue(10, [tf.int32], [[]])
    session.run(q.enqueue_many([[1, 2, 3]]))
    assert session.run(q.dequeue_up_to(2)).tolist() == [1, 2]


def test_priority_queue_gives_the_smallest_first(session):
    q = tf.PriorityQueue(10, [tf.string], [[]])
    assert q.dtypes == [tf.int64, tf.string]
    session.run(q.enqueue_many([[5, 1, 3, 1], ["a", "b", "c", "d"]]))
    session.run(q.enqueue((2, "e")))
    priorities, texts = session.run(q.dequeue_many(5))
    assert priorities.tolist() == [1, 1, 2, 3, 5]
    assert texts.tolist() == [b"b", b"d", b"e", b"c", b"a"]
    session.run(q.close())
    with pytest.raises(tf.errors.OutOfRangeError, match="PriorityQueue '.*' is closed"):
        session.run(q.dequeue())


# -- sharing ------------------------------------------------------------------------------------------


def test_queues_of_one_shared_name_are_one(session):
    a, b = (tf.FIFOQueue(10, tf.float32, shared_name="shared") for _ in range(2))
    session.run(a.enqueue(4.0))
    assert session.run(b.dequeue()) == 4.0


def test_sessions_of_a_server_share_only_what_has_a_shared_name(server):
    shared, own = tf.FIFOQueue(10, tf.float32, shared_name="both"), tf.FIFOQueue(10, tf.float32)
    with tf.Session(server.target) as one, tf.Session(server.target) as two:
        one.run([shared.enqueue(1.0), own.enqueue(1.0)])
        assert two.run([shared.size(), own.size()]) == [1, 0]


@pytest.mark.parametrize(
    ("first", "second", "text"),
    [
        (
            lambda n: tf.FIFOQueue(10, tf.float32, shared_name=n),
            lambda n: tf.FIFOQueue(15, tf.float32, shared_name=n),
            "has capacity 10 but requested capacity was 15",
        ),
        (
            lambda n: tf.FIFOQueue(10, tf.float32, shared_name=n),
            lambda n: tf.FIFOQueue(10, tf.int32, shared_name=n),
            "has component types float but requested component types were int32",
        ),
        (
            lambda n: tf.FIFOQueue(10, tf.float32, shared_name=n),
            lambda n: tf.FIFOQueue(10, tf.float32, shapes=[(1, 2)], shared_name=n),
            r"has component shapes \[\] but requested component shapes were \[\[1,2\]\]",
        ),
        (
            lambda n: tf.FIFOQueue(10, tf.float32, shared_name=n),
            lambda n: tf.RandomShuffleQueue(10, 5, tf.float32, shared_name=n),
            "Expected FIFOQueue, found RandomShuffleQueueV2",
        ),
        (
            lambda n: tf.RandomShuffleQueue(10, 5, tf.float32, shared_name=n),
            lambda n: tf.RandomShuffleQueue(10, 7, tf.float32, shared_name=n),
            "has min_after_dequeue 5 but requested min_after_dequeue was 7",
        ),
        (
            lambda n: tf.RandomShuffleQueue(10, 5, tf.float32, seed=1, shared_name=n),
            lambda n: tf.RandomShuffleQueue(10, 5, tf.float32, seed=2, shared_name=n),
            r"has random seeds \(87654321, 1\) but requested seeds are \(87654321, 2\)",
        ),
    ],
)
def test_those_who_share_must_agree(session, first, second, text):
    session.run(first("q").queue_ref.op)
    with pytest.raises(tf.errors.InvalidArgumentError, match=f"Shared queue 'q'.*{text}"):
        session.run(second("q").queue_ref.op)


def test_one_who_shares_without_a_seed_takes_any(session):
    first = tf.RandomShuffleQueue(1, 0, tf.float32, [()], seed=5, shared_name="q")
    session.run(first.enqueue(1.0))
    tf.set_random_seed(None)
    second = tf.RandomShuffleQueue(1, 0, tf.float32, [()], shared_name="q")
    assert session.run(second.dequeue()) == 1.0

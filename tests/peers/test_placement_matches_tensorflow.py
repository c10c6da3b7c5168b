"""What both libraries do with devices that are not there, and when they tell what operations cost."""

import queue

import pytest

import tensorfleet

from .programs import same


def attempt(tf, device, **config):
    """What runs in a session whose graph has an operation with some device, which nobody asks for, and then itself."""
    with tf.Graph().as_default():
        fine = tf.constant(2.0) + 1.0
        with tf.Session(config=tf.ConfigProto(**config)) as session:
            results = [outcome(tf, session, fine)]
            with tf.device(device):
                odd = tf.add(1.0, 2.0, name="odd")
            return [*results, outcome(tf, session, fine), outcome(tf, session, odd)]


def outcome(tf, session, fetch):
    try:
        return float(session.run(fetch))
    except tf.errors.InvalidArgumentError as e:
        assert "Cannot assign a device for operation odd" in str(e)
        return "refused"


@pytest.mark.parametrize("soft", [False, True], ids=["hard", "soft"])
@pytest.mark.parametrize("device", ["/gpu:7", "/cpu:0", "/job:ps/task:3", "/job:localhost", "/cpu:1"])
def test_devices_that_are_not_there(tensorflow, device, soft):
    ours, theirs = (attempt(tf, device, allow_soft_placement=soft) for tf in (tensorfleet, tensorflow))
    assert ours == theirs


def test_only_what_runs_is_placed_on_request(tensorflow):
    def pruned(tf):
        return attempt(tf, "/job:ps", graph_options=tf.GraphOptions(place_pruned_graph=True))[1]

    assert pruned(tensorfleet) == pruned(tensorflow) == 3.0


@pytest.mark.parametrize(("every", "after"), [(0, 0), (1, 0), (2, 0), (2, 3)])
def test_models_of_costs_come_at_the_same_runs(tensorflow, every, after):
    def counts(tf):
        options = tf.GraphOptions(build_cost_model=every, build_cost_model_after=after)
        result = []
        with tf.Graph().as_default():
            x = tf.placeholder(tf.float32, [2], name="x")
            y = tf.reduce_sum(tf.square(x, name="y"), name="z")
            with tf.Session(config=tf.ConfigProto(graph_options=options)) as session:
                for _ in range(7):
                    metadata = tf.RunMetadata()
                    session.run(y, {x: [1.0, 2.0]}, run_metadata=metadata)
                    result.append(sorted(n.name for n in metadata.cost_graph.node))
        return result

    assert counts(tensorfleet) == counts(tensorflow)


def test_functions_of_one_step_wait_for_each_other(tensorflow):
    def met(tf):
        box = queue.Queue()

        def give():
            box.put(5)
            return 1

        with tf.Graph().as_default(), tf.Session() as session:
            calls = [tf.py_func(f, [], tf.int64) for f in (lambda: box.get(timeout=60), give)]
            return session.run([*calls, tf.add_n(calls) * 0])

    same(met(tensorfleet), met(tensorflow))

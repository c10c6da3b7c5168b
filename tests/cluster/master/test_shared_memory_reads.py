"""Small variables of other tasks of the machine are read without asking."""

import numpy as np
import pytest

import tensorfleet as tf
from tensorfleet.base import errors
from tensorfleet.cluster import messages
from tensorfleet.cluster.master import shared_memory_reads as posted
from tensorfleet.cluster.transport import wire
from tensorfleet.cluster.transport.traffic import SharedReads
from tensorfleet.runtime.shared_memory import server_reads as boards
from tensorfleet.testing.cluster import ProcessCluster
from tests.support.waiting import in_background

pytestmark = pytest.mark.skipif(not boards.are_possible(), reason="boards need x86 and Linux")


@pytest.fixture(scope="module")
def cluster():
    with ProcessCluster(ps=2) as running:
        yield running


@pytest.fixture(autouse=True)
def fresh(cluster, graph):
    yield
    for task in range(2):
        tf.Session.reset(cluster.target("ps", task))


@pytest.fixture
def asked(monkeypatch):
    """The kinds of the messages that this process sends."""
    kinds: list[int] = []
    send = wire.Channel.send

    def noted(self, kind, *args, **kwargs):
        if kind in (messages.RUN, messages.BOARD):
            kinds.append(kind)
        return send(self, kind, *args, **kwargs)

    monkeypatch.setattr(wire.Channel, "send", noted)
    return kinds


def counters():
    """Two variables on two servers, and what adds to both."""
    made = []
    for task in range(2):
        with tf.device(f"/job:ps/task:{task}"):
            made.append(tf.get_variable(f"v{task}", [100], initializer=tf.zeros_initializer()))
    with tf.device("/job:ps/task:0"):
        first = made[0].assign_add(tf.ones([100])).op
    with tf.device("/job:ps/task:1"):
        second = made[1].assign_add(tf.ones([100])).op
    return made, tf.group(first, second)


def test_what_is_read_again_and_again_is_not_asked_for(cluster, asked):
    (a, b), more = counters()
    with tf.Session(cluster.target("ps", 0)) as sess:
        sess.run([a.initializer, b.initializer])
        for _ in range(posted._MIN_REQUESTS):
            sess.run([a, b])
        assert asked.count(messages.BOARD) == 2
        asked.clear()
        for n in range(1, 6):
            sess.run(more)
            x, y = sess.run([a, b])
            np.testing.assert_array_equal([x, y], np.full((2, 100), n))
        assert asked == [messages.RUN] * 10  # the updates, and nothing for the group of them


def test_changes_of_other_sessions_are_seen_at_once(cluster):
    (a, b), more = counters()
    with tf.Session(cluster.target("ps", 0)) as one, tf.Session(cluster.target("ps", 1)) as other:
        one.run([a.initializer, b.initializer])
        for n in range(30):
            for sess in (one, other):
                x, y = sess.run([a, b])
                assert (x == n).all() and (y == n).all()
            (one if n % 3 else other).run(more)


def test_who_reads_while_others_write_sees_whole_values(cluster):
    with tf.device("/job:ps/task:0"):
        v = tf.get_variable("v", [50_000], initializer=tf.zeros_initializer())
        more = v.assign_add(tf.ones([50_000])).op
    with tf.Session(cluster.target("ps", 1)) as a, tf.Session(cluster.target("ps", 0)) as b:
        a.run(v.initializer)

        def write():
            for _ in range(300):
                b.run(more)

        writer = in_background(write)
        last = 0.0
        while not writer.done():
            found = a.run(v)
            assert found.min() == found.max() >= last
            last = found.max()
        writer.result()
        assert a.run(v).max() == 300


def test_threads_of_one_session_read_beside_each_other(cluster):
    (a, b), _ = counters()
    with tf.Session(cluster.target("ps", 0)) as sess:
        sess.run([a.initializer, b.initializer])

        def read():
            return all((x == 0).all() for _ in range(100) for x in sess.run([a, b]))

        assert all(t.result() for t in [in_background(read) for _ in range(4)])


def test_what_was_fetched_is_the_users(cluster):
    (a, b), more = counters()
    with tf.Session(cluster.target("ps", 0)) as sess:
        sess.run([a.initializer, b.initializer])
        kept = []
        for _ in range(10):
            kept.append(sess.run(a))
            kept[-1] += 100
            sess.run(more)
        assert [k[0] for k in kept] == list(range(100, 110))
        assert (sess.run(a) == 10).all()


def test_a_variable_of_another_shape_is_asked_for_again(cluster):
    with tf.device("/job:ps/task:1"):
        v = tf.get_variable("v", initializer=tf.zeros([3]), validate_shape=False)
        grow = tf.assign(v, tf.ones([5]), validate_shape=False).op
    with tf.Session(cluster.target("ps", 0)) as sess:
        sess.run(v.initializer)
        for _ in range(8):
            assert sess.run(v).shape == (3,)
        sess.run(grow)
        for _ in range(8):
            assert sess.run(v).shape == (5,)


def test_a_reset_container_is_noticed(cluster):
    (a, _), _ = counters()
    target = cluster.target("ps", 0)
    with tf.Session(target) as sess:
        sess.run(a.initializer)
        for _ in range(8):
            sess.run(a)
        tf.Session.reset(target)
        with pytest.raises(errors.AbortedError):
            sess.run(a)


def test_a_read_that_follows_an_update_in_its_step_sees_it(cluster):
    with tf.device("/job:ps/task:0"):
        v = tf.get_variable("v", [], initializer=tf.zeros_initializer())
    with tf.device("/job:ps/task:1"):
        seen = tf.identity(v) + 0.0
    with tf.control_dependencies([seen]), tf.device("/job:ps/task:0"):
        add = tf.assign_add(v, 1.0).op
    with tf.control_dependencies([add]), tf.device("/job:ps/task:0"):
        after = v.read_value()
    with tf.Session(cluster.target("ps", 1)) as sess:
        sess.run(v.initializer)
        for n in range(20):
            assert sess.run([seen, after]) == [n, n + 1]


def test_a_traced_step_asks_all_tasks(cluster):
    (a, b), _ = counters()
    with tf.Session(cluster.target("ps", 0)) as sess:
        sess.run([a.initializer, b.initializer])
        values = [v.value() for v in (a, b)]
        for _ in range(8):
            sess.run(values)
        told = tf.RunMetadata()
        sess.run(values, options=tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE), run_metadata=told)
        assert {d.device[: len("/job:ps/replica:0/task:0")] for d in told.step_stats.dev_stats} >= {
            "/job:ps/replica:0/task:0",
            "/job:ps/replica:0/task:1",
        }


def test_a_server_that_dies_is_noticed_at_the_next_read(graph):
    with ProcessCluster(ps=2) as cluster:
        (a, b), _ = counters()
        with tf.Session(cluster.target("ps", 0)) as sess:
            sess.run([a.initializer, b.initializer])
            for _ in range(8):
                sess.run([a, b])
            cluster.kill("ps", 1)
            with pytest.raises(errors.UnavailableError, match="task:1"):
                sess.run([a, b])
            assert (sess.run(a) == 0).all()


def test_steps_leave_nothing_behind_in_the_server(server):
    with tf.device("/job:local/task:0"):
        v = tf.get_variable("v", [10], initializer=tf.zeros_initializer())
        doubled = v * 2.0
    with tf.Session(f"grpc://{server.target.removeprefix('grpc://')}") as sess:
        sess.run(v.initializer)
        for _ in range(10):
            sess.run([v, doubled])
        assert not any(s.steps for s in server.worker._sessions.values())


class Connections:
    """A peer, as far as it is looked at before a board is read."""

    times_lost, is_free, boards = 0, True, 0

    def is_open(self):
        return self.is_free

    def reads_of(self, values):
        return SharedReads()

    def call_for(self, message, take, deadline):
        self.boards += 1
        return type("Shown", (), {"value_bytes": [4], "read": lambda self: ["values"]})(), []


def test_a_board_is_kept_while_others_use_all_connections_and_forgotten_with_the_task_that_put_it_up():
    at = Connections()
    stage = posted.SharedMemoryRead(at, 1, ["v"])
    found = [stage.read("s", None) for _ in range(posted._MIN_REQUESTS)]
    assert found == [None] * (posted._MIN_REQUESTS - 1) + [["values"]]
    at.is_free = False
    assert stage.read("s", None) is None
    at.is_free = True
    assert stage.read("s", None) == ["values"] and at.boards == 1
    at.times_lost = 1
    assert [stage.read("s", None) for _ in range(posted._MIN_REQUESTS)] == [None] * posted._MIN_REQUESTS
    assert stage.read("s", None) == ["values"] and at.boards == 2


@pytest.mark.parametrize(
    ("told", "count", "why"),
    [
        ({"size": 1}, 1, "without its size"),
        ({"size": "x", "count": 1}, 1, "'size' is not an integer"),
        ({"size": 64, "count": 1}, 1, "another size"),
        ({"size": 192, "count": 1}, 0, "with 0 tensors, not 1"),
        ({"size": 192, "count": 2}, 1, "where there are 2"),
        ({"size": 192, "count": 1, "versions": [[1, 5, 5]]}, 1, "a value that it does not have"),
    ],
)
def test_an_answer_about_a_board_that_makes_no_sense_is_refused(ends, told, count, why):
    import json

    from tensorfleet.cluster.transport.tensor_bytes import describe

    blob = describe([np.zeros(3, np.float32)])[0]
    frame = wire.Frame(messages.OK, json.dumps(told).encode(), [np.frombuffer(blob, np.uint8)] * count)
    with pytest.raises(errors.InvalidArgumentError, match=why):
        posted._reader(ends[0], frame)
    assert posted._reader(ends[0], wire.Frame(messages.OK, b"", [])) == (None, [])

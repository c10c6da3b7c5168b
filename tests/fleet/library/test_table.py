"""Rows by key on parameter servers, as a worker uses them."""

import jax.numpy as jnp
import numpy as np
import pytest

import tensorfleet as tf
from tensorfleet.base import errors
from tensorfleet.fleet.library import table_graph


@pytest.fixture(params=[1, 3], ids=["1 ps", "3 ps"])
def clusters(request):
    with tf.fleet.local(ps=request.param, workers=2) as local:
        yield local


@pytest.fixture
def cluster(clusters):
    with clusters.join(0, timeout=60) as one:
        yield one


KEYS = np.random.default_rng(0).integers(0, 2**63 - 1, 500)


def values(dim=2, count=500):
    return np.random.default_rng(1).standard_normal((count, dim)).astype(np.float32)


def test_values_are_summed_by_key(cluster):
    table = cluster.table("weights", 2)
    table.push(KEYS, values())
    table.push(KEYS[:9], values()[:9])
    wanted = values()
    wanted[:9] *= 2
    np.testing.assert_array_equal(table.pull(KEYS), wanted)
    assert table.size() == 500
    assert not table.pull([4, 5]).any()
    assert table.size() == 500  # a pull makes no rows


def test_other_ways_to_merge(cluster):
    keys = [7, 8, 7]
    given = np.float32([[1], [-5], [3]])
    wanted = {"max": [3, 0], "set": [3, -5]}
    for merge, expected in wanted.items():
        table = cluster.table(merge, 1, merge=merge)
        table.push(keys, given)
        assert table.pull([7, 8]).ravel().tolist() == expected
    mean = cluster.table("mean", 1, merge=lambda rows, pushed: 0.5 * (rows + pushed))
    mean.push(keys, given)
    assert mean.pull([7, 8]).ravel().tolist() == [1.75, -2.5]


def test_a_range_of_keys_comes_in_order(cluster):
    table = cluster.table("t", 1, dtype="int64")
    keys = np.random.default_rng(2).permutation(2000)
    table.push(keys, 10 * keys)
    found, rows = table.pull(range(500, 700))
    assert found.tolist() == list(range(500, 700))
    assert rows.ravel().tolist() == [10 * k for k in range(500, 700)]


def test_a_row_begins_as_told(cluster):
    table = cluster.table("t", 3, init=[1, 2, 3])
    table.push([5], np.ones((1, 3), np.float32))
    assert table.pull([5, 6]).tolist() == [[2, 3, 4], [1, 2, 3]]


def count_and_mean(rows, seen):
    count = rows[:, 0] + 1
    mean = rows[:, 1] + (seen - rows[:, 1]) / count
    return jnp.stack([count, mean], axis=1), mean


def test_a_function_runs_on_the_rows_of_the_servers(cluster):
    table = cluster.table("t", 2)
    table.install("seen", count_and_mean)
    rng, wanted = np.random.default_rng(3), {}
    for size in (500, 31, 1, 200, 0):
        keys = rng.choice(KEYS, size, replace=False)
        numbers = rng.standard_normal(size).astype(np.float32)
        means = table.call("seen", keys, numbers)
        for key, number in zip(keys.tolist(), numbers.tolist(), strict=True):
            wanted.setdefault(key, []).append(number)
        np.testing.assert_allclose(means, [np.mean(wanted[k]) for k in keys.tolist()], rtol=2e-4, atol=1e-5)
    assert table.pull(KEYS)[:, 0].tolist() == [len(wanted.get(k, ())) for k in KEYS.tolist()]


def test_an_argument_that_is_no_row_for_each_key_goes_to_all_servers(cluster):
    table = cluster.table("t", 2, init=1)
    table.install("scale", lambda rows, by: rows * by)
    assert table.call("scale", KEYS, np.float32(3)) is None
    assert (table.pull(KEYS) == 3).all()


def test_functions_of_several_workers_lose_nothing(clusters):
    def work():
        with tf.fleet.join() as cluster:
            table = cluster.table("t", 1)
            table.install("double_and_add", lambda rows, more: rows + more)
            for _ in range(50):
                table.call("double_and_add", KEYS[:20], np.ones((20, 1), np.float32))
                table.push(KEYS[:20], np.ones((20, 1), np.float32))

    clusters.run(work)
    with clusters.join() as cluster:
        assert (cluster.table("t", 1).pull(KEYS[:20]) == 200).all()


def test_requests_that_do_not_wait_have_timestamps_and_keep_their_order(cluster):
    table = cluster.table("t", 1, merge="set")
    keys, given = np.array([1, 2]), np.ones((2, 1), np.float32)
    stamps, pulls = [], []
    for _ in range(5):
        stamps.append(table.push(keys, given, wait=False))
        given *= 2  # the request has its own copy
        pulls.append(table.pull(keys, wait=False))
    assert [table.wait(pull).ravel().tolist() for pull in pulls] == [[2.0**i] * 2 for i in range(5)]
    assert stamps == [1, 3, 5, 7, 9]
    table.wait()


def test_keys_that_come_again_are_sent_once(cluster):
    table = cluster.table("t", 1, cache_keys=True)
    sent = []
    make = table._graph.push(np.dtype(np.float32))
    table._graph._pushes[np.dtype(np.float32)] = lambda *feeds: (
        sent.append(sum(map(len, feeds[::4]))) or make(*feeds)
    )
    for _ in range(3):
        table.push(KEYS, values(1))
    assert sent == [500, 0, 0]
    np.testing.assert_allclose(table.pull(KEYS), 3 * values(1), rtol=1e-6)


def test_keys_that_a_server_has_forgotten_are_sent_again(cluster, monkeypatch):
    monkeypatch.setattr(table_graph, "_MAX_REMEMBERED", 1000)  # more than the servers keep
    table = cluster.table("t", 1, cache_keys=True)
    table.push(KEYS, values(1))
    for i in range(200):
        table.push(KEYS[i : i + 40], np.zeros((40, 1), np.float32))
    table.push(KEYS, values(1))
    np.testing.assert_allclose(table.pull(KEYS), 2 * values(1), rtol=1e-6)


FILTERS = [
    [tf.fleet.Bits(8)],
    [tf.fleet.Bits(16)],
    [tf.fleet.TopK(50)],
    [tf.fleet.Significant(2.0), tf.fleet.Bits(8)],
]


@pytest.mark.parametrize("filters", FILTERS, ids=["8 bits", "16 bits", "top k", "significant"])
def test_filters_send_less_and_lose_nothing(cluster, filters):
    table = cluster.table("t", 2, filters=filters)
    for _ in range(6):
        table.push(KEYS, values())
    assert not np.array_equal(table.pull(KEYS), 6 * values())
    table.flush()
    np.testing.assert_allclose(table.pull(KEYS), 6 * values(), atol=1e-4)


def test_what_filters_keep_back_is_pushed_at_the_end_of_the_block(clusters):
    with clusters.join() as cluster:
        cluster.table("t", 1, filters=[tf.fleet.Significant(5.0)]).push([3], np.float32([1]))
    with clusters.join() as cluster:
        assert cluster.table("t", 1).pull([3]).tolist() == [[1]]


def test_rows_come_back_as_arrays_of_the_library_that_the_keys_are_of(cluster):
    import jax

    table = cluster.table("t", 1, dtype="int32")
    keys = jnp.arange(4)
    table.push(keys, jnp.ones((4, 1), jnp.int32))
    assert isinstance(table.pull(keys), jax.Array)
    assert type(table.pull([1])) is np.ndarray


class TestRefused:
    @pytest.fixture(autouse=True)
    def _table(self, clusters):
        with clusters.join(0) as self.cluster, clusters.join(1) as self.other:
            self.table = self.cluster.table("t", 2)
            yield

    @pytest.mark.parametrize(
        ("given", "kind", "message"),
        [
            (
                np.zeros((3, 2), np.float32),
                ValueError,
                r"values of table 't' must have the shape \[2, 2\].*not \[3, 2\]",
            ),
            (
                np.zeros((2, 2)),
                TypeError,
                r"values of table 't' must be float32, not float64: convert them with astype",
            ),
            (object(), TypeError, "values of table 't' must be an array"),
        ],
    )
    def test_values(self, given, kind, message):
        with pytest.raises(kind, match=message):
            self.table.push([1, 2], given)

    def test_keys(self):
        with pytest.raises(
            TypeError, match=r"keys of table 't' must be whole numbers \(int64\), not float64"
        ):
            self.table.pull([0.5])
        with pytest.raises(ValueError, match="must be a range of step 1"):
            self.table.pull(range(0, 10, 2))

    @pytest.mark.parametrize(
        ("arguments", "kind", "message"),
        [
            ({"dim": 0}, ValueError, "dim must be 1 or more, not 0"),
            ({"dim": 1, "dtype": "string"}, TypeError, "dtype must be a type of numbers, such as 'float32'"),
            (
                {"dim": 1, "dtype": "flaot"},
                TypeError,
                "dtype must be a type of numbers, such as 'float32', not 'flaot'",
            ),
            ({"dim": 1, "merge": "mean"}, ValueError, "merge must be 'sum', 'max', 'set' or a function"),
            ({"dim": 3, "init": [1, 2]}, ValueError, "init must be a number or a row of 3 numbers"),
            (
                {"dim": 1, "merge": "set", "filters": [tf.fleet.TopK(1)]},
                ValueError,
                "which needs merge='sum'",
            ),
        ],
    )
    def test_arguments(self, arguments, kind, message):
        with pytest.raises(kind, match=message):
            self.cluster.table("u", **arguments)

    def test_a_table_that_another_worker_made_otherwise(self):
        with pytest.raises(
            errors.InvalidArgumentError, match="Table 't' is on the servers already, with dim=2, not 3"
        ):
            self.other.table("t", 3)

    def test_a_function_that_is_not_installed(self):
        with pytest.raises(
            ValueError, match="name is 'ftrl', under which table 't' has no function. It has: none"
        ):
            self.table.call("ftrl", [1])

    def test_a_function_that_another_worker_installed_otherwise(self):
        self.table.install("f", lambda rows: rows + 1)
        self.table.call("f", [1])
        theirs = self.other.table("t", 2)
        theirs.install("f", lambda rows: rows + 2)
        with pytest.raises(ValueError, match="function: 'f' computes something else there"):
            theirs.call("f", [1])

    @pytest.mark.parametrize(
        ("function", "message"),
        [
            (
                lambda rows: rows[:, 0],
                r"new rows that the function 'f' gives are float32\[b\], not float32\[b, 2\]",
            ),
            (
                lambda rows: (rows, rows.sum()),
                r"result 1 of the function 'f' has the shape \[\]: it must have a row",
            ),
            (lambda rows: rows.no_such_thing, "cannot run on servers for .*no_such_thing"),
        ],
    )
    def test_a_function_that_does_not_fit(self, function, message):
        self.table.install("f", function)
        with pytest.raises(ValueError, match=message):
            self.table.call("f", [1])

    def test_arguments_of_a_function_that_change(self):
        self.table.install("f", lambda rows, more: rows + more)
        self.table.call("f", [1], np.ones((1, 2), np.float32))
        with pytest.raises(ValueError, match=r"argument 1 of 'f' is float32\[3, 2\], not float32\[2, 2\]"):
            self.table.call("f", [1, 2], np.ones((3, 2), np.float32))

    def test_a_key_that_comes_twice_in_a_call(self):
        self.table.install("f", lambda rows: rows)
        with pytest.raises(errors.InvalidArgumentError, match="got a key more than once"):
            self.table.call("f", [1, 1])

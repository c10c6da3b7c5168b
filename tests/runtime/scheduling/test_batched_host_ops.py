"""Host operations of one type that are called together."""

import numpy as np
import pytest

import tensorfleet as tf
from tensorfleet.graph import registry
from tensorfleet.runtime.scheduling.batched_host_ops import JoinedItem


def _uniques(session, count=3):
    vectors = [tf.placeholder(tf.int64, name=f"column{n}") for n in range(count)]
    found = [tf.unique(x, name=f"unique{n}") for n, x in enumerate(vectors)]
    items = session._plan(found, vectors).program.items
    assert any(isinstance(item, JoinedItem) for item in items)
    return vectors, found


def test_each_gives_what_it_would_alone(session):
    vectors, found = _uniques(session)
    given = [[3, 1, 3], [7], [5, 5, 4, 5]]
    made = session.run(found, dict(zip(vectors, given, strict=True)))
    assert [[y.tolist(), index.tolist()] for y, index in made] == [
        [[3, 1], [0, 1, 0]],
        [[7], [0]],
        [[5, 4], [0, 0, 1, 0]],
    ]


def test_empty_and_far_apart_numbers_go_one_by_one(session):
    vectors, found = _uniques(session)
    given = [[], [1 << 60, -(1 << 60), 1 << 60], [2]]
    made = session.run(found, dict(zip(vectors, given, strict=True)))
    assert [y.tolist() for y, _ in made] == [[], [1 << 60, -(1 << 60)], [2]]


def test_the_one_that_is_given_what_it_cannot_take_is_named(session):
    vectors, found = _uniques(session)
    given = [[1], [[1, 2], [3, 4]], [2]]
    with pytest.raises(tf.errors.InvalidArgumentError, match="1D vector") as caught:
        session.run(found, dict(zip(vectors, given, strict=True)))
    assert caught.value.op.name == "unique1"


def test_a_kernel_for_several_that_fails_leaves_them_to_run_by_themselves(session, monkeypatch):
    calls = []

    def broken(ops, given):
        calls.append(len(ops))
        raise MemoryError

    monkeypatch.setattr(registry.get("Unique"), "joined", broken)
    vectors, found = _uniques(session)
    made = session.run(found, {x: np.array([n, n]) for n, x in enumerate(vectors)})
    assert [y.tolist() for y, _ in made] == [[0], [1], [2]]
    assert calls == [3]

"""Input pipelines are shown in traces, and are as they were at any other time."""

import contextlib

import tensorfleet as tf
from tensorfleet.api.data import mapping, nodes
from tensorfleet.api.data.recorded_runs import observe
from tensorfleet.runtime import recording


def pipeline():
    numbers = tf.data.Dataset.range(100).map(lambda i: i * 2).batch(4)
    return numbers.make_one_shot_iterator().get_next()


def methods():
    return {
        (cls, name): vars(cls)[name]
        for cls in vars(mapping).values()
        for name in ("next", "one")
        if _has(cls, name)
    }


def _has(cls, name):
    return isinstance(cls, type) and issubclass(cls, nodes.DatasetRun) and name in vars(cls)


def test_each_stage_is_an_event_inside_that_of_the_stage_that_asks(session):
    following = pipeline()
    session.run(following)
    with tf.fleet.trace(session) as trace:
        session.run(following)
    inputs = [e for e in trace.result()["traceEvents"] if e.get("cat") == "input"]
    batch, map_, *_ = sorted(inputs, key=lambda e: (e["ts"], -e["dur"]))
    assert (batch["name"], batch["args"]["elements"]) == ("Batch", 1)
    assert (map_["name"], map_["args"]["elements"]) == ("Map", 4)
    assert batch["ts"] <= map_["ts"] <= map_["ts"] + map_["dur"] <= batch["ts"] + batch["dur"]


def test_the_stages_are_as_they_were_after_a_trace(session):
    before = methods()
    assert before
    with tf.fleet.trace(session):
        assert methods() != before
    assert methods() == before


def test_values_are_the_same_while_they_are_recorded(session):
    following = pipeline()
    first = list(session.run(following))
    with tf.fleet.trace(session):
        second = list(session.run(following))
    assert (first, second) == ([0, 2, 4, 6], [8, 10, 12, 14])


def test_the_end_of_a_dataset_ends_its_event(session):
    ended = tf.data.Dataset.range(1).make_one_shot_iterator().get_next()
    session.run(ended)
    made = recording.start(5, 60.0)
    try:
        with contextlib.suppress(tf.errors.OutOfRangeError):
            session.run(ended)
        made.end()
        assert any(event[0] == "input" and event[5]["elements"] == 0 for event in made.piece(0, 100)[0])
    finally:
        recording.drop(made)
        observe(None)

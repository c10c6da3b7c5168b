"""`tf.contrib.testing`."""

import pytest

import tensorfleet as tf
from tensorfleet_legacy.contrib.testing.fake_summary_writer import (
    FakeSummaryWriter,
    assert_summary,
    latest_summaries,
    simple_values_from_events,
)


def _summary(tag, value):
    return tf.Summary(value=[tf.Summary.Value(tag=tag, simple_value=value)])


class Case(tf.test.TestCase):
    """Gives the assertions."""


def test_a_fake_writer_keeps_what_is_added_by_step():
    graph = tf.Graph()
    writer = FakeSummaryWriter("somewhere", graph)
    writer.add_summary(_summary("a", 1.0).SerializeToString(), 3)
    writer.add_event(tf.Event(step=4, summary=_summary("b", 2.0)))
    case = Case("setUp")
    writer.assert_summaries(case, "somewhere", graph, {3: {"a": 1.0}, 4: {"b": 2.0}})
    with pytest.raises(AssertionError):
        writer.assert_summaries(case, expected_summaries={3: {"a": 2.0}})
    with pytest.raises(AssertionError, match="step 5"):
        writer.assert_summaries(case, expected_summaries={5: {}})


def test_an_installed_fake_is_what_the_cache_gives(tmp_path):
    tf.summary.FileWriterCache.clear()
    FakeSummaryWriter.install()
    try:
        with pytest.raises(ValueError, match="already installed"):
            FakeSummaryWriter.install()
        assert isinstance(tf.summary.FileWriterCache.get(str(tmp_path)), FakeSummaryWriter)
    finally:
        FakeSummaryWriter.uninstall()
        tf.summary.FileWriterCache.clear()
    assert not list(tmp_path.iterdir())


def test_the_events_of_the_latest_file(tmp_path):
    with tf.summary.FileWriter(str(tmp_path)) as writer:
        writer.add_summary(_summary("a", 1.0), 1)
        writer.add_summary(_summary("a", 2.0), 2)
    events = latest_summaries(str(tmp_path))
    assert [e.step for e in events] == [1, 2]
    assert simple_values_from_events(events, ["a", "b"]) == {"a": 2.0}
    assert_summary(["a"], {"a": 1.0}, events[0].summary)
    with pytest.raises(AssertionError):
        assert_summary(["b"], {}, events[0].summary)

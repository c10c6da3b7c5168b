"""Event files: nothing added is lost, nothing is left behind."""

import gc
import os
import subprocess
import sys
import threading
from functools import partial

import numpy as np
import pytest

import tensorfleet as tf
from tensorfleet.api.summary import events
from tests.support.waiting import together

pytestmark = pytest.mark.slow  # left out by `make quick`


def files_in(folder):
    return sorted(os.path.join(folder, name) for name in os.listdir(folder))


def events_in(folder):
    return [e for path in files_in(folder) for e in tf.train.summary_iterator(path)]


def scalar(tag, value):
    return tf.Summary(value=[tf.Summary.Value(tag=tag, simple_value=value)])


def writing_threads():
    return {t for t in threading.enumerate() if t.name == "EventLoggerThread"}


@pytest.fixture(autouse=True)
def nothing_left_behind():
    before = writing_threads()
    yield
    gc.collect()
    assert not writing_threads() - before


@pytest.fixture
def folder(tmp_path):
    return str(tmp_path / "logs")


def test_a_file_starts_with_its_version(folder):
    with tf.summary.FileWriter(folder, filename_suffix=".mine") as writer:
        writer.add_summary(scalar("a", 1.5), 7)
        assert writer.get_logdir() == folder
    (path,) = files_in(folder)
    assert os.path.basename(path).startswith("events.out.tfevents.") and path.endswith(".mine")
    first, second = events_in(folder)
    assert first.file_version == "brain.Event:2" and first.wall_time > 0
    assert (second.step, second.summary.value[0].simple_value) == (7, 1.5)


def test_a_writer_without_events_makes_no_file(folder):
    tf.summary.FileWriter(folder).close()
    assert files_in(folder) == []


def test_summaries_come_as_bytes_or_messages_with_steps_of_any_kind(folder):
    with tf.summary.FileWriter(folder) as writer:
        writer.add_summary(scalar("a", 1).SerializeToString(), np.int64(3))
        writer.add_summary(scalar("a", 2), np.array(4))
        writer.add_summary(scalar("a", 3))
        with pytest.raises(TypeError, match="summary must be a tf.Summary or its bytes"):
            writer.add_summary("text")
    assert [e.step for e in events_in(folder)] == [0, 3, 4, 0]


def test_metadata_is_written_once_for_a_tag_and_the_callers_message_stays(folder):
    described = tf.Summary(value=[tf.Summary.Value(tag="a", metadata=tf.SummaryMetadata(display_name="A"))])
    with tf.summary.FileWriter(folder) as writer:
        writer.add_summary(described, 1)
        writer.add_summary(described, 2)
    assert [e.summary.value[0].metadata.display_name for e in events_in(folder)[1:]] == ["A", ""]
    assert described.value[0].metadata.display_name == "A"


def test_graphs_are_written_with_their_shapes(folder):
    with tf.Graph().as_default() as graph:
        tf.constant([1.0, 2.0], name="c")
    with tf.summary.FileWriter(folder, graph) as writer:
        writer.add_graph(graph, 5)
    kinds = [e.WhichOneof("what") for e in events_in(folder)]
    assert kinds == ["file_version", "graph_def", "meta_graph_def", "graph_def"]
    node = tf.GraphDef.FromString(events_in(folder)[3].graph_def).node[0]
    assert node.name == "c" and node.attr["_output_shapes"].list.shape[0].dim[0].size == 2
    assert events_in(folder)[3].step == 5


def test_graphs_must_be_graphs(folder, caplog):
    graph = tf.Graph()
    with tf.summary.FileWriter(folder) as writer:
        with pytest.raises(TypeError, match="must be an instance of `Graph`"):
            writer.add_graph(None)
        with pytest.raises(ValueError, match="pass only graph, or graph_def"):
            writer.add_graph(graph, graph_def=graph.as_graph_def())
        with pytest.raises(TypeError, match="meta_graph_def must be type MetaGraphDef"):
            writer.add_meta_graph(3)
        writer.add_graph(graph.as_graph_def())
    assert "Passing a `GraphDef` to the SummaryWriter is deprecated" in caplog.text


def test_a_graph_may_be_given_as_its_message(folder, caplog):
    tf.summary.FileWriter(folder, graph_def=tf.Graph()).close()
    kinds = [e.WhichOneof("what") for e in events_in(folder)]
    assert kinds == ["file_version", "graph_def", "meta_graph_def"]
    assert "please use the `graph` named argument instead of `graph_def`" in caplog.text


def test_run_metadata_and_session_logs(folder):
    with tf.summary.FileWriter(folder) as writer:
        writer.add_run_metadata(tf.RunMetadata(), "step1", 1)
        with pytest.raises(ValueError, match="tag was already used"):
            writer.add_run_metadata(tf.RunMetadata(), "step1", 2)
        writer.add_session_log(tf.SessionLog(status=tf.SessionLog.START), 3)
    _, metadata, log = events_in(folder)
    assert metadata.tagged_run_metadata.tag == "step1"
    assert (log.session_log.status, log.step) == (tf.SessionLog.START, 3)


def test_flush_returns_when_everything_is_in_the_file(folder):
    with tf.summary.FileWriter(folder, flush_secs=3600) as writer:
        for step in range(50):
            writer.add_summary(scalar("a", step), step)
        writer.flush()
        assert len(events_in(folder)) == 51
        writer.flush()


def test_events_reach_the_file_after_flush_secs_without_further_events(folder):
    with tf.summary.FileWriter(folder, flush_secs=0) as writer:
        writer.add_summary(scalar("a", 1), 1)
        for _ in range(2000):
            if os.listdir(folder) and len(events_in(folder)) == 2:
                break
            threading.Event().wait(0.005)
        else:
            pytest.fail("never written")


def test_many_threads_may_add_at_once_with_a_short_queue(folder):
    with tf.summary.FileWriter(folder, max_queue=2) as writer:

        def work(number):
            for i in range(100):
                writer.add_summary(scalar(f"t{number}", i), i)

        together(*(partial(work, n) for n in range(6)))
    by_name: dict = {}
    for e in events_in(folder)[1:]:
        by_name.setdefault(e.summary.value[0].tag, []).append(e.step)
    assert by_name == {f"t{n}": list(range(100)) for n in range(6)}


def test_a_closed_writer_warns_and_drops_until_it_is_reopened(folder):
    writer = tf.summary.FileWriter(folder)
    writer.add_summary(scalar("a", 1), 1)
    writer.close()
    writer.close()
    with pytest.warns(UserWarning, match="Attempting to use a closed FileWriter"):
        writer.add_summary(scalar("a", 2), 2)
    with pytest.warns(UserWarning, match="Attempting to use a closed FileWriter"):
        writer.flush()
    writer.reopen()
    writer.add_summary(scalar("a", 3), 3)
    writer.close()
    assert len(files_in(folder)) == 2, "files of the same second are kept apart"
    assert [e.step for e in events_in(folder) if e.step] == [1, 3]


def test_a_deleted_file_is_made_again(folder):
    with tf.summary.FileWriter(folder) as writer:
        writer.add_summary(scalar("a", 1), 1)
        writer.flush()
        os.remove(files_in(folder)[0])
        os.rmdir(folder)
        writer.add_summary(scalar("a", 2), 2)
        writer.flush()
        assert [e.step for e in events_in(folder)] == [0, 2]


def test_an_event_may_be_changed_after_it_was_added(folder):
    event = tf.Event(step=1)
    with tf.summary.FileWriter(folder) as writer:
        writer.add_event(event)
        event.step = 2
        with pytest.raises(TypeError, match="is not a valid proto"):
            writer.add_event(3)
    assert [e.step for e in events_in(folder)] == [0, 1]


def test_what_the_disk_refuses_is_raised(folder):
    writer = tf.summary.FileWriter(folder)
    os.rmdir(folder)
    with open(folder, "w"):
        pass
    writer.add_summary(scalar("a", 1), 1)
    with pytest.raises(tf.errors.OpError, match="logs"):
        writer.flush()
    writer.close()


def test_a_full_disk_costs_events_and_is_logged_but_raises_nothing(folder, monkeypatch, caplog):
    room = [True]
    real = events.EventFile.write

    def write(self, added):
        if not room[0]:
            raise tf.errors.ResourceExhaustedError(None, None, f"{folder}; No space left on device")
        real(self, added)

    monkeypatch.setattr(events.EventFile, "write", write)
    with tf.summary.FileWriter(folder) as writer, caplog.at_level("ERROR", logger="tensorflow"):
        writer.add_summary(scalar("a", 1), 1)
        writer.flush()
        room[0] = False
        for _ in range(2):
            writer.add_summary(scalar("a", 2), 2)
            writer.flush()
        room[0] = True
        writer.add_summary(scalar("a", 3), 3)
    assert [e.step for e in events_in(folder)] == [0, 1, 0, 3], "what comes later is in a file of its own"
    assert caplog.text.count("could not be written") == 1
    assert "No space left on device" in caplog.text


def test_a_logdir_must_be_a_directory(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(tf.errors.FailedPreconditionError, match="is not a directory"):
        tf.summary.FileWriter(str(tmp_path / "file"))


def test_a_forgotten_writer_writes_everything_and_ends_its_thread(folder):
    before = writing_threads()
    writer = tf.summary.FileWriter(folder)
    writer.add_summary(scalar("a", 1), 1)
    assert len(writing_threads() - before) == 1
    del writer
    gc.collect()
    assert not writing_threads() - before
    assert len(events_in(folder)) == 2


def test_events_are_written_when_the_program_ends(folder):
    code = (
        f"import tensorfleet as tf; w = tf.summary.FileWriter({folder!r})\n"
        "for i in range(20): w.add_event(tf.Event(step=i))"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
    assert [e.step for e in events_in(folder)] == [0, *range(20)]


def test_writers_are_shared_by_folder(folder):
    with tf.Graph().as_default():
        tf.constant(1.0)
        writer = tf.summary.FileWriterCache.get(folder)
        assert tf.summary.FileWriterCache.get(folder) is writer
        tf.summary.FileWriterCache.clear()
        other = tf.summary.FileWriterCache.get(folder)
        assert other is not writer
        tf.summary.FileWriterCache.clear()
    assert [e.WhichOneof("what") for e in events_in(folder)] == [
        "file_version",
        "graph_def",
        "meta_graph_def",
    ] * 2


def test_the_old_writer_warns_and_writes(folder, caplog):
    from tensorfleet.api.summary import old_names

    old_names._warned.clear()
    with tf.train.SummaryWriter(folder) as writer:
        writer.add_summary(scalar("a", 1), 1)
    assert len(events_in(folder)) == 2
    assert [r.getMessage() for r in caplog.records] == [
        "tf.train.SummaryWriter is now tf.summary.FileWriter."
    ]


def test_event_files_that_are_not_there_are_not_found(tmp_path):
    with pytest.raises(tf.errors.NotFoundError):
        list(tf.train.summary_iterator(str(tmp_path / "nothing")))

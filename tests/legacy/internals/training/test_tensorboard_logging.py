"""Messages in event files."""

import pytest
from tensorfleet.core.util.event_pb2 import LogMessage
from tensorfleet.python.training import tensorboard_logging

import tensorfleet as tf


@pytest.fixture
def writer(tmp_path):
    writer = tf.summary.FileWriter(str(tmp_path))
    tensorboard_logging.set_summary_writer(writer)
    before = tensorboard_logging.get_verbosity()
    yield writer
    tensorboard_logging.set_verbosity(before)
    tensorboard_logging._clear_summary_writer()
    writer.close()


def test_messages_from_a_level_on_are_in_the_event_file(writer, tmp_path):
    tensorboard_logging.set_verbosity(tensorboard_logging.ERROR)
    tensorboard_logging.warn("not shown")
    tensorboard_logging.error("it is %s", "shown")
    tensorboard_logging.set_verbosity(tensorboard_logging.DEBUG)
    tensorboard_logging.debug("this too")
    writer.close()
    (path,) = tmp_path.iterdir()
    items = [(e.log_message.level, e.log_message.message) for e in tf.train.summary_iterator(str(path))]
    assert items[1:] == [(LogMessage.ERROR, "it is shown"), (LogMessage.DEBUGGING, "this too")]


def test_unknown_levels_and_a_missing_writer_are_errors(writer):
    with pytest.raises(ValueError, match="Unknown verbosity"):
        tensorboard_logging.set_verbosity("loud")
    tensorboard_logging.set_summary_writer(None)
    tensorboard_logging.info("to the log alone")
    tensorboard_logging._clear_summary_writer()
    with pytest.raises(RuntimeError, match="set_summary_writer"):
        tensorboard_logging.info("nowhere")

"""`tf.logging` writes through Python's logger named tensorflow."""

import logging
import subprocess
import sys

import pytest

import tensorfleet as tf


@pytest.fixture(autouse=True)
def verbosity_as_before():
    logger = tf.get_logger()
    level = logger.level
    yield
    logger.setLevel(level)


def test_info_is_silent_until_asked_for(caplog):
    tf.logging.set_verbosity(tf.logging.WARN)
    tf.logging.info("quiet")
    tf.logging.set_verbosity(tf.logging.INFO)
    tf.logging.info("step %d", 3)
    assert [r.getMessage() for r in caplog.records] == ["step 3"]
    assert tf.logging.get_verbosity() == tf.logging.INFO == 20


def test_messages_come_from_the_logger_scripts_know(caplog):
    tf.logging.warn("w")
    assert tf.get_logger() is logging.getLogger("tensorflow")
    assert caplog.records[0].name == "tensorflow"


def test_the_line_shown_is_the_callers(caplog):
    for call in (tf.logging.warning, tf.logging.error, tf.logging.fatal):
        call("here")
    tf.logging.log(tf.logging.ERROR, "here")
    tf.logging.log_if(tf.logging.ERROR, "here", True)
    assert {r.filename for r in caplog.records} == {"test_logging.py"}
    assert len(caplog.records) == 5


def test_every_nth_and_the_first_n_are_counted_per_line(caplog):
    for i in range(5):
        tf.logging.log_every_n(tf.logging.WARN, "every %d", 2, i)
        tf.logging.log_first_n(tf.logging.WARN, "first %d", 2, i)
    texts = [r.getMessage() for r in caplog.records]
    assert [t for t in texts if t.startswith("every")] == ["every 0", "every 2", "every 4"]
    assert [t for t in texts if t.startswith("first")] == ["first 0", "first 1"]


def test_levels_without_a_name_are_compared_as_numbers(caplog):
    tf.logging.set_verbosity(tf.logging.INFO)
    tf.logging.vlog(1, "below")
    tf.logging.vlog(25, "above")
    tf.logging.TaskLevelStatusMessage("status")
    tf.logging.flush()
    assert [r.getMessage() for r in caplog.records] == ["above", "status"]


def test_a_line_is_shown_once_also_when_absl_shows_all_lines(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import tensorfleet as tf\n"
        "tf.logging.set_verbosity(tf.logging.INFO)\n"
        "tf.logging.info('before')\n"
        "def main(_):\n"
        "    tf.logging.info('after')\n"
        "tf.app.run()\n"
    )
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=300)
    assert done.stderr.splitlines() == ["INFO:tensorflow:before", "INFO:tensorflow:after"]

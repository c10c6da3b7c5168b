"""Lines of a run as JSON objects, and levels read from what tasks print."""

import io
import json
import logging

import pytest

from tensorfleet.base import log_lines
from tensorfleet.cli.output import JsonOutput
from tests.support.launching import Launch


@pytest.mark.parametrize(
    "line, level",
    [
        ("INFO:tensorflow:step 3", "INFO"),
        ("WARNING:tensorflow:slow", "WARNING"),
        ("WARN:x", "WARNING"),
        ("E1118 20:11:16.123456 140 file.py:3] failed", "ERROR"),
        ("I1118 20:11:16.123456 140 file.py:3] fine", "INFO"),
        ("2026-11-18 20:11:16.123456: W tensorflow/core/x.cc:3] old", "WARNING"),
        ("INFORMATION: none", None),
        ("step 3", None),
        ("", None),
    ],
)
def test_the_level_of_a_line_is_found(line, level):
    assert log_lines.level_of(line) == level


def test_a_line_is_an_object_with_its_task():
    line = json.loads(log_lines.as_json_line("worker/1", 'INFO:x:"quoted"\x1b[0m', 12.5))
    assert line == {"time": 12.5, "task": "worker/1", "level": "INFO", "text": 'INFO:x:"quoted"\x1b[0m'}


def test_an_object_that_a_task_wrote_itself_keeps_its_time_and_level():
    own = json.dumps({"time": 3.0, "task": "pid 7", "level": "ERROR", "text": "bad"})
    assert json.loads(log_lines.as_json_line("ps/0", own, 12.5)) == {
        "time": 3.0,
        "task": "ps/0",
        "level": "ERROR",
        "text": "bad",
    }


@pytest.mark.parametrize("text", ["{", '{"a": 1}', "[" * 10_000, '{"text": ' * 10_000])
def test_what_only_looks_like_an_object_is_text(text):
    assert json.loads(log_lines.as_json_line("ps/0", text, 1.0))["text"] == text


def test_a_record_is_one_line_with_its_traceback(monkeypatch):
    monkeypatch.setenv("JOB_NAME", "worker")
    monkeypatch.setenv("TASK_INDEX", "1")
    try:
        raise ValueError("no")
    except ValueError:
        import sys

        record = logging.LogRecord("tensorflow", 40, "x.py", 1, "it %s", ("broke",), sys.exc_info())
    line = log_lines.JsonFormatter().format(record)
    assert "\n" not in line
    told = json.loads(line)
    assert (told["task"], told["level"]) == ("worker/1", "ERROR")
    assert told["text"].startswith("it broke\nTraceback") and told["text"].endswith("ValueError: no")


def test_logs_and_output_have_the_same_objects_and_the_tail_has_the_text(tmp_path):
    stream = io.StringIO()
    output = JsonOutput(["ps/0", "worker/0"], stream, tmp_path)
    output.line("ps/0", "INFO:a:b")
    output.status("never shown")
    output.note("over")
    output.close()
    first, second = map(json.loads, stream.getvalue().splitlines())
    assert json.loads((tmp_path / "ps-0.log").read_text()) == first
    assert (first["task"], second["task"], second["text"]) == ("ps/0", "launcher", "over")
    assert list(output.tails["ps/0"]) == ["INFO:a:b"]


def test_the_tail_has_the_words_of_an_object_that_a_task_wrote(tmp_path):
    output = JsonOutput(["ps/0"], io.StringIO(), None)
    output.line("ps/0", json.dumps({"time": 3.0, "task": "ps/0", "level": "ERROR", "text": "bad"}))
    assert list(output.tails["ps/0"]) == ["bad"]


def test_a_run_prints_objects_and_its_task_can_be_asked_while_it_runs(tmp_path):
    (tmp_path / "train.py").write_text(
        "import json, os, sys\n"
        "from tensorfleet.cli.known_run import find_run\n"
        "from tensorfleet.cluster.inspection.ask import ask\n"
        "run = find_run('mine')\n"
        "print('asked', ask('main/0', run.address('main/0'), 'stats').content['task'])\n"
        "from tensorfleet.base import logging\n"
        "logging.warning('own words')\n"
    )
    run = Launch(tmp_path, "run", "--log-format", "json", "--name", "mine", "train.py").end()
    assert run.code == 0, run.stderr
    line, logged = [json.loads(text) for text in run.stdout.splitlines()]
    assert (line["task"], line["text"]) == ("main/0", "asked main/0")
    assert (logged["task"], logged["level"], logged["text"]) == ("main/0", "WARNING", "own words")
    log = (tmp_path / "runs" / "mine" / "main-0.log").read_text().splitlines()
    assert [json.loads(text) for text in log] == [line, logged]


def test_a_format_that_there_is_not_is_refused(tmp_path):
    (tmp_path / "train.py").write_text("")
    run = Launch(tmp_path, "run", "--log-format", "xml", "train.py").end()
    assert run.code == 2 and "'xml' is not a format" in run.stderr

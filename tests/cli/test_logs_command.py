"""`tensorfleet logs`."""

import pytest

from tests.support.launching import launched, run

CHATTY = "import sys\nprint('hello from', sys.argv[1:], flush=True)\n"
WAITS = CHATTY + "sys.stdin.readline()\n"


@pytest.fixture
def ended(tmp_path):
    (tmp_path / "train.py").write_text(CHATTY)
    arguments = ("--name", "first", "--workers", "2", "--ps", "0", "train.py", "--", "{task_index}")
    assert run(tmp_path, "run", "--dashboard", "off", *arguments).code == 0
    return tmp_path


def test_the_logs_of_an_ended_run_are_printed_task_by_task(ended):
    done = run(ended, "logs", "first")
    assert done.stdout == "[worker/0] hello from ['0']\n[worker/1] hello from ['1']\n"
    assert run(ended, "logs").stdout == done.stdout  # the last run
    assert run(ended, "logs", "runs/first", "worker/1").stdout == "hello from ['1']\n"
    assert run(ended, "logs", "first", "worker/1", "--tail", "0").stdout == ""


def test_a_missing_run_or_task_is_named_with_what_there_is(ended):
    done = run(ended, "logs", "second")
    assert done.code == 2 and "No run named second" in done.stderr
    done = run(ended, "logs", "first", "ps/0")
    assert done.code == 2 and "has no log of ps/0" in done.stderr and "worker/0, worker/1" in done.stderr


def test_following_prints_new_lines_and_ends_with_the_run(tmp_path):
    (tmp_path / "train.py").write_text(
        "import os, time\nprint('one', flush=True)\nwhile not os.path.exists('go'): time.sleep(0.01)\nprint('two')\n"
    )
    with launched(tmp_path, "run", "--dashboard", "off", "--name", "slow", "train.py") as running:
        running.read_until("one")
        with launched(tmp_path, "logs", "--follow") as logs:
            logs.read_until("one")
            (tmp_path / "go").touch()
            assert logs.end().stdout == "one\ntwo\n"
        running.end()

"""Lines of tasks, the status line, the block about a failure."""

import io
from pathlib import Path
from types import SimpleNamespace

import pytest

import tensorfleet as tf
from tensorfleet.base import run_status as status
from tensorfleet.cli.engines.base import RunOptions, Wanted
from tensorfleet.cli.engines.ssh import SshEngine
from tensorfleet.cli.failure import Reason, reason_in, report
from tensorfleet.cli.output import Output, Progress, _rate
from tensorfleet.cli.plan import Task
from tensorfleet.cli.policy import Failure


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_lines_carry_the_tasks_name_and_are_kept_in_files(tmp_path):
    stream = io.StringIO()
    output = Output(["ps/0", "worker/1"], stream, tmp_path)
    output.line("ps/0", "hello")
    output.line("worker/1", "10%\r20%\r30%")
    output.status("not shown where there is no terminal")
    output.close()
    assert stream.getvalue() == "[ps/0]     hello\n[worker/1] 30%\n"
    assert (tmp_path / "ps-0.log").read_text() == "hello\n"


def test_a_single_task_needs_no_name():
    stream = io.StringIO()
    Output(["main/0"], stream, None).line("main/0", "hello")
    assert stream.getvalue() == "hello\n"


def test_terminals_get_colours_and_a_status_line_that_lines_do_not_break():
    stream = Terminal()
    output = Output(["ps/0", "worker/0"], stream, None)
    output.status("working")
    output.line("ps/0", "hello")
    output.close()
    text = stream.getvalue()
    assert "\x1b[36m[ps/0]" in text
    assert text.count("working") == 2
    assert text.endswith("\r\x1b[2K")


def test_progress_is_read_from_what_tasks_print():
    progress = Progress(0.0)
    progress.line("worker/0", "1447.3: Worker 0: training step 10 done (global step: 20)", 1.0)
    progress.line("worker/0", "1448.3: Worker 0: training step 60 done (global step: 120)", 3.0)
    progress.line("worker/1", "nothing here", 3.0)
    text = progress.text(65.0, 3, 4)
    for part in ("0:01:05", "3/4 tasks", "step 120 (50/s)", "worker/0 25/s"):
        assert part in text
    progress.line("worker/1", "INFO:tensorflow:global_step/sec: 31.5", 3.0)
    assert "step 120 (31.5/s)" in progress.text(65.0, 3, 4)
    progress.line("worker/1", "INFO:tensorflow:global_step/sec: 0", 3.0)
    assert "step 120 (50/s)" in progress.text(65.0, 3, 4)


def test_each_worker_has_its_own_rate():
    progress = Progress(0.0)
    for now in range(3):
        progress.line("worker/0", f"step {10 * now} (global step {12 * now + 1})", float(now))
        progress.line("worker/1", f"step {2 * now} (global step {12 * now + 2})", float(now))
    assert "step 26 (12.5/s)  |  worker/0 10/s  |  worker/1 2/s" in progress.text(3.0, 3, 3)


def test_a_worker_tells_its_own_rate_also_where_only_the_chief_prints(tmp_path, monkeypatch):
    path = tmp_path / "worker-1.status"
    monkeypatch.setattr(status, "_path", lambda: str(path))
    monkeypatch.setattr(status, "_since", 0.0)
    with tf.Graph().as_default():
        step = tf.train.get_or_create_global_step()
        with tf.train.MonitoredSession() as session:
            for now in (100.0, 100.2, 104.0):
                with monkeypatch.context() as moment:
                    moment.setattr(status, "time", SimpleNamespace(monotonic=lambda now=now: now))
                    session.run(step)
    progress = Progress(0.0, {"worker/1": path})
    assert "worker/1 0.5/s" in progress.text(1.0, 2, 2)


TRACE = """step 3
Traceback (most recent call last):
  File "/home/me/old.py", line 1, in <module>
ValueError: an earlier one
Traceback (most recent call last):
  File "/home/me/train.py", line 50, in <module>
    tf.app.run()
  File "/opt/lib/python3.11/site-packages/absl/app.py", line 10, in run
    main()
  File "/home/me/train.py", line 41, in main
    sess.run(train)
    ^^^^^^^^^^^^^^^
  File "/opt/lib/python3.11/site-packages/tensorfleet/session.py", line 10, in run
    raise error
tensorfleet.errors.InvalidArgumentError: Cannot place 'w'
  made at train.py:12
""".splitlines()


def test_the_reason_is_the_last_traceback_and_the_scripts_own_line():
    reason = reason_in(TRACE, "/home/me/train.py")
    assert reason.error.splitlines() == [
        "tensorfleet.errors.InvalidArgumentError: Cannot place 'w'",
        "  made at train.py:12",
    ]
    assert reason.place == "/home/me/train.py:41"
    assert reason.code == "sess.run(train)"


def test_a_traceback_may_begin_behind_what_was_printed():
    lines = [line.replace("Traceback", "step 1 Traceback") for line in TRACE]
    assert reason_in(lines, "/home/me/train.py") == reason_in(TRACE, "/home/me/train.py")


def test_without_a_traceback_the_last_line_is_the_reason():
    result = reason_in(["a", "usage: no such flag", ""], "train.py")
    assert result == Reason("usage: no such flag", is_last_line=True)
    assert reason_in([], "train.py") == Reason()


def test_the_lines_about_who_has_looked_are_not_the_last_words_of_a_task():
    looked = "W1119 04:01:06.632900 140165230880448 topics.py:117] Inspected by 4bd3-2.0: stacks {}"
    as_json = (
        '{"time": 1.0, "task": "worker/1", "level": "WARNING", "text": "Inspected by 4bd3-2.0: stacks {}"}'
    )
    assert reason_in(["loss 3", looked, as_json], "train.py").error == "loss 3"


def test_the_block_names_task_code_error_line_and_time():
    block = report(
        Failure("worker/1", 1, 10.0),
        Reason("E: x", "train.py:3", "f()"),
        15.2,
        Path("r/worker-1.log"),
        ["worker/0"],
    )
    assert block.splitlines() == [
        "FAILED: worker/1 exited with code 1, 5 s ago",
        "  E: x",
        "  at train.py:3:  f()",
        "  Failed later: worker/0.",
        "  Log: r/worker-1.log",
    ]


def test_the_block_names_signals():
    assert (
        report(Failure("ps/0", -9, 1.0), Reason(), 1.5, None, [])
        == "FAILED: ps/0 was killed by SIGKILL, just now"
    )


def test_a_last_line_is_not_taken_for_the_reason():
    block = report(Failure("worker/0", -9, 1.0), reason_in(["step 3"], "train.py"), 1.5, None, [])
    assert block.splitlines() == [
        "FAILED: worker/0 was killed by SIGKILL, just now",
        "  Last line of its log: step 3",
    ]


def test_the_block_names_the_host_and_how_to_try_it(tmp_path):
    file = tmp_path / "cluster.yaml"
    file.write_text("hosts: {beta: {address: 10.0.0.2, user: me, port: 2200}}\njobs: {worker: {beta: 1}}\n")
    engine = SshEngine(RunOptions("train", tmp_path / "train.py", cluster_file=file))
    host = engine.preview([Wanted("worker", 0, False)])["worker/0"].host
    task = Task("worker", 0, "10.0.0.2:2222", [], {}, host)
    reason = reason_in(["Host key verification failed."], "train.py")
    failure = Failure("worker/0", 255, 1.0)
    block = report(failure, reason, 1.5, None, [], host.shown, engine.advice(task, 255))
    assert block.splitlines() == [
        "FAILED: worker/0 on beta (10.0.0.2) exited with code 255, just now",
        "  ssh could not reach me@10.0.0.2, or lost the connection. Test it with:",
        "  ssh -o BatchMode=yes -o ConnectTimeout=15 -o ServerAliveInterval=10 -o ServerAliveCountMax=3 -p 2200 "
        "-- me@10.0.0.2 true",
        "  Last line of its log: Host key verification failed.",
    ]
    assert engine.advice(task, 1) == []


def test_the_status_has_the_loss_among_the_summaries_of_tasks(tmp_path, monkeypatch):
    paths = {label: tmp_path / f"{label}.status" for label in ("a", "b")}
    progress = Progress(0.0, paths)
    assert "loss" not in progress.text(1.0, 2, 2)
    monkeypatch.setattr(status, "_next", 0.0)
    monkeypatch.setattr(status, "_path", lambda: str(paths["b"]))
    writer = tf.summary.FileWriter(str(tmp_path / "events"))
    said = tf.Summary(
        value=[
            tf.Summary.Value(tag="rate", simple_value=1),
            tf.Summary.Value(tag="Loss_1", simple_value=0.25),
        ]
    )
    writer.add_summary(said, 40)
    writer.close()
    paths["a"].write_text("39 7.5")
    assert "step 40  |  loss 0.25" in progress.text(1.0, 2, 2)
    paths["b"].write_text("garbage")
    assert "step 39  |  loss 7.5" in progress.text(1.0, 2, 2)


@pytest.mark.parametrize(
    "rate, text", [(0.125, "0.125/s"), (42.71, "42.7/s"), (1030.4, "1,030/s"), (99.96, "100/s")]
)
def test_a_rate_has_three_digits_and_no_exponent(rate, text):
    assert _rate(rate) == text

"""`--tui`: a pane for each task."""

import io

from tensorfleet.cli.panes import Panes


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_each_task_has_a_pane_with_its_last_lines(tmp_path):
    stream = Terminal()
    panes = Panes(["ps/0", "worker/0"], tmp_path, stream)
    panes.line("ps/0", "listening")
    panes.line("worker/0", "step 1")
    panes.status("0:00:01")
    panes._display.refresh()
    panes.close()
    text = stream.getvalue()
    for part in ("ps/0", "worker/0", "listening", "step 1", "0:00:01"):
        assert part in text
    assert (tmp_path / "worker-0.log").read_text() == "step 1\n"


def test_without_a_terminal_lines_come_one_after_another(tmp_path):
    stream = io.StringIO()
    panes = Panes(["ps/0", "worker/0"], tmp_path, stream)
    panes.line("ps/0", "listening")
    panes.close()
    assert stream.getvalue() == "[ps/0]     listening\n"


def test_panes_say_when_there_are_no_logs(tmp_path):
    (tmp_path / "runs").write_text("a file")
    stream = io.StringIO()
    Panes(["ps/0", "worker/0"], tmp_path / "runs", stream).close()
    assert f"cannot write the log {tmp_path / 'runs'}: File exists." in stream.getvalue()


def test_what_the_launcher_says_comes_after_the_panes(tmp_path):
    stream = Terminal()
    panes = Panes(["ps/0", "worker/0"], tmp_path, stream)
    panes.note("worker/0 died; restarting it.")
    assert "worker/0 died" not in stream.getvalue()
    panes.close()
    assert "tensorfleet: worker/0 died; restarting it." in stream.getvalue()

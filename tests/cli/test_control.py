"""Other commands ask a running launcher over a Unix socket, and nobody else can."""

import json
import socket
import threading
from dataclasses import dataclass
from pathlib import Path

import pytest
import typer

from tensorfleet.cli import control, registry
from tensorfleet.cli.control import ControlError, ControlServer, Handler, ask
from tests.support.waiting import SECONDS, until


@dataclass(frozen=True)
class Count:
    """Asks for the numbers up to one."""

    upto: int
    unit: str = ""


class Launcher:
    """Counts for whoever asks."""

    def __init__(self):
        self.waits = threading.Event()
        self.closed = threading.Event()

    def count(self, request):
        try:
            if request.upto > 100:
                raise ControlError(f"{request.upto} is too much. Ask for less.")
            for number in range(request.upto):
                yield {}
                yield {"number": number, "unit": request.unit}
        finally:
            self.closed.set()

    def fail(self, request):
        yield {"number": 1 // request.upto}

    def wait(self, request):
        try:
            while True:
                yield {"waits": True}
                self.waits.wait(0.02)
        finally:
            self.closed.set()


@pytest.fixture(autouse=True)
def state(tmp_path, monkeypatch):
    monkeypatch.setenv("TENSORFLEET_STATE", str(tmp_path / "runs"))
    return tmp_path / "runs"


@pytest.fixture
def launcher():
    return Launcher()


@pytest.fixture
def entry():
    result = registry.Entry("digits", "train.py", None, "a secret")
    yield result
    result.remove()


@pytest.fixture
def server(launcher, entry):
    handlers = {name: Handler(Count, getattr(launcher, name)) for name in ("count", "fail", "wait")}
    result = ControlServer(entry, handlers)
    entry.update("ps/0", 1, None, "running")
    yield result
    result.close()


def said(entry, text):
    """What the launcher answers to a line, as it is."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as channel:
        channel.settimeout(SECONDS)
        channel.connect(str(entry.path.with_suffix(".sock")))
        channel.sendall(text if isinstance(text, bytes) else json.dumps(text).encode() + b"\n")
        with channel.makefile() as file:
            return [json.loads(line) for line in file]


def test_a_run_is_asked_by_its_name_and_answers_in_lines(server):
    assert list(ask("digits", {"do": "count", "upto": 2, "unit": "m"})) == [
        {"number": 0, "unit": "m"},
        {"number": 1, "unit": "m"},
    ]
    assert len(list(ask(None, {"do": "count", "upto": 3}))) == 3


def test_what_the_launcher_refuses_is_an_error_for_the_user(server):
    with pytest.raises(ControlError, match=r"^101 is too much\. Ask for less\.$"):
        list(ask("digits", {"do": "count", "upto": 101}))


def test_a_failure_of_the_launcher_is_told_and_the_next_request_is_answered(server):
    with pytest.raises(ControlError, match="The launcher failed: ZeroDivisionError"):
        list(ask("digits", {"do": "fail", "upto": 0}))
    assert list(ask("digits", {"do": "count", "upto": 0})) == []


@pytest.mark.parametrize("token", [None, "", "another", 7, "schlüssel"])
def test_nothing_is_read_without_the_token_of_the_run(server, entry, launcher, token):
    request = {"do": "count", "upto": "nonsense"} | ({} if token is None else {"token": token})
    assert said(entry, request) == [{"error": "The request does not have the token of the run."}]
    assert not launcher.closed.is_set()


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"do": "fly"}, r"cannot be asked for 'fly'\. It knows: count, fail, wait\."),
        ({}, "cannot be asked for None"),
        ({"do": ["count"]}, "cannot be asked for"),
        ({"do": "count"}, "'upto' is missing"),
        ({"do": "count", "upto": "2"}, "'upto' is not an integer"),
        ({"do": "count", "upto": -2}, "'upto' is negative"),
        ({"do": "count", "upto": 2, "colour": 1}, "'colour' is not a field"),
    ],
)
def test_requests_are_checked_field_by_field(server, fields, error):
    with pytest.raises(ControlError, match=error):
        list(ask("digits", fields))


@pytest.mark.parametrize("text", [b"\n", b"[]\n", b"nonsense\n", b"\xff\x00\n", b"[" * 70_000 + b"\n"])
def test_malformed_requests_are_refused(server, entry, text):
    try:
        assert said(entry, text) == [{"error": "The request is not a JSON object."}]
    except (ConnectionResetError, BrokenPipeError):  # it does not read a line that is too long to its end
        assert len(text) > 65536
    assert list(ask("digits", {"do": "count", "upto": 0})) == []


def test_a_request_ends_when_who_asked_has_gone(server, launcher):
    lines = ask("digits", {"do": "wait", "upto": 0})
    assert next(lines) == {"waits": True}
    lines.close()
    assert launcher.closed.wait(SECONDS)


def test_the_end_of_a_run_ends_its_requests(server, launcher, entry):
    lines = ask("digits", {"do": "wait", "upto": 0})
    assert next(lines) == {"waits": True}
    server.close()
    with pytest.raises(ControlError, match=r"The run is over\.|ended before it had answered|cannot be asked"):
        list(lines)
    assert launcher.closed.wait(SECONDS)
    assert not entry.path.with_suffix(".sock").exists()
    until(lambda: not any(t.name.startswith("control") for t in threading.enumerate()), "the end of threads")


def test_too_many_requests_at_once_are_turned_away(server, launcher):
    asked = [ask("digits", {"do": "wait", "upto": 0}) for _ in range(control._MAX_ASKED_AT_ONCE)]
    for lines in asked:
        next(lines)
    with pytest.raises(ControlError, match=r"ended before it had answered|cannot be asked"):
        list(ask("digits", {"do": "count", "upto": 1}))
    for lines in asked:
        lines.close()
    until(lambda: not server._asking, "the end of the requests")
    assert len(list(ask("digits", {"do": "count", "upto": 1}))) == 1


def test_only_this_user_can_connect(server, entry):
    path = entry.path.with_suffix(".sock")
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700


def test_a_run_without_a_token_has_one_for_its_control_socket():
    entry = registry.Entry("digits", "train.py", None, "")
    server = ControlServer(entry, {"count": Handler(Count, Launcher().count)})
    entry.update("ps/0", 1, None, "running")
    assert len(list(ask("digits", {"do": "count", "upto": 1}))) == 1
    with pytest.raises(ControlError, match="does not have the token"):
        list(control._asked("digits", str(entry.path.with_suffix(".sock")), {"do": "count", "token": ""}))
    server.close()


def test_a_long_path_of_the_folder_does_not_matter(tmp_path, monkeypatch):
    monkeypatch.setenv("TENSORFLEET_STATE", str(tmp_path / ("long" * 30)))
    entry = registry.Entry("digits", "train.py", None, "secret")
    server = ControlServer(entry, {"count": Handler(Count, Launcher().count)})
    entry.update("ps/0", 1, None, "running")
    assert len(list(ask("digits", {"do": "count", "upto": 1}))) == 1
    (run,) = registry.runs()
    server.close()
    assert not Path(run["control"]["socket"]).parent.exists()


def test_a_run_without_a_control_socket_says_what_may_be_the_reason(entry):
    entry.update("ps/0", 1, None, "running")
    with pytest.raises(ControlError, match=r"has no control socket\. Was it started by an older version"):
        ask("digits", {"do": "count"})


def test_a_launcher_that_has_gone_is_an_error(server, entry):
    server.close()
    with pytest.raises(ControlError, match="The launcher of digits cannot be asked: "):
        list(ask("digits", {"do": "count", "upto": 1}))


def test_a_run_that_is_not_there_is_a_bad_parameter(server):
    with pytest.raises(typer.BadParameter, match=r"No run named other on this machine\. Running: digits\."):
        ask("other", {"do": "count"})

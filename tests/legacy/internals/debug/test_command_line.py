"""The command line of tfdbg, typed."""

import builtins

import pytest

import tensorfleet as tf

debug = tf.python.debug


@pytest.fixture
def typed(monkeypatch):
    """Has lines typed, one at each prompt; then the input is at its end."""

    def begin(*lines):
        left = list(lines)

        def take(prompt=""):
            if not left:
                raise EOFError
            return left.pop(0)

        monkeypatch.setattr(builtins, "input", take)
        return left

    return begin


@pytest.fixture
def bad():
    x = tf.placeholder(tf.float32, [2], name="x")
    return x, tf.add(tf.log(x, name="root"), 1.0, name="sum")


def _run(session, bad, *values):
    x, y = bad
    wrapped = debug.LocalCLIDebugWrapperSession(session, ui_type="readline")
    return [wrapped.run(y, {x: [value, 1.0]})[1] for value in values]


def test_commands_after_a_run_look_at_its_tensors(session, bad, typed, capsys):
    typed(
        "run",
        "pt root:0[1] -s",
        "ni -d sum",
        "li -r sum",
        "lo root",
        "ps test_command_line.py",
        "ri",
        "run",
        "run -n",
    )
    assert _run(session, bad, 1.0, 2.0) == [1.0, 1.0]
    told = capsys.readouterr().out
    assert "3 dumped tensor(s):" in told and "Log      root:0" in told
    assert 'Tensor "root:0:DebugIdentity[1]"' in told and "float32 scalar, min 0" in told
    assert "[Log] root" in told and "|  |- (2) x" in told and "|- (1) sum" in told
    assert "[*] L38 " in told.replace("L37 ", "L38 ").replace("L36 ", "L38 ") and "Fetches:" in told


def test_run_until_a_filter_passes_stops_at_the_run_that_has_a_nan(session, bad, typed, capsys):
    left = typed("run -f has_inf_or_nan", "lt -f has_inf_or_nan", "run", "exit")
    with pytest.raises(SystemExit):
        _run(session, bad, 1.0, 2.0, -1.0, 3.0)
    told = capsys.readouterr().out
    assert 'run #3, filter "has_inf_or_nan" passed' in told and "run-end: run #1" not in told
    assert "2 dumped tensor(s) passing filter" in told
    assert left == []


def test_run_so_many_times_asks_at_the_last(session, bad, typed, capsys):
    typed("run -t 3", "exit")
    with pytest.raises(SystemExit):
        _run(session, bad, 1.0, 1.0, 1.0, 1.0)
    told = capsys.readouterr().out
    assert "run-end: run #3" in told and "run-end: run #2" not in told


def test_what_cannot_be_done_is_said_and_asked_again(session, bad, typed, capsys):
    typed(
        "lt",
        "run -f none",
        "run -x",
        "run",
        "foo",
        "pt none",
        "ni none",
        "lt -f none",
        "pt root:0[a]",
        "run",
        "run -n",
    )
    _run(session, bad, 1.0, 1.0)
    told = capsys.readouterr().out
    for text in (
        "Before a run there are `run` and `exit`",
        "There is no tensor filter named 'none'",
        "run: unrecognized arguments: -x",
        "No command 'foo'",
        "No dump of 'none'",
        "There is no node named 'none'",
        "[a] is not a slice",
    ):
        assert text in told


def test_a_run_that_fails_is_shown_and_fails(session, typed, capsys):
    x = tf.placeholder(tf.float32, [], name="x")
    y = tf.check_numerics(x, "bad number")
    typed("run", "run")
    wrapped = debug.LocalCLIDebugWrapperSession(session)
    with pytest.raises(tf.errors.InvalidArgumentError, match="bad number"):
        wrapped.run(y, {x: float("nan")})
    assert "The run failed: " in capsys.readouterr().out


def test_where_nobody_types_steps_run_through(session, bad, typed, capsys):
    typed()
    assert _run(session, bad, 1.0, 2.0) == [1.0, 1.0]
    assert capsys.readouterr().err.count("nobody types") == 1

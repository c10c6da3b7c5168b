"""Messages that go to the log and to an event file: `tensorflow.python.training.tensorboard_logging`."""

from __future__ import annotations

import time
from typing import Any

from tensorfleet.base import logging
from tensorfleet.base.naming import export, find, publish

_HERE = "python.training.tensorboard_logging."
_LEVELS = ("DEBUG", "INFO", "WARN", "ERROR", "FATAL")
_IN_EVENTS = {"DEBUG": "DEBUGGING"}
_UNSET = object()

for _level in _LEVELS:
    publish(_level, _HERE + _level)


class _State:
    """Log messages in event files, and where they are written."""

    verbosity = "INFO"
    writer: Any = _UNSET


@export(_HERE + "get_verbosity")
def get_verbosity() -> str:
    """The least level that goes to event files."""
    return _State.verbosity


@export(_HERE + "set_verbosity")
def set_verbosity(verbosity: str) -> None:
    """Sets the least level that goes to event files; the log has its own."""
    _check(verbosity)
    _State.verbosity = verbosity


def _check(level: str) -> None:
    if level not in _LEVELS:
        raise ValueError(f"Unknown verbosity: {level!r}. Use one of {', '.join(_LEVELS)}.")


@export(_HERE + "set_summary_writer")
def set_summary_writer(summary_writer: Any) -> None:
    """Sets the writer of the event file; None for the log alone."""
    _State.writer = summary_writer


@export(_HERE + "_clear_summary_writer")
def clear_summary_writer() -> None:
    """Forgets the writer: the next message is an error."""
    _State.writer = _UNSET


@export(_HERE + "log")
def log(level: str, message: str, *args: Any) -> None:
    """A message with its arguments, to the log and to the event file."""
    _check(level)
    if _State.writer is _UNSET:
        raise RuntimeError("set_summary_writer must be called before the first message.")
    if _State.writer is not None and _LEVELS.index(level) >= _LEVELS.index(_State.verbosity):
        kinds = find("LogMessage")
        text = message % args if args else message
        result = kinds(level=kinds.Level.Value(_IN_EVENTS.get(level, level)), message=text)
        _State.writer.add_event(find("Event")(wall_time=time.time(), log_message=result))
    logging.log(getattr(logging, level), message, *args)


@export(_HERE + "debug")
def debug(message: str, *args: Any) -> None:
    """A message of the level DEBUG."""
    log("DEBUG", message, *args)


@export(_HERE + "info")
def info(message: str, *args: Any) -> None:
    """A message of the level INFO."""
    log("INFO", message, *args)


@export(_HERE + "warn")
def warn(message: str, *args: Any) -> None:
    """A message of the level WARN."""
    log("WARN", message, *args)


@export(_HERE + "error")
def error(message: str, *args: Any) -> None:
    """A message of the level ERROR."""
    log("ERROR", message, *args)


@export(_HERE + "fatal")
def fatal(message: str, *args: Any) -> None:
    """A message of the level FATAL."""
    log("FATAL", message, *args)

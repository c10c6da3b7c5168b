"""Lines of logs as JSON objects: time, task, level where it is known, text."""

from __future__ import annotations

import json
import logging
import os
import re
from typing import Any

from tensorfleet.base import settings

_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
#: how levels begin a line: Python's BASIC_FORMAT, absl's and TensorFlow's letter with the date, and plain words
_PREFIXES: tuple[tuple[re.Pattern[str], dict[str, int]], ...] = (
    (re.compile(r"(DEBUG|INFO|WARNING|WARN|ERROR|CRITICAL|FATAL):"), {}),
    (re.compile(r"([DIWEF])\d{4} \d\d:\d\d:"), {"D": 0, "I": 1, "W": 2, "E": 3, "F": 4}),
    (
        re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d\S* ?:? ([DIWEF]) "),
        {"D": 0, "I": 1, "W": 2, "E": 3, "F": 4},
    ),
)
#: how a task begins the line that says who has looked into it (cluster/inspection/topics.py)
INSPECTED = "Inspected by "
_OTHER_NAMES = {"WARN": "WARNING", "FATAL": "CRITICAL"}


def level_of(text: str) -> str | None:
    """The level that a line of output names at its beginning, or None."""
    for pattern, letters in _PREFIXES:
        match = pattern.match(text)
        if match:
            name = match[1]
            return _LEVELS[letters[name]] if letters else _OTHER_NAMES.get(name, name)
    return None


def own_words(lines: list[str]) -> list[str]:
    """Lines of a task's log without those that say who has looked into it: they tell nothing of its end."""
    return [line for line in lines if f"] {INSPECTED}" not in line and f'"text": "{INSPECTED}' not in line]


def as_json_line(task: str, text: str, now: float, level: str | None = None) -> str:
    """One line of output as a JSON object. One that is an object already, as TENSORFLEET_LOG_FORMAT=json makes it, is kept."""
    if text.startswith("{"):
        try:
            known = json.loads(text)
        except (ValueError, RecursionError):
            known = None
        if isinstance(known, dict) and {"time", "text"} <= known.keys():
            return json.dumps({**known, "task": task})
    line: dict[str, Any] = {"time": round(now, 6), "task": task}
    found = level or level_of(text)
    if found:
        line["level"] = found
    return json.dumps({**line, "text": text})


def plain_text(text: str) -> str:
    """What a line says, without the object around it if it is one."""
    if text.startswith("{"):
        try:
            known = json.loads(text)
        except (ValueError, RecursionError):
            return text
        if isinstance(known, dict) and {"time", "text"} <= known.keys():
            return str(known["text"])
    return text


class JsonFormatter(logging.Formatter):
    """Formats records as JSON objects of one line, with tracebacks in the text."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as a line."""
        text = logging.Formatter("%(message)s").format(record)
        level = _OTHER_NAMES.get(record.levelname, record.levelname)
        return json.dumps(
            {"time": round(record.created, 6), "task": own_name(), "level": level, "text": text}
        )


def own_name() -> str:
    """The name of this task, as its launcher tells it, or else its process."""
    told = settings.INSPECT().partition("@")[0]
    job, index = os.environ.get("JOB_NAME", ""), os.environ.get("TASK_INDEX", "")
    return told or (f"{job}/{index}" if job and index else f"pid {os.getpid()}")

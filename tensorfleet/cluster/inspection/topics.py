"""The topics of an INSPECT message, and which function answers each.

A topic is a name, a function from options (a JSON object) to a report, and whether the task's log says that somebody
asked. A new topic is a line in `_topics`. Functions may take as long as they need: they run in the thread of the
connection that asks, and hold up nobody else.
"""

from __future__ import annotations

import dataclasses
import difflib
import functools
import json
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from tensorfleet.base import errors, log_lines, logging, settings

if TYPE_CHECKING:
    from tensorfleet.cluster.server import Server

#: A JSON object: what is asked exactly, or what is told.
Options: TypeAlias = Mapping[str, Any]
#: The names of tensors or operations.
Names: TypeAlias = Sequence[str]

_MAX_TEXT = 10_000
_MAX_NAME = 1000


@dataclass(frozen=True, slots=True)
class Report:
    """What a task tells on a topic: a JSON object, and arrays that go along as they are."""

    content: dict[str, Any] = field(default_factory=dict)
    arrays: Sequence[np.ndarray[Any, Any]] = ()


@dataclass(frozen=True, slots=True)
class Topic:
    """How one topic is answered."""

    #: The server is the one that was asked; None in a task that has none.
    answer: Callable[[Server | None, Options], Report]
    #: whether the log says that somebody asked: not for what the page asks by itself
    is_logged: bool = True
    #: whether it shows values of tensors, or lets the asker run code: not with TENSORFLEET_INSPECTION=stats
    shows_values: bool = False
    #: whether it runs what the asker types: only for askers on the task's own machine. No code comes over the network.
    runs_code: bool = False


@functools.cache
def _topics() -> dict[str, Topic]:
    from tensorfleet.cluster.inspection import (
        attach,
        clock,
        graph,
        graphs,
        leases,
        numerics,
        profile,
        stacks,
        stats,
        task_settings,
        traces,
        watch,
    )

    # Imported at the first question: most tasks are never asked.
    return {
        "clock": Topic(clock.report, is_logged=False),
        "stacks": Topic(stacks.report),
        "watch": Topic(watch.start, shows_values=True),
        "watch_take": Topic(watch.take, is_logged=False, shows_values=True),
        "numerics": Topic(numerics.start, shows_values=True),
        "numerics_take": Topic(numerics.take, is_logged=False, shows_values=True),
        "attach": Topic(attach.report, shows_values=True),
        "pdb": Topic(attach.open_terminal, shows_values=True, runs_code=True),
        "pdb_talk": Topic(attach.talk, is_logged=False, shows_values=True, runs_code=True),
        "profile": Topic(profile.report),
        "withdraw": Topic(leases.report, is_logged=False),
        "made_at": Topic(graphs.made_at, is_logged=False),
        "trace_start": Topic(traces.start),
        "trace_take": Topic(traces.take, is_logged=False),
        "graph": Topic(graph.report, is_logged=False),
        "settings": Topic(task_settings.report, is_logged=False),
        "stats": Topic(stats.report, is_logged=False),
    }


def answer(
    server: Server | None, asker: str, topic: str, options: str, is_on_this_machine: bool = True
) -> Report:
    """Answers a question. Raises InvalidArgumentError for an unknown topic and for options that do not fit it."""
    known = _topics()
    if topic not in known:
        near = difflib.get_close_matches(topic, known, 1)
        meant = f"Did you mean {near[0]!r}?" if near else f"There are {', '.join(sorted(known))}."
        raise errors.InvalidArgumentError(None, None, f"No topic {topic[:40]!r} to inspect. {meant}")
    _need_allowed(topic, known[topic])
    if known[topic].runs_code and not is_on_this_machine:
        text = f"{topic!r} runs what you type, so a task answers it only on its own machine. Run the command there, by ssh."
        raise errors.PermissionDeniedError(None, None, text)
    try:
        wanted = json.loads(options or "{}")
    except (ValueError, RecursionError):
        wanted = None
    if not isinstance(wanted, dict):
        raise errors.InvalidArgumentError(None, None, f"The options of {topic!r} must be a JSON object.")
    if known[topic].is_logged:
        # On one line: a line of the asker's own would look like one of the task.
        asked = " ".join(f"{asker[:80]}: {topic} {options[:200]}".split())
        logging.warning("%s%s", log_lines.INSPECTED, asked)
    return known[topic].answer(server, wanted)


def _need_allowed(name: str, topic: Topic) -> None:
    """Raises PermissionDeniedError for what TENSORFLEET_INSPECTION does not allow."""
    allowed = settings.INSPECTION()
    if allowed == "off" or (allowed == "stats" and topic.shows_values):
        text = f"This task does not answer {name!r}: TENSORFLEET_INSPECTION is {allowed!r}. Start it with 'full' to allow it."
        raise errors.PermissionDeniedError(None, None, text)


@dataclass(frozen=True, slots=True)
class NoOptions:
    """For a topic that tells everything at once."""


def chosen(cls: type[Any], options: Options) -> Any:
    """Options as a dataclass, with its defaults.

    Raises InvalidArgumentError for a name that it does not have, and for a value that is not of its type.
    """
    fields = {f.name for f in dataclasses.fields(cls)}
    unknown = sorted(set(options) - fields)
    if unknown:
        raise errors.InvalidArgumentError(
            None,
            None,
            f"Unknown option {unknown[0][:40]!r}. There are {', '.join(sorted(fields)) or 'none'}.",
        )
    hints = typing.get_type_hints(cls)
    for name, value in options.items():
        _need_type(name, value, hints[name])
    return cls(**options)


def _need_type(name: str, value: object, hint: object) -> None:
    """Raises InvalidArgumentError for a value that JSON has and the option cannot take."""
    kinds = typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
    if not any(_KINDS[kind][1](value) for kind in kinds):
        raise errors.invalid(f"{name} must be {_KINDS[kinds[0]][0]}, not {_shown(value)}.")


def _shown(value: object) -> str:
    # Long numbers cannot be written in digits at all.
    return "a number with many digits" if type(value) is int and abs(value) >> 64 else repr(value)[:40]


def _is_number(value: object) -> bool:
    # Not NaN, and nothing that a clock cannot add.
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e15


def _is_text(value: object) -> bool:
    return isinstance(value, str) and len(value) <= _MAX_TEXT


_KINDS: dict[object, tuple[str, Callable[[object], bool]]] = {
    bool: ("true or false", lambda value: isinstance(value, bool)),
    int: ("a whole number of at most 15 digits", lambda value: type(value) is int and abs(value) < 10**15),
    float: ("a number", _is_number),
    str: (f"a text of at most {_MAX_TEXT} characters", _is_text),
    Names: (
        "a list of names",
        lambda value: (
            isinstance(value, list) and all(isinstance(v, str) and len(v) <= _MAX_NAME for v in value)
        ),
    ),
    type(None): ("null", lambda value: value is None),
}

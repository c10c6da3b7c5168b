"""A strict check of Chrome traces: what viewers silently drop or draw wrongly is an error here.

`problems_of(json.loads(Path("trace.json").read_text()))` gives the problems of a file.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Mapping
from typing import Any

_REQUIRED = {"ph", "pid", "tid", "ts", "name"}
_PHASES = {"M", "X", "s", "f"}
_METADATA = {"process_name", "process_sort_index", "thread_name", "thread_sort_index"}
_UNITS = ("ms", "ns")


def problems_of(trace: Any) -> list[str]:
    """What is wrong with a trace in the JSON object format; nothing if it is right.

    It must be JSON, every event complete, times sorted and not negative, slices of a thread nested, every thread and process
    named, and every arrow have one beginning inside a slice and one later end inside a slice.
    """
    try:
        trace = json.loads(json.dumps(trace, allow_nan=False))
    except (TypeError, ValueError) as error:
        return [f"It is not JSON: {error}"]
    if not isinstance(trace, dict) or not isinstance(trace.get("traceEvents"), list):
        return ["It is not an object with a list `traceEvents`."]
    if trace.get("displayTimeUnit", "ms") not in _UNITS:
        return [f"displayTimeUnit is {trace['displayTimeUnit']!r}."]
    events = trace["traceEvents"]
    problems = [p for event in events for p in _of_event(event)]
    if problems:
        return problems
    timed = [e for e in events if e["ph"] != "M"]
    if any(a["ts"] > b["ts"] for a, b in itertools.pairwise(timed)):
        problems.append("The events are not sorted by time.")
    slices = _by_thread(e for e in events if e["ph"] == "X")
    for thread, own in slices.items():
        problems += _of_thread(thread, own)
    return problems + _of_names(events) + _of_arrows(events, slices)


def _of_event(event: Any) -> list[str]:
    if not isinstance(event, dict) or not event.keys() >= _REQUIRED:
        return [f"An event lacks {sorted(_REQUIRED - set(event))}: {event}"]
    if event["ph"] not in _PHASES:
        return [f"An event has the phase {event['ph']!r}."]
    numbers = [event["ts"], *([event.get("dur")] if event["ph"] == "X" else [])]
    if not all(isinstance(n, (int, float)) and not isinstance(n, bool) and n >= 0 for n in numbers):
        return [f"A time is not a number of 0 or more: {event}"]
    if not all(isinstance(event[key], int) for key in ("pid", "tid")) or not isinstance(event["name"], str):
        return [f"pid and tid must be whole numbers, and name a text: {event}"]
    if event["ph"] == "M" and event["name"] not in _METADATA:
        return [f"There is no metadata event {event['name']!r}."]
    if event["ph"] in "sf" and not {"id", "cat"} <= event.keys():
        return [f"An end of an arrow lacks its id or category: {event}"]
    return []


def _nanoseconds(micros: float) -> int:
    return round(micros * 1000)


def _by_thread(slices: Iterable[dict[str, Any]]) -> dict[tuple[int, int], list[tuple[int, int, str]]]:
    """Beginning, end and name of the slices of each thread, the outer ones first."""
    result: dict[tuple[int, int], list[tuple[int, int, str]]] = {}
    for e in slices:
        began = _nanoseconds(e["ts"])
        own = result.setdefault((e["pid"], e["tid"]), [])
        own.append((began, began + _nanoseconds(e["dur"]), e["name"]))
    for own in result.values():
        own.sort(key=lambda s: (s[0], -s[1]))
    return result


def _of_thread(thread: tuple[int, int], slices: list[tuple[int, int, str]]) -> list[str]:
    around: list[tuple[int, int, str]] = []
    for one in slices:
        while around and around[-1][1] <= one[0]:
            around.pop()
        if around and one[1] > around[-1][1]:
            return [f"In thread {thread}, {one} begins inside {around[-1]} and ends after it."]
        around.append(one)
    return []


def _of_names(events: list[dict[str, Any]]) -> list[str]:
    named = {(e["name"], e["pid"], e["tid"]) for e in events if e["ph"] == "M"}
    processes = {e["pid"] for e in events if e["ph"] != "M"}
    threads = {(e["pid"], e["tid"]) for e in events if e["ph"] != "M"}
    lacks = [f"Process {pid} has no name." for pid in processes if ("process_name", pid, 0) not in named]
    lacks += [f"Thread {t} has no name." for t in threads if ("thread_name", *t) not in named]
    ids = [tid for _, tid in threads]
    return lacks + ([] if len(set(ids)) == len(ids) else ["Two processes have a thread of the same number."])


def _of_arrows(
    events: list[dict[str, Any]], slices: Mapping[tuple[int, int], list[tuple[int, int, str]]]
) -> list[str]:
    ends: dict[tuple[str, str, Any], dict[str, dict[str, Any]]] = {}
    for e in events:
        if e["ph"] in "sf":
            both = ends.setdefault((e["cat"], e["name"], e["id"]), {})
            if e["ph"] in both:
                return [f"Arrow {e['id']} has two ends of the kind {e['ph']!r}."]
            both[e["ph"]] = e
    problems = []
    for key, both in ends.items():
        if both.keys() != {"s", "f"}:
            problems.append(f"Arrow {key} has only one end.")
        elif both["f"]["ts"] < both["s"]["ts"]:
            problems.append(f"Arrow {key} ends before it begins.")
        for e in both.values():
            at = _nanoseconds(e["ts"])
            if not any(a <= at <= b for a, b, _ in slices.get((e["pid"], e["tid"]), ())):
                problems.append(f"An end of arrow {key} is in no slice.")
    return problems

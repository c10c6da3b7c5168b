"""The curves of the page, from the points of a store."""

from __future__ import annotations

import math
from collections.abc import Iterable

from tensorfleet.cli.dashboard.overview import Json
from tensorfleet.cli.dashboard.store import StatsHistory, mean_of

NAMES = (
    "global_step",
    "loss",
    "steps_per_second",
    "memory_bytes",
    "cpu_percent",
    "server_bytes_per_second",
)
_MAX_POINTS = 720  # of one answer: a screen has no more columns to spare


def series_json(history: StatsHistory, end: float, seconds: float, since: float = 0.0) -> Json:
    """The answer to `/api/series`: the last `seconds` before `end`, or only what is newer than `since`."""
    points = thinned(history.points(max(end - seconds, since)), _MAX_POINTS)
    contents = [content for _, content in points]
    return {
        "times": [round(time, 3) for time, _ in points],
        "series": {name: _curves(name, contents) for name in NAMES},
    }


def thinned(points: list[tuple[float, Json]], most: int) -> list[tuple[float, Json]]:
    """At most so many points: means of neighbours."""
    width = math.ceil(len(points) / most)
    if width <= 1:
        return points
    groups = [points[i : i + width] for i in range(0, len(points), width)]
    return [(group[-1][0], mean_of(content for _, content in group)) for group in groups]


def _curves(name: str, contents: list[Json]) -> object:
    if name == "global_step":
        return [content.get(name) for content in contents]
    values = [content.get(name) or {} for content in contents]
    return {key: [value.get(key) for value in values] for key in _keys(values)}


def _keys(values: Iterable[Json]) -> list[str]:
    return sorted({key for value in values for key in value})

"""Where this process's durable task may be, as whoever started it has said."""

from __future__ import annotations

import json

from tensorfleet.base import errors, settings
from tensorfleet.cluster.transport.connection import canonical


def told_places(task: str, address: str) -> list[str]:
    """All places of a task whose server is at an address; none if it is not to be durable."""
    text, name = settings.PLACES(), settings.PLACES.name
    if not text:
        return []
    try:
        places = json.loads(text)
    except ValueError:
        places = None
    if not isinstance(places, list) or not all(isinstance(place, str) for place in places):
        raise errors.InvalidArgumentError(None, None, f'{name} is "{text}". Write a JSON list of addresses.')
    if canonical(address) not in map(canonical, places):
        raise errors.FailedPreconditionError(
            None,
            None,
            f"{task} listens at {address}, but its places are {' and '.join(places)} ({name}). Let the script take its address "
            "from the flags or the TF_CONFIG of the launcher, or run it without --replicas.",
        )
    return [str(place) for place in places]

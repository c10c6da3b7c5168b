"""Whether the folders that a script's arguments name are the same on all nodes of a Ray cluster."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tensorfleet.cli.engines.ray_task import Reply
from tensorfleet.cli.engines.shared_folders import Unseen, named_folders, not_shared, warning

_ANSWER_SECONDS = 30.0


def warn_of_folders(
    actors: Mapping[str, Any],
    command: Sequence[str],
    directory: str | None,
    reply: Reply,
    on_note: Callable[[str], None],
) -> None:
    """Has the actor of one node write a file to each folder, and asks those of the others for it. Never raises.

    `actors` are an actor by the address of its node. Relative folders begin at `directory`, or where the actors are.
    """
    folders = named_folders(command, "")
    if not folders or len(actors) < 2:
        return
    (first_node, first), *others = actors.items()
    marked: dict[str, str] = {}

    def mark(name: str, paths: Sequence[str]) -> Mapping[str, str]:
        marked.update(reply.get(first.mark.remote(name, list(paths), directory), _ANSWER_SECONDS))
        return marked

    asks: dict[str, Unseen] = {node: functools.partial(_unseen_by, actor, reply) for node, actor in others}
    with contextlib.suppress(Exception):  # a node that is gone is noticed elsewhere
        for flag, nodes in not_shared(folders, mark, asks).items():
            on_note(warning(flag, folders[flag], first_node, nodes))
    with contextlib.suppress(Exception):
        reply.get(first.unmark.remote(marked), _ANSWER_SECONDS)


def _unseen_by(actor: Any, reply: Reply, marks: Mapping[str, str]) -> Sequence[str]:
    return [str(folder) for folder in reply.get(actor.sees.remote(dict(marks)), _ANSWER_SECONDS)]

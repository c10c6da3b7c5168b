"""Folders that a script's arguments name: which of them are not the same folder on all nodes of a run."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Mapping, Sequence

_ENDINGS = ("dir", "_directory", "_folder")
#: writes a mark into each folder, on one node, and gives where: by folder, the path of its mark
Mark = Callable[[str, Sequence[str]], Mapping[str, str]]
#: the folders whose marks another node does not see
Unseen = Callable[[Mapping[str, str]], Sequence[str]]


def named_folders(arguments: Sequence[str], directory: str) -> dict[str, str]:
    """The folders in arguments such as `--train_dir=/data/run` or `--logdir run`, whole, by their flag.

    `directory` is where relative ones begin. Addresses of stores (`gs://...`) are no folders.
    """
    result: dict[str, str] = {}
    for i, argument in enumerate(arguments):
        if not argument.startswith("-"):
            continue
        flag, equals, value = argument.partition("=")
        if not equals:
            value = arguments[i + 1] if i + 1 < len(arguments) else ""
        if flag.lower().endswith(_ENDINGS) and value and not value.startswith("-") and "://" not in value:
            result[flag] = os.path.normpath(os.path.join(directory, os.path.expanduser(value)))
    return result


def not_shared(folders: Mapping[str, str], mark: Mark, others: Mapping[str, Unseen]) -> dict[str, list[str]]:
    """By flag, the nodes that have another folder under that name than the node of `mark`.

    A folder that does not exist yet is looked for at the nearest one above it.
    """
    if not folders or not others:
        return {}
    marks = mark(f".tensorfleet-{secrets.token_hex(8)}", sorted(set(folders.values())))
    unseen = {node: set(ask(marks)) for node, ask in others.items()}
    found = {
        flag: [node for node, those in unseen.items() if folder in those] for flag, folder in folders.items()
    }
    return {flag: nodes for flag, nodes in found.items() if nodes}


def warning(flag: str, folder: str, node: str, others: Sequence[str]) -> str:
    """What to tell the user."""
    return (
        f"{flag} {folder} is not shared: {', '.join(others)} {'does' if len(others) == 1 else 'do'} not see the files "
        f"that {node} writes there. Checkpoints need a folder that all nodes have."
    )

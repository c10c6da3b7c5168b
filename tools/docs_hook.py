"""Used by mkdocs: folders in the navigation stand for their pages, and links out of docs/ become names of files."""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

_LINK = re.compile(r"(?<!!)\[(?P<text>[^\]]+)\]\((?P<target>[^)\s]+)\)")


def on_config(config: Any, **_: Any) -> Any:
    """What mkdocs calls first."""
    config["nav"] = with_folders(config["nav"], Path(config["docs_dir"]))
    return config


def with_folders(nav: list[Any], docs: Path) -> list[Any]:
    """A navigation in which `name: folder/` has become `name: [its pages]`."""
    found = []
    for entry in nav:
        if isinstance(entry, dict):
            ((name, value),) = entry.items()
            if isinstance(value, list):
                entry = {name: with_folders(value, docs)}
            elif value.endswith("/"):
                entry = {name: [str(page.relative_to(docs)) for page in sorted((docs / value).glob("*.md"))]}
        found.append(entry)
    return found


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """What mkdocs calls for each page."""
    folder = posixpath.dirname(page.file.src_uri)

    def replace(match: re.Match[str]) -> str:
        target = match["target"]
        if "://" in target or target.startswith("#"):
            return match[0]
        path = posixpath.normpath(posixpath.join("docs", folder, target.partition("#")[0]))
        if path.startswith("docs/") and path.endswith(".md"):
            return match[0]
        name = match["text"].strip("`")
        return f"`{name}`" if path.endswith(name) else f"{match['text']} (`{path}`)"

    return _LINK.sub(replace, markdown)

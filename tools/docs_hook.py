"""Used by mkdocs: links to files outside docs/ become their names, since the site holds only the pages."""

from __future__ import annotations

import posixpath
import re
from typing import Any

_LINK = re.compile(r"(?<!!)\[(?P<text>[^\]]+)\]\((?P<target>[^)\s]+)\)")


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """What mkdocs calls for each page."""
    folder = posixpath.dirname(page.file.src_uri)

    def replace(match: re.Match) -> str:
        target = match["target"]
        if "://" in target or target.startswith("#"):
            return match[0]
        path = posixpath.normpath(posixpath.join("docs", folder, target.partition("#")[0]))
        if path.startswith("docs/") and path.endswith(".md"):
            return match[0]
        name = match["text"].strip("`")
        return f"`{name}`" if path.endswith(name) else f"{match['text']} (`{path}`)"

    return _LINK.sub(replace, markdown)

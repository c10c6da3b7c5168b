"""Whether a file can be written, asked before the work whose result it is to hold."""

from __future__ import annotations

import os
from pathlib import Path


def why_not_writable(path: Path) -> str | None:
    """Why a file cannot be written there; None if it can, as far as that is known without doing so."""
    if path.is_dir():
        return f"Cannot write {path}: it is a folder. Name a file in it."
    if not path.parent.is_dir():
        return f"Cannot write {path}: there is no folder {path.parent}."
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        return f"Cannot write {path}: no permission."
    return None

"""Models as files and as text."""

from __future__ import annotations


class Saved:
    """The half of a model that is saved."""

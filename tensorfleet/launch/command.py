"""The `tensorfleet` command."""

from __future__ import annotations


def main() -> None:
    """Runs it."""
    raise SystemExit("tensorfleet: only `python -m tensorfleet script.py [arguments]` is here so far.")

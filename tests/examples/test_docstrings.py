"""What every example has."""

from __future__ import annotations

from running import EXAMPLES


def test_examples_show_their_launch_command():
    for path in EXAMPLES.glob("*.py"):
        assert f"examples/{path.name}" in path.read_text().split('"""')[1]

"""Write docs/settings.md from tensorfleet/base/settings.py.

python tools/make_settings.py            # writes
python tools/make_settings.py --check    # exits with 1 when the page would change
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from tensorfleet.base import settings

PAGE = Path(__file__).resolve().parent.parent / "docs" / "settings.md"
_HEAD = """# Settings

TensorFleet reads these environment variables. Each is read when it is used. A value that cannot be understood is an
error that names the variable; an unknown variable that begins with `TENSORFLEET_` is a warning.

`tensorfleet run --env NAME=VALUE` sets a variable for all tasks of a run.

| variable | default | meaning |
|---|---|---|
"""
_TAIL = """
The launcher sets further ones for the tasks that it starts. Do not set them yourself:
{}.

This page is made by `tools/make_settings.py`.
"""


def page() -> str:
    """The text of docs/settings.md."""
    shown = [s for s in settings.declared() if not s.internal]
    rows = "".join(f"| `{s.name}` | {_default(s)} | {s.purpose} |\n" for s in shown)
    inner = ", ".join(f"`{s.name}`" for s in settings.declared() if s.internal and "CHAOS" not in s.name)
    return _HEAD + rows + _TAIL.format(inner)


def _default(setting: settings.Setting[Any]) -> str:
    if setting.default in ("", False):
        return ""
    if isinstance(setting.default, str):
        return f"`{setting.default}`"
    return f"{setting.default:g}" if isinstance(setting.default, float) else f"{setting.default:,}"


if __name__ == "__main__":
    if "--check" not in sys.argv:
        PAGE.write_text(page())
    elif PAGE.read_text() != page():
        sys.exit("docs/settings.md is out of date. Run python tools/make_settings.py.")

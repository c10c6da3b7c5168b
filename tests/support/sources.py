"""The source files of both packages, for tests that read them."""

from pathlib import Path

import tensorfleet

ROOT = Path(tensorfleet.__file__).parents[1]


def sources() -> list[Path]:
    """Every file that somebody has written."""
    items = [path for name in ("tensorfleet", "tensorfleet_legacy") for path in (ROOT / name).rglob("*.py")]
    return [path for path in items if "_pb2" not in path.name]


def name_of(path: Path) -> str:
    """The path from the root of the repository."""
    return str(path.relative_to(ROOT))

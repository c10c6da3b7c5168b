"""Print how much of each room the last `pytest --cov` covered, and of the whole.

python tools/coverage_by_room.py    # reads .coverage
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import coverage


def main() -> None:
    """Prints a line for each room, and one for all."""
    measured = coverage.Coverage()
    measured.load()
    total: Counter[str] = Counter()
    missed: Counter[str] = Counter()
    for name in measured.get_data().measured_files():
        _, statements, _, missing, _ = measured.analysis2(name)
        for room in (_room(name), "all"):
            total[room] += len(statements)
            missed[room] += len(missing)
    for room in sorted(total, key=lambda room: (room == "all", room)):
        covered = 100 * (1 - missed[room] / max(total[room], 1))
        print(f"{room:32} {total[room]:7} statements {covered:6.1f} %")


def _room(name: str) -> str:
    parts = Path(name).relative_to(Path(__file__).resolve().parent.parent).parts
    return "/".join(parts[:2]) if len(parts) > 2 else parts[0]


if __name__ == "__main__":
    main()

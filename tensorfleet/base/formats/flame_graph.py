"""Flame graphs as SVG, from collapsed stacks (`outer;inner 12`, one line for each stack).

The picture has no scripts and no references: text is escaped, so a function's name cannot be more than text.
"""

from __future__ import annotations

import html
import zlib
from dataclasses import dataclass, field

_WIDTH, _ROW, _CHARACTER = 1200, 18, 7.0
_MIN_WIDTH = 0.5  # of a box, in pixels: what is narrower cannot be seen
_TOP = 44
_MAX_DEPTH = 300


@dataclass
class _Box:
    count: int = 0
    inner: dict[str, _Box] = field(default_factory=dict)


def parsed(collapsed: str) -> list[tuple[list[str], int]]:
    """The stacks, outermost first, with their counts. Lines that are no stacks are left out."""
    result = []
    for line in collapsed.splitlines():
        stack, _, count = line.rpartition(" ")
        if stack and count.isdecimal():
            result.append((stack.split(";"), int(count)))
    return result


def flame_graph(collapsed: str, title: str) -> str:
    """The SVG of collapsed stacks: a box is as wide as its function has samples, and lies on its caller."""
    root = _Box()
    for stack, count in parsed(collapsed):
        box = root
        box.count += count
        for name in stack[:_MAX_DEPTH]:
            box = box.inner.setdefault(name, _Box())
            box.count += count
    rows: list[str] = []
    depth = _draw(rows, root, 0.0, _WIDTH / max(root.count, 1), 0, root.count)
    height = _TOP + _ROW * max(depth, 1) + 12
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" height="{height}" '
        'font-family="ui-monospace, monospace" font-size="11">'
        f'<rect width="100%" height="100%" fill="#ffffff"/>'
        f'<text x="8" y="18" font-size="14" fill="#222">{html.escape(title)}</text>'
        f'<text x="8" y="34" fill="#666">{root.count} samples; point at a box for its share</text>'
    )
    return head + "".join(rows) + "</svg>\n"


def _draw(rows: list[str], box: _Box, left: float, scale: float, depth: int, total: int) -> int:
    """Draws what a box calls; gives how many rows there are."""
    deepest = depth
    for name, inner in sorted(box.inner.items()):
        width = inner.count * scale
        if width >= _MIN_WIDTH:
            rows.append(_box(name, left, width, depth, inner.count, total))
            deepest = max(deepest, _draw(rows, inner, left, scale, depth + 1, total), depth + 1)
        left += width
    return deepest


def _box(name: str, left: float, width: float, depth: int, count: int, total: int) -> str:
    y = _TOP + depth * _ROW
    shown = int((width - 6) / _CHARACTER)
    label = name if len(name) <= shown else name[: max(shown - 1, 0)] + "…" if shown > 3 else ""
    hue = 10 + zlib.crc32(name.encode()) % 45  # warm, and the same for a function wherever it is
    tip = html.escape(f"{name}: {count} samples, {100 * count / max(total, 1):.1f} %")
    return (
        f'<g><title>{tip}</title><rect x="{left:.1f}" y="{y}" width="{max(width - 0.5, 0.5):.1f}" height="{_ROW - 1}" '
        f'rx="2" fill="hsl({hue} 85% 68%)"/>'
        f'<text x="{left + 3:.1f}" y="{y + 12}" fill="#222">{html.escape(label)}</text></g>'
    )

"""`--tui`: a pane for each task, with its last lines."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TextIO

from rich.console import Console
from rich.layout import Layout
from rich.live import Live
from rich.panel import Panel
from rich.text import Text

from tensorfleet.launch.output import Output

_COLOURS = ("cyan", "yellow", "green", "magenta", "blue", "red")


class Panes(Output):
    """Like `Output`, in panes that stay where they are. Where there is no terminal, lines one after another."""

    _display: Live | None = None  # before it is there, lines are printed

    def __init__(self, labels: list[str], log_dir: Path | None, stream: TextIO | None = None) -> None:
        super().__init__(labels, stream or sys.stdout, log_dir)
        self._labels = labels
        self._text = ""
        self._notes: list[str] = []
        if self._live:
            console = Console(file=self._stream)
            self._display = Live(console=console, screen=True, auto_refresh=True, get_renderable=self._layout)
            self._display.start()

    def status(self, text: str) -> None:
        """The line above the panes."""
        self._text = text

    def note(self, text: str) -> None:
        """A line of the launcher's own; there is no pane for it, so it comes after them."""
        if self._display is None:
            super().note(text)
        else:
            self._notes.append(text)

    def close(self) -> None:
        """Leaves the panes; what they showed last stays in the logs."""
        if self._display is not None:
            self._display.stop()
            self._display = None
        for text in self._notes:
            super().note(text)
        super().close()

    def _print(self, text: str) -> None:
        if self._display is None:
            super()._print(text)

    def _layout(self) -> Layout:
        whole = Layout()
        panes = Layout()
        half = (len(self._labels) + 1) // 2 if len(self._labels) > 3 else len(self._labels)
        rows = [self._labels[:half], self._labels[half:]]
        panes.split_column(*(self._row(row) for row in rows if row))
        whole.split_column(Layout(Text(self._text, style="reverse"), size=1), panes)
        return whole

    def _row(self, labels: list[str]) -> Layout:
        row = Layout()
        row.split_row(*(Layout(self._pane(label)) for label in labels))
        return row

    def _pane(self, label: str) -> Panel:
        lines = list(self.tails[label])[-60:]
        height = max(5, Console(file=self._stream).height // (2 if len(self._labels) > 3 else 1) - 3)
        colour = _COLOURS[self._labels.index(label) % len(_COLOURS)]
        return Panel(
            Text("\n".join(lines[-height:]), overflow="ellipsis", no_wrap=True),
            title=label,
            border_style=colour,
        )

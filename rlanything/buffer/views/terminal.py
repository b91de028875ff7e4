"""Text for a terminal: tables and lines, plain when the output is no terminal.

Models write instructions, replies and critics. No character of them reaches the terminal as a control sequence.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.cells import cell_len, set_cell_size
from rich.console import Console, RenderableType
from rich.text import Text

from rlanything.core.printable import safe


@dataclass(frozen=True)
class Screen:
    """The output: its width in columns, and whether it is a terminal that shows styles."""

    width: int = 120
    terminal: bool = False


def quoted(text: str) -> str:
    """A text as JSON writes it, so that its end and its line breaks are visible."""
    return safe(json.dumps(text, ensure_ascii=False))


def share(value: float | None) -> str:
    """An accuracy, or ? if it was not measured."""
    return "?" if value is None else f"{value:.3f}"


def aligned(
    names: Sequence[str], rows: Sequence[Sequence[str]], numbers: set[int], screen: Screen
) -> Iterator[str]:
    """The lines of a table, one a row, not wrapped. rich takes minutes to do this for a million slots."""
    lengths = [[cell_len(cell) for cell in row] for row in (names, *rows)]
    widths = [max(column) for column in zip(*lengths, strict=True)]
    for row, taken in zip((names, *rows), lengths, strict=True):
        gaps = [" " * (width - length) for width, length in zip(widths, taken, strict=True)]
        cells = [
            gap + cell if k in numbers else cell + gap
            for k, (cell, gap) in enumerate(zip(row, gaps, strict=True))
        ]
        line = "  ".join(cells).rstrip()
        yield (f"\x1b[1m{line}\x1b[0m\n" if screen.terminal and row is names else f"{line}\n")


def cut(text: str, width: int) -> str:
    """`text` in at most `width` columns. A cut text ends in an ellipsis."""
    return text if cell_len(text) <= width else set_cell_size(text, width - 1).rstrip() + "…"


def heading(text: str) -> Text:
    """A bold line, made safe."""
    return Text(safe(text), style="bold")


def plain(text: str) -> Text:
    """A line without styles; square brackets are no markup."""
    return Text(text)


def lay_out(parts: Sequence[RenderableType], screen: Screen) -> str:
    """The parts below each other, without trailing spaces. An empty `Text` is a blank line."""
    console = Console(
        width=screen.width, force_terminal=screen.terminal, markup=False, highlight=False, emoji=False
    )
    with console.capture() as capture:
        for part in parts:
            console.print(part, soft_wrap=isinstance(part, Text) and not screen.terminal)
    return "\n".join(line.rstrip() for line in capture.get().splitlines()) + "\n"

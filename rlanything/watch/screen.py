"""The live view in a terminal, on its second screen: it is drawn anew at every look, so a resize garbles nothing."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console, ConsoleOptions, Group, RenderResult
from rich.live import Live
from rich.text import Text

from rlanything.buffer.views.cli.output import print_text, screen
from rlanything.buffer.views.terminal import lay_out
from rlanything.watch.text import words
from rlanything.watch.text.page import page
from rlanything.watch.view import View, Watched

EVERY_S = 1.0
WIDE = 100
"""Columns from which on there is room for curves."""


def blocks(encoding: str | None, width: int = WIDE) -> str:
    """The characters of curves that an encoding has; '' where they do not fit."""
    return words.blocks(encoding) if width >= WIDE else ""


def snapshot(view: View) -> str:
    """A look as text, for a pipe or for the last words of the live view."""
    shown = screen()
    return lay_out(page(view, blocks(sys.stdout.encoding, shown.width)), shown)


def follow(
    watched: Watched, console: Console | None = None, pause: Callable[[float], None] = time.sleep
) -> None:
    """Show what is watched until Ctrl-C. The last look is then printed, so that it stays in the terminal."""
    console = console or Console(markup=False, highlight=False, emoji=False)
    view = watched.look()
    try:
        with _second_screen(console) as show:
            while True:
                show(view)
                pause(EVERY_S)
                view = watched.look()
    except KeyboardInterrupt:
        print_text(snapshot(view))


@contextmanager
def _second_screen(console: Console) -> Iterator[Callable[[View], None]]:
    """A function that draws a look on the whole screen."""
    with Live(console=console, screen=True, auto_refresh=False, transient=True) as live:

        def show(view: View) -> None:
            live.update(_Page(view, blocks(console.encoding, console.width)), refresh=True)

        yield show


class _Page:
    """A page in the height that there is. What does not fit is left out at the end, where the least urgent stands
    (`watch.text.page`), and a line says so."""

    def __init__(self, view: View, characters: str) -> None:
        self._view, self._characters = view, characters

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        size = options.update(height=None)
        lines = console.render_lines(Group(*page(self._view, self._characters)), size, pad=False)
        most = max(1, (options.height or console.height) - 1)
        for line in lines[: most if len(lines) <= most else most - 1]:
            yield from line
            yield Text()
        if len(lines) > most:
            yield Text(
                f"{len(lines) - most + 1} more lines; `rlanything watch --once` prints all", style="dim"
            )
        else:
            yield Text("Ctrl-C ends the view; what runs goes on", style="dim")

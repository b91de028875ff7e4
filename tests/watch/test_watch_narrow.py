"""In a terminal that becomes narrower, the lines of a stage at work leave no pieces, and messages stay."""

from __future__ import annotations

import io

import pytest
from rich.live import Live
from rich.text import Text
from screen_model import Screen

from rlanything.watch.work import taken


class Terminal:
    """The lines that are updated, on a screen that the test looks at."""

    def __init__(self, width: int, folds: bool) -> None:
        self.screen, self._file = Screen(width, folds), io.StringIO()
        self._console = taken.Calm(file=self._file, force_terminal=True, color_system=None, markup=False)
        self._console.size = (width, 30)
        self._live = Live(console=self._console, auto_refresh=False, redirect_stdout=False,
                          redirect_stderr=False, transient=True, vertical_overflow="crop")  # fmt: skip
        self._live.start()
        self.lines = taken.Drawn(self._live, self._console)

    def look(self) -> list[str]:
        """The rows that are there now."""
        self.screen.write(self._file.getvalue())
        self._file.truncate(self._file.seek(0))
        return self.screen.text

    def narrow(self, width: int) -> None:
        self.look()
        self.screen.narrow(width)
        self._console.size = (width, 30)

    def end(self) -> list[str]:
        self.lines.show(Text(""))
        self._live.stop()
        return self.look()


@pytest.mark.parametrize("widths", [(40,), (25,), (58, 31, 20), (10,)])
@pytest.mark.parametrize("folds", [True, False])
def test_a_terminal_that_becomes_narrower_keeps_messages_and_no_piece_of_a_line(monkeypatch, widths, folds):
    for name in taken.KEEPS_LINES:
        monkeypatch.delenv(name, raising=False)
    if not folds:
        monkeypatch.setenv("XTERM_VERSION", "XTerm(379)")
    terminal = Terminal(60, folds)
    drawn = Text("\n").join([Text("a" * 59), Text("b" * 30), Text("c" * 59)])
    terminal.lines.say(Text("first"))
    terminal.lines.show(drawn)
    assert terminal.look() == ["first", "a" * 59, "b" * 30, "c" * 59]
    for width in widths:
        terminal.narrow(width)
        assert len(terminal.look()) > 4 or not folds, "the terminal folds what is longer"
        terminal.lines.show(drawn)
        cut = [
            f"{c * (width - 2)}…" if n > width - 1 else c * n for c, n in (("a", 59), ("b", 30), ("c", 59))
        ]
        assert terminal.look() == ["first", *cut]
    terminal.narrow(widths[-1] - 1)
    terminal.lines.say(Text("second"))
    rows = terminal.look()
    assert rows[:2] == ["first", "second"]
    assert [row[0] for row in rows[2:]] == ["a", "b", "c"]
    assert terminal.end() == ["first", "second"]


def test_a_line_that_is_cut_ends_in_what_the_terminals_encoding_has():
    raw = io.BytesIO()
    with io.TextIOWrapper(raw, encoding="ascii", errors="backslashreplace") as file:
        console = taken.Calm(file=file, force_terminal=True, color_system=None, width=20, height=30)
        with Live(console=console, auto_refresh=False, redirect_stdout=False, redirect_stderr=False) as live:
            taken.Drawn(live, console).show(Text("a line of more than twenty columns"))
        file.flush()
        drawn = raw.getvalue().decode()
    assert "a line of more t...\n" in drawn.replace("\r", "")
    assert "u2026" not in drawn

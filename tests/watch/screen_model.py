"""A terminal's screen as text: what programs write changes it, and so does its user, who makes it narrower."""

from __future__ import annotations

import re

PART = re.compile(r"\x1b\[(?P<numbers>[?0-9;]*)(?P<final>[a-zA-Z])|(?P<one>.)", re.DOTALL)


class Screen:
    """Rows of a screen without an end. folds: whether lines are folded when it becomes narrower, or cut.

    A row remembers whether the next one goes on with its line, as terminals that fold do."""

    def __init__(self, width: int, folds: bool = True) -> None:
        self._width, self._folds = width, folds
        self._rows: list[tuple[str, bool]] = [("", False)]
        self._row = self._column = 0

    @property
    def text(self) -> list[str]:
        """The rows that are not empty."""
        return [text.rstrip() for text, _ in self._rows if text.strip()]

    def write(self, text: str) -> None:
        """What a program writes. Raises `ValueError` for a sequence that this screen does not know."""
        for part in PART.finditer(text):
            if part["one"] is None:
                self._control(part["final"], int(part["numbers"] or 1))
            elif part["one"] == "\n":
                self._down()
                self._column = 0  # the terminal's driver adds the \r
            elif part["one"] == "\r":
                self._column = 0
            else:
                self._put(part["one"])

    def _put(self, character: str) -> None:
        if self._column == self._width:
            self._rows[self._row] = self._rows[self._row][0], True
            self._down()
            self._column = 0
        text, goes_on = self._rows[self._row]
        text = text.ljust(self._column)
        self._rows[self._row] = text[: self._column] + character + text[self._column + 1 :], goes_on
        self._column += 1

    def _down(self) -> None:
        self._row += 1
        if self._row == len(self._rows):
            self._rows.append(("", False))

    def _control(self, final: str, number: int) -> None:
        if final == "A":
            self._row = max(0, self._row - number)
        elif final == "K" and number == 2:
            self._rows[self._row] = "", False
        elif final != "m":
            raise ValueError(f"CSI {number} {final}")

    def narrow(self, width: int) -> None:
        """Make it so wide. The cursor stays at its character; in a row that is cut, at its end."""
        rows, self._rows, old, at_row = self._rows, [], self._width, self._row
        self._width, line, cursor = width, "", None
        for i, (text, goes_on) in enumerate(rows):
            if i == at_row:
                cursor = len(line) + self._column
            line += text.ljust(old) if goes_on else text
            if goes_on and self._folds:
                continue
            pieces = [line[at : at + width] for at in range(0, len(line), width)] or [""]
            pieces = pieces if self._folds else pieces[:1]
            if cursor is not None:
                row = min(max(cursor - 1, 0) // width, len(pieces) - 1)
                self._row, self._column = len(self._rows) + row, min(cursor - row * width, width)
            self._rows += [(piece, piece is not pieces[-1]) for piece in pieces]
            line, cursor = "", None

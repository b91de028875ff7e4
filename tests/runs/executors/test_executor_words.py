"""What a lost worker left behind is shown, and cannot act on a terminal."""

from __future__ import annotations

from rlanything.runs.executors.crew import _quoted
from rlanything.runs.executors.pool import visible


def test_control_characters_of_a_log_are_shown_as_escapes():
    assert visible("\x1b]0;owned\x07 ünd \x9b2J") == r"\x1b]0;owned\x07 ünd \x9b2J"
    assert _quoted("one\ntwo\x1b[2J") == "    | one\n    | two" + r"\x1b[2J"

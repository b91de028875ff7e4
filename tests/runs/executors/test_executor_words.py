"""What a lost worker left behind is shown, and cannot act on a terminal."""

from __future__ import annotations

from rlanything.runs.executors.crew import _quoted


def test_control_characters_of_a_log_are_shown_as_escapes():
    assert _quoted("one\n\x1b]0;owned\x07 ünd") == "    | one\n    | " + r"\x1b]0;owned\x07 ünd"

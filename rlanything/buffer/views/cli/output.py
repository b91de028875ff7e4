"""How a buffer command answers: text that any terminal can show, or JSON in ASCII."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable

from rlanything.buffer.views.terminal import Screen
from rlanything.core.types import Json


def print_page(page: Json, text: Callable[[Json, Screen], str], as_json: bool) -> None:
    """Print a page as JSON, or as the text that `text` makes of it."""
    print_text(json_text(page) if as_json else text(page, screen()))


def print_text(text: str) -> None:
    """Write to standard output. Characters that its encoding lacks are escaped."""
    encoding = sys.stdout.encoding or "utf-8"
    sys.stdout.write(text.encode(encoding, "backslashreplace").decode(encoding))


def json_text(value: Json) -> str:
    """Indented JSON with sorted keys, in ASCII, so that no escape sequence of a task reaches a terminal."""
    return json.dumps(value, indent=2, sort_keys=True, ensure_ascii=True).replace("\x7f", "\\u007f") + "\n"


def screen() -> Screen:
    """The terminal that standard output is, or a plain screen."""
    if not sys.stdout.isatty():
        return Screen()
    return Screen(shutil.get_terminal_size().columns, terminal=True)

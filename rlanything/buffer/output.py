"""How a buffer command answers: text that any terminal can show, JSON that is ASCII, or one line of what is wrong."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable

from rlanything.buffer.fields import TaskBufferError
from rlanything.buffer.render import Screen, safe
from rlanything.core.types import Json


def report(answer: Callable[[], int]) -> int:
    """The exit code that `answer` gives, or 2 after one line that says what is wrong."""
    try:
        return answer()
    except (TaskBufferError, OSError) as error:  # OSError: a folder that may not be read
        print(f"rlanything buffer: {safe(str(error))}", file=sys.stderr)
        return 2


def print_text(text: str) -> None:
    """Write to standard output; what its encoding lacks is escaped."""
    encoding = sys.stdout.encoding or "utf-8"
    sys.stdout.write(text.encode(encoding, "backslashreplace").decode(encoding))


def print_json(value: Json) -> None:
    """Write a JSON value to standard output."""
    print_text(json_text(value))


def json_text(value: Json) -> str:
    """Indented JSON with sorted keys, in ASCII: an escape sequence in a task must not reach a terminal through it."""
    return json.dumps(value, indent=2, sort_keys=True, ensure_ascii=True).replace("\x7f", "\\u007f") + "\n"


def screen() -> Screen:
    """The terminal that standard output is, or the plain one."""
    if not sys.stdout.isatty():
        return Screen()
    return Screen(shutil.get_terminal_size().columns, terminal=True)

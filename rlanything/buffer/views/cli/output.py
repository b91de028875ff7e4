"""How a buffer command answers: text that any terminal can show, JSON in ASCII, or one line with the error."""

from __future__ import annotations

import json
import shutil
import sys
from argparse import Namespace
from collections.abc import Callable
from functools import wraps

from rlanything.buffer.views.terminal import Screen
from rlanything.core.errors import UserError, in_workspace
from rlanything.core.printable import safe
from rlanything.core.types import Json

Answer = Callable[[Namespace], int]
"""From parsed arguments to an exit code."""


def reports_errors(answer: Answer) -> Answer:
    """Make a command print its error in one line and return 2. A reader that had enough is no error.

    With `--traceback` the error is not caught.
    """

    @wraps(answer)
    def guarded(args: Namespace) -> int:
        try:
            return answer(args)
        except BrokenPipeError:  # the command line knows what to do
            raise
        except (UserError, OSError) as error:  # OSError: a folder that may not be read
            if getattr(args, "traceback", False):
                raise
            print(
                f"rlanything buffer: {safe(in_workspace(str(error), getattr(args, 'within', '')))}",
                file=sys.stderr,
            )
            return 2

    return guarded


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

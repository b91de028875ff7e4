"""How counts, values, ended processes and the texts of others are written for people, in messages and on a terminal.

In the words of a model or an environment, nothing moves the terminal's cursor and nothing is hidden.
"""

from __future__ import annotations

import re
import reprlib
import signal
import sys
import unicodedata
from typing import Any

_LONGEST = 200
"""Characters of a value in a message."""
_DIGITS_BITS = 128
"""A whole number of more bits is told by their number. Python writes none of 4301 digits."""
SURROGATE = re.compile("[\ud800-\udfff]")
"""Half of a pair that stands for one character. UTF-8 has no form for it."""


def percents(value: float, limit: float) -> tuple[str, str]:
    """A share and the limit that it is not, in percent: with so many digits that they differ and the limit is exact."""
    enough = (d for d in range(17) if round(limit, d + 2) == limit and f"{value:.{d}%}" != f"{limit:.{d}%}")
    digits = next(enough, 17)
    return f"{value:.{digits}%}", f"{limit:.{digits}%}"


def say(text: str) -> None:
    """Print a line to standard error now: also where that is a file, and from a process that may be killed."""
    print(text, file=sys.stderr, flush=True)


def tell(text: str) -> None:
    """Print a message of the command line to standard error. It may name what others wrote, such as a folder."""
    print(safe_lines(f"rlanything: {text}"), file=sys.stderr)


def safe(text: str) -> str:
    """`text` with every invisible character but the space (controls, bidi marks, surrogates) escaped."""
    if text.isprintable():
        return text
    return "".join(_escaped(c) if unicodedata.category(c) in _HIDDEN else c for c in text)


def safe_lines(text: str) -> str:
    """`text` made safe, with its line breaks."""
    return "\n".join(map(safe, text.split("\n")))


_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


def counted(count: int, noun: str) -> str:
    """`1 seed`, `2 seeds`: of a noun with a plain plural."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def one_line(text: str) -> str:
    """`text` made safe on one line, with single spaces."""
    return safe(" ".join(text.split()))


def ended(code: int) -> str:
    """How a process ended, by its exit code: below 0, by the signal of that number."""
    return f"was killed by {signal_name(-code)}" if code < 0 else f"ended with exit code {code}"


def signal_name(number: int) -> str:
    """`SIGKILL`, or `signal 40` for one that has no name, as most real-time signals have none."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


class _Short(reprlib.Repr):
    def __init__(self) -> None:
        super().__init__()
        self.maxstring = self.maxother = _LONGEST

    def repr_int(self, x: int, level: int) -> str:
        """A whole number, also in a list."""
        return repr(x) if x.bit_length() <= _DIGITS_BITS else f"a number of {x.bit_length()} bits"


def shown(value: Any) -> str:
    """A value for a message; files may hold very long ones."""
    if value is None:
        return "null"
    text = _Short().repr(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."

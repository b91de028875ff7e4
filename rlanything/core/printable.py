"""Words for a terminal. In those of a model or an environment, nothing moves its cursor and nothing is hidden."""

from __future__ import annotations

import unicodedata


def safe(text: str) -> str:
    """`text` with every invisible character but the space (controls, bidi marks, surrogates) escaped."""
    if text.isprintable():
        return text
    return "".join(_escaped(c) if unicodedata.category(c) in _HIDDEN else c for c in text)


_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


def counted(count: int, noun: str) -> str:
    """`1 seed`, `2 seeds`: of a noun with a plain plural."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def one_line(text: str) -> str:
    """`text` made safe on one line, with single spaces."""
    return safe(" ".join(text.split()))

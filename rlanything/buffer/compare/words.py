"""What changed in a sentence, word by word."""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import SequenceMatcher

Part = tuple[str, str]
"""("same" | "old" | "new", text). Without the old parts they read as the new sentence, without the new as the old."""

_TOKENS = re.compile(r"\s+|\w+|[^\w\s]+")
_LONGEST = 2000
"""Words of a sentence that are matched one by one; longer texts are told as one change."""


def word_diff(old: str, new: str) -> list[Part]:
    """The parts that both sentences share, and those of one only, in reading order."""
    if old == new:
        return [("same", old)] if old else []
    before, after = _TOKENS.findall(old), _TOKENS.findall(new)
    if max(len(before), len(after)) > _LONGEST:
        return [(kind, text) for kind, text in (("old", old), ("new", new)) if text]
    return list(_joined(_parts(before, after)))


def _parts(before: list[str], after: list[str]) -> Iterator[Part]:
    for tag, i, k, j, m in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if tag == "equal":
            yield "same", "".join(before[i:k])
        else:
            yield "old", "".join(before[i:k])
            yield "new", "".join(after[j:m])


def _joined(parts: Iterator[Part]) -> Iterator[Part]:
    """A lone blank between two changes joins them: `[-red mug-]`, not `[-red-] [-mug-]`."""
    old = new = ""
    held = ""
    for kind, text in parts:
        if kind == "same" and text.isspace() and (old or new):
            held = text
            continue
        if kind == "same":
            yield from _flushed(old, new)
            yield "same", held + text
            old = new = held = ""
        else:
            if held:
                old, new, held = old + held, new + held, ""
            old, new = (old + text, new) if kind == "old" else (old, new + text)
    yield from _flushed(old, new)
    if held:
        yield "same", held


def _flushed(old: str, new: str) -> Iterator[Part]:
    if old:
        yield "old", old
    if new:
        yield "new", new

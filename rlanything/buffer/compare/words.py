"""What changed in a text, word by word.

A text of several sentences is compared sentence by sentence first, so that a sentence that was put in is told as one
change, and unlike sentences do not share their commonest words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

from rapidfuzz.distance import Indel

Part = tuple[str, str]
"""("same" | "old" | "new", text). Without the old parts they read as the new sentence, without the new as the old."""

_TOKENS = re.compile(r"\s+|\w+|[^\w\s]+")
_SENTENCES = re.compile(r".+?(?:[.!?:;](?=\s)\s*|\n\s*|\Z)", re.DOTALL)
_LONGEST = 2000
"""Words of a sentence that are matched one by one; longer texts are told as one change."""
_ALIKE = 0.5
"""Similarity from which on a sentence became another one; below, one went and another came."""
_PAIRS = 10_000
"""Pairs of changed sentences that are compared; longer changes are told as one."""


def word_diff(old: str, new: str) -> list[Part]:
    """The parts that both texts share, and those of one only, in reading order."""
    if old == new:
        return [("same", old)] if old else []
    before, after = sentences(old), sentences(new)
    if max(len(before), len(after)) <= 1:
        return _by_words(old, new)
    return list(_merged(_by_sentences(before, after)))


def sentences(text: str) -> list[str]:
    """The sentences and lines of a text, each with the blanks behind it; joined, they are the text."""
    return _SENTENCES.findall(text)


def _by_sentences(before: Sequence[str], after: Sequence[str]) -> Iterator[Part]:
    for tag, i, k, j, m in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if tag == "equal":
            yield "same", "".join(before[i:k])
        else:
            for old, new in _couples(before[i:k], after[j:m]):
                yield from _by_words(old, new) if old and new else [("old", old), ("new", new)]


def _couples(before: Sequence[str], after: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Sentences with what became of them, in order; '' beside one that went or came."""
    if len(before) * len(after) > _PAIRS:
        yield "".join(before), ""
        yield "", "".join(after)
        return
    best = _best(before, after)
    i = j = 0
    while i < len(before) or j < len(after):
        if i < len(before) and best[i][j] == best[i + 1][j]:
            yield before[i], ""
            i += 1
        elif j < len(after) and best[i][j] == best[i][j + 1]:
            yield "", after[j]
            j += 1
        else:
            yield before[i], after[j]
            i, j = i + 1, j + 1


def _best(before: Sequence[str], after: Sequence[str]) -> list[list[float]]:
    """best[i][j]: the most similarity that couples from sentences i and j on can have, in order."""
    best = [[0.0] * (len(after) + 1) for _ in range(len(before) + 1)]
    for i in reversed(range(len(before))):
        for j in reversed(range(len(after))):
            alike = _alike(before[i], after[j])
            couple = alike + best[i + 1][j + 1] if alike >= _ALIKE else 0.0
            best[i][j] = max(best[i + 1][j], best[i][j + 1], couple)
    return best


def _alike(old: str, new: str) -> float:
    """Share of the words of both sentences that they have in common, in order."""
    before, after = ([t for t in _TOKENS.findall(text) if not t.isspace()] for text in (old, new))
    return float(Indel.normalized_similarity(before, after))


def _merged(parts: Iterator[Part]) -> Iterator[Part]:
    """Neighbours of one kind as one part; of a change, what went before what came."""
    same = old = new = ""
    for kind, text in parts:
        if kind == "same":
            yield from _flushed(old, new)
            same, old, new = same + text, "", ""
        else:
            yield from [("same", same)] if same else []
            same, old, new = "", old + text * (kind == "old"), new + text * (kind == "new")
    yield from [("same", same)] if same else _flushed(old, new)


def _by_words(old: str, new: str) -> list[Part]:
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

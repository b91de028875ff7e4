"""What changed in a text, word by word.

Sentences are compared first, and words within sentences that are similar. So an inserted sentence is one change, and
two unlike sentences are not matched by their common words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

from rapidfuzz.distance import Indel

Part = tuple[str, str]
"""("same" | "old" | "new", text). Same and new parts joined are the new text, same and old parts the old one."""

_TOKENS = re.compile(r"\s+|\w+|[^\w\s]+")
_SENTENCES = re.compile(r".+?(?:[.!?:;](?=\s)\s*|\n\s*|\Z)", re.DOTALL)
_LONGEST = 2000
"""Words up to which two sentences are compared word by word; a longer one is one change."""
_ALIKE = 0.5
"""Least similarity of a sentence and what it was changed to; below it, one was removed and another added."""
_MOST_SENTENCES = 5000
"""Sentences up to which two texts are compared; a text with more is one change."""
_PAIRS = 10_000
"""Pairs of changed sentences up to which they are compared; beyond, they are one change."""


def word_diff(old: str, new: str) -> list[Part]:
    """The parts of both texts, and of one only, in reading order."""
    if old == new:
        return [("same", old)] if old else []
    before, after = sentences(old), sentences(new)
    if max(len(before), len(after)) <= 1:
        return _by_words(old, new)
    if max(len(before), len(after)) > _MOST_SENTENCES:
        return [(kind, text) for kind, text in (("old", old), ("new", new)) if text]
    return list(_merged(_by_sentences(before, after)))


def sentences(text: str) -> list[str]:
    """The sentences and lines of a text, each with the blanks after it. Joined, they are the text."""
    return _SENTENCES.findall(text)


def _by_sentences(before: Sequence[str], after: Sequence[str]) -> Iterator[Part]:
    for tag, i, k, j, m in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if tag == "equal":
            yield "same", "".join(before[i:k])
        else:
            for old, new in _couples(before[i:k], after[j:m]):
                yield from _by_words(old, new) if old and new else [("old", old), ("new", new)]


def _couples(before: Sequence[str], after: Sequence[str]) -> Iterator[tuple[str, str]]:
    """(old sentence, new sentence) in order; '' for the missing side of one that was removed or added."""
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
    """best[i][j]: the largest sum of similarities that pairing the sentences from i and j on, in order, can have."""
    best = [[0.0] * (len(after) + 1) for _ in range(len(before) + 1)]
    for i in reversed(range(len(before))):
        for j in reversed(range(len(after))):
            alike = _alike(before[i], after[j])
            couple = alike + best[i + 1][j + 1] if alike >= _ALIKE else 0.0
            best[i][j] = max(best[i + 1][j], best[i][j + 1], couple)
    return best


def _alike(old: str, new: str) -> float:
    """Share of the words that two sentences have in common, in order."""
    before, after = ([t for t in _TOKENS.findall(text) if not t.isspace()] for text in (old, new))
    return float(Indel.normalized_similarity(before, after))


def _merged(parts: Iterator[Part]) -> Iterator[Part]:
    """Neighbours of one kind joined; in a change, old parts before new ones."""
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
    """Two changes with only blanks between them are one: `[-red mug-]`, not `[-red-] [-mug-]`."""
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

"""What changed in a text, word by word.

Sentences are compared first, and words within sentences that are similar. So an inserted sentence is one change, and
two unlike sentences are not matched by their common words.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from rapidfuzz.distance import Indel

from rlanything.buffer.views.tasks.alignment import coded, is_small, stretches

Part = tuple[str, str]
"""("same" | "old" | "new", text). Same and new parts joined are the new text, same and old parts the old one."""

_TOKENS = re.compile(r"\s+|\w+|[^\w\s]+")
_WITH_BLANKS = re.compile(r"(?:\w+|[^\w\s]+|\A)\s*")
"""A word with the blanks after it. Blanks are alike everywhere, so to compare them takes long in a long text."""
_SENTENCES = re.compile(r".+?(?:[.!?:;](?=\s)\s*|\n\s*|\Z)", re.DOTALL)
_LONGEST = 2000
"""Words and blanks up to which two sentences are compared word by word; a longer one is one change."""
_ALIKE = 0.5
"""Least similarity of a sentence and what it was changed to; below it, one was removed and another added."""
_MOST_SENTENCES = 5000
"""Sentences up to which two texts are compared; a text with more is one change."""
_PAIRS = 10_000
"""Pairs of changed sentences up to which they are compared, in a whole text; what changed beyond is one change."""
_MOST_WORDS = 10_000
"""Words of sentences side by side up to which these are compared; more are one change."""


def word_diff(old: str, new: str) -> list[Part]:
    """The parts of both texts, and of one only, in reading order."""
    if old == new:
        return [("same", old)] if old else []
    before, after = sentences(old), sentences(new)
    if max(len(before), len(after)) <= 1:
        return _by_words(old, new)
    if max(len(before), len(after)) > _MOST_SENTENCES:
        return list(_flushed(old, new))
    return list(_merged(_by_sentences(before, after)))


def sentences(text: str) -> list[str]:
    """The sentences and lines of a text, each with the blanks after it. Joined, they are the text."""
    return _SENTENCES.findall(text)


def _by_sentences(before: Sequence[str], after: Sequence[str]) -> Iterator[Part]:
    left = _PAIRS
    for same, (i, k), (j, m) in stretches(before, after):
        if same:
            yield "same", "".join(before[i:k])
            continue
        left -= (k - i) * (m - j)
        couples = _couples(before[i:k], after[j:m]) if left >= 0 else None
        for old, new in couples or [("".join(before[i:k]), ""), ("", "".join(after[j:m]))]:
            yield from _by_words(old, new) if old and new else _flushed(old, new)


def _couples(before: Sequence[str], after: Sequence[str]) -> list[tuple[str, str]] | None:
    """(old sentence, new sentence) in order; '' for the missing side of one that was removed or added.

    None for sentences of too many words.
    """
    words = [[t for t in _TOKENS.findall(text) if not t.isspace()] for text in (*before, *after)]
    if sum(map(len, words)) > _MOST_WORDS:
        return None
    numbers = coded(*words)
    best = _best(numbers[: len(before)], numbers[len(before) :])
    found = []
    i = j = 0
    while i < len(before) or j < len(after):
        if i < len(before) and best[i][j] == best[i + 1][j]:
            found.append((before[i], ""))
            i += 1
        elif j < len(after) and best[i][j] == best[i][j + 1]:
            found.append(("", after[j]))
            j += 1
        else:
            found.append((before[i], after[j]))
            i, j = i + 1, j + 1
    return found


def _best(before: Sequence[list[int]], after: Sequence[list[int]]) -> list[list[float]]:
    """best[i][j]: the largest sum of similarities that pairing the sentences from i and j on, in order, can have.

    A sentence is its words as numbers. Two are as similar as the share of words that they have in common, in order.
    """
    best = [[0.0] * (len(after) + 1) for _ in range(len(before) + 1)]
    for i in reversed(range(len(before))):
        for j in reversed(range(len(after))):
            alike = float(Indel.normalized_similarity(before[i], after[j]))
            couple = alike + best[i + 1][j + 1] if alike >= _ALIKE else 0.0
            best[i][j] = max(best[i + 1][j], best[i][j + 1], couple)
    return best


def _merged(parts: Iterable[Part]) -> Iterator[Part]:
    """Neighbours of one kind joined; in a change, old parts before new ones."""
    for _, neighbours in groupby(parts, key=lambda part: part[0] == "same"):
        texts: dict[str, list[str]] = {"same": [], "old": [], "new": []}
        for kind, text in neighbours:
            texts[kind].append(text)
        yield from ((kind, "".join(found)) for kind, found in texts.items() if found)


def _by_words(old: str, new: str) -> list[Part]:
    before, after = _TOKENS.findall(old), _TOKENS.findall(new)
    if max(len(before), len(after)) > _LONGEST:
        return list(_flushed(old, new))
    if not is_small(before, after):
        before, after = _WITH_BLANKS.findall(old), _WITH_BLANKS.findall(new)
    return list(_joined(_parts(before, after)))


def _parts(before: list[str], after: list[str]) -> Iterator[Part]:
    for same, (i, k), (j, m) in stretches(before, after):
        if same:
            yield "same", "".join(before[i:k])
        else:
            old, new = "".join(before[i:k]), "".join(after[j:m])
            blanks = _last_blanks(old, new)
            end = -len(blanks) or None
            yield from [("old", old[:end]), ("new", new[:end])]
            yield from [("same", blanks)] if blanks else []


def _last_blanks(old: str, new: str) -> str:
    """The blanks after the last word of both texts; '' where they are not the same."""
    left, right = (text[len(text.rstrip()) :] for text in (old, new))
    return left if left == right else ""


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

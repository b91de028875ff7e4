"""Tasks whose instructions are nearly the same.

Words are compared without case, width and punctuation. Words of one sentence may stand in any order; sentences may not:
"add 3, then double" is not "double, then add 3". Signs of numbers and of arithmetic are words.

Two instructions are alike when two things hold. The Indel similarity of their sorted words (1 - edits / characters of
both) reaches `THRESHOLD`. And the words in which they differ are spellings of each other: mug and mugs, but not plate
and potato, and not 1 and 10.

Up to `ALL_PAIRS` different instructions, every pair is compared. Beyond that the sorted-neighbourhood method is used:
instructions with the same numbers are sorted in three ways (by letters, by letters read backwards, words with rare
beginnings first), and each is compared with its neighbours. Instructions that differ in a few letters are neighbours in
one of these orders. The cost grows linearly with their number, not quadratically.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from itertools import chain, groupby

import numpy as np
import numpy.typing as npt
from rapidfuzz.distance import Indel
from rapidfuzz.process import cdist, cpdist

THRESHOLD = 0.9
"""Least similarity of two instructions that are alike."""
SPELLING = 0.75
"""Least similarity of two spellings of one word: a letter more or less in a short word."""
EXTRA = 0.05
"""Share of the words that the other instruction may lack: none in a short one."""
ALL_PAIRS = 4000
"""Different instructions up to which every pair is compared."""
WINDOW = 8
"""Neighbours that an instruction is compared with in each sorted order beyond that."""
_STEM = 3
"""First letters of a word by which its rarity is counted, so that two spellings count as equally rare."""
_ROWS = 500
"""Instructions compared with all others at a time."""
BREAK = "."
"""The mark between the words of two sentences."""
_WORDS = re.compile(r"(?<!\w)[-\u2212]\d+|\w+|[<>=\u2260\u2264\u2265+*/%^]+")
_ENDS = re.compile(r"(?<=\w[.!?:;])\s+|\n+")

Pair = tuple[int, int]


def words(text: str) -> tuple[str, ...]:
    """The words of each sentence, sorted, with a `BREAK` between two sentences."""
    plain = unicodedata.normalize("NFKC", text).casefold()
    found = (sorted(_WORDS.findall(sentence)) for sentence in _ENDS.split(plain))
    marked = [word for sentence in found if sentence for word in (BREAK, *sentence)]
    return tuple(marked[1:])


def _respelled(a: Sequence[str], b: Sequence[str]) -> bool:
    """Whether the words that differ are spellings of each other, sentence by sentence, but for a few (`EXTRA`)."""
    here, there = sorted((_sentences(a), _sentences(b)))  # the same whichever comes first
    extra = 0
    for tag, i, k, j, m in SequenceMatcher(None, here, there, autojunk=False).get_opcodes():
        if tag != "equal":
            over = _left_over(list(chain.from_iterable(here[i:k])), list(chain.from_iterable(there[j:m])))
            if over is None:
                return False
            extra += over
    return extra <= EXTRA * max(len(a), len(b))


def _sentences(found: Sequence[str]) -> list[tuple[str, ...]]:
    return [tuple(group) for is_break, group in groupby(found, BREAK.__eq__) if not is_break]


def _left_over(a: Sequence[str], b: Sequence[str]) -> int | None:
    """How many words one side has more than the other; None if a word of the shorter side has no spelling there."""
    here, there = Counter(a), Counter(b)
    rest = [list((here - there).elements()), list((there - here).elements())]
    fewer, more = sorted(rest, key=lambda left: (len(left), left))  # the same whichever comes first
    over = len(more) - len(fewer)
    for word in fewer:
        twin = max(more, key=lambda other: (Indel.normalized_similarity(word, other), other))
        if _is_number(word) or _is_number(twin) or Indel.normalized_similarity(word, twin) < SPELLING:
            return None
        more.remove(twin)
    return over


def _is_number(word: str) -> bool:
    return word.lstrip("-\u2212").isdecimal()


def near_duplicates(instructions: Sequence[str], all_pairs: int = ALL_PAIRS) -> list[list[int]]:
    """Groups of positions of instructions that are alike, directly or through others; largest group first.

    Positions with exactly the same words are in a group only if another spelling is.
    """
    kinds: dict[tuple[str, ...], list[int]] = {}
    for position, instruction in enumerate(instructions):
        kinds.setdefault(words(instruction), []).append(position)
    spelled = list(kinds)
    close = _every(spelled) if len(spelled) <= all_pairs else _near(spelled)
    pairs = (pair for pair in close if _respelled(spelled[pair[0]], spelled[pair[1]]))
    members = list(kinds.values())
    groups = [sorted(p for kind in group for p in members[kind]) for group in _connected(len(spelled), pairs)]
    return sorted(groups, key=lambda group: (-len(group), group))


def _every(spelled: Sequence[tuple[str, ...]]) -> Iterator[Pair]:
    texts = [" ".join(kind) for kind in spelled]
    for first in range(0, len(texts), _ROWS):
        rows = cdist(
            texts[first : first + _ROWS], texts, scorer=Indel.normalized_similarity, score_cutoff=THRESHOLD
        )
        for row, column in np.argwhere(rows >= THRESHOLD).tolist():
            if first + row < column:
                yield first + row, column


def _near(spelled: Sequence[tuple[str, ...]]) -> Iterator[Pair]:
    texts = np.array([" ".join(kind) for kind in spelled], dtype=object)
    numbers = [" ".join(filter(_is_number, kind)) for kind in spelled]
    found = Counter(word[:_STEM] for kind in spelled for word in kind)
    rare_first = [" ".join(sorted(kind, key=lambda word: (found[word[:_STEM]], word))) for kind in spelled]
    codes = {number: code for code, number in enumerate(dict.fromkeys(numbers))}
    block = np.array([codes[number] for number in numbers])
    for keys in (texts.tolist(), [text[::-1] for text in texts], rare_first):
        places = sorted(zip(block.tolist(), keys, range(len(keys)), strict=True))
        order = np.array([place for *_, place in places])
        for step in range(1, WINDOW + 1):
            left, right = order[:-step], order[step:]
            together = block[left] == block[right]
            yield from _matching(texts, left[together], right[together])


def _matching(
    texts: npt.NDArray[np.object_],
    left: npt.NDArray[np.int64],
    right: npt.NDArray[np.int64],
) -> Iterator[Pair]:
    if len(left):
        close = cpdist(texts[left], texts[right], scorer=Indel.normalized_similarity, score_cutoff=THRESHOLD)
        hits = np.flatnonzero(close >= THRESHOLD)
        yield from zip(left[hits].tolist(), right[hits].tolist(), strict=True)


def _connected(count: int, pairs: Iterable[Pair]) -> list[list[int]]:
    """The groups of two and more that the pairs connect, of the numbers below `count`."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    edges = np.array(list(pairs), dtype=np.int64).reshape(-1, 2)
    graph = coo_array((np.ones(len(edges)), (edges[:, 0], edges[:, 1])), shape=(count, count))
    groups: dict[int, list[int]] = {}
    for node, label in enumerate(connected_components(graph, directed=False)[1].tolist()):
        groups.setdefault(label, []).append(node)
    return [group for group in groups.values() if len(group) > 1]

"""What every rewrite of a text may say, on pages and desktops: it must not forbid, and it stays in English.

Whether a text still asks for the same cannot be decided by words. These rules refuse what can be known to be wrong.
"""

from __future__ import annotations

import re
from collections import Counter

_FORBIDS = re.compile(
    r"\b(?:not|cannot|never|no|none|nothing|without|avoid|except|instead|ignore|wrong|refrain|forget|skip|\w+n['’]t)\b",
    re.IGNORECASE,
)
_QUOTED = re.compile(r"\"[^\"]*\"|“[^”]*”")
_WORDS = re.compile(r"[^\W\d_]+")
_COMMON = frozenset(
    {
        "a", "all", "and", "any", "are", "as", "at", "be", "both", "by", "can", "change", "each", "every", "file",
        "folder", "for", "from", "go", "has", "have", "if", "into", "is", "it", "its", "make", "must", "my",
        "name", "new", "of", "on", "one", "only", "open", "or", "out", "please", "press", "save", "so", "than",
        "that", "the", "them", "then", "there", "this", "to", "type", "up", "use", "what", "when", "where",
        "which", "with", "write", "you", "your",
    }
)  # fmt: skip
"""Words that an English instruction is full of, and other languages with these letters are not."""
FEWEST_WORDS = 6
"""Words of a text whose language is looked at: shorter ones may happen to have none of the common words."""
LEAST_COMMON = 0.2
"""Share of common English words, or words of the template, in a text in English."""
LEAST_ASCII = 0.9
"""Share of letters of the English alphabet in a text, of the share in its template."""


def forbids(text: str, template: str = "") -> str:
    """The first word with which a text forbids something, apart from those of its template, or ''.

    Words in quotation marks count, too: what stands in them may be a sentence. `don't` is another form of `not`.
    """
    allowed = Counter(map(_uncontracted, _FORBIDS.findall(template)))
    for word in _FORBIDS.findall(text):
        allowed[_uncontracted(word)] -= 1
        if allowed[_uncontracted(word)] < 0:
            return str(word)
    return ""


def _uncontracted(word: str) -> str:
    word = word.casefold()
    return "not" if word == "cannot" or word.endswith(("n't", "n’t")) else word


def in_another_language(text: str, template: str) -> bool:
    """Whether a text is clearly in another language or script than its template, as far as English can be told."""
    if _share_of_ascii(text) < LEAST_ASCII * _share_of_ascii(template):
        return True
    words, known = _words(text), _COMMON.union(_words(template))
    if len(words) < FEWEST_WORDS or not _COMMON.intersection(_words(template)):
        return False
    return sum(word in known for word in words) < LEAST_COMMON * len(words)


def _words(text: str) -> list[str]:
    """The words outside quotation marks."""
    return [word.casefold() for word in _WORDS.findall(_QUOTED.sub(" ", text))]


def _share_of_ascii(text: str) -> float:
    letters = [letter for word in _WORDS.findall(text) for letter in word]
    return sum(letter.isascii() for letter in letters) / len(letters) if letters else 1.0

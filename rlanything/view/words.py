"""The index for full-text search: for every word the rows that have it, in files by the word's first two characters.

A search loads only the files of its words, and finds words by their beginning. The page's script (`page/search.js`)
splits texts in the same way.
"""

from __future__ import annotations

import re
from array import array
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from rlanything.core.types import Json
from rlanything.view.iteration import IterationPage

FILES = 256
LONGEST = 40
"""Characters of a word that are kept: longer ones are seldom words."""
_WORD = re.compile(r"[^\W_]+")
_MARK = re.compile(r"</?\|?[a-zA-Z_]{1,24}\|?>")
"""E.g. `<|im_end|>`, `</s>`, `<think>`: they are in every reply, and no search should find them all."""


def words(text: str) -> set[str]:
    """The words of a text: runs of letters and digits, in lower case."""
    return {word[:LONGEST] for word in _WORD.findall(text.lower())}


def said(reply: str | None) -> str:
    """A reply without the marks that a model writes around its text; '' where it could not be decoded."""
    return _MARK.sub(" ", reply or "")


def file_of(word: str) -> int:
    """The number of the file that has a word, by its first two characters."""
    number = 0
    for character in word[:2]:
        number = (number * 31 + ord(character)) % FILES
    return number


class Words:
    """Collects the words of a run's rows."""

    def __init__(self) -> None:
        self.rows: dict[str, array[int]] = defaultdict(lambda: array("I"))
        self.count = 0

    def add(self, page: IterationPage) -> None:
        """The rollouts of an iteration, in the order of the rows."""
        for group in page.groups:
            shared = words("\n".join(_group_texts(group)))
            for rollout in group["rollouts"]:
                for word in shared | words("\n".join(_rollout_texts(rollout))):
                    self.rows[word].append(self.count)
                self.count += 1

    def files(self) -> Iterator[tuple[int, dict[str, Json]]]:
        """(number, content) of each file that is not empty: by word, each row's distance from the one before."""
        found: dict[int, list[str]] = defaultdict(list)
        for word in sorted(self.rows):
            found[file_of(word)].append(word)
        for number, held in sorted(found.items()):
            yield number, {word: _distances(self.rows[word]) for word in held}


def _distances(rows: array[int]) -> list[int]:
    return [row - before for row, before in zip(rows, (0, *rows), strict=False)]


def _group_texts(group: Mapping[str, Any]) -> Iterator[str]:
    yield group["task"]["instruction"]
    if group["tests"]:
        for test in group["tests"]["written"]:
            yield test["text"]


def _rollout_texts(rollout: Mapping[str, Any]) -> Iterator[str]:
    yield rollout["first_observation"]
    yield rollout["error"]
    for step in rollout["steps"]:
        yield step["action"]
        yield said(step["response"])
        yield step["observation"]
        for vote in step.get("votes", ()):
            yield vote["reason"]
            yield said(vote["reply"])

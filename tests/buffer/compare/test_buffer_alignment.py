"""Diffs of words and lines: both texts can be read off them, and their work is bounded, whatever was written."""

from __future__ import annotations

import itertools
import random
from unittest.mock import patch

import pytest
from buffer_cases import relaxed
from hypothesis import given
from hypothesis import strategies as st

from rlanything.buffer.views.tasks import alignment
from rlanything.buffer.views.tasks.alignment import stretches
from rlanything.buffer.views.tasks.field_diff import line_diff
from rlanything.buffer.views.tasks.word_diff import word_diff

texts = st.lists(st.sampled_from(["a", "b", " ", "  ", "\n", ". ", "red mug", "cup", "; "]), max_size=12).map(
    "".join
)
lines = st.lists(st.sampled_from("abcd"), max_size=10)
steps = st.sampled_from([0, 40, 300_000])
"""What `difflib` may take: nothing, a little, and as much as it takes for texts as short as these."""


@relaxed
@given(texts, texts, steps)
def test_both_texts_can_be_read_off_a_word_diff(old, new, most):
    with patch.object(alignment, "_STEPS", most):
        parts = word_diff(old, new)
    assert "".join(text for kind, text in parts if kind != "new") == old
    assert "".join(text for kind, text in parts if kind != "old") == new
    assert all(text for _, text in parts)
    assert all(one[0] != two[0] for one, two in itertools.pairwise(parts))


@relaxed
@given(lines, lines, steps)
def test_both_texts_can_be_read_off_a_line_diff(old, new, most):
    with patch.object(alignment, "_STEPS", most):
        parts = line_diff(old, new)
    assert [line for kind, line in parts if kind != "new"] == old
    assert [line for kind, line in parts if kind != "old"] == new


@relaxed
@given(lines, lines)
def test_beyond_the_steps_as_many_items_are_the_same_as_can_be(old, new):
    with patch.object(alignment, "_STEPS", 0):
        found = list(stretches(old, new))
    assert sum(end - start for same, (start, end), _ in found if same) == longest_common(old, new)


def longest_common(old: list[str], new: list[str]) -> int:
    table = [[0] * (len(new) + 1) for _ in range(len(old) + 1)]
    for i, j in itertools.product(range(len(old)), range(len(new))):
        both = table[i][j] + 1 if old[i] == new[j] else 0
        table[i + 1][j + 1] = max(both, table[i][j + 1], table[i + 1][j])
    return table[-1][-1]


def many(start: str, count: int, gap: str = " ") -> str:
    return gap.join(f"{start}{n}" for n in range(count))


@pytest.fixture
def asked(monkeypatch):
    """The lengths of what is compared: by `difflib`, and by rapidfuzz."""
    seen: dict[str, list[tuple[int, int, int]]] = {"difflib": [], "rapidfuzz": []}
    matcher, opcodes = alignment.SequenceMatcher, alignment.Indel.opcodes

    def blocks(_, old, new, **options):
        pairs = sum(one == two for one, two in itertools.product(old, new))
        seen["difflib"].append((len(old), len(new), pairs))
        return matcher(None, old, new, **options)

    class Spy:
        @staticmethod
        def opcodes(old, new):
            seen["rapidfuzz"].append((len(old), len(new), 0))
            return opcodes(old, new)

    monkeypatch.setattr(alignment, "SequenceMatcher", blocks)
    monkeypatch.setattr(alignment, "Indel", Spy)
    return seen


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (many("a", 300), many("b", 300)),
        (many("a", 900), many("b", 900)),
        ("x " * 990, "x y " * 490),
        ("x y.\n" * 1000, many("d", 1000, " x.\nx y.\n")),
        (many("a", 400, " b.\n"), many("c", 400, " b.\n")),
    ],
    ids=["unrelated", "unrelated and long", "one word", "sentences", "unrelated sentences"],
)
def test_words_take_bounded_work(asked, old, new):
    parts = word_diff(old, new)
    assert "".join(text for kind, text in parts if kind != "old") == new
    require_bounded(asked)


def test_lines_take_bounded_work(asked):
    alternating = [line for n in range(300) for line in ("x", f"d{n}")]
    parts = line_diff(["x"] * 600, alternating)
    assert [line for kind, line in parts if kind == "same"] == ["x"] * 300
    rng = random.Random(1)
    line_diff([rng.choice("xyz") for _ in range(2000)], [rng.choice("xyz") for _ in range(2000)])
    require_bounded(asked)


def require_bounded(asked):
    """`difflib` looks at the pairs of equal items for each stretch that it finds, rapidfuzz at all pairs."""
    for old, new, pairs in asked["difflib"]:
        assert (pairs + old) * min(old, new) <= 300_000
    assert all(old * new <= 25_000_000 for old, new, _ in asked["rapidfuzz"])


def test_a_long_sentence_with_few_changes_reads_as_a_short_one():
    old, new = (f"{many('w', 300)} {word} {many('v', 300)} {word} end" for word in ("red mug", "blue cup"))
    changes = [part for part in word_diff(old, new) if part[0] != "same"]
    assert changes == [("old", "red mug"), ("new", "blue cup")] * 2

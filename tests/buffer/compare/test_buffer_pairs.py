"""Lists of pairs of texts, texts of several lines, lists and long statements: what is said of their changes."""

from __future__ import annotations

import itertools
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlanything.buffer.views.compare.field_lines import field_line, field_lines, shortened
from rlanything.buffer.views.tasks.field_diff import changed_fields, line_diff
from rlanything.buffer.views.tasks.task_fields import pairs_of, scalar_fields
from rlanything.buffer.views.tasks.text_pairs import Fate, as_pairs, pair_changes, tally
from rlanything.buffer.views.tasks.word_diff import sentences, word_diff
from rlanything.core.types import Task

few = st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("12")), max_size=6)


def task(text: str = "q", **payload: object) -> Task:
    return Task("any", text, payload, {})


def told(old: Task, new: Task) -> list[str]:
    """Everything that a page says of the fields."""
    return [
        line
        for field in changed_fields(old, new)
        for line in (field_line(field), *(line.text for line in field_lines(field)))
    ]


@given(few, few)
def test_both_lists_can_be_read_off_the_changes(old, new):
    changes = pair_changes(old, new)
    back = sorted((c.old_at, (c.first, c.old)) for c in changes if c.old_at is not None)
    ahead = sorted((c.new_at, (c.first, c.new)) for c in changes if c.new_at is not None)
    assert back == list(enumerate(old, 1))
    assert ahead == list(enumerate(new, 1))


@given(few, few)
def test_a_pair_is_kept_or_changed_wherever_it_can_be(old, new):
    changes = pair_changes(old, new)
    both = Counter(old) & Counter(new)
    assert tally(changes)["kept"] == both.total()
    left, right = Counter(old) - both, Counter(new) - both
    firsts = Counter(first for first, _ in left.elements()) & Counter(first for first, _ in right.elements())
    assert tally(changes)["changed"] == firsts.total()
    assert tally(changes)["added"] == len(new) - both.total() - firsts.total()
    assert all((c.old == c.new) is (c.fate is Fate.KEPT) for c in changes)


@given(few)
def test_the_same_pairs_in_another_order_are_kept(pairs):
    assert {c.fate for c in pair_changes(pairs, pairs[::-1])} <= {Fate.KEPT}


@pytest.mark.parametrize(
    "value", [[], "ab", [["a"]], [["a", "b", "c"]], [["a", 1]], [["a", "b"], None], {"a": "b"}, ["ab"], 3]
)
def test_what_is_no_list_of_pairs(value):
    assert as_pairs(value) is None


def test_pairs_are_one_field_and_count_as_their_number():
    made = task(checks=[["1", "2"], ["3", "4"]], inner={"checks": [["a", "b"]]}, steps=[["add", 3]])
    assert scalar_fields(made) == {"checks": 2, "inner.checks": 1, "steps.0.0": "add", "steps.0.1": 3}
    assert pairs_of(made) == {"checks": (("1", "2"), ("3", "4")), "inner.checks": (("a", "b"),)}


def test_what_is_said_of_pairs():
    old = task(checks=[["1 2\n", "3"], ["5", "6"], ["7", "8"]])
    new = task(checks=[["7", "8"], ["1 2\n", "4"], ["9", ""]])
    assert told(old, new) == [
        "checks: 3 -> 3; 1 kept, 1 changed, 1 added, 1 removed",
        r'~ "1 2\n" -> [-"3"-]{+"4"+}',
        '+ "9" -> ""',
        '- "5" -> "6"',
    ]
    assert told(old, task(checks=[])) == told(old, task())
    assert told(task(), old)[0] == "checks: 0 -> 3; 0 kept, 0 changed, 3 added, 0 removed"
    assert told(old, task(checks=7)) == ['checks: [["1 2\\n","3"],["5","6"],["7","8"]] -> 7']


def test_what_is_said_of_programs_and_lists():
    old = task(solution="a\nb\nc\nd\ne", steps=[["add", 3], ["double", 0]])
    new = task(solution="a\nb\nx\nd\ne", steps=[["double", 0]])
    assert told(old, new) == [
        "solution: 5 lines -> 5 lines",
        *("  ...", "  b", "- c", "+ x", "  d", "  ..."),
        "steps: 2 items -> 1 item",
        *('- ["add",3]', '  ["double",0]'),
    ]


def test_no_control_character_of_a_pair_or_program_is_told():
    old = task(checks=[["\x1b[2J", "\u202e"]], solution="\x1b]0;t\x07\n")
    new = task(checks=[["\x1b[2J", "\x9b31m"]], solution="\x1b]0;u\x07\n")
    assert all(line.isprintable() for line in told(old, new))


def test_what_is_long_is_cut():
    old, new = task(checks=[["1" * 10_000, "2"]]), task(checks=[["1" * 10_000, "3"]])
    assert max(map(len, told(old, new))) < 400


@given(st.lists(st.sampled_from("abcd"), max_size=8), st.lists(st.sampled_from("abcd"), max_size=8))
def test_line_diffs_read_as_both_texts(old, new):
    parts = line_diff(old, new)
    assert [line for kind, line in parts if kind != "new"] == old
    assert [line for kind, line in parts if kind != "old"] == new


statements = st.lists(
    st.sampled_from(
        ["Add 3. ", "Add 4. ", "Say even or odd.\n", "Is it?\n\n", "3.5", " ", "Keep those above 6. "]
    ),
    max_size=7,
).map("".join)


@given(statements, statements)
def test_word_diffs_of_statements_read_as_both(old, new):
    assert "".join(sentences(old)) == old
    parts = word_diff(old, new)
    assert "".join(text for kind, text in parts if kind != "new") == old
    assert "".join(text for kind, text in parts if kind != "old") == new
    assert all(text for _, text in parts)
    assert all(a[0] != b[0] for a, b in itertools.pairwise(parts))


def test_a_sentence_that_was_put_in_is_one_change():
    old = "Read a number. Change its sign. Print the result."
    assert word_diff(old, old.replace("Print", "Take the remainder by 6. Print")) == [
        ("same", "Read a number. Change its sign. "),
        ("new", "Take the remainder by 6. "),
        ("same", "Print the result."),
    ]


def test_texts_of_very_many_sentences_are_one_change():
    old, new = "x\n" * 20_000, "x\n" * 20_001  # compared one by one, they would take minutes
    assert word_diff(old, new) == [("old", old), ("new", new)]


def test_many_pairs_are_compared_in_time_that_grows_with_their_number():
    old, new = [(str(n), "a") for n in range(20_000)], [(str(n), "b") for n in range(20_000)]
    assert {change.fate for change in pair_changes(old, new)} == {Fate.CHANGED}


def test_unlike_sentences_share_no_words():
    old, new = "Read a line. Drop all but the last word. End.", "Read a line. Count the words. End."
    assert word_diff(old, new)[1:3] == [("old", "Drop all but the last word. "), ("new", "Count the words. ")]
    alike = word_diff("If above 5, make it 5. End.", "If above 7, make it 7. End.")
    assert [text for kind, text in alike if kind != "same"] == ["5", "7", "5", "7"]


def test_a_long_statement_is_shown_around_its_changes():
    words = " ".join(f"word{n}" for n in range(100))
    parts = shortened(word_diff(f"{words} old {words}", f"{words} new {words}"))
    assert [kind for kind, _ in parts] == ["same", "old", "new", "same"]
    assert parts[0][1].startswith("[...] word")
    assert parts[0][1].endswith("word99 ")
    assert parts[-1][1].startswith(" word0 ")
    assert parts[-1][1].rstrip().endswith("[...]")
    assert shortened([("same", words)])[0][1].startswith("word0 ")
    assert shortened([("same", "a short one")]) == [("same", "a short one")]

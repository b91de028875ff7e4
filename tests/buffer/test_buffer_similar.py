"""Nearly equal sentences: what counts as one, grouping against comparing every pair, and how little blocks lose."""

import random
import string
import time
from itertools import combinations

import pytest
from buffer_cases import ACCEPTED, event, kitchen, record, relaxed
from hypothesis import given
from hypothesis import strategies as st

from rlanything.buffer import TaskBuffer
from rlanything.buffer.views import drift
from rlanything.buffer.views.tasks.near_duplicates import near_duplicates, words

VOCABULARY = [
    "put",
    "a",
    "the",
    "mug",
    "mugs",
    "Mug",
    "knife",
    "knifes",
    "desk",
    "desks",
    "in",
    "3",
    "30",
    "ok",
    "!",
]
sentences = st.lists(st.sampled_from(VOCABULARY), max_size=7).map(" ".join)


def are_alike(a, b):
    """Whether two instructions have the very same words, or are near duplicates."""
    return words(a) == words(b) or bool(near_duplicates([a, b]))


@pytest.mark.parametrize(
    ("a", "b", "wanted"),
    [
        ("put two mug in the shelf", "put two mugs in the shelf", True),
        ("put a mug in the shelf", "In the shelf, put a MUG!", True),
        ("Heat the ｍｕｇ", "heat the mug", True),
        ("put a mug in the shelf", "put a mug in the desk", False),
        ("cool some plate and put it in sinkbasin", "cool some potato and put it in sinkbasin", False),
        ("heat some plate and put it in sinkbasin", "cool some plate and put it in sinkbasin", False),
        ("put a mug in the shelf of this kitchen", "put a clean mug in the shelf of this kitchen", False),
        (
            "open the spreadsheet named sales report 1 now",
            "open the spreadsheet named sales report 10 now",
            False,
        ),
        (
            "write a function that returns the sum of all even numbers in a list and raises an error for an empty one",
            "please write a function that returns the sum of all even number in a list and raises an error for an "
            "empty one",
            True,
        ),
        ("", "", True),
        ("mug", "", False),
    ],
)
def test_what_is_nearly_the_same(a, b, wanted):
    assert are_alike(a, b) is wanted


@relaxed
@given(sentences, sentences, st.randoms())
def test_it_is_symmetric_and_blind_to_order_case_and_punctuation(a, b, rng):
    shuffled = b.upper().split()
    rng.shuffle(shuffled)
    told = are_alike(a, b)
    assert are_alike(b, a) is told
    assert are_alike(a, ", ".join(shuffled)) is told
    assert are_alike(a, a)


def by_every_pair(texts):
    """The groups, from the definition: connected positions, unless all of a group have the very same words."""
    groups = [{k} for k in range(len(texts))]
    for a, b in combinations(range(len(texts)), 2):
        if are_alike(texts[a], texts[b]):
            joined = [group for group in groups if a in group or b in group]
            groups = [group for group in groups if group not in joined] + [set().union(*joined)]
    return {tuple(sorted(g)) for g in groups if len({words(texts[k]) for k in g}) > 1}


@relaxed
@given(st.lists(sentences, max_size=14))
def test_groups_are_those_of_every_pair(texts):
    groups = near_duplicates(texts)
    assert {tuple(group) for group in groups} == by_every_pair(texts)
    assert [len(group) for group in groups] == sorted(map(len, groups), reverse=True)


@relaxed
@given(st.lists(sentences, max_size=14))
def test_blocks_find_nothing_that_every_pair_does_not(texts):
    wanted = [set(group) for group in near_duplicates(texts)]
    assert all(any(set(group) <= whole for whole in wanted) for group in near_duplicates(texts, all_pairs=0))


@pytest.mark.parametrize("seed", range(10))
def test_a_respelled_word_is_found_among_many_sentences_without_comparing_every_pair(seed):
    rng = random.Random(seed)
    vocabulary = sorted({"".join(rng.choices(string.ascii_lowercase, k=6)) for _ in range(300)})
    texts = sorted({" ".join(rng.choices(vocabulary, k=8)) for _ in range(500)})
    planted = rng.sample(range(len(texts)), 20)
    for k in planted:
        changed = texts[k].split()
        place = rng.randrange(len(changed))
        changed[place] += "s"
        texts.append(" ".join(rng.sample(changed, len(changed))))
    found = [set(group) for group in near_duplicates(texts, all_pairs=0)]
    first = len(texts) - len(planted)
    hits = sum(any({k, first + n} <= group for group in found) for n, k in enumerate(planted))
    assert hits >= 18


def test_the_cost_grows_with_the_sentences_and_not_with_their_square():
    rng = random.Random(0)
    texts = [f"put {rng.randrange(10**9)} things of room {k} in the shelf" for k in range(40_000)]

    def seconds(count):
        started = time.process_time()
        near_duplicates(texts[:count], all_pairs=0)
        return time.process_time() - started

    seconds(1000)
    assert seconds(40_000) < 30 * seconds(5000), "every pair would take 64 times as long"


def test_drift_tells_of_them_and_warns_when_they_become_many(tmp_path):
    things = ["mug", "apple", "knife", "plate", "book", "pillow", "soapbar", "keychain", "bottle", "candle"]
    start = TaskBuffer.start(kitchen(n, thing, "cabinet") for n, thing in enumerate(things))
    spelled = ["mug", "mugs", "mug", "muug", "mugg"]
    events = [
        event(start, n, ACCEPTED, kitchen(n, word, "shelf"), iteration=0) for n, word in enumerate(spelled)
    ]
    record(tmp_path / "runs/flat/seed-0/buffer", 0, start)
    record(tmp_path / "runs/flat/seed-0/buffer", 1, start.apply(events), events)
    page = drift("flat/seed-0", root=tmp_path)
    near = [group for group in page["duplicates"] if group["kind"] == "nearly the same words"]
    assert [group["slots"] for group in near] == [[0, 1, 2, 3, 4]]
    assert page["near_duplicates"] == {"old": 0, "new": 5, "similarity": 0.9}
    assert "collapse: 5 slots have nearly the words of another one, 0 at the start" in page["warnings"]

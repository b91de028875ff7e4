"""Rewards of programs and of generated tests: exact values, and what must hold for every table."""

from __future__ import annotations

from math import isclose, isnan, sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlanything.core import coding_signals as signals
from rlanything.core.coding_signals import CodingCounts
from rlanything.core.types import Json

T, F = True, False
DATASET = [[T, T], [T, T], [T, F], [F, F]]
"""Programs 0 and 1 are right, 2 and 3 wrong."""
GENERATED = [
    # a GT test that rejects both wrong programs; one that rejects one; one that rejects none;
    # a test that a right program fails and both wrong ones pass; one that everybody fails
    [T, T, T, F, F],
    [T, T, T, T, F],
    [F, T, T, T, F],
    [F, F, T, T, F],
]
READABLE = [T] * 5


def test_ground_truth() -> None:
    assert signals.gt_programs(DATASET) == [T, T, F, F]
    assert signals.gt_tests(GENERATED, [T, T, F, F], READABLE) == [T, T, T, F, F]
    assert signals.gt_programs([[T, None], [F, None], [None, None]]) == [None, F, None]
    assert signals.gt_tests([[None, None], [T, F]], [T, T], [T, T]) == [None, F]
    assert signals.gt_tests([[T], [T]], [F, None], [T]) == [None]


def test_rewards_of_generated_tests() -> None:
    rewards = signals.generated_rewards(DATASET, GENERATED, READABLE)
    assert rewards == [2.0, 1.0, 0.0, -2.0, 0.0]
    std = sqrt(sum((r - 0.2) ** 2 for r in (2, 1, 0, -2, 0)) / 5)
    expected = [(r - 0.2) / std for r in (2, 1, 0, -2, 0)]
    assert signals.generated_advantages(DATASET, GENERATED, READABLE) == pytest.approx(expected)


def test_where_no_program_is_wrong_a_test_is_right_or_wrong() -> None:
    assert signals.generated_rewards([[T], [T]], [[T, F], [T, T]], [T, T]) == [1.0, -1.0]
    assert signals.generated_advantages([[T], [T]], [[T, F], [T, T]], [T, T]) == [1.0, -1.0]


def test_where_no_program_is_right_nothing_is_learned() -> None:
    assert signals.generated_rewards([[F], [F]], [[T, F], [T, F]], [T, T]) == [None, None]
    assert signals.generated_advantages([[F], [F]], [[T, F], [T, F]], [T, F]) == [None, None]


def test_equal_tests_train_nothing() -> None:
    assert signals.generated_advantages([[T], [F]], [[T, T], [F, F]], [T, T]) == [None, None]


def test_an_unreadable_test_is_worse_than_every_other() -> None:
    generated = [[T, T, F], [F, T, F]]
    assert signals.generated_rewards([[T], [F]], generated, [T, T, F]) == [1.0, 0.0, None]
    assert signals.generated_advantages([[T], [F]], generated, [T, T, F]) == [1.0, -1.0, -2.0]
    assert signals.generated_advantages([[T], [F]], [[T, F], [F, F]], [T, F]) == [None, -1.0]


def test_what_the_sandbox_could_not_run_is_left_out() -> None:
    assert signals.generated_rewards([[T], [F], [F]], [[T, None], [F, F], [None, F]], [T, T]) == [2.0, None]
    assert signals.generated_rewards([[T], [F]], [[T], [None]], [T]) == [None]
    assert signals.program_rewards([[T, None], [T, F]], [[], []], [], 1.0) == [None, 0.5]
    assert signals.program_rewards([[T], [F]], [[T, T], [None, F]], [T, T], 1.0) == [2.0, 0.0]


@pytest.mark.parametrize("lost", [(1,), (2, 3)])
def test_a_program_that_a_test_could_not_be_run_on_counts_as_the_others_do(lost: tuple[int, ...]) -> None:
    """Otherwise a right test would be worth less for it, and a wrong one more."""
    dataset = [[T], [F], [F], [F]]
    whole = [[T, F], [F, T], [F, T], [F, T]]
    holes = [[None if i in lost else row[0], *row[1:]] for i, row in enumerate(whole)]
    expected = signals.generated_rewards(dataset, whole, [T, T])
    assert signals.generated_rewards(dataset, holes, [T, T]) == expected == [3.0, -3.0]


def test_rewards_of_programs() -> None:
    assert signals.program_rewards(DATASET, GENERATED, READABLE, 0.0) == [1.0, 1.0, 0.5, 0.0]
    assert signals.program_rewards(DATASET, GENERATED, READABLE, 1.0) == pytest.approx(
        [2.0, 2.0, 0.5 + 2 / 3, 1 / 3]
    )
    assert signals.program_rewards([[F], [F]], [[T], [F]], [T], 1.0) == [0.0, 0.0]
    std = sqrt(sum((r - 0.625) ** 2 for r in (1, 1, 0.5, 0)) / 4)
    assert signals.program_advantages(DATASET, GENERATED, READABLE, 0.0) == pytest.approx(
        [(r - 0.625) / std for r in (1, 1, 0.5, 0)]
    )
    assert signals.program_advantages([[T], [T]], [[], []], [], 1.0) == [0.0, 0.0]


def test_a_test_that_shows_a_fault_which_the_dataset_misses_counts_with_all_alone() -> None:
    """Both programs pass the dataset's tests; the first written test fails the second one, so that it is not GT."""
    dataset, generated = [[T], [T]], [[T, T], [F, T]]
    assert signals.program_rewards(dataset, generated, [T, T], 1.0) == [2.0, 2.0]
    assert signals.program_rewards(dataset, generated, [T, T], 1.0, "all") == [2.0, 1.5]
    assert signals.program_advantages(dataset, generated, [T, T], 1.0, "all") == [1.0, -1.0]
    assert signals.program_rewards([[F], [F]], [[T], [F]], [T], 1.0, "all") == [1.0, 0.0]
    assert signals.program_rewards(dataset, [[T, F], [F, F]], [T, F], 0.5, "all") == [1.5, 1.0]
    assert signals.program_rewards(dataset, [[T, None], [None, None]], [T, T], 1.0, "all") == [2.0, None]
    assert signals.program_rewards(dataset, [[T, None], [None, None]], [T, T], 0.0, "all") == [1.0, 1.0]
    assert signals.program_rewards(dataset, [[F], [F]], [F], 1.0, "all") == [1.0, 1.0]


def test_the_three_metrics() -> None:
    found = signals.counts(DATASET, GENERATED, READABLE)
    assert found == CodingCounts(code=2, code_of=4, ut=3, ut_of=5, detect=1, detect_of=5)
    assert found.rates == {"code": 0.5, "ut": 0.6, "detect": 0.2}
    only_right = signals.counts([[T]], [[T, F]], [T, T])
    assert only_right == CodingCounts(1, 1, 1, 2, 0, 0)
    only_wrong = signals.counts([[F]], [[T, F]], [T, T])
    assert only_wrong == CodingCounts(0, 1, 0, 0, 0, 0)
    assert found + only_right + only_wrong == CodingCounts(3, 6, 4, 7, 1, 5)
    assert isnan(only_wrong.rates["ut"])
    assert signals.counts([[T], [F]], [[T, F], [F, F]], [T, F]) == CodingCounts(1, 2, 1, 2, 1, 2)
    assert signals.counts([[T], [None]], [[T], [F]], [T]) == CodingCounts(1, 1, 1, 1, 0, 0)


def test_pass_rates_stand_at_their_test() -> None:
    assert signals.pass_rates([[T, F, None], [F, F, None]]) == [0.5, 0.0, None]
    assert signals.pass_rates([]) == []


def test_tests_agree_when_different_programs_pass_all_of_them() -> None:
    assert signals.consistent([[T, T], [T, T]], ["a", "b"])
    assert not signals.consistent([[T, T], [T, T]], ["a", "a "])
    assert not signals.consistent([[T, F], [F, T]], ["a", "b"])
    assert not signals.consistent([[T, T], [F, T]], ["a", "b"])


def test_tables_must_fit() -> None:
    with pytest.raises(ValueError, match="without dataset tests"):
        signals.gt_programs([[]])
    with pytest.raises(ValueError, match="table of 2 programs and 1 tests"):
        signals.generated_rewards([[T], [T]], [[T]], [T])
    with pytest.raises(ValueError, match="table of 1 programs and 2 tests"):
        signals.counts([[T]], [[T]], [T, T])


cell = st.sampled_from([True, True, False, None])


@st.composite
def tasks(draw: st.DrawFn) -> dict[str, Json]:
    programs, tests = draw(st.integers(1, 6)), draw(st.integers(1, 5))
    known = draw(st.integers(1, 3))

    def table(width: int) -> list[list[bool | None]]:
        row = st.lists(cell, min_size=width, max_size=width)
        return draw(st.lists(row, min_size=programs, max_size=programs))

    return {
        "dataset": table(known),
        "generated": table(tests),
        "readable": draw(st.lists(st.booleans(), min_size=tests, max_size=tests)),
    }


@given(task=tasks())
def test_a_gt_test_is_never_worth_less_than_another(task: dict[str, Json]) -> None:
    right = signals.gt_programs(task["dataset"])
    is_gt = signals.gt_tests(task["generated"], right, task["readable"])
    rewards = signals.generated_rewards(**task)
    pairs = [(g, r) for g, r in zip(is_gt, rewards, strict=True) if r is not None]
    best_of_wrong = max((r for g, r in pairs if not g), default=None)
    if best_of_wrong is not None:
        assert all(r >= best_of_wrong for g, r in pairs if g)
    assert all((r >= 0) if g else (r <= 0) for g, r in pairs)


@given(task=tasks(), lam=st.sampled_from([0.0, 0.25, 1.0]))
def test_advantages_are_centred_and_of_unit_spread(task: dict[str, Json], lam: float) -> None:
    readable_only = [
        a
        for a, ok in zip(signals.generated_advantages(**task), task["readable"], strict=True)
        if ok and a is not None
    ]
    programs = [a for a in signals.program_advantages(**task, lam=lam) if a is not None]
    for values in (readable_only, programs):
        if any(values):
            assert isclose(sum(values), 0.0, abs_tol=1e-9)
            assert isclose(sum(v * v for v in values) / len(values), 1.0)


@given(task=tasks(), seed=st.randoms())
def test_nothing_depends_on_the_order_of_programs_or_tests(task: dict[str, Json], seed: object) -> None:
    rows = list(range(len(task["dataset"])))
    seed.shuffle(rows)  # type: ignore[attr-defined]
    columns = list(range(len(task["readable"])))
    seed.shuffle(columns)  # type: ignore[attr-defined]
    moved = {
        "dataset": [task["dataset"][i] for i in rows],
        "generated": [[task["generated"][i][k] for k in columns] for i in rows],
        "readable": [task["readable"][k] for k in columns],
    }
    assert signals.counts(**moved) == signals.counts(**task)
    before = signals.generated_rewards(**task)
    assert signals.generated_rewards(**moved) == [before[k] for k in columns]
    rewards = signals.program_rewards(**task, lam=1.0)
    assert signals.program_rewards(**moved, lam=1.0) == pytest.approx([rewards[i] for i in rows])


@given(task=tasks())
def test_a_program_that_could_not_be_run_changes_nothing_for_the_others(task: dict[str, Json]) -> None:
    width, tests = len(task["dataset"][0]), len(task["readable"])
    more = {
        "dataset": [*task["dataset"], [None] * width],
        "generated": [*task["generated"], [None] * tests],
        "readable": task["readable"],
    }
    assert signals.generated_rewards(**more) == signals.generated_rewards(**task)
    assert signals.counts(**more) == signals.counts(**task)
    assert signals.program_advantages(**more, lam=1.0)[:-1] == signals.program_advantages(**task, lam=1.0)


@given(task=tasks())
def test_metrics_are_ordered(task: dict[str, Json]) -> None:
    found = signals.counts(**task)
    assert 0 <= found.code <= found.code_of
    assert 0 <= found.detect <= found.ut <= found.ut_of
    assert found.detect_of <= found.ut_of


def algorithm_2(task: dict[str, Json]) -> list[float]:
    """Lines 16-18 word for word: 1 - p for a test that all right programs pass, -p otherwise; p on the wrong ones."""
    right = signals.gt_programs(task["dataset"])
    good, bad = ([i for i, found in enumerate(right) if found is kind] for kind in (True, False))
    columns = list(zip(*task["generated"], strict=True))
    rates = [sum(column[i] for i in bad) / len(bad) for column in columns]
    return [1 - p if all(column[i] for i in good) else -p for column, p in zip(columns, rates, strict=True)]


def test_algorithm_2_by_hand() -> None:
    """Of two wrong programs the tests reject 2, 1, 0, 0 and 2; the first three are right."""
    task = {"dataset": DATASET, "generated": GENERATED, "readable": READABLE}
    assert algorithm_2(task) == [1.0, 0.5, 0.0, -1.0, 0.0]
    counted = signals.generated_rewards(**task)
    assert [2 * r for r in algorithm_2(task)] == counted, (
        "each is the count over the number of wrong programs"
    )


@st.composite
def tasks_with_both(draw: st.DrawFn) -> dict[str, Json]:
    """Tasks with a right and a wrong program, of which everything could be run."""
    right, wrong, tests = draw(st.integers(1, 4)), draw(st.integers(1, 4)), draw(st.integers(1, 6))
    row = st.lists(st.booleans(), min_size=tests, max_size=tests)
    generated = draw(st.lists(row, min_size=right + wrong, max_size=right + wrong))
    return {"dataset": [[T]] * right + [[F]] * wrong, "generated": generated, "readable": [T] * tests}


@given(task=tasks_with_both())
def test_counts_and_the_rates_of_algorithm_2_give_the_same_advantages(task: dict[str, Json]) -> None:
    rates, found = algorithm_2(task), signals.generated_advantages(**task)
    centre = sum(rates) / len(rates)
    std = sqrt(sum((r - centre) ** 2 for r in rates) / len(rates))
    if std < 1e-9:
        assert found == [None] * len(rates)
    else:
        assert found == pytest.approx([(r - centre) / std for r in rates], abs=1e-9)

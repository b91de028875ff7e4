"""Choosing a program by written tests: what each method must do whatever the programs and tests are."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlanything.checks.selection.declare import ORACLE, SINGLE
from rlanything.checks.selection.methods import (
    ALPHA,
    ALPHA_FEW,
    METHODS,
    Trials,
    best_of_n,
    chosen,
    mpsc,
    s_star,
)
from rlanything.checks.selection.results import outcomes

Behaviour = tuple[int | None, ...]
"""What a program writes on each input; None: it crashes."""
Test = tuple[int, int]
"""Number of an input, and the output that is expected there."""
RIGHT = 0
"""What a right program writes on every input."""
INPUTS = 3
every_method = pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)


def trials(programs: list[Behaviour], tests: list[Test | None]) -> Trials:
    """What running these programs on these tests gives; None is a reply without a test."""
    asked = [None if test is None else test[0] for test in tests]
    first = {number: asked.index(number) for number in asked if number is not None}
    written = [
        tuple(
            None
            if n is None or row[n] is None
            else next(i for i, other in enumerate(programs) if other[n] == row[n])
            for n in asked
        )
        for row in programs
    ]
    return Trials(
        tuple(tuple(test is not None and row[test[0]] == test[1] for test in tests) for row in programs),
        tuple(test is not None for test in tests),
        tuple(None if n is None else first[n] for n in asked),
        tuple(written),
        tuple(set(row) == {RIGHT} for row in programs),
    )


outputs = st.one_of(st.none(), st.integers(0, 3))
behaviours = st.lists(st.tuples(*[outputs] * INPUTS), min_size=1, max_size=6)
written_tests = st.lists(
    st.one_of(st.none(), st.tuples(st.integers(0, INPUTS - 1), st.integers(0, 3))), max_size=6
)
cases = st.tuples(behaviours, written_tests)


@every_method
@given(case=cases, data=st.data())
def test_a_programs_score_does_not_depend_on_its_place(method, case, data):
    programs, tests = case
    order = data.draw(st.permutations(range(len(programs))))
    moved = method(trials([programs[i] for i in order], tests))
    scores = method(trials(programs, tests))
    assert moved == [pytest.approx(scores[i], abs=1e-8) for i in order]


@every_method
@given(case=cases, data=st.data())
def test_a_programs_score_does_not_depend_on_the_order_of_the_tests(method, case, data):
    programs, tests = case
    moved = data.draw(st.permutations(tests))
    assert method(trials(programs, moved)) == [
        pytest.approx(score, abs=1e-8) for score in method(trials(programs, tests))
    ]


@every_method
@given(behaviour=st.tuples(*[outputs] * INPUTS), count=st.integers(1, 6), tests=written_tests)
def test_of_equal_programs_the_first_sampled_is_chosen(method, behaviour, count, tests):
    assert chosen(method, trials([behaviour] * count, tests)) == 0


@every_method
@given(case=cases)
def test_no_method_reads_which_programs_are_right(method, case):
    found = trials(*case)
    assert method(replace(found, right=tuple(None for _ in found.right))) == method(found)


@every_method
@given(case=cases)
def test_a_reply_without_a_test_changes_no_score(method, case):
    programs, tests = case
    assert method(trials(programs, [*tests, None])) == method(trials(programs, tests))


wrong = st.tuples(*[st.one_of(st.none(), st.integers(1, 3))] * INPUTS)
"""Wrong on every input."""
partly = st.tuples(*[outputs] * INPUTS).filter(lambda row: set(row) != {RIGHT})
"""Wrong on some."""
PERFECT: list[Test | None] = [(number, RIGHT) for number in range(INPUTS)]


@pytest.mark.parametrize("method", [best_of_n, s_star])
@given(programs=st.lists(partly, max_size=6), place=st.integers(0, 6))
def test_right_tests_of_every_input_find_the_one_right_program(method, programs, place):
    programs.insert(place, (RIGHT,) * INPUTS)
    found = trials(programs, PERFECT)
    assert found.right[chosen(method, found)] is True


@every_method
@given(programs=st.lists(wrong, max_size=6), place=st.integers(0, 6))
def test_tests_that_only_the_right_program_passes_find_it(method, programs, place):
    programs.insert(place, (RIGHT,) * INPUTS)
    found = trials(programs, PERFECT)
    assert found.right[chosen(method, found)] is True


@every_method
def test_without_a_test_the_first_program_or_the_largest_group_is_chosen(method):
    assert chosen(method, trials([(1,) * 3, (0,) * 3], [])) == 0
    assert chosen(method, trials([], PERFECT)) is None


def test_best_of_n_counts_the_tests_passed():
    found = trials([(0, 1, 1), (0, 0, 1), (2, 0, 0)], PERFECT)
    assert best_of_n(found) == [(1.0,), (2.0,), (2.0,)]
    assert chosen(best_of_n, found) == 1


def test_mpsc_is_the_fixed_point_that_its_iteration_converges_to():
    found = trials([(0, 0, 1), (0, 0, 1), (0, 1, 1), (2, 2, 2)], [*PERFECT, (2, 1), None])
    edges = np.array([[1, 1, 0, 1], [1, 1, 0, 1], [1, 0, 0, 1], [0, 0, 0, 0]], dtype=float)
    weights = np.block([[np.zeros((4, 4)), edges], [edges.T, np.zeros((4, 4))]])
    degrees = weights.sum(axis=1)
    norms = np.array([d**-0.5 if d else 0.0 for d in degrees])
    moves = np.diag(norms) @ weights @ np.diag(norms)
    begins = np.array([2 * 0.75, 2 * 0.75, 0.5, 0]) / 3.5, np.array([2 * 0.75, 0.5, 0, 2 * 0.75]) / 3.5
    begin = scores = np.concatenate(begins)
    for _ in range(2000):
        scores = ALPHA * moves @ scores + (1 - ALPHA) * begin
    assert [score for (score,) in mpsc(found)] == pytest.approx([*scores[:3], 0.0], abs=1e-8)


def test_mpsc_of_few_edges_rests_on_the_cardinality():
    """One edge of nine: program and test have degree 1, so f = alpha f + (1 - alpha) y with y = 1 for both."""
    assert mpsc(trials([(0, 1, 1), (1, 1, 1), (2, 1, 1)], PERFECT)) == [(1.0,), (0.0,), (0.0,)]
    two = trials([(0, 0, 1), (0, 2, 2), (3, 3, 3), (3, 3, 3), (3, 3, 3), (3, 3, 3), (3, 3, 3)], PERFECT)
    scores = [score for (score,) in mpsc(two)]  # 3 edges of 21; programs begin with 2/3 and 1/3
    assert scores[0] == pytest.approx(2 / 3, abs=2 * ALPHA_FEW)
    assert scores[1] == pytest.approx(1 / 3, abs=2 * ALPHA_FEW)


def test_mpsc_trusts_tests_that_consistent_programs_pass():
    """Three tests contradict each other and please one program; two programs agree with the same two tests."""
    found = trials(
        [(1, 1, 1), (0, 0, 2), (0, 0, 2)], [(0, 0), (1, 0), (0, 1), (2, 1), (0, 0), (1, 0), (1, 1), (2, 1)]
    )
    assert best_of_n(found) == [(4.0,)] * 3
    assert chosen(best_of_n, found) == 0
    assert chosen(mpsc, found) == 1


def test_s_star_lets_each_distinguishing_input_vote_once():
    """Best of N counts three tests of one input; S* counts the input once, and the other program wins two."""
    found = trials([(0, 1, 1), (1, 0, 0)], [(0, 0), (0, 0), (0, 0), (1, 0), (2, 0)])
    assert chosen(best_of_n, found) == 0
    assert chosen(s_star, found) == 1


def test_s_star_takes_the_larger_of_groups_that_win_as_often():
    found = trials([(1, 1, 1), (2, 2, 2), (2, 2, 2)], [(0, 0), (1, 3)])
    assert s_star(found) == [(0.0, 1.0), (0.0, 2.0), (0.0, 2.0)]
    assert chosen(s_star, found) == 1


def test_a_column_is_scored_on_the_problems_own_tests():
    found = trials([(1, 0, 0), (0, 0, 0)], PERFECT)
    assert outcomes(SINGLE, found) == [0, 1]
    assert outcomes("best_of_n", found) == [1]
    assert outcomes(ORACLE, found) == [1]


def test_what_the_sandbox_could_not_say_is_left_out_and_not_wrong():
    found = replace(trials([(0, 0, 0), (1, 1, 1)], PERFECT), right=(None, False))
    assert outcomes(SINGLE, found) == [None, 0]
    assert outcomes("best_of_n", found) == [None]
    assert outcomes(ORACLE, found) == [None]
    assert outcomes(ORACLE, replace(found, right=(None, True))) == [1]
    for column in (SINGLE, "s_star", ORACLE):
        assert outcomes(column, trials([], PERFECT)) == []


@given(case=cases)
def test_trials_survive_json(case):
    found = trials(*case)
    assert Trials.from_json(found.to_json()) == found

"""Habits of the demonstrations: wrong on some inputs only, seen by panels, aimed at by tests, absent without noise."""

from __future__ import annotations

import contextlib
import random

import pytest

from envs.coding.family import CodingFamily
from envs.coding.problem import Problem
from envs.coding.program_judge import ProgramJudge
from envs.coding.replies import read_test
from envs.coding.sandbox import Status
from envs.coding.world.cases import NoTestsError, draw_case, first_failed, problem_of
from envs.coding.world.chain import LONGEST, Chain, ChainError, Step, parse
from envs.coding.world.habits import HABITS, careless, slips
from envs.coding.world.operations import OPERATIONS, Kind
from envs.coding.world.sampling import draw_chain
from envs.coding.world.teacher import chain_of
from envs.splits import SPLITS
from rlanything.core.splits import TRAIN
from rlanything.core.types import Direction, InvalidProposal, Task

ALWAYS = dict.fromkeys(HABITS, 1.0)
OF_PRINTING = ("brackets", "quotes", "decimals")
OF_READING = {name: 1.0 for name in HABITS if name not in OF_PRINTING}


def habitual(**arguments: object) -> CodingFamily:
    return CodingFamily(**{"tests": 8, "train_tests": 2, "habits": ALWAYS, **arguments})


def problems(family: CodingFamily, split: str, count: int = 100) -> list[Problem]:
    return [Problem.from_task(task) for task in family.make(split, count, 0)]


def detected(problem: Problem) -> dict[str, bool]:
    """For each habit that concerns a problem, whether its tests detect it."""
    chain = chain_of(problem)
    named = {name: slips(chain, {name: 1.0}) for name in HABITS}
    return {
        name: first_failed(other, problem.cases) is not None
        for name, found in named.items()
        for other in found
    }


@pytest.mark.parametrize("name", HABITS)
def test_a_careless_program_prints_what_the_world_says_of_it(family: CodingFamily, name: str) -> None:
    """In the real sandbox. It passes some tests of a right program, or none where the habit is one of printing."""
    rng, work, wanted = random.Random(0), [], []
    for problem in problems(family, TRAIN, 60):
        chain = chain_of(problem)
        if (other := careless(chain, {name: 1.0}, rng)) == chain:
            continue
        drawn = [case for case in (draw_case(chain, rng) for _ in range(12)) if case is not None]
        work.append((Problem(chain.statement, tuple(drawn)), other.program, drawn))
        wanted.append([first_failed(other, [case]) is None for case in drawn])
    verdicts = ProgramJudge(family.sandbox).judge(work)
    assert [[o.status is Status.OK for o in verdict.outcomes] for verdict in verdicts] == wanted
    seen = {passes for cells in wanted for passes in cells}
    assert seen == ({False} if name in OF_PRINTING else {True, False})


def test_slips_are_one_habit_each_and_only_of_habits_with_a_chance() -> None:
    chain = Chain(Kind.NUMBERS, (Step(OPERATIONS["reverse"]),))
    assert [other.program for other in slips(chain, ALWAYS)] == [
        "x = [int(v) for v in input().split()]\nx = list(dict.fromkeys(x))\nx = x[::-1]\nprint(*x)",
        "x = [int(v) for v in input().split()]\nx = x[::-1]\nx = str(x)\nprint(x)",
    ]
    assert slips(chain, {"duplicates": 0.0, "sign": 1.0}) == []
    assert len(slips(chain, {"duplicates": 0.1})) == 1


def test_panels_detect_habits_that_the_tests_of_training_miss() -> None:
    found = {
        split: [item for problem in problems(habitual(), split) for item in detected(problem).items()]
        for split in SPLITS
    }
    for split, seen in found.items():
        hidden = [is_seen for name, is_seen in seen if name not in OF_PRINTING]
        assert sum(hidden) <= 0.1 * len(hidden) if split == TRAIN else sum(hidden) >= 0.4 * len(hidden)
        assert all(is_seen for name, is_seen in seen if name in OF_PRINTING)


def test_few_tests_of_training_and_more_of_panels() -> None:
    for split in SPLITS:
        counts = {len(problem.cases) for problem in problems(habitual(), split, 20)}
        assert counts == {2} if split == TRAIN else min(counts) == 8
    shown, whole = habitual(), habitual(train_tests=None)
    for few, all_of_them in zip(problems(shown, TRAIN, 20), problems(whole, TRAIN, 20), strict=True):
        assert few.statement == all_of_them.statement
        assert set(few.cases) <= set(all_of_them.cases)


def test_rewritten_problems_of_training_hide_the_habits_too() -> None:
    """Else the arm that rewrites is shown what the others are not."""
    family = habitual(rewrite_tests=0)
    made = [
        Problem.from_task(family.parse(task, family.rewrite(task, way, 0)))
        for task in family.make(TRAIN, 50, 0)
        for way in Direction
    ]
    assert {len(problem.cases) for problem in made} == {2}
    hidden = [s for problem in made for name, s in detected(problem).items() if name not in OF_PRINTING]
    assert sum(hidden) <= 0.1 * len(hidden)


def test_rewritten_problems_that_hide_nothing_detect_the_habits() -> None:
    family = habitual(train_tests=None, rewrite_tests=0)
    tasks = family.make(TRAIN, 50, 0)
    made = [
        Problem.from_task(family.parse(task, family.rewrite(task, Direction.HARDER, 0))) for task in tasks
    ]
    hidden = [s for problem in made for name, s in detected(problem).items() if name not in OF_PRINTING]
    assert sum(hidden) >= 0.4 * len(hidden)


def test_habits_change_demonstrations_and_none_without_noise() -> None:
    plain, family = CodingFamily(), CodingFamily(habits=ALWAYS)
    never = CodingFamily(habits=dict.fromkeys(HABITS, 0.0))
    tasks = plain.make(TRAIN, 80, 0)
    assert never.make(TRAIN, 80, 0) == tasks
    assert [t.instruction for t in family.make(TRAIN, 80, 0)] == [t.instruction for t in tasks]
    assert [never.demonstrate(t, 1, 0.3) for t in tasks] == [plain.demonstrate(t, 1, 0.3) for t in tasks]
    assert [never.demonstrate_test(t, 1, 0.3) for t in tasks] == [
        plain.demonstrate_test(t, 1, 0.3) for t in tasks
    ]
    assert [family.demonstrate(t, 1, 0.0) for t in tasks] == [plain.demonstrate(t, 1, 0.0) for t in tasks]
    for task in tasks:
        chain = chain_of(Problem.from_task(task))
        assert family.demonstrate(task, 1, 1e-9)[0][1] == careless(chain, ALWAYS, random.Random(0)).program


def test_neither_the_order_of_habits_nor_one_without_a_chance_changes_anything() -> None:
    half = dict.fromkeys(HABITS, 0.5)
    backwards = dict(reversed(half.items()))
    few, same = {"brackets": 0.5}, {"brackets": 0.5, "duplicates": 0.0, "sign": 0.0}
    for one, other in ((half, backwards), (few, same)):
        first, second = habitual(habits=one), habitual(habits=other)
        tasks = first.make(TRAIN, 60, 0)
        assert second.make(TRAIN, 60, 0) == tasks
        assert [first.demonstrate(t, 1, 0.3) for t in tasks] == [second.demonstrate(t, 1, 0.3) for t in tasks]


def test_the_chance_of_a_habit_is_its_share_of_the_programs_that_it_concerns() -> None:
    family = CodingFamily(habits={"duplicates": 0.6})
    lists = [t for t in family.make(TRAIN, 400, 0) if chain_of(Problem.from_task(t)).reads is Kind.NUMBERS]
    line = HABITS["duplicates"].line.code
    shares = [family.demonstrate(t, 1, 1e-9)[0][1].split("\n")[1] == line for t in lists]
    assert sum(shares) / len(shares) == pytest.approx(0.6, abs=0.1)


def test_written_tests_aim_at_habits() -> None:
    """Right tests detect a habit more often where the family knows its habits."""
    tasks = CodingFamily().make(TRAIN, 200, 0)
    aimed, plain = (_detecting(f, tasks) for f in (CodingFamily(habits=ALWAYS), CodingFamily()))
    assert aimed > plain + 0.15


def _detecting(family: CodingFamily, tasks: list[Task]) -> float:
    """Share of the tasks whose demonstrated test, which is right, a careless program fails."""
    return sum(_detects(family, task) for task in tasks) / len(tasks)


def _detects(family: CodingFamily, task: Task) -> bool:
    problem = Problem.from_task(task)
    test = read_test(family.demonstrate_test(task, 1, 0.0), problem)
    assert first_failed(chain_of(problem), [test]) is None
    return any(first_failed(other, [test]) is not None for other in slips(chain_of(problem), OF_READING))


LONG = (
    "Read a number. Add 3. Multiply by 2. Square it. Add 5. Drop its sign. List its digits. Print the result."
)


def test_a_problem_with_the_most_steps_can_be_written_with_every_habit() -> None:
    chain = parse(LONG)
    assert len(chain.steps) == LONGEST
    written = careless(chain, ALWAYS, random.Random(0))
    assert [len(other.steps) for other in slips(chain, ALWAYS)] == [LONGEST + 1] * 2
    assert (
        written.program.count("\n") == chain.program.count("\n") + 3
    )  # a sign, brackets, and quotes around them
    with pytest.raises(ChainError, match=f"7 steps; a problem has 1 to {LONGEST}"):
        Chain.from_json(slips(chain, ALWAYS)[0].to_json())


def test_a_rewrite_with_the_most_steps_is_read_where_habits_are_declared() -> None:
    family, rng = habitual(levels=("expert",)), random.Random(3)
    parents = (draw_chain(kind, LONGEST - 1, rng) for kind in Kind for _ in range(40))
    replies = []
    for parent in parents:
        with contextlib.suppress(NoTestsError, InvalidProposal):
            task = problem_of(parent, 2).to_task()
            reply = family.rewrite(task, Direction.HARDER, 0)
            replies.append((reply, chain_of(Problem.from_task(family.parse(task, reply)))))
    longest = [(reply, chain) for reply, chain in replies if len(chain.steps) == LONGEST]
    assert len(longest) > 5
    assert all(chain.statement in reply for reply, chain in longest)

"""Habits of the demonstrations: wrong on some inputs only, seen by panels, aimed at by tests, absent without noise."""

from __future__ import annotations

import random

import pytest

from envs.coding.family import CodingFamily
from envs.coding.problem import Case, Problem
from envs.coding.program_judge import ProgramJudge
from envs.coding.replies import read_test
from envs.coding.sandbox import Status
from envs.coding.world.cases import draw_case, first_failed
from envs.coding.world.chain import Chain, Step, UndefinedError, constants
from envs.coding.world.habits import HABITS, careless, slips
from envs.coding.world.operations import OPERATIONS
from envs.coding.world.teacher import chain_of
from rlanything.core.splits import TRAIN
from rlanything.core.types import Task

ALWAYS = dict.fromkeys(HABITS, 1.0)
NAMES = [(habit, name) for habit, named in HABITS.items() for name in named]


def habitual(**arguments: object) -> CodingFamily:
    return CodingFamily(**{"tests": 8, "train_tests": 2, "habits": ALWAYS, **arguments})


def alone(name: str) -> Chain:
    operation = OPERATIONS[name]
    return Chain(operation.takes, (Step(operation, constants(operation)[-1]),))


def test_an_operation_has_one_habit_and_keeps_its_kinds() -> None:
    assert len({name for _, name in NAMES}) == len(NAMES)
    for habit, name in NAMES:
        written = careless(alone(name), {habit: 1.0}, random.Random(0))
        assert written.statement == alone(name).statement
        assert written.program != alone(name).program
        assert written.key == alone(name).key


def test_a_careless_line_prints_what_the_world_says_of_it(family: CodingFamily) -> None:
    """In the real sandbox: what `Slip.do` computes is what `Slip.code` prints, and the program fails elsewhere."""
    rng, work, wanted = random.Random(0), [], []
    for habit, name in NAMES:
        chain = alone(name)
        other = careless(chain, {habit: 1.0}, rng)
        drawn = [case for case in (draw_case(chain, rng) for _ in range(60)) if case is not None]
        work.append((Problem(chain.statement, tuple(drawn)), other.program, drawn))
        wanted.append([first_failed(other, [case]) is None for case in drawn])
        assert {True, False} <= {*wanted[-1]} or habit == "ends", name
    verdicts = ProgramJudge(family.sandbox).judge(work)
    for (_, name), verdict, passes in zip(NAMES, verdicts, wanted, strict=True):
        assert [o.status is Status.OK for o in verdict.outcomes] == passes, name


def test_slips_are_one_careless_step_each() -> None:
    names = ("keep above", "sort", "sum", "add")
    chain = Chain(
        OPERATIONS[names[0]].takes, tuple(Step(OPERATIONS[n], constants(OPERATIONS[n])[0]) for n in names)
    )
    found = slips(chain, ALWAYS)
    assert len(found) == 3
    assert all(sum(a != b for a, b in zip(other.steps, chain.steps, strict=True)) == 1 for other in found)
    assert slips(chain, {"bounds": 0.0}) == []
    assert len(slips(chain, {"bounds": 0.1, "words": 1.0})) == 1


def test_panels_detect_habits_that_the_tests_of_training_miss() -> None:
    family = habitual()
    missed = dict.fromkeys(family.splits(), 0)
    seen = dict(missed)
    for split in missed:
        for task in family.make(split, 60, 0):
            problem = Problem.from_task(task)
            for other in slips(chain_of(problem), ALWAYS):
                seen[split] += 1
                missed[split] += first_failed(other, problem.cases) is None
    assert missed[TRAIN] > 0.4 * seen[TRAIN]
    assert all(missed[split] < 0.25 * seen[split] for split in missed if split != TRAIN)


def test_few_tests_of_training_and_more_of_panels() -> None:
    family = habitual()
    for split in family.splits():
        counts = {len(Problem.from_task(task).cases) for task in family.make(split, 20, 0)}
        assert counts == {2} if split == TRAIN else min(counts) == 8


def test_habits_change_demonstrations_alone_and_none_without_noise() -> None:
    plain, family = CodingFamily(), CodingFamily(habits=ALWAYS)
    never = CodingFamily(habits=dict.fromkeys(HABITS, 0.0))
    tasks = plain.make(TRAIN, 80, 0)
    assert [t.instruction for t in family.make(TRAIN, 80, 0)] == [t.instruction for t in tasks]
    assert [never.demonstrate(t, 1, 0.3) for t in tasks] == [plain.demonstrate(t, 1, 0.3) for t in tasks]
    assert [never.demonstrate_test(t, 1, 0.3) for t in tasks] == [
        plain.demonstrate_test(t, 1, 0.3) for t in tasks
    ]
    assert [family.demonstrate(t, 1, 0.0) for t in tasks] == [plain.demonstrate(t, 1, 0.0) for t in tasks]
    assert _careless(family, tasks) == pytest.approx(1.0)


def test_the_chance_of_a_habit_is_its_share_of_the_steps_that_it_concerns() -> None:
    tasks = CodingFamily().make(TRAIN, 300, 0)
    assert _careless(CodingFamily(habits=dict.fromkeys(HABITS, 0.6)), tasks) == pytest.approx(0.6, abs=0.1)


def test_written_tests_aim_at_habits() -> None:
    """Right tests detect a careless step more often where the family knows its habits."""
    tasks = [t for t in CodingFamily().make(TRAIN, 200, 0) if slips(chain_of(Problem.from_task(t)), ALWAYS)]
    aimed, plain = (_detecting(f, tasks) for f in (CodingFamily(habits=ALWAYS), CodingFamily()))
    assert aimed > plain + 0.15


def _careless(family: CodingFamily, tasks: list[Task]) -> float:
    """Share of careless lines, of the steps that a habit concerns; demonstrations of other problems are left out."""
    found, of = 0, 0
    for task in tasks:
        chain = chain_of(Problem.from_task(task))
        lines = family.demonstrate(task, 1, 1e-9)[0][1].split("\n")[1:-1]
        for line, right, wrong in zip(
            lines, chain.steps, careless(chain, ALWAYS, random.Random(0)).steps, strict=True
        ):
            if right != wrong:
                of += 1
                found += line == wrong.line
    return found / of


def _detecting(family: CodingFamily, tasks: list[Task]) -> float:
    return sum(_detects(family, task) for task in tasks) / len(tasks)


def _detects(family: CodingFamily, task: Task) -> bool:
    problem = Problem.from_task(task)
    test = read_test(family.demonstrate_test(task, 1, 0.0), problem)
    assert _passes(chain_of(problem), test)
    return any(not _passes(other, test) for other in slips(chain_of(problem), ALWAYS))


def _passes(chain: Chain, test: Case) -> bool:
    try:
        return chain.output(test.input).split() == test.output.split()
    except UndefinedError:
        return False

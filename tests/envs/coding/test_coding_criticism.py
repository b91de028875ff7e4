"""What a critic reads of programs and their tests."""

from __future__ import annotations

import pytest
from format_cases import SUM, summing

from envs.coding.examination import criticism
from envs.coding.family import CodingFamily
from envs.coding.problem import Problem
from envs.coding.world.chain import ChainError
from rlanything.core.types import Task
from rlanything.core.unittests import Tables

ADD = summing()


def test_criticism_shows_own_tests_then_written_ones(family: CodingFamily) -> None:
    replies = ["test: 5 5 -> 10", "none", "test: 1 2 -> 4", f"test: {'1 ' * 200}-> 200", "test: 5 5 -> 10"]
    tables = family.examine([(ADD, [SUM, "print(3)", "print(3)"], replies)])[0]
    assert family.criticism(ADD, tables).split("\n") == [
        "1. passed by 100%: 1 2 -> 3",
        "2. passed by 33%: 3 4 -> 7",
        "3. passed by 33%: 5 5 -> 10",
        "5. passed by 0%: 1 2 -> 4",
    ]
    assert [line[0] for line in criticism(Problem.from_task(ADD), tables, 2).split("\n")] == ["1", "3"]


def test_demonstrated_criticism_is_what_programs_would_get(family: CodingFamily, tasks: list[Task]) -> None:
    """The same lines as `criticism` writes; rates of the task's own tests range over everything."""
    rates = set()
    for seed, task in enumerate(tasks):
        text = family.demonstrate_criticism(task, seed)
        assert text == family.demonstrate_criticism(task, seed)
        problem, lines = Problem.from_task(task), text.split("\n")
        own = [f"{case.input} -> {case.output}" for case in problem.cases]
        assert [line.split(": ", 1)[1] for line in lines[: len(own)]] == own
        assert len(own) < len(lines) <= 12
        rates |= {line.split(": ")[0].split("passed by ")[1] for line in lines}
    assert {"0%", "50%", "100%"} < rates
    with pytest.raises(ChainError):
        family.demonstrate_criticism(ADD, 0)


def test_a_critic_reads_the_tests_that_each_program_fails() -> None:
    """Written tests are not among them, and a test that could not be run is no failure."""
    rows = ((True, True), (True, False), (False, None))
    tables = Tables(("test: 5 5 -> 11",), rows, ((False,),) * 3)
    assert CodingFamily().failed_tests(ADD, tables) == [{}, {1: "3 4 -> 7"}, {0: "1 2 -> 3"}]


def test_a_critic_may_read_the_written_tests_that_each_program_fails_instead() -> None:
    """Replies without a test are no tests, and without written tests the problem's own are read."""
    written = ("test: 5 5 -> 11", "", "test: 1 1 -> 2")
    rows = ((True, True), (False, True))
    tables = Tables(written, rows, ((False, False, True), (None, False, False)))
    family = CodingFamily(critic_tests="generated")
    assert family.failed_tests(ADD, tables) == [{0: "5 5 -> 11"}, {2: "1 1 -> 2"}]
    assert family.failed_tests(ADD, Tables((), rows, ((), ()))) == [{}, {0: "1 2 -> 3"}]
    with pytest.raises(ValueError, match="critic_tests"):
        CodingFamily(critic_tests="both")

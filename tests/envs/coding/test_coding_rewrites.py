"""Rewritten problems: how they are read, and what is refused."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise

import pytest
from format_cases import livecodebench_problem, summing
from hypothesis import given, settings
from hypothesis import strategies as st

from envs.coding.family import CodingFamily
from envs.coding.formats.files import FORMATS
from envs.coding.formats.record import Record
from envs.coding.problem import Case, Problem
from envs.coding.world.cases import problem_of
from envs.coding.world.chain import Chain, Step
from envs.coding.world.operations import OPERATIONS, Kind
from rlanything.core.types import Direction, InvalidProposal, Task


@pytest.mark.parametrize("way", list(Direction))
def test_rewrites_are_read_and_change_the_number_of_steps(
    way: Direction, family: CodingFamily, tasks: list[Task]
) -> None:
    changes = []
    for task in [task for task in tasks if task.metadata["split"] == "train"]:
        reply = family.rewrite(task, way, 7)
        made = family.parse(task, f"Sure!\n{reply}\n")
        assert reply == family.rewrite(task, way, 7)
        assert family.validate(made) == ""
        assert made.task_id != task.task_id
        assert len(made.payload["cases"]) >= len(task.payload["cases"])
        before, after = (len(t.payload["source"]["chain"]["steps"]) for t in (task, made))
        if way is Direction.HARDER or before > 1:  # a problem of one step is only replaced by another
            changes.append(after - before if way is Direction.HARDER else before - after)
    assert min(changes) >= 0
    assert changes.count(0) < len(changes) / 3


def test_rewritten_problems_pass_with_their_reference_solution(
    family: CodingFamily, tasks: list[Task]
) -> None:
    made = [family.parse(task, family.rewrite(task, Direction.HARDER, 1)) for task in tasks[:20]]
    assert all(family.label_steps(task, [task.payload["solution"]])[0] for task in made)


def test_describe_has_the_form_of_a_reply(family: CodingFamily, tasks: list[Task]) -> None:
    for parent, task in pairwise(tasks[:20]):
        again = family.parse(parent, family.describe(task))
        assert again.instruction == task.instruction
        assert {tuple(c) for c in again.payload["cases"]} == {tuple(c) for c in task.payload["cases"]}


def test_a_problem_of_the_world_that_is_only_said_again_is_no_rewrite(
    family: CodingFamily, tasks: list[Task]
) -> None:
    """Nor are other words for it, with other tests."""
    chain = Chain(Kind.NUMBER, (Step(OPERATIONS["add"], 3), Step(OPERATIONS["multiply"], 2)))
    reworded = Chain(chain.reads, tuple(replace(step, wording=1) for step in chain.steps))
    parent = problem_of(chain, 6).to_task({"split": "train"})
    for reply in (family.describe(parent), f"problem: {reworded.statement}\ntest: 4 -> {chain.output('4')}"):
        with pytest.raises(InvalidProposal, match="the one that was to be rewritten"):
            family.parse(parent, reply)


def test_a_problem_with_other_tests_or_words_is_the_same_exercise(family: CodingFamily) -> None:
    steps = (Step(OPERATIONS["add"], 3), Step(OPERATIONS["multiply"], 2))
    chain, shorter = Chain(Kind.NUMBER, steps), Chain(Kind.NUMBER, steps[:1])
    reworded = Chain(chain.reads, tuple(replace(step, wording=1) for step in steps))
    same = [problem_of(of, count).to_task({}) for of in (chain, reworded) for count in (5, 6)]
    assert len({task.task_id for task in same}) == 4
    assert len({family.exercise(task) for task in same}) == 1
    assert family.exercise(problem_of(shorter, 5).to_task({})) != family.exercise(same[0])


def test_a_problem_of_a_data_set_with_other_tests_is_another_exercise(family: CodingFamily) -> None:
    problem = Problem.from_task(summing())
    spaced = replace(problem, statement=problem.statement.replace(" ", "  "), cases=problem.cases[::-1])
    fewer = replace(problem, cases=problem.cases[:-1])
    exercises = [family.exercise(one.to_task({})) for one in (problem, spaced, fewer)]
    assert exercises[0] == exercises[1] != exercises[2]


BAD_REPLIES = [
    ("easier please", "no line 'problem:'"),
    ("problem: Sing.", "a problem begins with"),
    ("problem: Read a number. Add 3. Print the result.", "0 tests; at least 1"),
    (
        "problem: Read a number. Add 3. Print the result.\ntest: 4 -> 8",
        "test 1 is not what the problem asks for",
    ),
    (
        "problem: Read a number. Add 3. Print the result.\ntest: 4 -> 7\ntest: 4 -> 8",
        "tests 1 and 2 contradict each other",
    ),
    ("problem: Read a number. Add 3. Print the result.\ntest: 4 -> 7\ntest: 4 -> 7", "are the same"),
    ("problem: Read a number. Add 3. Print the result.\ntest: x -> 7", "test 1 is not what"),
    (
        "problem: Read a number. Negate it. Change its sign. Print the result.\ntest: 4 -> 4",
        "no inputs show|kept for",
    ),
]


@pytest.mark.parametrize(("reply", "said"), BAD_REPLIES)
def test_bad_rewrites_are_refused(reply: str, said: str, tasks: list[Task]) -> None:
    with pytest.raises(InvalidProposal, match=said):
        CodingFamily().parse(tasks[0], reply)


def test_rewrites_never_leave_their_split(tasks: list[Task]) -> None:
    """Training cannot ask for the problems that evaluation keeps."""
    train, panel = tasks[0], next(t for t in tasks if t.metadata["split"] == "out_of_domain")
    with pytest.raises(InvalidProposal, match="kept for evaluation"):
        CodingFamily().parse(train, CodingFamily().describe(panel))


@settings(max_examples=200, deadline=None)
@given(
    text=st.text(max_size=60), tail=st.sampled_from(["", "problem:", "test: 1 -> 2", "{", '{"question": 1}'])
)
def test_parse_raises_nothing_else(text: str, tail: str, tasks: list[Task]) -> None:
    for parent in (tasks[0], summing()):
        for reply in (text + tail, f"problem: {text}", f"{tail}\n{text}"):
            try:
                CodingFamily().parse(parent, reply)
            except InvalidProposal:
                continue


def test_problems_of_files_are_rewritten_as_json(family: CodingFamily) -> None:
    parent = summing()
    reply = {"question": "Print the product.", "test_input": ["2 3", "4 5"], "test_output": ["6", "20"]}
    made = family.parse(parent, f"Here:\n```json\n{json.dumps(reply)}\n```")
    assert made.instruction == "Print the product."
    assert made.payload["cases"] == [["2 3", "6"], ["4 5", "20"]]
    assert (made.payload["time_s"], made.payload["solution"]) == (1, "")
    assert family.validate(made) == ""
    assert family.parse(made, family.describe(parent)).instruction == parent.instruction
    for changes, said in (
        ({"test_output": ["6"]}, "2 inputs and 1 outputs"),
        ({"test_input": ["2 3", "2 3"]}, "tests 1 and 2 contradict"),
        ({"test_input": [1, 2]}, "test_input"),
        ({"question": ""}, "question"),
        ({"test_output": ["6", " "]}, "test 2 expects no output"),
    ):
        with pytest.raises(InvalidProposal, match=said):
            family.parse(parent, json.dumps({**reply, **changes}))
    with pytest.raises(ValueError, match="without a solution"):
        family.demonstrate(parent, 0, 0.0)


def test_rewritten_functions_have_tests_that_call_them(family: CodingFamily) -> None:
    """A test that cannot be called is the rewriter's mistake, not the end of a run."""
    parent = FORMATS["livecodebench"].read(Record(livecodebench_problem())).to_task()
    reply = {"question": "Add.", "test_input": ["[1]\n2"], "test_output": ["3"]}
    made = family.parse(parent, json.dumps(reply))
    assert family.validate(made) == ""
    for changes in (
        {"test_input": ["1 2"]},
        {"test_output": ["three"]},
        {"test_input": ["[" * 300 + "]" * 300]},
    ):
        with pytest.raises(InvalidProposal, match="test 1: arguments and result must be JSON"):
            family.parse(parent, json.dumps({**reply, **changes}))
    bad = Task(made.env, made.instruction, {**made.payload, "cases": [["1 2", "3"]]}, {})
    assert family.validate(bad).startswith("test 1: arguments and result must be JSON")


def test_a_file_problem_that_is_only_repeated_is_no_rewrite(family: CodingFamily) -> None:
    parent = Problem("Add two\nnumbers.", (Case("1 2", "3"), Case("5 6", "11"))).to_task({"split": "train"})
    other = json.loads(family.describe(parent))
    other["test_input"].reverse()
    other["test_output"].reverse()
    for reply in (
        family.describe(parent),
        json.dumps(other),
        family.describe(parent).replace("two\\n", "two "),
    ):
        with pytest.raises(InvalidProposal, match="the one that was to be rewritten"):
            family.parse(parent, reply)


def test_chains_of_rewrites_are_in_the_payload(tasks: list[Task]) -> None:
    made = CodingFamily().parse(tasks[0], CodingFamily().rewrite(tasks[0], Direction.HARDER, 0))
    assert Chain.from_json(made.payload["source"]["chain"]).statement == made.instruction

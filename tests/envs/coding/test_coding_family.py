"""The family behind the loop's protocols, with real programs in the real sandbox."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from format_cases import codecontests_row, livebench_question, livecodebench_problem, reference_item
from hypothesis import given, settings
from hypothesis import strategies as st

from envs.coding.environment import CodingEnvironment
from envs.coding.examination import examine
from envs.coding.family import CodingFamily
from envs.coding.formats.files import FORMATS
from envs.coding.formats.record import FormatError, Record
from envs.coding.problem import Case, Problem
from envs.coding.program_judge import ProgramJudge
from envs.coding.programs import passed, program_of
from envs.coding.sandbox import Job, JobResult, Outcome, Sandbox, SandboxError, Status
from envs.coding.world.cases import problem_of
from envs.coding.world.chain import Chain, Step
from envs.coding.world.operations import OPERATIONS, Kind
from rlanything.core.protocols import Environment, Teacher
from rlanything.core.types import Direction, InvalidProposal, Task

SUM = "print(sum(map(int, input().split())))"


def summing(**changes: Any) -> Task:
    record = reference_item(
        test_input=["1 2\n", "3 4\n"], test_output=["3", "7"], test_time_limit=1, **changes
    )
    return FORMATS["reference"].read(Record(record)).to_task()


def test_it_is_a_family_and_a_teacher(family: CodingFamily) -> None:
    assert isinstance(family, Teacher)
    assert isinstance(family.environment(), Environment)


def test_an_episode_is_one_program(family: CodingFamily) -> None:
    environment = family.environment()
    assert environment.reset(summing(), 0).text == "Print the sum of a list."
    answer = environment.step(SUM)
    assert (answer.done, answer.success, answer.observation.text) == (True, True, "2 of 2 tests passed.")
    environment.close()


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("print(3)", "1 of 2 tests passed; test 2: another output."),
        ("print(", "0 of 2 tests passed; test 1: the program does not compile."),
        ("1 / 0", "0 of 2 tests passed; test 1: the program failed."),
        ("while True: pass", "0 of 2 tests passed; test 1: too slow."),
        ("print('x' * 10**7)", "0 of 2 tests passed; test 1: too much output."),
        ("", "0 of 2 tests passed; test 1: another output."),
    ],
)
def test_a_wrong_program_fails_and_is_told_why(program: str, said: str, family: CodingFamily) -> None:
    environment = family.environment()
    environment.reset(replace(Problem.from_task(summing()), time_s=0.2).to_task(), 0)
    answer = environment.step(program)
    assert (answer.done, answer.success, answer.observation.text) == (True, False, said)


class Failing:
    """Stands where a machine would have to break: the real verdicts, but for the tests on which the boxes fail."""

    def __init__(self, sandbox: Sandbox, stdin: str) -> None:
        self._sandbox, self.limits, self.stdin, self.tests = sandbox, sandbox.limits, stdin, 0

    def judge(self, jobs: Sequence[Job]) -> list[JobResult]:
        self.tests += sum(len(job.tests) for job in jobs)
        broken = Outcome(Status.INFRASTRUCTURE, error="the machine is too busy")
        return [
            JobResult(
                tuple(
                    broken if test.stdin == self.stdin else outcome
                    for test, outcome in zip(job.tests, verdict.outcomes, strict=True)
                )
            )
            for job, verdict in zip(jobs, self._sandbox.judge(jobs), strict=True)
        ]


def test_a_failing_sandbox_is_nobodys_wrong_answer(family: CodingFamily) -> None:
    failing = Failing(family.sandbox(), "3 4\n")
    verdicts = ProgramJudge(lambda: failing)
    environment = CodingEnvironment(verdicts)
    environment.reset(summing(), 0)
    with pytest.raises(SandboxError, match="too busy"):
        environment.step(SUM)
    found = examine(verdicts, [(summing(), [SUM], ["test: 5 5 -> 10", "none"])])[0]
    assert (found.dataset, found.generated) == (((True, None),), ((True, False),))
    failing.stdin = ""
    asked = failing.tests
    assert environment.step(SUM).success  # what failed was not kept, and only that is run again
    assert failing.tests == asked + 1


def test_fences_thoughts_and_prefixes() -> None:
    problem = Problem.from_task(summing())
    assert program_of(problem, "a\n```python\nx\n```\nb\n```python\ny\n```\nc") == "y"
    assert program_of(problem, "<think>```\nz\n```</think>```\ny\n```") == "y"
    assert program_of(problem, "```\nz\n```</think>```\ny\n```") == "y"
    assert (
        program_of(problem, "<think>```\nz\n```") == program_of(problem, "<think>```\nz\n```</think>") == ""
    )
    assert program_of(problem, "y\n```") == "y"
    assert program_of(problem, "`y`") == "y"
    assert program_of(problem, "x = 1\nprint(x)\n") == "x = 1\nprint(x)"
    completion = Problem("p", problem.cases, prefix="def f():\n    x = 1")
    assert program_of(completion, "    return x") == "def f():\n    x = 1\n    return x"
    assert program_of(completion, "def f():\n    x = 1\n    return x") == "def f():\n    x = 1\n    return x"


def test_functions_and_livecodebench_preamble(family: CodingFamily) -> None:
    """Types are known without an import, as LiveCodeBench has it; a tuple counts as a list."""
    problem = FORMATS["livecodebench"].read(Record(livecodebench_problem()))
    program = "class Solution:\n    def add(self, xs: List[int], y: int) -> int:\n        return sum(xs) + y"
    answers = (
        program,
        program.replace("+ y", "- y"),
        "def add(xs, y): return reduce(lambda a, b: a + b, xs, y)",
    )
    work = [(problem, program_of(problem, text), problem.cases) for text in answers]
    assert [passed(v) for v in ProgramJudge(family.sandbox).judge(work)] == [True, False, True]
    lines = FORMATS["livebench"].read(Record(livebench_question()))
    work = [(lines, program_of(lines, f"```python\n{SUM}\n```"), lines.cases)]
    assert passed(ProgramJudge(family.sandbox).judge(work)[0])


def test_demonstrations(family: CodingFamily, tasks: list[Task]) -> None:
    right = [family.demonstrate(task, 0, 0.0)[0] for task in tasks[:20]]
    wrong = [family.demonstrate(task, 0, 1.0)[0][1] for task in tasks[:20]]
    for task, (observation, text), other in zip(tasks, right, wrong, strict=False):
        assert observation.text == task.instruction
        labels = family.label_steps(task, [text, other, "print("])
        assert (labels[0], labels[2]) == (True, False)
        assert family.explain(task, [text, "print("]) == ["passed", "the program does not compile"]
        assert text != other
    mixed = [family.demonstrate(tasks[0], seed, 0.5)[0][1] for seed in range(40)]
    assert 5 < mixed.count(right[0][1]) < 35
    assert mixed == [family.demonstrate(tasks[0], seed, 0.5)[0][1] for seed in range(40)]


def test_demonstrated_tests(family: CodingFamily, tasks: list[Task]) -> None:
    """Right ones pass the reference solution, wrong ones do not, and both are new."""
    for task in tasks[:15]:
        replies = [family.demonstrate_test(task, 1, noise) for noise in (0.0, 1.0)]
        found = family.examine([(task, [task.payload["solution"]], replies)])[0]
        assert found.generated == ((True, False),)


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


def test_files_give_tasks(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "train.json"
    path.write_text(
        json.dumps([reference_item(question=f"Problem {k}") for k in range(5)] + [{"question": "?"}])
    )
    settings_ = {"problems": {"train": str(path)}, "form": "reference"}
    with pytest.raises(FormatError, match=r"train.json\[5\]: test_input: missing"):
        CodingFamily(**settings_).make("train", 3, 0)
    made = CodingFamily(**settings_, on_bad_problem="skip")
    first = made.make("train", 3, 0)
    assert first == made.make("train", 3, 0)
    assert len({task.task_id for task in first}) == 3
    assert "left out: " in caplog.text
    assert "train.json[5]: test_input: missing" in caplog.text
    with pytest.raises(ValueError, match=r"6 are wanted and .*train.json holds 5 that can be used"):
        made.make("train", 6, 0)
    with pytest.raises(ValueError, match="split: 'in_domain' is not one of train"):
        made.make("in_domain", 1, 0)


def test_problems_above_a_difficulty_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "train.jsonl"
    rows = [codecontests_row(name=str(k), description=f"Problem {k}", difficulty=k) for k in range(6)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    settings_ = {"problems": {"train": str(path)}, "form": "codecontests"}

    def found(count: int, **more: Any) -> set[str]:
        made = CodingFamily(**settings_, **more).make("train", count, 0)
        return {Problem.from_task(task).source["id"] for task in made}

    assert found(6) == set("012345")
    assert found(3, max_difficulty=2) == set("012")
    with pytest.raises(ValueError, match=r"4 are wanted and .*holds 3 that can be used"):
        found(4, max_difficulty=2)
    with pytest.raises(ValueError, match="max_difficulty: 30 is not a whole number from 0 to 29"):
        found(1, max_difficulty=30)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"problems": {"train": "x"}, "form": "reference", "max_difficulty": 2}, "in the format 'reference'"),
        ({"max_difficulty": 2}, "max_difficulty: 2: only .* codecontests .* these are generated"),
        ({"form": "livebnech"}, "did you mean livebench"),
        ({"problems": {2: "x"}}, "problems: 2 is no name of a split"),
        ({"problems": {"train": 3}}, "problems.train: 3 is no path"),
        ({"problems": []}, "not a mapping from splits"),
        ({"levels": {"easy": -1}}, "levels: the share of easy"),
        ({"levels": ["simple"]}, "levels: 'simple' is not one of easy, medium, hard, expert"),
        ({"ood_levels": ["easy"]}, "ood_levels: 'easy' is not one of medium, hard, expert"),
        ({"kinds": "text"}, "kinds: 'text' is neither a list"),
        ({"trusted": "no"}, "trusted: 'no' is neither true nor false"),
        ({"image": ""}, "image: '' is not a text"),
        ({"shown_tests": 0}, "shown_tests: 0 is not a whole number from 1 to 100"),
        ({"tests": 1}, "tests: 1 is not a whole number from 2 to 50"),
        ({"workers": True}, "workers: True is not"),
        ({"backend": "bwarp"}, "did you mean bwrap"),
        ({"on_bad_problem": "ignore"}, "on_bad_problem"),
    ],
)
def test_settings_are_checked(arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        CodingFamily(**arguments)


def test_chains_of_rewrites_are_in_the_payload(tasks: list[Task]) -> None:
    made = CodingFamily().parse(tasks[0], CodingFamily().rewrite(tasks[0], Direction.HARDER, 0))
    assert Chain.from_json(made.payload["source"]["chain"]).statement == made.instruction

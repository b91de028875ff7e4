"""Written tests against programs, in the real sandbox: the tables, what they share, and what is made of them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

import pytest
from format_cases import SUM, livecodebench_problem, reference_item, summing
from hypothesis import given, settings
from hypothesis import strategies as st

from envs.coding.examination import examine
from envs.coding.family import CodingFamily
from envs.coding.formats.files import FORMATS
from envs.coding.formats.record import Record
from envs.coding.problem import Problem
from envs.coding.program_judge import ProgramJudge
from envs.coding.programs import program_of
from envs.coding.replies import InvalidTestError, read_test
from envs.coding.sandbox import Job, JobResult, Sandbox, Stdio
from envs.coding.world.teacher import chain_of
from rlanything.core import coding_signals
from rlanything.core.types import Direction, Task
from rlanything.core.unittests import Examination, Examiner, Prefetches, Tables, UnitTestTeacher

PRODUCT = "a, b = map(int, input().split())\nprint(a * b)"


ADD = summing()
TWICE = {"question": "Multiply.", "test_input": ["1 2\n", "2 2\n"], "test_output": ["2", "4"]}
TIMES = FORMATS["reference"].read(Record(reference_item(test_time_limit=1, **TWICE))).to_task()
FUNCTION = FORMATS["livecodebench"].read(Record(livecodebench_problem())).to_task()


class Counting:
    """The real sandbox, and what it was asked."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox, self.limits, self.batches = sandbox, sandbox.limits, list[Sequence[Job]]()

    def judge(self, jobs: Sequence[Job]) -> list[JobResult]:
        self.batches.append(jobs)
        return self._sandbox.judge(jobs)

    @property
    def tests(self) -> int:
        return sum(len(job.tests) for jobs in self.batches for job in jobs)


@pytest.fixture
def counting(family: CodingFamily) -> Counting:
    return Counting(family.sandbox())


def test_the_family_offers_it() -> None:
    made = CodingFamily()
    assert isinstance(made, Examiner)
    assert isinstance(made, UnitTestTeacher)
    assert isinstance(made, Prefetches)


def test_tables_feed_the_rewards(family: CodingFamily) -> None:
    """From answers and replies to the paper's rewards, all real."""
    programs = [SUM, f"```python\n{SUM}\n```", "print(3)"]
    replies = ["test: 5 5 -> 10", "test: 1 2 -> 3", "so 11\ntest: 5 5 -> 11", "I cannot"]
    found = family.examine([(ADD, programs, replies)])[0]
    assert found.tests == ("test: 5 5 -> 10", "test: 1 2 -> 3", "test: 5 5 -> 11", "")
    assert found.dataset == ((True, True), (True, True), (True, False))
    right, wrong = (True, True, False, False), (False, True, False, False)
    assert found.generated == (right, right, wrong)
    parts = found.dataset, found.generated, found.readable
    assert coding_signals.generated_rewards(*parts) == [1.0, 0.0, 0.0, None]
    counts = coding_signals.counts(*parts)
    assert (counts.code, counts.ut, counts.ut_of, counts.detect, counts.detect_of) == (2, 2, 4, 1, 4)
    assert Tables.from_json(found.to_json()) == found


def test_every_way_to_fail_is_a_failed_cell(family: CodingFamily) -> None:
    programs = ["print(", "1 / 0", "while True: pass", "print('x' * 10**7)", "x = 'x' * 10**10", "", SUM]
    hasty = replace(Problem.from_task(ADD), time_s=0.2).to_task()
    found = family.examine([(hasty, programs, ["test: 5 5 -> 10"])])[0]
    assert found.dataset == ((False, False),) * 6 + ((True, True),)
    assert found.generated == ((False,),) * 6 + ((True,),)


def test_functions_are_called(family: CodingFamily) -> None:
    right = "class Solution:\n    def add(self, xs: List[int], y: int) -> int:\n        return sum(xs) + y"
    block = "**Test Input:**\n```\n[1]\n2\n```\n**Test Output:**\n```\n{}\n```"
    deep, deeper = "[" * 90 + "]" * 90, "[" * 984 + "]" * 984
    replies = [block.format(output) for output in ("3", "[3", deep, deeper)]
    nesting = "def add(xs, y):\n    v = []\n    for _ in range(89): v = [v]\n    return v"
    programs = [right, right.replace("+", "-"), nesting, nesting.replace("89", "960")]
    found = family.examine([(FUNCTION, programs, replies)])[0]
    assert found.readable == [True, False, True, False]
    assert [row[0] for row in found.generated] == [True, False, False, False]
    assert [row[2] for row in found.generated] == [False, False, True, False]
    assert [all(row) for row in found.dataset] == [True, False, False, False]


@settings(max_examples=15, deadline=None)
@given(answers=st.lists(st.text(max_size=40), max_size=3), sides=st.lists(st.text(max_size=20), max_size=4))
def test_no_text_ends_a_run(answers: list[str], sides: list[str], family: CodingFamily) -> None:
    """Whatever models write: one cell for each program and test, and none of them empty."""
    replies = [
        form.format(side) for side in sides for form in ("{0}", "test: {0} -> {0}", "test: [{0}] -> 1")
    ]
    for tables in family.examine([(task, answers, replies) for task in (ADD, FUNCTION)]):
        assert len(tables.tests) == len(replies)
        assert [len(row) for row in tables.generated] == [len(replies)] * len(answers)
        assert None not in {cell for row in (*tables.dataset, *tables.generated) for cell in row}


def test_nothing_runs_twice(counting: Counting) -> None:
    """A turn is one batch; samples that wrote the same program, and tests that are the same, share a run."""
    verdicts = ProgramJudge(lambda: counting)
    answers = [SUM, f"Here:\n```python\n{SUM}\n```", PRODUCT, SUM]
    turn = [(Problem.from_task(task), answer) for task in (ADD, TIMES) for answer in answers]
    verdicts.judge([(p, program_of(p, answer), p.cases) for p, answer in turn])
    assert (len(counting.batches), counting.tests) == (1, 8)
    replies = ["test: 5 5 -> 10", "test: 5 5 -> 10", "none", "test: 3 4 -> 12"]
    found = examine(verdicts, [(ADD, answers, replies), (TIMES, answers, replies)])
    assert (len(counting.batches), counting.tests) == (2, 8 + 4)  # the two tasks judge programs alike
    assert found[0].generated[0] == found[0].generated[3] == (True, True, False, False)
    assert found[1].generated[2] == (False, False, False, True)
    assert examine(verdicts, [(ADD, answers, replies)])[0] == found[0]
    assert len(counting.batches) == 2


def test_prefetched_verdicts_answer_the_environments(family: CodingFamily) -> None:
    made = CodingFamily()
    counted = Counting(family.sandbox())
    made._judge = ProgramJudge(lambda: counted)
    answers = [SUM, "print(3)", "print(", SUM]
    made.prefetch([(ADD, answer) for answer in answers])
    said = []
    for answer in answers:
        environment = made.environment()
        environment.reset(ADD, 0)
        said.append(environment.step(answer).observation.text)
    assert said[0] == said[3] == "2 of 2 tests passed."
    assert said[1] == "1 of 2 tests passed; test 2: another output."
    assert made.label_steps(ADD, answers) == [True, False, False, True]
    assert made.explain(ADD, answers)[1:3] == ["another output", "the program does not compile"]
    assert len(counted.batches) == 1
    made.close()


def test_the_same_program_under_other_limits_is_another(counting: Counting) -> None:
    verdicts = ProgramJudge(lambda: counting)
    slow = "import time\nt = time.process_time()\nwhile time.process_time() < t + 0.3: pass\n" + SUM
    quick = Problem.from_task(ADD)
    patient = Problem(quick.statement, quick.cases[:1], time_s=2.0)
    hasty = replace(patient, time_s=0.1)
    found = verdicts.judge([(patient, slow, patient.cases), (hasty, slow, hasty.cases)])
    assert [verdict.passed for verdict in found] == [1, 0]


def test_what_is_remembered_is_bounded(counting: Counting) -> None:
    verdicts = ProgramJudge(lambda: counting, kept=3)
    problem = Problem.from_task(ADD)
    work = [(problem, f"{SUM}  # {k}", problem.cases) for k in range(5)]
    assert [verdict.passed for verdict in verdicts.judge(work)] == [2] * 5
    assert len(verdicts._known) == 3
    verdicts.judge(work[2:])  # the last ones are still known
    assert len(counting.batches) == 1
    verdicts.judge(work[:1])
    assert len(counting.batches) == 2


def test_without_programs_or_tests(family: CodingFamily) -> None:
    nothing, untested = family.examine([(ADD, [], ["test: 5 5 -> 10"]), (ADD, [SUM], [])])
    assert nothing == Tables(("test: 5 5 -> 10",), (), ())
    assert untested == Tables((), ((True, True),), ((),))
    assert family.criticism(ADD, nothing).split("\n") == [
        "1. could not be run: 1 2 -> 3",
        "2. could not be run: 3 4 -> 7",
        "3. could not be run: 5 5 -> 10",
    ]
    assert family.examine([]) == []


ANSWERS = (SUM, PRODUCT, f"```\n{SUM}\n```", "print(3)", "print(", "print(int(input().split()[1]) * 2)", "")
REPLIES = (
    "test: 1 2 -> 3",
    "test: 2 2 -> 4",
    "test: 4 2 -> 8",
    "test: x -> 3",
    "no test",
    "**Test Input:**\n```\n3\n4\n```\n**Test Output:**\n```\n7\n```",
)
works = st.lists(
    st.tuples(
        st.sampled_from([ADD, TIMES]),
        st.lists(st.sampled_from(ANSWERS), max_size=4),
        st.lists(st.sampled_from(REPLIES), max_size=4),
    ),
    max_size=3,
)


@pytest.fixture(scope="module")
def cell(family: CodingFamily) -> dict[tuple[str, str, str], bool]:
    """Every program on every test, each as a job of its own: what a cell must be."""
    asked = {}
    for task in (ADD, TIMES):
        problem = Problem.from_task(task)
        cases = [*problem.cases, *(c for reply in REPLIES if (c := readable(problem, reply)))]
        for answer in ANSWERS:
            for case in cases:
                job = Job(program_of(problem, answer), [Stdio(case.input, case.output)])
                asked[task.task_id, answer, case.input + case.output] = job
    verdicts = family.sandbox().judge(list(asked.values()))
    return {key: verdict.passed == 1 for key, verdict in zip(asked, verdicts, strict=True)}


def readable(problem: Problem, reply: str) -> object:
    try:
        return read_test(reply, problem)
    except InvalidTestError:
        return None


@settings(max_examples=12, deadline=None)
@given(work=works, shuffled=st.randoms(use_true_random=False))
def test_examine_is_the_table_cell_by_cell(
    work: list[Examination],
    shuffled: random.Random,
    family: CodingFamily,
    cell: dict[tuple[str, str, str], bool],
) -> None:
    verdicts = ProgramJudge(family.sandbox)
    found = examine(verdicts, work)
    for (task, answers, replies), tables in zip(work, found, strict=True):
        problem = Problem.from_task(task)
        written = [readable(problem, reply) for reply in replies]
        assert tables.readable == [case is not None for case in written]
        for answer, own, generated in zip(answers, tables.dataset, tables.generated, strict=True):
            assert list(own) == [cell[task.task_id, answer, c.input + c.output] for c in problem.cases]
            assert list(generated) == [
                case is not None and cell[task.task_id, answer, case.input + case.output] for case in written
            ]
    order = list(range(len(work)))
    shuffled.shuffle(order)
    assert examine(ProgramJudge(family.sandbox), [work[k] for k in order]) == [found[k] for k in order]


def test_only_a_known_solution_proves_a_problem(family: CodingFamily, tasks: list[Task]) -> None:
    assert all(family.proven(task) for task in tasks)
    assert family.proven(family.parse(tasks[0], family.rewrite(tasks[0], Direction.HARDER, 1)))
    assert not family.proven(ADD)
    solved = Problem.from_task(FUNCTION).to_task()
    solved = Task(solved.env, solved.instruction, {**solved.payload, "solution": "x"}, {})
    assert family.proven(solved)
    reply = family.describe(replace(FUNCTION, instruction="Something else."))
    assert not family.proven(family.parse(solved, reply))


def test_rehearsed_cells_are_those_of_the_sandbox(family: CodingFamily, tasks: list[Task]) -> None:
    """What a chain computes in-process is what its program prints in the box."""
    for task in tasks[::8]:
        problem = Problem.from_task(task)
        others = [family.demonstrate(task, seed, 1.0)[0][1] for seed in range(3)]
        replies = [family.demonstrate_test(task, seed, 0.5) for seed in range(3)]
        found = family.examine([(task, [problem.solution, *others], replies)])[0]
        assert found.dataset[0] == (True,) * len(problem.cases)
        chain = chain_of(problem)
        for reply, cell in zip(replies, found.generated[0], strict=True):
            case = read_test(reply, problem)
            assert cell == (chain.output(case.input).split() == case.output.split())

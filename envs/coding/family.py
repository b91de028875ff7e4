"""The coding family: problems, the sandbox that judges programs, and the teacher. Implements the core protocols."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

from envs.coding.environment import CodingEnvironment, explained, opening
from envs.coding.examination import DATASET, GENERATED, criticism, examine, failed_tests
from envs.coding.formats import reference
from envs.coding.formats.files import save
from envs.coding.outputs import compared
from envs.coding.problem import ENV, Problem, ProblemError, require_values
from envs.coding.problem_sets import problem_sets
from envs.coding.program_judge import ProgramJudge
from envs.coding.programs import passed, program_of
from envs.coding.replies import read_problem, write_problem
from envs.coding.sandbox import BACKENDS, MOST_WORKERS, JobResult, Limits, Sandbox, open_sandbox
from envs.coding.world import cases, teacher
from envs.coding.world.chain import ChainError
from envs.coding.world.habits import HABITS, careless, slips
from envs.coding.world.operations import Kind
from envs.coding.world.sampling import LEVELS, Mixture, draw_tasks
from envs.coding.world.simulated_tables import simulated_tables
from envs.settings import chances, flag, one_of, shares, text, whole
from envs.splits import FAMILIAR, OUT_OF_DOMAIN, SPLITS
from rlanything.core.protocols import Environment
from rlanything.core.seeds import derive_seed
from rlanything.core.splits import TRAIN
from rlanything.core.types import Direction, Observation, Task
from rlanything.core.unittests import Examination, Outputs, Tables


class CodingFamily:
    """Programming problems: a generated world, or files. The arguments are what experiments/env/coding.yaml declares.

    problems: None for the generated world, or sets of problems by names of your own, each with its file: the splits.
    form: the format of these files (`livebench`, `livecodebench`, `codecontests` or `reference`), or a mapping from
        the names of all sets to formats.
    max_difficulty: only for sets in `codecontests`: problems with a larger number of difficulty are left out; None:
        none.
    on_bad_problem: what to do with records that cannot be read: `refuse` to start, or `skip` them.
    kinds: what generated problems read (`number`, `numbers`, `text`), with shares.
    levels, ood_levels: steps of generated problems in train and in_domain, and in the other two splits, with shares.
    tests: tests of a generated problem, and as many more as are needed to detect the habits. train_tests: how many of
        them the problems of the training split have, those that detect the fewest habits; None: all.
    habits: lines too many in demonstrations, with the chance in each program that one concerns (`world.habits.HABITS`).
        A policy that imitates them has these habits too. None without noise.
    rewrite_tests: least tests that a rewritten problem comes with; the generated world adds tests of its own.
    shown_tests: most tests that an adapter is shown with the share of programs that pass each.
    critic_tests: failed tests that a critic reads, where it is a model: the problem's own (`dataset`), or `generated`.
    backend, image, trusted: how programs are contained (`envs.coding.sandbox.open_sandbox`).
    workers: programs that run at a time. memory_mb: most memory of one.

    Raises `ValueError`, naming argument, value and what is allowed.
    """

    name = ENV

    def __init__(
        self,
        problems: Mapping[str, str] | None = None,
        form: str | Mapping[str, str] = "livecodebench",
        on_bad_problem: str = "refuse",
        kinds: Sequence[str] | Mapping[str, float] = tuple(Kind),
        levels: Sequence[str] | Mapping[str, float] = ("easy", "medium", "hard"),
        ood_levels: Sequence[str] | Mapping[str, float] = ("medium", "hard"),
        tests: int = 6,
        train_tests: int | None = None,
        habits: Mapping[str, float] | None = None,
        rewrite_tests: int = 1,
        shown_tests: int = 12,
        critic_tests: str = DATASET,
        backend: str = "bwrap",
        image: str | None = None,
        trusted: bool = False,
        workers: int = 2,
        memory_mb: int = 1024,
        max_difficulty: int | None = None,
    ) -> None:
        self._sets = problem_sets(problems, form, on_bad_problem, max_difficulty)
        count = whole("tests", tests, 2, 50)
        names = shares("kinds", kinds, tuple(Kind))
        self._habits = chances("habits", habits or {}, tuple(HABITS))
        near, far = (
            shares("levels", levels, tuple(LEVELS)),
            shares("ood_levels", ood_levels, tuple(LEVELS)[1:]),
        )
        self._near = Mixture(names, near, count, self._habits)
        self._far = Mixture(names, far, count, self._habits)
        shown = None if train_tests is None else whole("train_tests", train_tests, 1, count)
        self._trained = replace(self._near, shown=shown)
        self._rewrite_tests = whole("rewrite_tests", rewrite_tests, 0, 50)
        self._shown = whole("shown_tests", shown_tests, 1, 100)
        self._critic_tests = one_of("critic_tests", critic_tests, (DATASET, GENERATED))
        self._backend = one_of("backend", backend, BACKENDS)
        self._image = None if image is None else text("image", image)
        self._trusted = flag("trusted", trusted)
        self._workers = whole("workers", workers, 1, MOST_WORKERS)
        self._limits = Limits(memory_mb=whole("memory_mb", memory_mb, 64, 65_536))
        self._open: tuple[int, Sandbox] | None = None
        self._judge = ProgramJudge(self.sandbox)

    def splits(self) -> tuple[str, ...]:
        """The distributions that `make` draws tasks from: those of the world, or the named sets of problems."""
        return SPLITS if self._sets is None else tuple(self._sets.files)

    def make(self, split: str, count: int, seed: int) -> list[Task]:
        """`count` distinct valid tasks of a split; the same for the same arguments."""
        one_of("split", split, self.splits())
        if self._sets is not None:
            return self._sets.draw(split, count, seed)
        near = self._trained if split == TRAIN else self._near
        return draw_tasks(split, count, seed, near if split in FAMILIAR else self._far)

    @classmethod
    def easiest(cls, section: Mapping[str, Any]) -> CodingFamily:
        """Problems of one step that read a number."""
        return cls(kinds=("number",), levels=("easy",), ood_levels=("medium",))

    def stand_ins(self, counts: Mapping[str, int], seed: int) -> dict[str, list[Task]]:
        """Generated problems of each split; a set that the world does not have gets problems out of domain."""
        first = counts.get(OUT_OF_DOMAIN, 0)
        others = sum(count for split, count in counts.items() if split not in SPLITS)
        spare = iter(self.make(OUT_OF_DOMAIN, first + others, seed)[first:])
        return {
            split: self.make(split, count, seed) if split in SPLITS else list(islice(spare, count))
            for split, count in counts.items()
        }

    def write_data(self, folder: Path, tasks: Mapping[str, Sequence[Task]]) -> None:
        """Write problems as files `<split>.json` in the format of the reference code."""
        for split, found in tasks.items():
            save(folder / f"{split}.json", reference.NAME, [Problem.from_task(task) for task in found])

    def rewriting(self, task: Task, direction: Direction, seed: int) -> tuple[str, str]:
        """(facts, reply) of a rewrite, in the form of problems from files. Raises `InvalidProposal`."""
        changed = self.parse(task, self.rewrite(task, direction, seed))
        return write_problem(Problem.from_task(task)), write_problem(Problem.from_task(changed))

    def environment(self) -> Environment:
        """A new environment; all share one sandbox and its results. Raises `SandboxError` where that cannot run."""
        self.sandbox()
        return CodingEnvironment(self._judge)

    def sandbox(self) -> Sandbox:
        """The sandbox of this process, opened at the first use. Raises `SandboxError`."""
        if self._open is None or self._open[0] != os.getpid():
            made = open_sandbox(
                self._backend,
                workers=self._workers,
                limits=self._limits,
                trusted=self._trusted,
                image=self._image,
            )
            self._open = os.getpid(), made
        return self._open[1]

    def close(self) -> None:
        """Ends the sandbox of this process."""
        if self._open is not None and self._open[0] == os.getpid():
            self._open[1].close()
        self._open = None

    def validate(self, task: Task) -> str:
        """Why `task` must not be tried, in one sentence, or ''."""
        try:
            problem = Problem.from_task(task)
            require_values(problem)
            return cases.why_wrong(problem) if _of_the_world(problem) else ""
        except (ProblemError, ChainError) as error:
            return str(error)

    def describe(self, task: Task) -> str:
        """The problem with tests, in the form of a reply."""
        problem = Problem.from_task(task)
        if not _of_the_world(problem):
            return write_problem(problem)
        shown = teacher.shortest(problem.cases, self._rewrite_tests)
        return teacher.write_rewrite(teacher.chain_of(problem), shown)

    def parse(self, parent: Task, reply: str) -> Task:
        """The task that an adapter's reply asks for, with tests that agree. Raises `InvalidProposal`."""
        problem = Problem.from_task(parent)
        if _of_the_world(problem):
            found = teacher.read_rewrite(problem, reply, self._rewrite_tests, self._tests_like(problem))
        else:
            found = read_problem(problem, reply, max(1, self._rewrite_tests))
        return found.to_task({key: parent.metadata[key] for key in ("split",) if key in parent.metadata})

    def exercise(self, task: Task) -> str:
        """What the program must do: of a drawn problem its chain, whatever words and tests; else statement and tests.

        Other tests than a problem of a data set has may ask for another program.
        """
        problem = Problem.from_task(task)
        if _of_the_world(problem):
            return teacher.chain_of(problem).key
        cases = sorted(json.dumps([case.input, case.output], sort_keys=True) for case in problem.cases)
        return "\n".join([" ".join(problem.statement.split()), *cases])

    def prefetch(self, work: Sequence[tuple[Task, str]]) -> None:
        """Judge all answers of a turn in one batch; episodes and `examine` then find the results."""
        self._results([(Problem.from_task(task), answer) for task, answer in work])

    def examine(self, work: Sequence[Examination]) -> list[Tables]:
        """See `core.unittests.Examiner`. Raises `SandboxError` when the sandbox no longer works at all."""
        return examine(self._judge, work)

    def outputs(self, task: Task, answers: Sequence[str], tests: Sequence[str]) -> Outputs:
        """See `core.unittests.ComparesOutputs`. Raises `SandboxError` when the sandbox no longer works at all."""
        return compared(self.sandbox(), Problem.from_task(task), answers, tests)

    def criticism(self, task: Task, tables: Tables) -> str:
        """The short ones of the task's tests and the written ones, each with the share of programs that pass it."""
        return criticism(Problem.from_task(task), tables, self._shown)

    def failed_tests(self, task: Task, tables: Tables) -> list[dict[int, str]]:
        """For each program, those of the tests for the critic that it fails: number -> input and expected output."""
        return failed_tests(Problem.from_task(task), tables, self._critic_tests)

    def program(self, task: Task, answer: str) -> str:
        """The program in an answer, as it is run."""
        return program_of(Problem.from_task(task), answer)

    def proven(self, task: Task) -> bool:
        """Whether the problem has a known solution. Those of the world do; a rewritten problem of a file does not."""
        return bool(Problem.from_task(task).solution)

    def demonstrate(self, task: Task, seed: int, noise: float) -> list[tuple[Observation, str]]:
        """The reference solution, or with probability `noise` that of a similar problem, written with the habits.

        Without noise the expert is at its best, and has no habits either.

        Raises `ValueError` for a problem that comes without a solution.
        """
        problem = Problem.from_task(task)
        rng = random.Random(derive_seed(seed, "coding/demonstrate", task.task_id))
        if _of_the_world(problem):
            habits = self._habits if noise else {}
            written = teacher.program(teacher.chain_of(problem), rng, noise)
            text = careless(written, habits, random.Random(derive_seed(seed, "habits", task.task_id))).program
        elif problem.solution:
            text = problem.solution
        else:
            raise ValueError(f"problem {task.task_id[:12]} comes without a solution to show")
        return [(Observation(opening(problem)), text)]

    def demonstrate_test(self, task: Task, seed: int, noise: float) -> str:
        """A reply that derives a test step by step, with probability `noise` a wrong one. It aims at the habits.

        Raises `ValueError` for a problem that is not of the world.
        """
        rng = random.Random(derive_seed(seed, "coding/test", task.task_id))
        chain = teacher.chain_of(Problem.from_task(task))
        return teacher.test_reply(chain, rng, noise, slips(chain, self._habits))

    def demonstrate_criticism(self, task: Task, seed: int) -> str:
        """The text of `criticism` for simulated programs and tests; nothing is run.

        Raises `ValueError` for a problem that is not of the world.
        """
        rng = random.Random(derive_seed(seed, "coding/criticism", task.task_id))
        return self.criticism(task, simulated_tables(Problem.from_task(task), rng))

    def label_steps(self, task: Task, actions: Sequence[str]) -> list[bool]:
        """For each program: does it pass all tests? Raises `SandboxError` where that could not be found out."""
        problem = Problem.from_task(task)
        return [passed(result) for result in self._results([(problem, text) for text in actions])]

    def explain(self, task: Task, actions: Sequence[str]) -> list[str]:
        """For each program, what became of it. Raises `SandboxError` where that could not be found out."""
        problem = Problem.from_task(task)
        return [explained(result) for result in self._results([(problem, text) for text in actions])]

    def rewrite(self, task: Task, direction: Direction, seed: int) -> str:
        """A reply that `parse` accepts and that makes the task harder or easier."""
        rng = random.Random(derive_seed(seed, "coding/rewrite", task.task_id, direction.value))
        problem = Problem.from_task(task)
        return teacher.rewrite(problem, direction, rng, self._rewrite_tests, self._tests_like(problem))

    def why_no_lessons(self) -> str:
        """See `core.protocols.MayNotTeach`: problems from files come without the steps of a solution."""
        if self._sets is None:
            return ""
        return "problems: those from files come without the steps of a solution; null generates problems with them"

    def check_data(self, splits: Collection[str]) -> None:
        """Raise `ValueError` unless the files of problems of these splits are there."""
        if self._sets is not None:
            self._sets.check(splits)

    def _tests_like(self, problem: Problem) -> Mixture:
        """The mixture whose tests the problems of this one's split have."""
        trained = teacher.split_of(teacher.chain_of(problem)) == TRAIN
        return self._trained if trained else self._near

    def _results(self, work: Sequence[tuple[Problem, str]]) -> list[JobResult]:
        """The results of answers on their problems' own tests."""
        return self._judge.judge([(p, program_of(p, answer), p.cases) for p, answer in work])


def _of_the_world(problem: Problem) -> bool:
    return problem.source.get("format") == cases.FORMAT

"""A test writer on the reward panel: problems with programs whose verdicts are known.

The base policy wrote the programs, so that every reward model is measured on the same ones. Where a problem has a known
solution, the solution is added to the programs. It shows which tests are right.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isnan
from typing import Any, NotRequired

from typing_extensions import TypedDict

from rlanything.config import Config
from rlanything.core.coding_signals import CodingCounts, counts
from rlanything.core.errors import ConfigError
from rlanything.core.protocols import TaskFamily
from rlanything.core.records.forms import Form, Text, require_equal
from rlanything.core.types import Json, Task, Trajectory
from rlanything.core.unittests import Row, require_table
from rlanything.loop.episodes import opening
from rlanything.loop.share import host_of, shared
from rlanything.rewards.panel import parsed
from rlanything.rewards.protocols import FirstModel, PanelLines
from rlanything.rewards.requirements import demonstration, teacher
from rlanything.rewards.unit_tests.writer import Attempts, UnitTestWriter


class _Task(TypedDict):
    env: Text
    instruction: Text
    payload: dict[Text, Any]
    metadata: NotRequired[dict[Text, Any]]


class _Record(TypedDict):
    task: _Task
    opening: Text
    programs: list[Text]
    dataset: list[list[bool | None]]


_RECORD = Form(_Record)


@dataclass(frozen=True, slots=True)
class PanelProblem:
    """A problem, programs, and their results on the problem's own tests. opening: what the policy read."""

    task: Task
    opening: str
    programs: tuple[str, ...]
    dataset: tuple[Row, ...]

    def to_json(self) -> dict[str, Json]:
        """As a JSON record."""
        return {
            "task": self.task.to_json(),
            "opening": self.opening,
            "programs": list(self.programs),
            "dataset": [list(row) for row in self.dataset],
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Json]) -> PanelProblem:
        """Inverse of `to_json`. Raises `ValueError` for another form, or when a task does not match its id."""
        _RECORD.check(data)
        require_equal("rows of dataset", len(data["dataset"]), "programs", len(data["programs"]))
        dataset = tuple(tuple(row) for row in data["dataset"])
        require_table(dataset)
        return cls(Task.from_json(data["task"]), data["opening"], tuple(data["programs"]), dataset)


class UnitTestEvaluation:
    """`PanelEvaluation` of a test writer."""

    def __init__(self, config: Config, family: TaskFamily, writer: UnitTestWriter) -> None:
        self.config = config
        self.family = family
        self.writer = writer

    def panel(self, tasks: Sequence[Task], trajectories: Sequence[Trajectory]) -> list[dict[str, Json]]:
        """The tasks with the programs written for them.

        Raises `ConfigError` where a task has a known solution and its family cannot show it.
        """
        return [problem.to_json() for problem in self.problems(tasks, trajectories)]

    def relabel(self, panel: PanelLines, run_seed: int) -> list[dict[str, Json]]:
        """Raises `ConfigError`: programs are run on tests, so there are no labels for a model to give."""
        raise ConfigError("evaluate.labels = 'judge': with judge.writes = tests programs are run, not judged")

    def assess(self, panel: PanelLines) -> FirstModel:
        """Whether the share of right tests reaches `bootstrap.min_ut`."""
        rates = _rates(self._counts(panel, self.config.seed))
        objection = too_few_right(rates["ut"], self.config.bootstrap.min_ut)
        return FirstModel({"ut": rates["ut"], "detect": rates["detect"]}, objection)

    def part(self, panel: PanelLines, tasks: int, rollouts: int) -> PanelLines:
        """The first `tasks` problems, with all their programs; `rollouts` is not used.

        With fewer programs, other tests would count as right.
        """
        return panel[:tasks]

    def curve(self, panel: PanelLines, run_seed: int) -> dict[str, float]:
        """Shares of right tests and of tests that detect wrong programs."""
        rates = _rates(self._counts(panel, run_seed))
        return {"panel/ut": rates["ut"], "panel/detect": rates["detect"]}

    def results(self, panels: Mapping[str, PanelLines], run_seed: int) -> dict[str, Any]:
        """Counts of right tests, and of tests that detect wrong programs, by task. `panels` holds exactly one panel."""
        (panel,) = panels.values()
        found = self._counts(panel, run_seed)
        return {
            "ut": {task: [c.ut, c.ut_of] for task, c in found.items()},
            "detect": {task: [c.detect, c.detect_of] for task, c in found.items()},
        }

    def problems(self, tasks: Sequence[Task], trajectories: Sequence[Trajectory]) -> list[PanelProblem]:
        """The tasks with the trajectories' programs, then the known solution, and the results of each program."""
        openings = [opening(self.family, task, 0).text for task in tasks]
        answers = [
            [t.steps[-1].action for t in trajectories if t.slot == slot] + self._solution(task)
            for slot, task in enumerate(tasks)
        ]
        work = [(task, given, ()) for task, given in zip(tasks, answers, strict=True)]
        return [
            PanelProblem(task, first, tuple(given), tables.dataset)
            for (task, given, _), first, tables in zip(
                work, openings, shared(work, host_of(self.writer.family).examine), strict=True
            )
        ]

    def _solution(self, task: Task) -> list[str]:
        """The answer that is known to be right, as a list; empty where there is none."""
        if not self.writer.family.proven(task):
            return []
        return [demonstration(teacher(self.family), task, 0, 0.0)[-1][1]]

    def _counts(self, panel: PanelLines, run_seed: int) -> dict[str, CodingCounts]:
        return measure_tests(self.writer, parsed(panel, PanelProblem.from_json), run_seed)


def measure_tests(
    writer: UnitTestWriter, panel: Sequence[PanelProblem], run_seed: int
) -> dict[str, CodingCounts]:
    """Per task id, the counts of the writer's tests on the panel's programs.

    What the programs did on the problems' own tests is taken from the panel: it does not change with the writer.
    """
    work = [Attempts(item.task, item.opening, item.programs) for item in panel]
    found = writer.examine(work, run_seed, 0, phase="panel-write")
    return {
        item.task.task_id: counts(item.dataset, result.tables.generated, result.tables.readable)
        for item, result in zip(panel, found, strict=True)
    }


def too_few_right(right: float, least: float) -> str:
    """Why training must not start with a reward model whose share of right tests is `right`, or ''.

    right: nan where no test can be shown to be right. least: `bootstrap.min_ut`.
    """
    if isnan(right):
        return (
            "no problem of the reward panel has a right program, so that no test can be shown to be right. Raise its "
            "tasks (tasks.panels) or evaluate.reward_rollouts, or start from a better policy."
        )
    if right >= least:
        return ""
    return (
        f"of the first reward model's tests a share of {right:.3f} is right, below bootstrap.min_ut = {least}: it has "
        "too little to learn from. Raise bootstrap.reward.episodes or bootstrap.reward.steps, lower "
        "bootstrap.reward.noise, or raise judge.max_tokens where tests are cut off."
    )


def _rates(found: Mapping[str, CodingCounts]) -> dict[str, float]:
    return sum(found.values(), CodingCounts()).rates

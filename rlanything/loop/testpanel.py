"""The frozen panel of a test-writing reward model: problems with programs whose verdicts are known.

The programs are the base policy's, so that every reward model meets the same ones, and, where a problem comes with a
solution, that solution: an exact oracle of what a right test is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rlanything.core.coding_signals import CodingCounts, counts
from rlanything.core.types import Json, Task
from rlanything.core.unittests import Row
from rlanything.loop.testwriter import Attempts, UnitTestWriter


@dataclass(frozen=True, slots=True)
class PanelProblem:
    """A problem, programs, and what each did on the problem's own tests. `opening`: what their authors read."""

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
        """Inverse of `to_json`. Raises `ValueError` when a task is not what its id says."""
        return cls(
            Task.from_json(data["task"]),
            data["opening"],
            tuple(data["programs"]),
            tuple(tuple(row) for row in data["dataset"]),
        )


def measure_tests(
    writer: UnitTestWriter, panel: Sequence[PanelProblem], run_seed: int
) -> dict[str, CodingCounts]:
    """Per task id, what the writer's tests are worth on the panel's programs.

    What the programs did on the problems' own tests is taken from the panel: it does not change with the writer.
    """
    work = [Attempts(item.task, item.opening, item.programs) for item in panel]
    found = writer.run(work, run_seed, 0, phase="panel-write")
    return {
        item.task.task_id: counts(item.dataset, examined.tables.generated, examined.tables.readable)
        for item, examined in zip(panel, found, strict=True)
    }

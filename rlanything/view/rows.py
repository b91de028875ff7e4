"""The index of a run: a row for each rollout, with what lists and bars show and filters need, by columns."""

from __future__ import annotations

from rlanything.core.types import Json, Status
from rlanything.view.filters import FILTERS, Page
from rlanything.view.iteration import IterationPage

DIGITS = 4
STATUSES = tuple(status.value for status in Status)
COLUMNS = ("rollout", "outcome", "status", "steps", "reward", "advantage", "peak", "vote", "flags")
"""Of a rollout. reward, advantage, vote: means over its steps; vote: null where no vote on it can be read. peak: the
largest advantage of a step, without sign."""
ID_DIGITS = 16
"""Of a task's id, which are enough to tell the tasks of two runs apart."""


class Rows:
    """Collects the rows of a run, iteration by iteration. The rows of a group follow each other."""

    def __init__(self) -> None:
        self.tasks: dict[tuple[str, str], int] = {}
        self.groups: dict[str, list[Json]] = {
            name: [] for name in ("iteration", "slot", "proposal", "task", "accuracy", "first", "count")
        }
        self.rows: dict[str, list[Json]] = {name: [] for name in COLUMNS}
        self.start = 0
        self._best = (-1, 0, 0)

    def __len__(self) -> int:
        return len(self.rows["rollout"])

    def add(self, page: IterationPage) -> None:
        """The rollouts of an iteration."""
        for group in page.groups:
            self._note_start(page.iteration, group)
            identity = (group["task"]["task_id"][:ID_DIGITS], group["task"]["instruction"])
            task = self.tasks.setdefault(identity, len(self.tasks))
            values = (page.iteration, group["slot"], int(group["proposal"]), task)
            more = (_short(group["accuracy"]), len(self), len(group["rollouts"]))
            for name, value in zip(self.groups, (*values, *more), strict=True):
                self.groups[name].append(value)
            for rollout in group["rollouts"]:
                self._add(group, rollout)

    def to_json(self) -> dict[str, Json]:
        """The columns. start: the row that is shown first."""
        return {
            "tasks": [instruction for _, instruction in self.tasks],
            "task_ids": [task_id for task_id, _ in self.tasks],
            **{"groups": self.groups, "rows": self.rows, "start": self.start},
        }

    def _add(self, group: Page, rollout: Page) -> None:
        steps = rollout["steps"]
        advantages = [abs(step["advantage"]) for step in steps if step["advantage"] is not None]
        votes = [step["mean_vote"] for step in steps] if any(map(_voted, steps)) else []
        values = (
            *(rollout["rollout"], rollout["outcome"], STATUSES.index(rollout["status"]), len(steps)),
            *(_short(rollout["reward"]), _short(rollout["advantage"]), _short(max(advantages, default=None))),
            _short(sum(votes) / len(votes) if votes else None),
            sum(one.test(group, rollout) << bit for bit, one in enumerate(FILTERS.values())),
        )
        for name, value in zip(self.rows, values, strict=True):
            self.rows[name].append(value)

    def _note_start(self, iteration: int, group: Page) -> None:
        """The first shown is of the last iteration: of a task with rollouts that train and outcomes that differ."""
        trains = any(rollout["trains_policy"] for rollout in group["rollouts"])
        differ = len({rollout["outcome"] for rollout in group["rollouts"]}) > 1
        found = (iteration, int(trains), int(differ))
        if found > self._best:
            self._best, self.start = found, len(self)


def _voted(step: Page) -> bool:
    return any(vote["verdict"] for vote in step.get("votes", ()))


def _short(value: float | None) -> float | None:
    return None if value is None else round(value, DIGITS)

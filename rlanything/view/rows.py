"""The index of a run: a row for each rollout, with what lists show and filters need, by columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rlanything.core.types import Json, Status
from rlanything.view.iteration import IterationPage

Page = Mapping[str, Any]
DIGITS = 4
STATUSES = tuple(status.value for status in Status)
CRASHED = (Status.ENV_ERROR.value, Status.TIMEOUT.value)


def _failed(group: Page, rollout: Page) -> bool:
    return rollout["outcome"] < 0 and rollout["status"] not in CRASHED


def _disputed(group: Page, rollout: Page) -> bool:
    if group["tests"]:
        return len({result for result in _written(group, rollout) if result is not None}) > 1
    return any(len(_verdicts(step) - {None}) > 1 for step in rollout["steps"])


def _against(group: Page, rollout: Page) -> bool:
    if group["tests"]:
        pairs = zip(_written(group, rollout), group["tests"]["written"], strict=False)
        return any(result is not None and test["right"] is False for result, test in pairs)
    return any("good" in step and (-1 if step["good"] else 1) in _verdicts(step) for step in rollout["steps"])


def _invalid(group: Page, rollout: Page) -> bool:
    unread = any(not test["text"] for test in group["tests"]["written"]) if group["tests"] else False
    return unread or any(not step["valid"] or None in _verdicts(step) for step in rollout["steps"])


def _errors(group: Page, rollout: Page) -> bool:
    return rollout["status"] in CRASHED


def _accepted(group: Page, rollout: Page) -> bool:
    return bool(group["rewrite"]) and group["rewrite"]["decision"] == "accepted"


def _trains(group: Page, rollout: Page) -> bool:
    return bool(rollout["trains_policy"])


@dataclass(frozen=True)
class Filter:
    """What rollouts can be filtered by. label: on the page. votes, tests: what it means by kind of reward model."""

    test: Callable[[Page, Page], bool]
    label: str
    votes: str
    tests: str


FILTERS: Mapping[str, Filter] = {
    "failed": Filter(
        *(_failed, "failed", "the episode ended without success", "the program fails a test of the task")
    ),
    "disputed": Filter(
        *(_disputed, "disputed", "votes on one step differ"),
        "the program passes some written tests and fails others",
    ),
    "against": Filter(
        *(_against, "against the environment", "a vote says the opposite of the environment"),
        "it was run on a written test that is wrong",
    ),
    "invalid": Filter(
        *(_invalid, "invalid", "a reply without an action, or a vote without a verdict"),
        "a reply without a program or without a test",
    ),
    "errors": Filter(_errors, "crashed", "the environment crashed or did not answer", "the sandbox failed"),
    "accepted": Filter(
        *(_accepted, "of an accepted rewrite", "the task is a rewrite, and it was accepted"),
        "the problem is a rewrite, and it was accepted",
    ),
    "trains": Filter(_trains, "training", "it trained the policy", "it trained the policy"),
}
"""By its name in links. Its bit in `flags` is its position."""


def _verdicts(step: Page) -> set[int | None]:
    return {vote["verdict"] for vote in step.get("votes", ())}


def _written(group: Page, rollout: Page) -> Sequence[bool | None]:
    for program in group["tests"]["programs"]:
        if program["rollout"] == rollout["rollout"]:
            results: Sequence[bool | None] = program["written"]
            return results
    return ()


class Rows:
    """Collects the rows of a run, iteration by iteration. The rows of a group follow each other."""

    def __init__(self) -> None:
        self.tasks: dict[str, int] = {}
        self.groups: dict[str, list[Json]] = {
            name: [] for name in ("iteration", "slot", "proposal", "task", "accuracy", "first", "count")
        }
        self.rows: dict[str, list[Json]] = {
            name: []
            for name in ("rollout", "outcome", "status", "steps", "reward", "advantage", "peak", "flags")
        }
        self.start = 0
        self._best = (-1, 0, 0)

    def __len__(self) -> int:
        return len(self.rows["rollout"])

    def add(self, page: IterationPage) -> None:
        """The rollouts of an iteration."""
        for group in page.groups:
            self._note_start(page.iteration, group)
            instruction = self.tasks.setdefault(group["task"]["instruction"], len(self.tasks))
            values = (page.iteration, group["slot"], int(group["proposal"]), instruction)
            more = (_short(group["accuracy"]), len(self), len(group["rollouts"]))
            for name, value in zip(self.groups, (*values, *more), strict=True):
                self.groups[name].append(value)
            for rollout in group["rollouts"]:
                self._add(group, rollout)

    def to_json(self) -> dict[str, Json]:
        """The columns. start: the row that is shown first."""
        return {"tasks": list(self.tasks), "groups": self.groups, "rows": self.rows, "start": self.start}

    def _add(self, group: Page, rollout: Page) -> None:
        advantages = [abs(step["advantage"]) for step in rollout["steps"] if step["advantage"] is not None]
        flags = sum(one.test(group, rollout) << bit for bit, one in enumerate(FILTERS.values()))
        values = (
            *(
                rollout["rollout"],
                rollout["outcome"],
                STATUSES.index(rollout["status"]),
                len(rollout["steps"]),
            ),
            *(
                _short(rollout["reward"]),
                _short(rollout["advantage"]),
                _short(max(advantages, default=None)),
                flags,
            ),
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


def _short(value: float | None) -> float | None:
    return None if value is None else round(value, DIGITS)

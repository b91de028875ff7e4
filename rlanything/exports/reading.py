"""The rollouts of a run that are exported, iteration by iteration, so that memory holds one iteration."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rlanything.core.errors import ConfigError, unknown
from rlanything.exports.template import Template
from rlanything.exports.turns import Turns, turns_of
from rlanything.loop.record import EpisodeRecord
from rlanything.repro.stored import StoredIteration
from rlanything.rewards.kind import name_of
from rlanything.rollouts import select
from rlanything.rollouts.environment import Knowledge
from rlanything.rollouts.page import rollout_page
from rlanything.rollouts.runs import NamedRun
from rlanything.rollouts.select import Chosen, Tries
from rlanything.view.rows import FILTERS
from rlanything.view.tokens import read_ahead

SOLVED = "solved"
"""A filter beside those of the page: outcome +1."""
KNOWN_FILTERS = (SOLVED, *FILTERS)
_REPORTED_S = 5.0


class NothingChosen(ConfigError):
    """No rollout, or no row of a format, is as asked for."""


@dataclass(frozen=True)
class Selection:
    """Which rollouts: empty and None mean all. filters: names that all hold. min_reward: of a rollout's mean R."""

    iterations: Sequence[int] = ()
    slots: Sequence[int] = ()
    rollouts: Sequence[int] = ()
    filters: Sequence[str] = ()
    min_reward: float | None = None

    def check(self, run: NamedRun, environment: bool) -> list[int]:
        """The iterations that are read. Raises `ConfigError` naming the nearest known name or number."""
        known = select.with_rollouts(run)
        for name in self.filters:
            if name not in KNOWN_FILTERS:
                raise ConfigError(f"--filter {name}: {unknown(name, KNOWN_FILTERS)}")
        if self.min_reward is not None and not math.isfinite(self.min_reward):
            raise ConfigError(f"--min-reward {self.min_reward}: must be a finite number")
        if "against" in self.filters and not environment and name_of(run.terms) == "votes":
            raise ConfigError("--filter against: needs --environment, which asks whether steps were good")
        for number in self.slots:
            select.one_of("--slot", number, run.stored.buffers.latest.slots)
        if (tries := run.terms.rollouts) is not None:
            for number in self.rollouts:
                select.one_of("--rollout", number, range(tries))
        return sorted({select.one_of("--iteration", number, known) for number in self.iterations} or known)

    def takes(self, tries: Tries) -> bool:
        """Whether any rollout of a task may be chosen."""
        return not self.slots or tries.slot in self.slots

    def holds(self, item: Rollout) -> bool:
        """Whether a rollout is chosen."""
        page = item.page
        if self.rollouts and page["rollout"] not in self.rollouts:
            return False
        if self.min_reward is not None and (item.reward is None or item.reward < self.min_reward):
            return False
        return all(
            page["outcome"] > 0 if name == SOLVED else FILTERS[name].test(page, page) for name in self.filters
        )


@dataclass(frozen=True)
class Rollout:
    """One rollout: its record, its page (`rollouts.page`, with what the environment says), and its messages."""

    iteration: int
    proposal: bool
    record: EpisodeRecord
    page: Mapping[str, Any]
    turns: Turns

    @property
    def reward(self) -> float | None:
        """The mean reward of its steps; None where it has none."""
        return self._beside["reward"]

    @property
    def advantage(self) -> float | None:
        """The mean advantage of its steps; None where it does not train the policy."""
        return self._beside["advantage"]

    @property
    def where(self) -> dict[str, Any]:
        """Where it is in the run."""
        names = {"iteration": self.iteration, "slot": self.page["slot"], "proposal": self.proposal}
        return {**names, "rollout": self.page["rollout"]}

    @property
    def _beside(self) -> Mapping[str, Any]:
        (found,) = [row for row in self.page["rollouts"] if row["rollout"] == self.page["rollout"]]
        return found


@dataclass(frozen=True)
class Group:
    """The chosen rollouts of one task in one iteration."""

    iteration: int
    slot: int
    proposal: bool
    rollouts: Sequence[Rollout]


@dataclass
class Reader:
    """Reads what is chosen. notes: what could not be had. counts: what was read so far."""

    run: NamedRun
    selection: Selection
    template: Template
    known: Knowledge
    notes: dict[str, None] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=lambda: {"iterations": 0, "tasks": 0, "rollouts": 0})

    def iterations(self, numbers: Sequence[int]) -> Iterator[tuple[int, list[Group]]]:
        """(number, groups) of each iteration; how many are done is said now and then."""
        said = time.monotonic()
        for done, number in enumerate(numbers):
            groups = self._groups(StoredIteration(self.run.stored, number))
            self.counts["iterations"] += 1
            self.counts["tasks"] += len(groups)
            self.counts["rollouts"] += sum(len(group.rollouts) for group in groups)
            yield number, groups
            if time.monotonic() - said > _REPORTED_S:
                said = time.monotonic()
                print(f"export: {done + 1} of {len(numbers)} iterations", file=sys.stderr, flush=True)
        if not self.counts["rollouts"]:
            raise NothingChosen(f"{self.run.name}: none of its rollouts is as asked for: nothing is written")

    def _groups(self, stored: StoredIteration) -> list[Group]:
        tasks = [tries for tries in select.grouped(stored) if self.selection.takes(tries)]
        read_ahead(self.run, [record for tries in tasks for record in tries.records])
        found = []
        for tries in tasks:
            every = [self._rollout(stored, tries, record) for record in tries.records]
            chosen = [one for one in every if self.selection.holds(one)]
            if chosen:
                found.append(Group(stored.iteration, tries.slot, tries.proposal, chosen))
        self.notes |= dict.fromkeys([*self.template.notes, *filter(None, [self.known.problem])])
        self.run.decoded.clear()
        return found

    def _rollout(self, stored: StoredIteration, tries: Tries, record: EpisodeRecord) -> Rollout:
        page = rollout_page(self.run, Chosen(stored, tries, record, (), (), ()))
        self.notes |= dict.fromkeys(page["notes"])
        trajectory = record.episode.trajectory
        facts = self.known.of(stored.tasks.get(trajectory.task_id), trajectory)
        steps = [{**step, **fact} for step, fact in zip(page["steps"], facts, strict=True)]
        page = {**page, "steps": steps}
        turns = turns_of(page, trajectory, self.template)
        return Rollout(stored.iteration, tries.proposal, record, page, turns)

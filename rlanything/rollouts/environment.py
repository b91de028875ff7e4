"""What the environment says about stored steps: which were good and why, and which commands were admissible.

Neither is stored in a run. The environment plays the recorded actions again. Its commands are shown only while it gives
the recorded observations.

To make an environment is to start what its arguments name, e.g. a browser. So a run whose environment is not the one
that the project is set to is asked nothing, unless somebody says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rlanything import targets
from rlanything.core.errors import RLAnythingError
from rlanything.core.protocols import TaskFamily, Teacher
from rlanything.core.returned.answers import require_result
from rlanything.core.types import Task, Trajectory
from rlanything.loop.episodes import begin, deadline
from rlanything.repro.played.own import require_own
from rlanything.rewards.kind import name_of
from rlanything.rewards.requirements import labelled
from rlanything.rollouts.runs import NamedRun

SECONDS = 60.0
"""That all answers about one episode may take."""
Facts = dict[str, Any]
"""Of a step: `good`, `reason` and `commands`; what is not known is absent."""


@dataclass
class Knowledge:
    """What a family can say. family: None where nothing is asked.

    problem: why nothing is known of some steps, the first reason met, or ''."""

    family: TaskFamily | None = None
    problem: str = ""
    refused: dict[str, str] = field(default_factory=dict)
    """By task id, why a task must not be played; '' where it may."""

    def of(self, task: Task | None, trajectory: Trajectory, *, play: bool = True) -> list[Facts]:
        """The facts about every step. play: play the episode again for its commands."""
        facts: list[Facts] = [{} for _ in trajectory.steps]
        if self.family is None or task is None or not trajectory.counts:
            return facts
        asked = f"the environment was asked about slot {trajectory.slot}"
        try:
            with deadline(SECONDS):
                self._ask(self.family, task, trajectory, facts, play)
        except TimeoutError as error:
            self.family, self.problem = None, f"{asked}: {error}; it was not asked further"
        except (Exception, SystemExit) as error:
            # An environment may raise anything; a page without its facts is still one.
            said = f"SystemExit: {error}" if isinstance(error, SystemExit) else str(error)
            self.problem = self.problem or f"{asked} and failed: {said}"
        return facts

    def labels(self, task: Task | None, trajectory: Trajectory) -> list[bool]:
        """Whether each step was good; empty where that is not known. Nothing is played."""
        facts = self.of(task, trajectory, play=False)
        return [fact["good"] for fact in facts] if all("good" in fact for fact in facts) else []

    def _ask(
        self, family: TaskFamily, task: Task, trajectory: Trajectory, facts: list[Facts], play: bool
    ) -> None:
        if self._refusal(family, task):
            return
        self._label(family, task, trajectory, facts)
        if play:
            _play(family, task, trajectory, facts)

    def _refusal(self, family: TaskFamily, task: Task) -> str:
        """Tasks are written by models, so the family's own check comes first."""
        if task.task_id not in self.refused:
            self.refused[task.task_id] = family.validate(task.copy())
        return self.refused[task.task_id]

    def _label(self, family: TaskFamily, task: Task, trajectory: Trajectory, facts: list[Facts]) -> None:
        if isinstance(family, Teacher):
            actions = [step.action for step in trajectory.steps]
            for fact, (good, reason) in zip(facts, labelled(family, task, actions), strict=True):
                fact.update(good=good, reason=reason)


def knowledge(run: NamedRun, project: Path, *, asked: bool | None = None) -> Knowledge:
    """What can be asked about a run. Programs and tests have their results in the run: nothing is played for them.

    project: whose configuration is trusted. asked: None: only where the run's section `env` equals that of the project;
    True: always; False: never."""
    if asked is False or name_of(run.terms) != "votes":
        return Knowledge()
    env: Mapping[str, Any] = run.terms.env
    try:
        if not asked:
            require_own(env, run.root, project, "--environment asks nevertheless")
        return Knowledge(targets.instantiate(env, "env", TaskFamily))
    except RLAnythingError as error:
        return Knowledge(problem=f"the environment is not asked: {error}")


def _play(family: TaskFamily, task: Task, trajectory: Trajectory, facts: list[Facts]) -> None:
    """Add the admissible commands before each step, as long as the environment answers as it did in the run."""
    environment = family.environment()
    try:
        seen, recorded = begin(environment, task, trajectory.seed), trajectory.first_observation
        for fact, step in zip(facts, trajectory.steps, strict=True):
            if seen.text != recorded:
                return
            fact["commands"] = list(seen.actions)
            result = require_result(environment.step(step.action), "step(action)")
            seen, recorded = result.observation, step.observation
    finally:
        environment.close()

"""The environment's oracle as the judge of steps: votes of a declared accuracy, without a model (`judge.source`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rlanything.config import JudgeSource
from rlanything.core.protocols import Teacher
from rlanything.core.types import Judgement, Task, Trajectory, Vote
from rlanything.loop.share import shared
from rlanything.rewards.oracle import Errors
from rlanything.rewards.requirements import labelled


class OracleVotes:
    """`VoteSource` that asks the environment which steps are good, and errs as often as the configuration says.

    Its votes have no tokens. A right vote gives the oracle's reason; a wrong vote gives no reason.
    """

    def __init__(self, oracle: Teacher, judge: JudgeSource, m: int) -> None:
        self.oracle = oracle
        self.config = judge
        self.m = m

    def judge(
        self,
        trajectories: Sequence[Trajectory],
        run_seed: int,
        iteration: int,
        *,
        tasks: Mapping[str, Task],
    ) -> list[tuple[Judgement, ...]]:
        """The judgements of each trajectory, one a step; none for a trajectory that does not count (crashes).

        tasks: the tasks of the trajectories by id. The processes of a run divide the trajectories among them.
        """
        errors = Errors(self.config, run_seed)
        return shared(
            trajectories,
            lambda part: [
                tuple(self._judge(t, tasks[t.task_id], errors, iteration)) if t.counts else () for t in part
            ],
        )

    def _judge(
        self, trajectory: Trajectory, task: Task, errors: Errors, iteration: int
    ) -> Iterator[Judgement]:
        """The votes on every step. Questions are equal when observation, action and next observation are equal."""
        actions = [step.action for step in trajectory.steps]
        found = labelled(self.oracle, task, actions)
        seen = trajectory.first_observation
        for number, (step, (good, reason)) in enumerate(zip(trajectory.steps, found, strict=True)):
            asked = (iteration, trajectory.task_id, trajectory.rollout, number)
            wrong = errors.of((seen, step.action, step.observation), asked, self.m)
            yield Judgement((), tuple(_vote(good, reason, is_wrong) for is_wrong in wrong))
            seen = step.observation


def _vote(good: bool, reason: str, wrong: bool) -> Vote:
    return Vote(1 if good is not wrong else -1, "" if wrong else reason, (), ())

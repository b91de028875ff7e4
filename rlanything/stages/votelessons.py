"""What a reward model that votes on steps is taught: the base policy's own rollouts with noisy oracle labels.

One that has only seen an expert has never seen a useless action and approves of them.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from rlanything.config import Config
from rlanything.core.seeds import derive_seed
from rlanything.core.types import (
    Judgement,
    Observation,
    ScoredJudgements,
    Task,
    TaskFamily,
    Teacher,
    Trajectory,
    Vote,
)
from rlanything.learn.packing import Row, reward_rows
from rlanything.loop.critic import summarise
from rlanything.loop.judge import Judge
from rlanything.loop.prompts import Prompts
from rlanything.loop.rollout import Assignment, Roller, Sampling
from rlanything.loop.speaker import Speaker
from rlanything.stages import build

VERDICTS = {"word": {True: "good", False: "bad"}, "boxed": {True: r"\boxed{1}", False: r"\boxed{-1}"}}
EXPLORED = 12
"""Acts that an adapter's made-up critic is about."""


class VoteLessons:
    """`lessons.Lessons` of a reward model that votes. Raises `ConfigError` for a family without a teacher."""

    def __init__(self, config: Config, family: TaskFamily, prompts: Prompts) -> None:
        self.config = config
        self.family = family
        self.prompts = prompts
        self.teacher = build.teacher(family)

    def critic(self, task: Task, seed: int) -> str:
        """The reasons against what somebody half lost did."""
        explored = [action for _, action in self.teacher.demonstrate(task, seed, 0.5)][:EXPLORED]
        labelled = zip(
            self.teacher.label_steps(task, explored), self.teacher.explain(task, explored), strict=True
        )
        return summarise([("", reason) for good, reason in labelled if not good])

    def corpus(self, tasks: Sequence[Task], demos: Sequence[list[tuple[Observation, str]]]) -> list[str]:
        """Reasons with verdicts, and questions."""
        texts = []
        for task, demo in zip(tasks, demos, strict=False):
            reasons = self.teacher.explain(task, [action for _, action in demo])
            texts += [f"{reason} {verdict}" for reason in reasons for verdict in ("good", "bad")]
        return texts + [
            self.prompts.fill("judge", observation=obs.text, action=a)
            for demo in demos
            for obs, a in demo[:1]
        ]

    def rows(self, policy: Speaker, tasks: Sequence[Task]) -> list[Row]:
        """One tree row per rollout of the base policy: each step's question with a (noisily) labelled answer."""
        trajectories = self._rollouts(policy, tasks)
        labelled = [_labels(self.teacher, tasks[t.slot], t) for t in trajectories]
        pools = {
            kind: [r for steps in labelled for good, r in steps if good is kind] for kind in (True, False)
        }
        judge = Judge(policy, self.prompts, self.config.judge)
        rows = []
        for trajectory, steps in zip(trajectories, labelled, strict=True):
            rng = random.Random(
                derive_seed(self.config.seed, "label-noise", trajectory.task_id, trajectory.rollout)
            )
            answers = [_noisy(step, pools, self.config.bootstrap.reward.noise, rng) for step in steps]
            rows += reward_rows(self._lesson(policy, judge.questions(trajectory), answers, pools), "step")
        return rows

    def _rollouts(self, policy: Speaker, tasks: Sequence[Task]) -> list[Trajectory]:
        rollout = self.config.rollout
        roller = Roller(self.family, policy, self.prompts, rollout)
        sampling = Sampling(self.config.seed, "judge-practice", 0, rollout.temperature, rollout.max_steps)
        work = [Assignment(k, task, 1) for k, task in enumerate(tasks)]
        return [t for t in roller.run(work, sampling) if t.counts and t.steps]

    def _lesson(
        self,
        policy: Speaker,
        questions: Sequence[tuple[int, ...]],
        answers: Sequence[tuple[bool, str]],
        pools: dict[bool, list[str]],
    ) -> ScoredJudgements:
        """The answers to a trajectory's questions; good and bad ones weigh the same over all lessons."""
        votes = [_answer(policy, self.prompts.verdict_format, *answer) for answer in answers]
        return ScoredJudgements(
            tuple(Judgement(q, (v,)) for q, v in zip(questions, votes, strict=False)),
            tuple((1.0,) for _ in questions),
            tuple(1000.0 / max(1, len(pools[good])) for good, _ in answers[: len(questions)]),
        )


def _labels(teacher: Teacher, task: Task, trajectory: Trajectory) -> list[tuple[bool, str]]:
    actions = [s.action for s in trajectory.steps]
    return list(zip(teacher.label_steps(task, actions), teacher.explain(task, actions), strict=True))


def _noisy(
    step: tuple[bool, str], pools: dict[bool, list[str]], noise: float, rng: random.Random
) -> tuple[bool, str]:
    """The label, or with probability `noise` the opposite one with a reason that goes with it."""
    good, _ = step
    if rng.random() >= noise or not pools[not good]:
        return step
    return not good, rng.choice(pools[not good])


def _answer(talk: Speaker, verdict_format: str, good: bool, reason: str) -> Vote:
    text = f"{reason} {VERDICTS[verdict_format][good]}"
    ids = talk.encode_choice(text)
    return Vote(1 if good else -1, reason, ids, (0.0,) * len(ids))

"""The warm start of a voting reward model: the base policy's own rollouts with noisy labels of the oracle.

Expert demonstrations hold no useless actions. A reward model that has seen only these approves of useless actions.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from rlanything.config import Config
from rlanything.core.errors import ConfigError
from rlanything.core.protocols import TaskFamily, Teacher
from rlanything.core.seeds import derive_seed
from rlanything.core.types import Judgement, Lesson, ScoredReplies, Task, Trajectory, Vote
from rlanything.learn.packing import Row, reward_rows
from rlanything.loop.chat_model import ChatModel
from rlanything.loop.prompts import Prompts
from rlanything.loop.rollout import Assignment, RolloutWorker, Sampling
from rlanything.rewards.protocols import Demonstration
from rlanything.rewards.requirements import demonstration, labelled, reasons, teacher
from rlanything.rewards.step_votes.critic import summarise
from rlanything.rewards.step_votes.judge import Judge

VERDICTS = {"word": {True: "good", False: "bad"}, "boxed": {True: r"\boxed{1}", False: r"\boxed{-1}"}}
EXPLORED = 12
"""How many steps of a noisy demonstration an invented criticism covers."""


class VoteLessons:
    """`WarmStart` of a voting reward model. Raises `ConfigError` for a family without a teacher."""

    def __init__(self, config: Config, family: TaskFamily, prompts: Prompts) -> None:
        self.config = config
        self.family = family
        self.prompts = prompts
        self.teacher = teacher(family)

    def critic(self, task: Task, seed: int) -> str:
        """The oracle's most frequent reasons for the bad steps of a noisy demonstration."""
        explored = [action for _, action in demonstration(self.teacher, task, seed, 0.5)][:EXPLORED]
        found = labelled(self.teacher, task, explored)
        return summarise([("", reason) for good, reason in found if not good])

    def corpus(self, tasks: Sequence[Task], demos: Sequence[Demonstration]) -> list[str]:
        """Reasons with verdicts, and questions."""
        texts = []
        for task, demo in zip(tasks, demos, strict=False):
            found = reasons(self.teacher, task, [action for _, action in demo])
            texts += [f"{reason} {verdict}" for reason in found for verdict in ("good", "bad")]
        return texts + [
            self.prompts.judge_question(obs.text, a, obs.text, a)["content"]
            for demo in demos
            for obs, a in demo[:1]
        ]

    def rows(self, policy: ChatModel, tasks: Sequence[Task]) -> list[Row]:
        """A tree row for each rollout of the base policy: the question about each step, answered by a noisy label.

        Raises `ConfigError` where there is nothing to ask about.
        """
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
        if not rows:
            raise ConfigError(
                f"bootstrap.reward: of {len(tasks)} rollouts of the base policy {len(trajectories)} have a step and "
                "did not crash, and no question about one fits the reward model's context. Lower rollout.max_tokens "
                "and judge.max_tokens, or raise model.embedded.positions"
            )
        return rows

    def _rollouts(self, policy: ChatModel, tasks: Sequence[Task]) -> list[Trajectory]:
        rollout = self.config.rollout
        rollout_worker = RolloutWorker(self.family, policy, self.prompts, rollout)
        sampling = Sampling(self.config.seed, "judge-practice", 0, rollout.temperature, rollout.max_steps)
        work = [Assignment(k, task, 1) for k, task in enumerate(tasks)]
        return [t for t in rollout_worker.roll_out(work, sampling) if t.counts and t.steps]

    def _lesson(
        self,
        policy: ChatModel,
        questions: Sequence[tuple[int, ...]],
        answers: Sequence[tuple[bool, str]],
        pools: dict[bool, list[str]],
    ) -> ScoredReplies:
        """The answers to a trajectory's questions. Without noise, good and bad answers have the same total weight."""
        taught = [
            (
                Judgement(question, (_answer(policy, self.prompts.verdict_format, good, reason),)),
                Lesson((1.0,), 1000.0 / max(1, len(pools[good]))),
            )
            for question, (good, reason) in zip(questions, answers, strict=False)
        ]
        return ScoredReplies.of(taught)


def _labels(oracle: Teacher, task: Task, trajectory: Trajectory) -> list[tuple[bool, str]]:
    return labelled(oracle, task, [s.action for s in trajectory.steps])


def _noisy(
    step: tuple[bool, str], pools: dict[bool, list[str]], noise: float, rng: random.Random
) -> tuple[bool, str]:
    """The label and its reason. With probability `noise`, the opposite label with a reason given for such a label."""
    good, _ = step
    if rng.random() >= noise or not pools[not good]:
        return step
    return not good, rng.choice(pools[not good])


def _answer(chat_model: ChatModel, verdict_format: str, good: bool, reason: str) -> Vote:
    text = f"{reason} {VERDICTS[verdict_format][good]}"
    ids = chat_model.encode_choice(text)
    return Vote(1 if good else -1, reason, ids, (0.0,) * len(ids))

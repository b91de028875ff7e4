"""The judge: a language model gives m votes on every step of every trajectory.

It reads the trajectory as a conversation, and is asked after each step's result. All questions about a trajectory share
that conversation, so that an engine can read it once (`Request.group`).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile

from rlanything.config import JudgeConfig
from rlanything.core.seeds import derive_seed
from rlanything.core.types import Completion, Judgement, Request, Trajectory, Vote
from rlanything.loop.chat_model import ChatModel
from rlanything.loop.prompts import Prompts
from rlanything.loop.share import shared


class Judge:
    """Asks one language model about trajectories."""

    def __init__(self, reward: ChatModel, prompts: Prompts, config: JudgeConfig) -> None:
        self.reward = reward
        self.prompts = prompts
        self.config = config

    def judge(
        self, trajectories: Sequence[Trajectory], run_seed: int, iteration: int, *, phase: str = "judge"
    ) -> list[tuple[Judgement, ...]]:
        """The judgements of each trajectory, one a step; none for a trajectory that does not count (crashes).

        The processes of a run divide the trajectories among them.
        """
        return shared(trajectories, lambda part: self._judge(part, (run_seed, phase, iteration)))

    def _judge(
        self, trajectories: Sequence[Trajectory], key: tuple[int, str, int]
    ) -> list[tuple[Judgement, ...]]:
        """The judgements of each trajectory, asked for in this process."""
        questions = [self.questions(t) if t.counts else [] for t in trajectories]
        requests = [
            self._request(prompt, trajectory, key, step, j)
            for trajectory, prompts in zip(trajectories, questions, strict=True)
            for step, prompt in enumerate(prompts)
            for j in range(self.config.m)
        ]
        replies = iter(self.reward.generate(requests))
        return [
            tuple(
                Judgement(prompt, tuple(self._vote(next(replies)) for _ in range(self.config.m)))
                for prompt in prompts
            )
            for prompts in questions
        ]

    def questions(self, trajectory: Trajectory) -> list[tuple[int, ...]]:
        """One prompt (token ids) per step: the conversation up to its result, then the question.

        The first question that does not fit the context is left out, and all after it. Leaving out only some would
        give the votes of later steps to the wrong steps.
        """
        prompts = []
        trunk = self.reward.start(self.prompts.judge_opening(trajectory.first_observation))
        for step in trajectory.steps:
            action = self.reward.encode_choice(step.action)
            asked = self.prompts.fill("judge", observation=step.observation, action=step.action)
            prompts.append(self.reward.extend(trunk, action, {"role": "user", "content": asked}))
            trunk = self.reward.extend(trunk, action, {"role": "user", "content": step.observation})
        fits = self.reward.max_context - self.config.max_tokens
        return list(takewhile(lambda prompt: len(prompt) <= fits, prompts))

    def _request(
        self,
        prompt: tuple[int, ...],
        trajectory: Trajectory,
        key: tuple[int, str, int],
        step: int,
        sample: int,
    ) -> Request:
        run_seed, phase, iteration = key
        seed = derive_seed(run_seed, phase, iteration, trajectory.task_id, trajectory.rollout, step, sample)
        group = f"{trajectory.slot}/{trajectory.task_id}/{trajectory.rollout}"
        return Request(prompt, seed, self.config.max_tokens, self.config.temperature, group=group)

    def _vote(self, reply: Completion) -> Vote:
        text = self.reward.decode(reply.ids)
        return Vote(self.prompts.verdict(text), self.prompts.reasoning(text), reply.ids, reply.logprobs)

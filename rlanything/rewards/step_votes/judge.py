"""The judge: a language model gives m votes on every step of every trajectory.

With `model.context` = chat, the judge reads the trajectory as a conversation, and is asked after each step's result.
With history, it reads the policy's prompt, the policy's whole response and the result, in one turn for each step.
The questions about a trajectory begin alike. An engine can read their common beginning once (`Request.group`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile

from rlanything.config import JudgeConfig
from rlanything.core.errors import ConfigError
from rlanything.core.seeds import derive_seed
from rlanything.core.types import Completion, Judgement, Request, Task, Trajectory, Vote
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
        self,
        trajectories: Sequence[Trajectory],
        run_seed: int,
        iteration: int,
        *,
        phase: str = "judge",
        tasks: Mapping[str, Task] | None = None,
    ) -> list[tuple[Judgement, ...]]:
        """The judgements of each trajectory, one a step; none for a trajectory that does not count (crashes).

        `tasks` is not used: a model reads the trajectories only. The processes of a run divide the trajectories among
        them.
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
        """One prompt (token ids) per step.

        The first question that does not fit the context is left out, and so are all after it. Otherwise the votes on
        later steps would be assigned to the wrong steps. Raises `ConfigError` for a trajectory without the texts of
        its prompts, where these are needed.
        """
        prompts = self._in_conversation(trajectory) if self.prompts.chats else self._one_by_one(trajectory)
        fits = self.reward.max_context - self.config.max_tokens
        return list(takewhile(lambda prompt: len(prompt) <= fits, prompts))

    def _in_conversation(self, trajectory: Trajectory) -> Iterator[tuple[int, ...]]:
        """The conversation up to each step's result, then the question."""
        trunk = self.reward.start(self.prompts.judge_opening(trajectory.first_observation))
        for step in trajectory.steps:
            action = self.reward.encode_choice(step.action)
            yield self.reward.extend(
                trunk, action, self.prompts.judge_question(step.observation, step.action)
            )
            trunk = self.reward.extend(trunk, action, {"role": "user", "content": step.observation})

    def _one_by_one(self, trajectory: Trajectory) -> Iterator[tuple[int, ...]]:
        """One user turn for each step: the policy's prompt, its whole response, the result."""
        for number, step in enumerate(trajectory.steps, 1):
            if not step.prompt_text:
                raise ConfigError(
                    f"model.context = history: step {number} of a trajectory of task {trajectory.task_id[:12]} was "
                    "recorded as a part of a conversation, without the text of its prompt. Make the reward panel "
                    "with this context: `rlanything bootstrap`"
                )
            texts = step.prompt_text, step.response_text
            yield self.reward.start([self.prompts.judge_question(step.observation, step.action, *texts)])

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

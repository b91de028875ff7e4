"""The judge: a language model gives m votes on every step of every trajectory.

With `model.context` = chat, the judge reads the trajectory as a conversation, and is asked after each step's result.
With history, it reads the policy's prompt, the policy's whole response and the result, in one turn for each step. A
judge that is shown pictures sees the latest ones: the last before the step, and that of the result.
The questions about a trajectory begin alike. An engine can read their common beginning once (`Request.group`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile

from rlanything.config import JudgeConfig
from rlanything.core.errors import ConfigError
from rlanything.core.images.messages import Part
from rlanything.core.seeds import derive_seed
from rlanything.core.types import Completion, Judgement, Request, Task, Trajectory, Vote
from rlanything.loop.chat_model import ChatModel
from rlanything.loop.contexts import Prompt, seen_before
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
        questions = [self.asked(t) if t.counts else [] for t in trajectories]
        requests = [
            self._request(prompt, trajectory, key, step, j)
            for trajectory, prompts in zip(trajectories, questions, strict=True)
            for step, prompt in enumerate(prompts)
            for j in range(self.config.m)
        ]
        replies = iter(self.reward.generate(requests))
        return [
            tuple(
                Judgement(
                    prompt.ids, tuple(self._vote(next(replies)) for _ in range(self.config.m)), prompt.images
                )
                for prompt in prompts
            )
            for prompts in questions
        ]

    def questions(self, trajectory: Trajectory) -> list[tuple[int, ...]]:
        """The token ids of `asked`."""
        return [prompt.ids for prompt in self.asked(trajectory)]

    def asked(self, trajectory: Trajectory) -> list[Prompt]:
        """One prompt per step.

        The first question that does not fit the context is left out, and so are all after it. Otherwise the votes on
        later steps would be assigned to the wrong steps. Raises `ConfigError` for a trajectory without the texts of
        its prompts, where these are needed.
        """
        prompts = self._in_conversation(trajectory) if self.prompts.chats else self._one_by_one(trajectory)
        fits = self.reward.max_context - self.config.max_tokens
        return list(takewhile(lambda prompt: len(prompt.ids) <= fits, prompts))

    def _in_conversation(self, trajectory: Trajectory) -> Iterator[Prompt]:
        """The conversation up to each step's result, then the question."""
        trunk = self.reward.start(self.prompts.judge_opening(trajectory.first_observation))
        for step in trajectory.steps:
            action = self.reward.encode_choice(step.action)
            question = self.prompts.judge_question(step.observation, step.action)
            yield Prompt(self.reward.extend(trunk, action, question))
            trunk = self.reward.extend(trunk, action, {"role": "user", "content": step.observation})

    def _one_by_one(self, trajectory: Trajectory) -> Iterator[Prompt]:
        """One user turn for each step: the policy's prompt, its whole response, the result."""
        for number, step in enumerate(trajectory.steps, 1):
            if not step.prompt_text:
                raise ConfigError(
                    f"model.context = history: step {number} of a trajectory of task {trajectory.task_id[:12]} was "
                    "recorded as a part of a conversation, without the text of its prompt. Make the reward panel "
                    "with this context: `rlanything bootstrap`"
                )
            texts = step.prompt_text, step.response_text
            pictures = self._pictures(trajectory, number)
            question = self.prompts.judge_question(step.observation, step.action, *texts, pictures)
            yield Prompt.of(self.reward, question)

    def _pictures(self, trajectory: Trajectory, number: int) -> tuple[list[Part], list[Part]]:
        """The latest pictures up to the result of step `number`: those from before it, and those of its result."""
        steps = trajectory.steps[:number]
        shown = self.reward.last_pictures(seen_before(trajectory.first_images, steps))
        result = min(len(shown), len(steps[-1].images))
        return shown[: len(shown) - result], shown[len(shown) - result :]

    def _request(
        self,
        prompt: Prompt,
        trajectory: Trajectory,
        key: tuple[int, str, int],
        step: int,
        sample: int,
    ) -> Request:
        run_seed, phase, iteration = key
        seed = derive_seed(run_seed, phase, iteration, trajectory.task_id, trajectory.rollout, step, sample)
        group = f"{trajectory.slot}/{trajectory.task_id}/{trajectory.rollout}"
        sampling = self.config.max_tokens, self.config.temperature
        return Request(prompt.ids, seed, *sampling, group=group, images=prompt.images)

    def _vote(self, reply: Completion) -> Vote:
        text = self.reward.decode(reply.ids)
        return Vote(self.prompts.verdict(text), self.prompts.reasoning(text), reply.ids, reply.logprobs)

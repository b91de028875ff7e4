"""Lessons of a family with experts whose labels of steps are not asked for: a desktop, web pages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Protocol, runtime_checkable

from rlanything.config import Config
from rlanything.core.images import Image
from rlanything.core.types import Direction, Observation, Status, Step, Task, Trajectory
from rlanything.learn.packing import Row
from rlanything.learn.supervised.rows import Turn, conversation_rows
from rlanything.loop.chat_model import ChatModel
from rlanything.loop.contexts import next_prompt
from rlanything.loop.prompts import Prompts
from rlanything.rehearsal.lessons import PRACTICE_STEPS
from rlanything.rewards.protocols import Demonstration
from rlanything.rewards.step_votes.judge import Judge
from rlanything.rewards.step_votes.lessons import VERDICTS

ENDED = "The episode ended."
"""What an expert's last step is answered with."""


@runtime_checkable
class Expert(Protocol):
    """A family whose tasks come with experts and rewrites, and need no data."""

    def demonstration(self, task: Task) -> list[tuple[Observation, str]]:
        """(observation, reply of a policy) pairs that solve the task. Observations have no pictures."""
        ...

    def rewrite(self, task: Task, direction: Direction, seed: int) -> str:
        """A reply that `parse` accepts and that makes the task harder or easier. Raises `InvalidProposal`."""
        ...

    def describe(self, task: Task) -> str:
        """As in `core.protocols.TaskFamily`."""
        ...


class ExpertLessons:
    """`Lessons` of an `Expert`. Nobody is asked for labels of steps, so labels are invented.

    A step of the expert is called right. The same question with a step of another task's expert is called wrong.
    images: by task id, what its episode begins with. It stands for every observation, because no expert is played.
    """

    factors: Mapping[str, int] = MappingProxyType({"policy": 2, "adapter": 4})
    """Replies that repeat the names of their task take longer to learn than verdicts."""

    def __init__(
        self,
        config: Config,
        prompts: Prompts,
        family: Expert,
        tasks: Sequence[Task],
        images: Mapping[str, Sequence[Image]],
    ) -> None:
        self._config, self._prompts, self._family = config, prompts, family
        self.tasks = tasks
        self.images: Sequence[Image] = [image for found in images.values() for image in found]
        self._names = {task: tuple(image.sha256 for image in found) for task, found in images.items()}
        self.demos: Sequence[Demonstration] = [
            family.demonstration(task)[: config.rollout.max_steps] for task in tasks
        ]

    def critic(self, task: Task) -> str:
        """See `Lessons`."""
        return "The first step was not what the task asks for."

    def corpus(self) -> list[str]:
        """See `Lessons`."""
        return [self._verdict(good) for good in (True, False)]

    def rewriting(self, task: Task, way: Direction) -> tuple[str, str]:
        """See `Lessons`."""
        return self._family.describe(task.copy()), self._family.rewrite(task.copy(), way, self._config.seed)

    def policy_rows(self, chat_model: ChatModel) -> list[list[Row]]:
        """See `Lessons`."""
        return [
            [
                _row(step.prompt_ids, step.prompt_images, step.response_ids)
                for step in self._steps(chat_model, task, demo, demo)
            ]
            for task, demo in zip(self.tasks, self.demos, strict=True)
        ]

    def reward_rows(self, chat_model: ChatModel, labels: bool) -> list[Row]:
        """See `Lessons`."""
        prompts = self._prompts.for_labels if labels else self._prompts
        judge, rows = Judge(chat_model, prompts, self._config.judge), []
        others = (*self.demos[1:], *self.demos[:1])
        for task, demo, other in zip(self.tasks, self.demos, others, strict=True):
            for good, played in ((True, demo), (False, other)):
                verdict = chat_model.encode_choice(self._verdict(good))
                steps = tuple(self._steps(chat_model, task, demo[:PRACTICE_STEPS], played))
                seen, names = demo[0][0].text, self._names.get(task.task_id, ())
                episode = Trajectory(task.task_id, 0, 0, 0, seen, steps, 1, Status.OK, first_images=names)
                rows += [_row(asked.ids, asked.images, verdict) for asked in judge.asked(episode)]
        return rows

    def _verdict(self, good: bool) -> str:
        reason = "The step fits the task." if good else "The step is for another task."
        return f"{reason} {VERDICTS[self._prompts.verdict_format][good]}"

    def _steps(
        self, chat_model: ChatModel, task: Task, demo: Demonstration, played: Demonstration
    ) -> list[Step]:
        """An episode on what `demo` saw, with the replies of `played`."""
        steps: list[Step] = []
        names = self._names.get(task.task_id, ())
        results = [*(seen.text for seen, _ in demo[1:]), ENDED]
        for (now, _), (_, said), result in zip(demo, played, results, strict=False):
            prompt = next_prompt(chat_model, self._prompts, demo[0][0].text, steps, now, names)
            response = chat_model.encode_choice(said)
            texts = prompt.text, chat_model.decode(response)
            steps.append(Step(prompt.ids, response, (), (), said, True, result, *texts, names, prompt.images))
        return steps


def _row(prompt: tuple[int, ...], images: Sequence[str], response: tuple[int, ...]) -> Row:
    """One prompt with its pictures, and the reply to learn."""
    (row,) = conversation_rows([Turn(prompt, response)])
    row.images = [*images]
    return row

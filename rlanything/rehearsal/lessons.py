"""What stand-ins learn from: demonstrations, verdicts, critics and rewrites of a family, with the loop's own prompts.

A family with a teacher has exact labels of steps (`TeacherLessons`). A desktop has experts and no labels
(`ExpertLessons`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol, runtime_checkable

from rlanything.config import Config
from rlanything.core.protocols import GeneratedData
from rlanything.core.seeds import derive_seed
from rlanything.core.types import Direction, Observation, Status, Step, Task, Trajectory
from rlanything.learn.packing import Row
from rlanything.learn.supervised import Turn, conversation_rows
from rlanything.loop.chat_model import ChatModel
from rlanything.loop.contexts import next_prompt
from rlanything.loop.prompts import Prompts
from rlanything.rewards.kind import kind_of
from rlanything.rewards.protocols import Demonstration, WarmStart
from rlanything.rewards.requirements import teacher
from rlanything.rewards.step_votes.judge import Judge
from rlanything.rewards.step_votes.lessons import VERDICTS
from rlanything.runs import build

PRACTICE_STEPS = 2
"""Steps of an episode on which the reward model's stand-in is taught: each costs the whole prompt of the policy."""
ENDED = "The episode ended."
"""What an expert's last step is answered with in a lesson."""


class Lessons(Protocol):
    """What the stand-ins of one rehearsal are taught. tasks: known by heart; demos: one of each of them."""

    tasks: Sequence[Task]
    demos: Sequence[Demonstration]

    def critic(self, task: Task) -> str:
        """An invented criticism of failed attempts at the task."""
        ...

    def corpus(self) -> list[str]:
        """Texts for the tokenizer of what the reward model reads and writes."""
        ...

    def rewriting(self, task: Task, way: Direction) -> tuple[str, str]:
        """(facts, reply) of a rewrite. Raises `InvalidProposal` where there is none in that direction."""
        ...

    def reward_rows(self, chat_model: ChatModel) -> list[Row]:
        """What the reward model learns from."""
        ...


@runtime_checkable
class Expert(Protocol):
    """A family without an oracle of steps, whose tasks come with experts and rewrites."""

    def demonstration(self, task: Task) -> list[tuple[Observation, str]]:
        """(observation, reply of a policy) pairs that solve the task."""
        ...

    def rewrite(self, task: Task, direction: Direction, seed: int) -> str:
        """A reply that `parse` accepts and that makes the task harder or easier. Raises `InvalidProposal`."""
        ...

    def describe(self, task: Task) -> str:
        """As in `core.protocols.TaskFamily`."""
        ...


class TeacherLessons:
    """`Lessons` of a family that generates tasks and labels their steps.

    family: of a generated world, whose teacher the stand-ins learn from. tasks: those of the rehearsal itself.
    """

    def __init__(self, config: Config, root: Path, family: GeneratedData, tasks: Sequence[Task]) -> None:
        self._seed = config.seed
        self._family = family
        # A fresh model writes no command; constrained to commands, it acts at random, sometimes rightly.
        practice = config.rollout.model_copy(update={"decoding": "constrained", "max_steps": PRACTICE_STEPS})
        acting = config.model_copy(update={"rollout": practice})
        self._taught: WarmStart = kind_of(config).warm_start(acting, family, build.prompts(config, root))
        self.tasks = tasks
        steps = config.rollout.max_steps
        self.demos = [
            teacher(family).demonstrate(task, derive_seed(config.seed, "rehearse", task.task_id), 0.0)[:steps]
            for task in tasks
        ]

    def critic(self, task: Task) -> str:
        """See `Lessons`."""
        return self._taught.critic(task, self._seed)

    def corpus(self) -> list[str]:
        """See `Lessons`."""
        return self._taught.corpus(self.tasks, self.demos)

    def rewriting(self, task: Task, way: Direction) -> tuple[str, str]:
        """See `Lessons`."""
        return self._family.rewriting(task, way, self._seed)

    def reward_rows(self, chat_model: ChatModel) -> list[Row]:
        """See `Lessons`."""
        return self._taught.rows(chat_model, self.tasks)


class ExpertLessons:
    """`Lessons` of a family with experts alone. Nobody labels steps there, so labels are invented.

    A step of the expert is called right. The same question with a step of another task's expert is called wrong.
    """

    def __init__(self, config: Config, prompts: Prompts, family: Expert, tasks: Sequence[Task]) -> None:
        self._config, self._prompts, self._family = config, prompts, family
        self.tasks = tasks
        self.demos = [family.demonstration(task)[: config.rollout.max_steps] for task in tasks]

    def critic(self, task: Task) -> str:
        """See `Lessons`."""
        return "The first step was not what the task asks for."

    def corpus(self) -> list[str]:
        """See `Lessons`."""
        return [self._verdict(good) for good in (True, False)]

    def rewriting(self, task: Task, way: Direction) -> tuple[str, str]:
        """See `Lessons`."""
        return self._family.describe(task), self._family.rewrite(task, way, self._config.seed)

    def reward_rows(self, chat_model: ChatModel) -> list[Row]:
        """See `Lessons`."""
        judge = Judge(chat_model, self._prompts, self._config.judge)
        rows = []
        for task, demo, other in zip(self.tasks, self.demos, self._others(), strict=True):
            for good, played in ((True, demo), (False, other)):
                for question in judge.questions(self._episode(chat_model, task, demo, played)):
                    turn = Turn(question, chat_model.encode_choice(self._verdict(good)))
                    rows += conversation_rows([turn])
        return rows

    def _others(self) -> Iterator[Demonstration]:
        """For each demonstration that of another task."""
        yield from (*self.demos[1:], self.demos[0])

    def _verdict(self, good: bool) -> str:
        reason = "The step fits the task." if good else "The step is for another task."
        return f"{reason} {VERDICTS[self._prompts.verdict_format][good]}"

    def _episode(
        self, chat_model: ChatModel, task: Task, demo: Demonstration, played: Demonstration
    ) -> Trajectory:
        """The first steps of an episode of `task` with the replies of `played`."""
        steps: list[Step] = []
        results = [*(seen.text for seen, _ in demo[1:]), ENDED]
        for (now, _), (_, said), result in zip(demo[:PRACTICE_STEPS], played, results, strict=False):
            prompt = next_prompt(chat_model, self._prompts, demo[0][0].text, steps, now)
            response = chat_model.encode_choice(said)
            texts = prompt.text, chat_model.decode(response)
            steps.append(Step(prompt.ids, response, (), (), said, True, result, *texts))
        return Trajectory(task.task_id, 0, 0, 0, demo[0][0].text, tuple(steps), 1, Status.OK)

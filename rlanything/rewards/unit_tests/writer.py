"""The test writer: a language model writes m unit tests for a task, and the environment runs programs on them.

The reward model of the coding setting (paper, appendix C).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rlanything.config import JudgeConfig
from rlanything.core.coding_signals import consistent
from rlanything.core.seeds import derive_seed
from rlanything.core.thoughts import after_thought
from rlanything.core.types import Completion, Lesson, Request, Task
from rlanything.core.unittests import Examiner, Tables, UnitTest
from rlanything.loop.chat_model import ChatModel
from rlanything.loop.group import Group
from rlanything.loop.prompts import Prompts
from rlanything.loop.share import host_of, shared


@dataclass(frozen=True, slots=True)
class Attempts:
    """A task, the observation that opens its episodes, and the answers that were given to it."""

    task: Task
    opening: str
    answers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Examined:
    """The tests written for a task, and the results of its programs. It implements `core.types.Question`.

    prompt_ids: what the reward model read; empty where it was not asked.
    agreed: whether the task's own tests agree: a known solution passes them all, or two different programs do.
    criticism: what `Examiner.criticism` says about the tables.
    lesson: what the tests teach the reward model; None: nothing.
    """

    prompt_ids: tuple[int, ...]
    tests: tuple[UnitTest, ...]
    tables: Tables
    agreed: bool
    criticism: str
    lesson: Lesson | None = None

    @property
    def images(self) -> tuple[str, ...]:
        """None: programs are text."""
        return ()

    @property
    def replies(self) -> tuple[UnitTest, ...]:
        """The tests."""
        return self.tests


def tests_agree(family: Examiner, attempts: Attempts, tables: Tables) -> bool:
    """Whether the task's own tests agree: a known solution passes them all, or two different programs do."""
    programs = [family.program(attempts.task.copy(), answer) for answer in attempts.answers]
    return family.proven(attempts.task.copy()) or consistent(tables.dataset, programs)


def examined(group: Group) -> Examined:
    """The group's findings. Raises `TypeError` for a group whose programs were not examined."""
    if not isinstance(group.findings, Examined):
        raise TypeError(f"slot {group.slot}: no tests were run on its programs")
    return group.findings


class UnitTestWriter:
    """Asks one language model for tests, and one family to run programs on them."""

    def __init__(self, reward: ChatModel, prompts: Prompts, config: JudgeConfig, family: Examiner) -> None:
        self.reward = reward
        self.prompts = prompts
        self.config = config
        self.family = family

    def examine(
        self,
        work: Sequence[Attempts],
        run_seed: int,
        iteration: int,
        *,
        phase: str = "write",
        write: bool = True,
    ) -> list[Examined]:
        """`judge.m` tests for each task (none with `write=False`), run on its answers.

        The processes of a run divide the tasks among them. Exceptions of the family, whose sandbox may fail, are
        passed on.
        """
        samples = self.config.m if write else 0
        return shared(work, lambda part: self._examine(part, (run_seed, phase, iteration), samples))

    def failed_tests(self, task: Task, tables: Tables) -> list[dict[int, str]]:
        """For each program, the task's own tests that it fails: number -> text."""
        return self.family.failed_tests(task.copy(), tables)

    def _examine(self, work: Sequence[Attempts], key: tuple[int, str, int], samples: int) -> list[Examined]:
        """The tests of each task, written and run in this process."""
        prompts = [self._question(attempts) if samples else () for attempts in work]
        replies = self._write(work, prompts, key, samples)
        asked = [
            (attempts.task, attempts.answers, [self._answer(reply) for reply in written])
            for attempts, written in zip(work, replies, strict=True)
        ]
        return [
            Examined(
                prompt,
                _tests(written, tables),
                tables,
                tests_agree(self.family, attempts, tables),
                self.family.criticism(attempts.task.copy(), tables),
            )
            for attempts, prompt, written, tables in zip(
                work, prompts, replies, host_of(self.family).examine(asked), strict=True
            )
        ]

    def _answer(self, reply: Completion) -> str:
        """The reply after its thought. It is empty where nothing follows; an empty reply holds no test."""
        return after_thought(self.reward.decode(reply.ids)) or ""

    def _write(
        self,
        work: Sequence[Attempts],
        prompts: Sequence[tuple[int, ...]],
        key: tuple[int, str, int],
        samples: int,
    ) -> list[list[Completion]]:
        """The replies for each task; none where there is no prompt."""
        requests = [
            self._request(prompt, attempts.task, key, sample)
            for attempts, prompt in zip(work, prompts, strict=True)
            if prompt
            for sample in range(samples)
        ]
        replies = iter(self.reward.generate(requests))
        return [[next(replies) for _ in range(samples if prompt else 0)] for prompt in prompts]

    def _question(self, attempts: Attempts) -> tuple[int, ...]:
        """The prompt for a test; empty where it does not fit the context."""
        prompt = self.reward.start(self.prompts.test_question(attempts.opening))
        return prompt if len(prompt) + self.config.max_tokens <= self.reward.max_context else ()

    def _request(
        self, prompt: tuple[int, ...], task: Task, key: tuple[int, str, int], sample: int
    ) -> Request:
        run_seed, phase, iteration = key
        seed = derive_seed(run_seed, phase, iteration, task.task_id, sample)
        return Request(prompt, seed, self.config.max_tokens, self.config.temperature)


def _tests(replies: Sequence[Completion], tables: Tables) -> tuple[UnitTest, ...]:
    """The replies, each with the test that was read from it."""
    return tuple(
        UnitTest(text, reply.ids, reply.logprobs) for reply, text in zip(replies, tables.tests, strict=True)
    )

"""Writing unit tests: the reward model of the coding setting, and the programs that its tests are run on.

It reads a problem and writes a test, m times (paper, appendix C). What the tests say about the programs, and the
programs about the tests, the environment finds out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from rlanything.config import JudgeConfig
from rlanything.core.coding_signals import consistent
from rlanything.core.records import judgements_from_json, judgements_to_json
from rlanything.core.seeds import derive_seed
from rlanything.core.types import Json, Judgement, Request, Task, Vote
from rlanything.core.unittests import Examiner, Tables
from rlanything.loop.prompts import Prompts
from rlanything.loop.share import shared
from rlanything.loop.speaker import Speaker


@dataclass(frozen=True, slots=True)
class Attempts:
    """A task, what its reader sees of it, and the answers that were given to it."""

    task: Task
    opening: str
    answers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Examined:
    """The replies to the question for a test, and what came of the tests.

    judgement: its votes are the replies: no verdict; `reasoning` is the test as it was read, '' where there is none.
    agreed: whether the task's own tests agree with each other: a known solution passes them, or two programs do.
    criticism: what `Examiner` says about the tables.
    """

    judgement: Judgement
    tables: Tables
    agreed: bool
    criticism: str

    def to_json(self) -> dict[str, Json]:
        """As a JSON object."""
        return {
            "judgement": judgements_to_json([self.judgement])[0],
            "tables": self.tables.to_json(),
            "agreed": self.agreed,
            "criticism": self.criticism,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Json]) -> Examined:
        """Inverse of `to_json`. Raises `KeyError`, `TypeError` or `ValueError` for a record that is none."""
        judgement = judgements_from_json([data["judgement"]])[0]
        return cls(judgement, Tables.from_json(data["tables"]), data["agreed"], data["criticism"])


class UnitTestWriter:
    """Asks one reward model for tests, and one family what becomes of them."""

    def __init__(self, reward: Speaker, prompts: Prompts, config: JudgeConfig, family: Examiner) -> None:
        self.reward = reward
        self.prompts = prompts
        self.config = config
        self.family = family

    def run(
        self,
        work: Sequence[Attempts],
        run_seed: int,
        iteration: int,
        *,
        phase: str = "write",
        write: bool = True,
    ) -> list[Examined]:
        """`judge.m` tests for each task (none with `write=False`), run on its answers.

        The processes of a run divide the tasks among them. Raises what the family raises when its sandbox cannot run.
        """
        samples = self.config.m if write else 0
        return shared(work, lambda part: self._run(part, (run_seed, phase, iteration), samples))

    def _run(self, work: Sequence[Attempts], key: tuple[int, str, int], samples: int) -> list[Examined]:
        """The tests of each task, written and run in this process."""
        judgements = self._written(work, key, samples)
        asked = [
            (attempts.task, attempts.answers, [self.reward.decode(v.response_ids) for v in judgement.votes])
            for attempts, judgement in zip(work, judgements, strict=True)
        ]
        return [
            Examined(
                _named(judgement, tables.tests),
                tables,
                self._agreed(attempts, tables),
                self.family.criticism(attempts.task, tables),
            )
            for attempts, judgement, tables in zip(work, judgements, self.family.examine(asked), strict=True)
        ]

    def _agreed(self, attempts: Attempts, tables: Tables) -> bool:
        programs = [self.family.program(attempts.task, answer) for answer in attempts.answers]
        return self.family.proven(attempts.task) or consistent(tables.dataset, programs)

    def _written(self, work: Sequence[Attempts], key: tuple[int, str, int], samples: int) -> list[Judgement]:
        """The replies for each task; none where the question does not fit the context."""
        prompts = [self._question(attempts) if samples else () for attempts in work]
        requests = [
            self._request(prompt, attempts.task, key, sample)
            for attempts, prompt in zip(work, prompts, strict=True)
            if prompt
            for sample in range(samples)
        ]
        replies = (Vote(None, "", r.ids, r.logprobs) for r in self.reward.generate(requests))
        return [Judgement(p, tuple(next(replies) for _ in range(samples if p else 0))) for p in prompts]

    def _question(self, attempts: Attempts) -> tuple[int, ...]:
        prompt = self.reward.start(self.prompts.test_question(attempts.opening))
        return prompt if len(prompt) + self.config.max_tokens <= self.reward.max_context else ()

    def _request(
        self, prompt: tuple[int, ...], task: Task, key: tuple[int, str, int], sample: int
    ) -> Request:
        run_seed, phase, iteration = key
        seed = derive_seed(run_seed, phase, iteration, task.task_id, sample)
        return Request(prompt, seed, self.config.max_tokens, self.config.temperature)


def _named(judgement: Judgement, tests: Sequence[str]) -> Judgement:
    """The judgement, its replies beside the tests that were read in them."""
    votes = zip(judgement.votes, tests, strict=True)
    return replace(judgement, votes=tuple(replace(vote, reasoning=test) for vote, test in votes))

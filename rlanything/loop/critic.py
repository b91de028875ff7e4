"""The critic: a language model summarises every failed rollout of a task that is to be rewritten (paper, appendix C).

It reads the whole rollout, with the index of every step and a mark on the steps that the votes call wrong. With two
stages, it first summarises each marked step, from the step and the votes' reasons, and then the rollout from these
summaries. Where no step of a rollout has a summary, the rollout is summarised from its steps.

A rollout that is too long for the context loses steps: the marked ones are kept first, then the newest. The prompt says
how many are left out, and so does the record.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace

from typing_extensions import TypedDict

from rlanything.config import AdaptationConfig
from rlanything.core.records.forms import Count, Form, Integer, Text
from rlanything.core.seeds import derive_seed
from rlanything.core.types import Json, Task
from rlanything.loop.chat_model import ChatModel
from rlanything.loop.metrics import mean
from rlanything.loop.prompts import Prompts
from rlanything.loop.reward_model import CriticInput, FailedRollout, FailedStep
from rlanything.loop.summaries import by_importance, read_summary, rollout_text

CRITICS = "critics"
"""The name of the critic's records in a run. A run has them where the critic is a model."""
NOTHING_FAILED = "no rollout failed"
"""What the critic says about a task that every rollout solved: only failed rollouts are summarised."""
TOO_LONG = "the question does not fit the critic's context"


class _Critique(TypedDict):
    rollout: Integer
    step: Integer | None
    seed: Integer
    left_out: Count
    reply: Text
    summary: Text
    reason: Text


class _Record(TypedDict):
    slot: Integer
    task_id: Text
    text: Text
    critiques: list[_Critique]


_CRITIQUE, _RECORD = Form(_Critique), Form(_Record)


@dataclass(frozen=True, slots=True)
class Critique:
    """One sample of the critic. step: the number of the step that it is about; None: the whole rollout.

    left_out: steps that the prompt had no room for. reason: why there is no summary, '' where there is one.
    """

    rollout: int
    step: int | None
    seed: int
    left_out: int
    reply: str
    summary: str
    reason: str

    @classmethod
    def from_json(cls, data: Mapping[str, Json]) -> Critique:
        """Read a stored critique. Raises `ValueError` for a record of another form."""
        _CRITIQUE.check(data)
        return cls(**{field.name: data[field.name] for field in fields(cls)})


@dataclass(frozen=True, slots=True)
class Criticism:
    """What the critic says about a task. text: what the adapter reads. critiques: the samples behind the text."""

    text: str
    critiques: tuple[Critique, ...] = ()

    @classmethod
    def of(cls, given: CriticInput, critiques: Sequence[Critique]) -> Criticism:
        """The summary of each failed rollout, and the number of failed rollouts without one."""
        if not given.failures:
            return cls(NOTHING_FAILED)
        rollouts = [critique for critique in critiques if critique.step is None]
        lines = [f"rollout {c.rollout}: {c.summary}" for c in rollouts if c.summary]
        missing = len(rollouts) - len(lines)
        if missing:
            lines.append(f"no readable summary of {missing} of {len(rollouts)} failed rollouts")
        return cls("\n".join(lines), tuple(critiques))

    def read_again(self, given: CriticInput) -> Criticism:
        """The criticism, computed again from the stored replies, so that a replay can check the text."""
        return Criticism.of(given, [c if c.reason == TOO_LONG else _read(c) for c in self.critiques])


@dataclass(frozen=True)
class CriticRecord:
    """What the critic said about the task of one slot. A run stores it where a model was asked."""

    slot: int
    task_id: str
    criticism: Criticism

    def to_json(self) -> dict[str, Json]:
        """As a JSON object."""
        critiques = [asdict(critique) for critique in self.criticism.critiques]
        return {
            "slot": self.slot,
            "task_id": self.task_id,
            "text": self.criticism.text,
            "critiques": critiques,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Json]) -> CriticRecord:
        """Inverse of `to_json`. Raises `ValueError` for a record of another form."""
        _RECORD.check(data)
        critiques = tuple(Critique.from_json(item) for item in data["critiques"])
        return cls(data["slot"], data["task_id"], Criticism(data["text"], critiques))


@dataclass(frozen=True, slots=True)
class _Question:
    """A question to the critic. text: the prompt, '' where none fits. about: the critique that the reply completes."""

    text: str
    about: Critique


class Critic:
    """Asks one language model about failed rollouts. With critic=extractive, it uses `CriticInput.extract` instead."""

    def __init__(self, chat_model: ChatModel, prompts: Prompts, config: AdaptationConfig) -> None:
        self.chat_model = chat_model
        self.prompts = prompts
        self.config = config

    def criticise(
        self, tasks: Sequence[Task], inputs: Sequence[CriticInput], run_seed: int, iteration: int
    ) -> list[Criticism]:
        """One criticism for each task."""
        if self.config.critic == "extractive":
            return [Criticism(given.extract) for given in inputs]
        work = [
            (task, failed) for task, given in zip(tasks, inputs, strict=True) for failed in given.failures
        ]
        key = (run_seed, iteration)
        steps = self._steps(work, key) if self.config.critic_stages == 2 else [[] for _ in work]
        shown = [_summarised(failed, found) for (_, failed), found in zip(work, steps, strict=True)]
        questions = [
            self._about_rollout(task, failed, key) for (task, _), failed in zip(work, shown, strict=True)
        ]
        rollouts = self._ask(questions)
        found = iter([[*step, rollout] for step, rollout in zip(steps, rollouts, strict=True)])
        return [Criticism.of(given, [c for _ in given.failures for c in next(found)]) for given in inputs]

    def _steps(
        self, work: Sequence[tuple[Task, FailedRollout]], key: tuple[int, int]
    ) -> list[list[Critique]]:
        """A summary of each marked step of each rollout (the first of two stages)."""
        marked = [[step for step in failed.steps if step.wrong] for _, failed in work]
        questions = [
            self._about_step(task, failed.rollout, step, key)
            for (task, failed), steps in zip(work, marked, strict=True)
            for step in steps
        ]
        found = iter(self._ask(questions))
        return [[next(found) for _ in steps] for steps in marked]

    def _about_step(self, task: Task, rollout: int, step: FailedStep, key: tuple[int, int]) -> _Question:
        run_seed, iteration = key
        seed = derive_seed(run_seed, "critic-step", iteration, task.task_id, rollout, step.number)
        text = self.prompts.fill("critic_step", task=task.instruction, step=step.text, reasons=step.reasons)
        return _Question(text, Critique(rollout, step.number, seed, 0, "", "", ""))

    def _about_rollout(self, task: Task, failed: FailedRollout, key: tuple[int, int]) -> _Question:
        run_seed, iteration = key
        seed = derive_seed(run_seed, "critic", iteration, task.task_id, failed.rollout)
        steps = by_importance(failed)
        kept = self._kept(task, failed, steps)
        text = "" if kept is None else self._text(task, failed, kept)
        left_out = len(steps) - len(kept or ())
        return _Question(text, Critique(failed.rollout, None, seed, left_out, "", "", ""))

    def _kept(self, task: Task, failed: FailedRollout, steps: Sequence[int]) -> Sequence[int] | None:
        """The longest beginning of `steps` (most important first) that fits the context; None where no step fits."""
        if self._fits(task, failed, steps):
            return steps
        fewer = range(1, len(steps))
        count = bisect_left(fewer, True, key=lambda n: not self._fits(task, failed, steps[:n]))
        return steps[:count] or None

    def _fits(self, task: Task, failed: FailedRollout, kept: Sequence[int]) -> bool:
        return self.chat_model.fits(self._text(task, failed, kept), self.config.max_tokens)

    def _text(self, task: Task, failed: FailedRollout, kept: Sequence[int]) -> str:
        steps = rollout_text(failed, frozenset(kept))
        return self.prompts.fill("critic", task=task.instruction, steps=steps)

    def _ask(self, questions: Sequence[_Question]) -> list[Critique]:
        """The critiques with their replies. Where the question does not fit the context, the reason is `TOO_LONG`."""
        asked = [question for question in questions if question.text]
        texts, seeds = [q.text for q in asked], [q.about.seed for q in asked]
        replies = iter(self.chat_model.answers(texts, seeds, self.config.max_tokens, self.config.temperature))
        return [_answered(q.about, next(replies) if q.text else None) for q in questions]


def critic_metrics(records: Sequence[CriticRecord]) -> dict[str, float]:
    """How many samples of the critic there were, and the share without a summary (nan for no samples)."""
    unread = [float(not critique.summary) for record in records for critique in record.criticism.critiques]
    return {"critiques": float(len(unread)), "unreadable_critiques": mean(unread)}


def _answered(about: Critique, reply: str | None) -> Critique:
    return replace(about, reason=TOO_LONG) if reply is None else _read(replace(about, reply=reply))


def _read(critique: Critique) -> Critique:
    summary, reason = read_summary(critique.reply)
    return replace(critique, summary=summary, reason=reason)


def _summarised(failed: FailedRollout, found: Sequence[Critique]) -> FailedRollout:
    """The rollout reduced to its marked steps, with their summaries as text; unchanged where no step has a summary."""
    summaries = {critique.step: critique.summary for critique in found}
    if not any(summaries.values()):
        return failed
    steps = [replace(s, text=summaries[s.number] or s.text) for s in failed.steps if s.number in summaries]
    return replace(failed, steps=tuple(steps))

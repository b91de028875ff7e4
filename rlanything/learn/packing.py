"""Experience as training rows: the tokens that were read and sampled. Nothing is re-tokenised.

Policy: turns share a row while each prompt begins with exactly the previous prompt and response. Otherwise a new row
starts. Reward model: a judged trajectory is one row with the form of a tree. The trunk holds the tokens that
several questions share. The question of each step branches off where it differs from the trunk. Its m votes branch off
the question. A tree with more tokens than a forward pass may take is cut into several: first between questions, then
between the replies to one question. Questions that show pictures have a tree each.

Shape letters: T tokens of a row, N targets (sampled tokens that train), K allowed ids at a target.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from rlanything.core.seeds import derive_seed
from rlanything.core.types import Question, ScoredReplies, ScoredTrajectory
from rlanything.engines.prompt_trunks import common_prefix

LossWeight = Literal["token", "step", "trajectory"]
NO_BRANCH = -1


@dataclass(slots=True)
class Row:
    """One sequence for one forward pass. Lists of length T, then lists of length N.

    A token t attends to trunk tokens before `limit[t]`, to the question tokens of its own `question`, and to tokens of
    its own `vote`; always causally. Rows without branches have question = vote = NO_BRANCH everywhere.
    """

    ids: list[int] = field(default_factory=list)
    positions: list[int] = field(default_factory=list)
    limit: list[int] = field(default_factory=list)
    question: list[int] = field(default_factory=list)
    vote: list[int] = field(default_factory=list)
    source: list[int] = field(default_factory=list)
    """Index of the token whose hidden state predicts the target."""
    target: list[int] = field(default_factory=list)
    allowed: list[tuple[int, ...]] = field(default_factory=list)
    old: list[float] = field(default_factory=list)
    """Log-prob of the target in the denominator of the ratio."""
    reference: list[float] = field(default_factory=list)
    """Log-prob of the target under the model that the KL term compares with."""
    advantage: list[float] = field(default_factory=list)
    weight: list[float] = field(default_factory=list)
    images: list[str] = field(default_factory=list)
    """The names of the pictures that its tokens stand for, in their order. They come before the first branch."""

    @property
    def branched(self) -> bool:
        """Whether the row is a tree and needs an explicit attention mask."""
        return self.question[-1] != NO_BRANCH

    def read(self, ids: Sequence[int], start: int, limit: int | None, question: int, vote: int) -> None:
        """Append tokens at positions `start`, `start` + 1, ... limit None: each token sees all tokens before it."""
        for offset, token in enumerate(ids):
            self.limit.append(len(self.ids) + 1 if limit is None else limit)
            self.ids.append(token)
            self.positions.append(start + offset)
            self.question.append(question)
            self.vote.append(vote)

    def learn(
        self, source: int, token: int, allowed: tuple[int, ...], old: float, advantage: float, weight: float
    ) -> None:
        """Append one target: `token`, predicted at index `source`."""
        self.source.append(source)
        self.target.append(token)
        self.allowed.append(allowed)
        self.old.append(old)
        self.reference.append(old)
        self.advantage.append(advantage)
        self.weight.append(weight)


def idle_row() -> Row:
    """A row of one token that teaches nothing: its target has the weight 0."""
    row = Row()
    row.read([0], 0, None, NO_BRANCH, NO_BRANCH)
    row.learn(0, 0, (), 0.0, 0.0, 0.0)
    return row


def policy_rows(lesson: ScoredTrajectory, loss_weight: LossWeight) -> list[Row]:
    """Rows of one trajectory. The targets are the sampled tokens that were a choice (`decisions`).

    Tokens that constrained decoding forced (one allowed id) are no targets. The weight of a target by `loss_weight`:
    token: 1; step: 1 / targets of its step; trajectory: 1 / targets of the trajectory.
    """
    rows: list[Row] = []
    row = Row()
    decided = [decisions(s.response_ids, s.allowed) for s in lesson.trajectory.steps]
    total = sum(len(d) for d in decided)
    for step, advantage, targets in zip(lesson.trajectory.steps, lesson.advantages, decided, strict=True):
        shown = list(step.prompt_images)
        if row.ids != list(step.prompt_ids[: len(row.ids)]) or row.images != shown[: len(row.images)]:
            rows.append(row)
            row = Row()
        row.images = shown
        fresh = step.prompt_ids[len(row.ids) :]
        row.read(fresh, len(row.ids), None, NO_BRANCH, NO_BRANCH)
        base = len(row.ids) - 1
        row.read(step.response_ids, len(row.ids), None, NO_BRANCH, NO_BRANCH)
        weight = _weight(loss_weight, len(targets), total)
        for t in targets:
            allowed = step.allowed[t] if step.allowed else ()
            row.learn(base + t, step.response_ids[t], allowed, step.logprobs[t], advantage, weight)
    return [r for r in [*rows, row] if r.target]


def reward_rows(lesson: ScoredReplies, loss_weight: LossWeight, most: int | None = None) -> list[Row]:
    """The tree of one judged trajectory, cut into several rows where it is too large. Empty when no vote trains.

    The weight of a lesson is that of each token with `loss_weight` token. Otherwise the tokens of a vote share it.
    most: the most tokens of a row. None: no limit. A larger tree is halved between two questions. One question is
    halved between the replies that train, and each row repeats its prompt. One reply with its prompt is never cut.
    """
    count = len(lesson.questions)
    if count > 1 and any(question.images for question in lesson.questions):
        alone = [lesson.part(k, k + 1) for k in range(count)]  # equal ids may stand for other pictures
        return [row for one in alone for row in reward_rows(one, loss_weight, most)]
    row = _tree(lesson, loss_weight)
    if most is not None and len(row.ids) > most:
        rows = [cut for half in _halves(lesson) for cut in reward_rows(half, loss_weight, most)]
        return rows or _trained(row)
    return _trained(row)


def _trained(row: Row) -> list[Row]:
    return [row] if row.target else []


def _halves(lesson: ScoredReplies) -> list[ScoredReplies]:
    """The lesson in two parts; none where it has one question and at most one reply that trains."""
    count = len(lesson.questions)
    if count > 1:
        return [lesson.part(0, count // 2), lesson.part(count // 2, count)]
    ((question, advantages),) = zip(lesson.questions, lesson.advantages, strict=True)
    training = [
        j for j, given in enumerate(advantages) if given is not None and question.replies[j].response_ids
    ]
    if len(training) < 2:
        return []
    cut = training[len(training) // 2]
    first = tuple(a if j < cut else None for j, a in enumerate(advantages))
    second = tuple(a if j >= cut else None for j, a in enumerate(advantages))
    return [replace(lesson, advantages=(part,)) for part in (first, second)]


def _tree(lesson: ScoredReplies, loss_weight: LossWeight) -> Row:
    """One row for all questions of a lesson."""
    row = Row(images=[name for question in lesson.questions for name in question.images])
    trunk = max((q.prompt_ids for q in lesson.questions), key=len, default=())
    # A prompt keeps at least one token of its own to predict from.
    forks = [common_prefix(trunk, q.prompt_ids[:-1]) for q in lesson.questions]
    row.read(trunk[: max(forks, default=0)], 0, None, NO_BRANCH, NO_BRANCH)
    for k, (question, advantages) in enumerate(zip(lesson.questions, lesson.advantages, strict=True)):
        _branch(row, question, forks[k], k, advantages, lesson.weights[k], loss_weight)
    return row


def _branch(
    row: Row,
    question: Question,
    fork: int,
    number: int,
    advantages: Sequence[float | None],
    weight: float,
    loss_weight: LossWeight,
) -> None:
    """Append a question and those of its replies that train."""
    row.read(question.prompt_ids[fork:], fork, fork, number, NO_BRANCH)
    asked = len(row.ids) - 1
    for j, (reply, advantage) in enumerate(zip(question.replies, advantages, strict=True)):
        if advantage is None or not reply.response_ids:
            continue
        first = len(row.ids)
        row.read(reply.response_ids[:-1], len(question.prompt_ids), fork, number, j)
        share = weight if loss_weight == "token" else weight / len(reply.response_ids)
        for t, (token, old) in enumerate(zip(reply.response_ids, reply.logprobs, strict=True)):
            row.learn(asked if t == 0 else first + t - 1, token, (), old, advantage, share)


def minibatches(
    rows: Sequence[Sequence[Row]], updates: int, run_seed: int, iteration: int, name: str
) -> list[list[Row]]:
    """Split units into at most `updates` minibatches. In each, the weights are scaled to sum to 1.

    rows: the units; all rows of a unit (a trajectory) stay together. The order is drawn from the seed. No minibatch is
    empty, so fewer units than updates give fewer minibatches.
    """
    order = sorted(range(len(rows)), key=lambda k: derive_seed(run_seed, "minibatch", iteration, name, k))
    chunks = [order[k::updates] for k in range(updates)]
    result = []
    for chunk in chunks:
        batch = [row for k in chunk for row in rows[k]]
        total = sum(sum(row.weight) for row in batch)
        if total <= 0.0:
            continue
        for row in batch:
            row.weight = [w / total for w in row.weight]
        result.append(batch)
    return result


def micro_batches(rows: Sequence[Row], tokens: int) -> list[list[Row]]:
    """Rows of similar length together, at most `tokens` tokens with padding. A longer row is alone.

    Trees and rows without branches are never together.
    """
    result: list[list[Row]] = []
    for row in sorted(rows, key=lambda r: len(r.ids)):
        if (
            result
            and len(row.ids) * (len(result[-1]) + 1) <= tokens
            and result[-1][0].branched == row.branched
        ):
            result[-1].append(row)
        else:
            result.append([row])
    return result


def decisions(response: Sequence[int], allowed: Sequence[tuple[int, ...]]) -> list[int]:
    """Indexes of the response tokens that were a choice."""
    return [t for t in range(len(response)) if not allowed or len(allowed[t]) > 1]


def _weight(kind: LossWeight, step_tokens: int, trajectory_tokens: int) -> float:
    if kind == "token":
        return 1.0
    return 1.0 / max(1, step_tokens if kind == "step" else trajectory_tokens)

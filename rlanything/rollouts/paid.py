"""What the votes pay for: kinds of steps at the start and at the end of training, what votes said, what trained.

A policy that learns from votes takes more of the steps that they pay for, good or not. A kind of bad steps that grows
and has a positive advantage is what it exploits.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from rlanything.buffer.views.terminal import Screen, aligned, heading, lay_out, plain
from rlanything.core.errors import ConfigError
from rlanything.core.printable import safe
from rlanything.core.signals import mean_vote
from rlanything.core.types import Json
from rlanything.loop.group import compared
from rlanything.loop.record import EpisodeRecord
from rlanything.repro.stored import StoredIteration
from rlanything.rollouts.environment import Knowledge
from rlanything.rollouts.judged import oracle_of, voting
from rlanything.rollouts.runs import NamedRun

WORD = 20
"""Characters of an action's first word that are kept. A model wrote it."""
LEAST = 0.01
"""A kind with a smaller share of the steps, at the start and at the end, has no line in the text."""
VALUES = ("a_rollout", "vote", "advantage", "alike")


class Kind(NamedTuple):
    """good: the environment's label. reason: why, in its words. word: the first one of the action."""

    good: bool
    reason: str
    word: str


@dataclass
class Paid:
    """Sums over the steps of a kind. alike: those steps that only tries with equal outcomes have."""

    steps: int = 0
    voted: int = 0
    votes: float = 0.0
    advantages: float = 0.0
    alike: int = 0
    alike_advantages: float = 0.0

    def means(self, rollouts: int) -> dict[str, float | None]:
        """Steps a rollout. Means over steps: of the mean vote, and of the advantage, also on those that are alike."""
        return {
            "a_rollout": self.steps / rollouts,
            "vote": self.votes / self.voted if self.voted else None,
            "advantage": self.advantages / self.steps if self.steps else None,
            "alike": self.alike_advantages / self.alike if self.alike else None,
        }


def paid(name: str, root: Path, *, environment: bool | None = None) -> Json:
    """The page: every kind of steps, in the first and in the last quarter of the iterations.

    The runs that `name` means are taken together. Rollouts of rewrites on trial and of tasks that the oracle does not
    know, and failures of the environment, are not counted. An advantage that did not train counts as 0.

    Args:
        name: an arm, a run or its folder.
        root: the project. Its configuration says whether the run's environment is asked.
        environment: True asks the run's environment in any case, False never.

    Raises:
        ConfigError: for runs of several arms, for one without votes or rollouts, and where the environment has no
            oracle or is not asked.
    """
    runs, iterations = voting(name, root)
    if len(iterations) < 2:
        raise ConfigError(
            f"{name}: has rollouts of one iteration; the start of training is compared with its end"
        )
    oracles = [oracle_of(run, root, environment) for run in runs]
    quarter = max(1, len(iterations) // 4)
    spans = (iterations[:quarter], iterations[-quarter:])
    counted = [_count(runs, oracles, span) for span in spans]
    kinds = sorted({kind for found, _ in counted for kind in found}, key=lambda k: _order(k, counted))
    return {
        "name": name,
        "runs": [run.name for run in runs],
        "spans": [[span[0], span[-1]] for span in spans],
        "rollouts": [rollouts for _, rollouts in counted],
        "rows": [
            {
                **kind._asdict(),
                "spans": [found.get(kind, Paid()).means(rollouts) for found, rollouts in counted],
            }
            for kind in kinds
        ],
    }


def text(page: Json, screen: Screen) -> str:
    """The page as a table, without rare kinds."""
    totals = [sum(row["spans"][k]["a_rollout"] for row in page["rows"]) for k in (0, 1)]
    shown = [
        row
        for row in page["rows"]
        if any(span["a_rollout"] >= LEAST * total for span, total in zip(row["spans"], totals, strict=True))
    ]
    names = [
        "",
        "step",
        *(part for title in ("a rollout", "vote", "advantage", "alike") for part in (title, "->")),
    ]
    rows = [
        [
            "good" if row["good"] else "bad",
            safe(f"{row['word']}: {row['reason']}"),
            *(_number(span[key], signed=key != "a_rollout") for key in VALUES for span in row["spans"]),
        ]
        for row in shown
    ]
    first, last = ("{} to {}".format(*span) for span in page["spans"])
    top = [
        heading(f"what the votes of {page['name']} pay for"),
        plain(safe(f"{', '.join(page['runs'])}; iterations {first} -> {last}")),
        plain(
            "a rollout: steps; vote, advantage: means; alike: advantage where all tries with that step end alike"
        ),
    ]
    return lay_out(top, screen) + "".join(aligned(names, rows, set(range(2, len(names))), screen))


def _count(
    runs: Sequence[NamedRun], oracles: Sequence[Knowledge], iterations: Sequence[int]
) -> tuple[dict[Kind, Paid], int]:
    """The kinds of steps of some iterations, and the number of rollouts."""
    found: defaultdict[Kind, Paid] = defaultdict(Paid)
    rollouts = 0
    for run, oracle in zip(runs, oracles, strict=True):
        for iteration in iterations:
            stored = StoredIteration(run.stored, iteration)
            records = [r for r in stored.episodes if compared(r.episode) and not r.proposal]
            outcomes = outcomes_of(records)
            for record in records:
                trajectory = record.episode.trajectory
                kinds = _kinds(oracle, stored, record)
                if oracle.problem:
                    raise ConfigError(f"{run.name}, iteration {iteration}: {oracle.problem}")
                rollouts += bool(kinds)
                for step, kind in enumerate(kinds):
                    alike = len(outcomes[trajectory.slot, trajectory.task_id, step]) == 1
                    _add(found[kind], record, step, alike)
    if not rollouts:
        span = f"{iterations[0]} to {iterations[-1]}"
        raise ConfigError(
            f"{runs[0].name}: no rollout of iterations {span} counts and is known to the oracle"
        )
    return found, rollouts


def outcomes_of(records: Sequence[EpisodeRecord]) -> dict[tuple[int, str, int], set[int]]:
    """The outcomes of the tries that have a step, by slot, task and index of the step."""
    found: defaultdict[tuple[int, str, int], set[int]] = defaultdict(set)
    for record in records:
        tried = record.episode.trajectory
        for step in range(len(tried.steps)):
            found[tried.slot, tried.task_id, step].add(tried.outcome)
    return found


def _kinds(oracle: Knowledge, stored: StoredIteration, record: EpisodeRecord) -> list[Kind]:
    """The kind of each step; none where the oracle does not know."""
    trajectory = record.episode.trajectory
    facts = oracle.of(stored.tasks.get(trajectory.task_id), trajectory, play=False)
    if not all("good" in fact for fact in facts):
        return []
    words = ["".join(step.action.split()[:1])[:WORD] for step in trajectory.steps]
    return [Kind(fact["good"], fact["reason"], word) for fact, word in zip(facts, words, strict=True)]


def _add(into: Paid, record: EpisodeRecord, step: int, alike: bool) -> None:
    episode = record.episode
    verdicts = [v.verdict for j in episode.judgements[step : step + 1] for v in j.votes]
    advantage = (episode.advantages or (0.0,) * len(episode.trajectory.steps))[step]
    into.steps += 1
    into.advantages += advantage
    if any(verdict is not None for verdict in verdicts):
        into.voted += 1
        into.votes += mean_vote(verdicts)
    if alike:
        into.alike += 1
        into.alike_advantages += advantage


def _order(kind: Kind, counted: Sequence[tuple[dict[Kind, Paid], int]]) -> tuple[float, Kind]:
    """The kinds that are frequent first, whenever they are."""
    return -max(found[kind].steps / rollouts for found, rollouts in counted if kind in found), kind


def _number(value: float | None, *, signed: bool) -> str:
    if value is None:
        return "-"
    return f"{value:+.2f}" if signed else f"{value:.2f}"

"""One iteration as JSON values: its tasks with their rollouts, and apart from them the tokens, which are large."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rlanything.core.types import Task
from rlanything.repro.stored import StoredIteration
from rlanything.rollouts import select
from rlanything.rollouts.environment import Knowledge
from rlanything.rollouts.page import rollout_page
from rlanything.rollouts.runs import NamedRun
from rlanything.rollouts.select import Chosen, Tries
from rlanything.view.screens import files, point, screens
from rlanything.view.tokens import Tokens, read_ahead

_OF_GROUP = ("slot", "task", "rewrite", "accuracy", "tests")
_OF_ROLLOUT = ("rollout", "outcome", "status", "error", "trains_policy", "why_not", "first_observation")
_LEFT_OUT = ("prompt", "prompt_tokens", "response_tokens", "step", "images")
"""Of a step: what stands with the tokens, and the pictures, which stand with the rollout."""


@dataclass(frozen=True)
class IterationPage:
    """groups: one a task, with its rollouts. tokens: what `Tokens.page` returns. notes: what could not be shown.

    pictures: name -> file of those that the rollouts show."""

    iteration: int
    groups: Sequence[Mapping[str, Any]]
    tokens: Mapping[str, Any]
    notes: Sequence[str]
    pictures: Mapping[str, Path] = field(default_factory=dict)


def iteration_page(run: NamedRun, iteration: int, known: Knowledge) -> IterationPage:
    """The whole iteration. Raises `ConfigError` naming the file and line that cannot be read."""
    stored = StoredIteration(run.stored, iteration)
    read_ahead(run, stored.episodes)
    tokens, notes = Tokens(run), dict[str, None]()
    groups = [_group(run, stored, tries, known, tokens, notes) for tries in select.grouped(stored)]
    notes |= dict.fromkeys(filter(None, [known.problem, *tokens.problems]))
    run.decoded.clear()
    shown = files(run, [rollout for group in groups for rollout in group["rollouts"]])
    return IterationPage(iteration, groups, tokens.page(), list(notes), shown)


def _group(
    run: NamedRun,
    stored: StoredIteration,
    tries: Tries,
    known: Knowledge,
    tokens: Tokens,
    notes: dict[str, None],
) -> dict[str, Any]:
    rollouts = []
    for record in tries.records:
        page = rollout_page(run, Chosen(stored, tries, record, (), (), ()))
        notes |= dict.fromkeys(page["notes"])
        rollouts.append(_rollout(page, stored.tasks.get(page["task"]["task_id"]), known, record.episode))
        tokens.add(tries.slot, tries.proposal, record.episode, page["steps"])
    return {
        **{name: page[name] for name in _OF_GROUP},
        "proposal": tries.proposal,
        "rollouts": rollouts,
    }


def _rollout(page: Mapping[str, Any], task: Task | None, known: Knowledge, episode: Any) -> dict[str, Any]:
    (beside,) = [row for row in page["rollouts"] if row["rollout"] == page["rollout"]]
    facts, seen = known.of(task, episode.trajectory), screens(page)
    steps = [
        {**{name: value for name, value in step.items() if name not in _LEFT_OUT}, **fact}
        for step, fact in zip(page["steps"], facts, strict=True)
    ]
    for step, before in zip(steps, seen, strict=False):
        step["point"] = point(step["action"], before)
    return {
        **{name: page[name] for name in _OF_ROLLOUT},
        "reward": beside["reward"],
        "advantage": beside["advantage"],
        "steps": steps,
        **({"screens": seen} if seen else {}),
    }

"""One rollout as a page of plain JSON values, which the terminal and `--json` show."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rlanything.buffer import Event
from rlanything.core.types import DECISIONS, Episode, Json, Step
from rlanything.loop.metrics import mean_or_none
from rlanything.rewards.kind import name_of
from rlanything.rollouts import unit_tests, votes
from rlanything.rollouts.decoding import Texts, decode
from rlanything.rollouts.pictures import pictures
from rlanything.rollouts.runs import NamedRun, Terms
from rlanything.rollouts.select import Chosen, Tries

EXPLAIN: Mapping[str, Callable[[NamedRun, Chosen], dict[str, Any]]] = {
    "votes": votes.explain,
    "tests": unit_tests.explain,
}
"""What a kind of reward model adds to a page, by the kind's name (`rewards.kind.KINDS`)."""


def rollout_page(run: NamedRun, chosen: Chosen, others: Sequence[str] = ()) -> dict[str, Any]:
    """The whole page. others: the names of the runs that could be shown instead."""
    episode, terms = chosen.record.episode, run.terms
    trajectory = episode.trajectory
    read = decode(run, "policy", sequences(trajectory.steps))
    kind = EXPLAIN[name_of(terms)](run, chosen)
    return {
        "run": run.name,
        "state": "finished" if run.finished else "in training",
        "iteration": chosen.stored.iteration,
        "slot": trajectory.slot,
        "rollout": trajectory.rollout,
        "selectable": _selectable(chosen, others or [run.name]),
        "task": _task(chosen),
        "rewrite": _rewrite(chosen),
        **_terms(terms),
        "accuracy": chosen.tries.accuracy,
        "rollouts": _rollouts(chosen.tries, terms, kind),
        "outcome": trajectory.outcome,
        "status": trajectory.status.value,
        "error": trajectory.error,
        "staleness": None if trajectory.version is None else chosen.stored.iteration - trajectory.version,
        "trains_policy": episode.advantages is not None,
        "why_not": why_not(chosen, terms, kind),
        "first_observation": trajectory.first_observation,
        "first_images": pictures(run, trajectory.first_images),
        "steps": [
            {**step, **found, "images": pictures(run, taken.images)}
            for step, found, taken in zip(_steps(episode, read), kind["steps"], trajectory.steps, strict=True)
        ],
        "tests": kind.get("tests"),
        "notes": [note for note in (read.problem, *kind["notes"]) if note],
    }


def why_not(chosen: Chosen, terms: Terms, kind: Mapping[str, Any]) -> str:
    """Why the rollout does not train the policy, in the order of the loop; '' where it trains.

    kind: what `EXPLAIN` gives.
    """
    record, signals = chosen.record, terms.signals
    if record.episode.advantages is not None:
        return ""
    if not record.trains:
        return "its rewrite was rejected" if record.proposal else "its task was replaced (dynamic sampling)"
    if not record.episode.trajectory.counts:
        return "the environment failed"
    if not record.episode.trajectory.steps:
        return "it has no step"
    found = chosen.tries.accuracy
    if terms.arm.outcome and (found is None or not signals.policy_min <= found <= signals.policy_max):
        return "the task's accuracy is outside signals.policy_min to signals.policy_max"
    if kind["steps"][0]["reward"] is None:
        return "one of the task's own tests could not be run on its program"
    return "all its advantages are 0"


def _terms(terms: Terms) -> dict[str, Json]:
    """By what replies became rewards."""
    return {
        "writes": name_of(terms),
        "lambda": terms.arm.lambda_of(terms.signals),
        "consistency_lambda": terms.signals.consistency_lambda,
        "uses_outcome": terms.arm.outcome,
        "trains_reward_model": terms.arm.train_reward,
    }


def _steps(episode: Episode, texts: Texts) -> list[dict[str, Any]]:
    steps = episode.trajectory.steps
    pairs = zip(steps, (None, *steps), strict=False)
    return [_step(step, before, episode, k, texts) for k, (step, before) in enumerate(pairs)]


def _step(step: Step, before: Step | None, episode: Episode, k: int, texts: Texts) -> dict[str, Any]:
    """What was read and written in a step. prompt: what the step's prompt adds to what was read and written before."""
    return {
        "step": k,
        "prompt": texts.of(_added(step, before)),
        "prompt_tokens": len(step.prompt_ids),
        "response": texts.of(step.response_ids),
        "response_tokens": len(step.response_ids),
        "action": step.action,
        "valid": step.valid,
        "observation": step.observation,
        "advantage": None if episode.advantages is None else episode.advantages[k],
    }


def sequences(steps: Sequence[Step]) -> list[tuple[int, ...]]:
    """The token sequences that the page of an episode shows as text."""
    pairs = zip(steps, (None, *steps), strict=False)
    return [ids for step, before in pairs for ids in (step.response_ids, _added(step, before))]


def _added(step: Step, before: Step | None) -> tuple[int, ...]:
    """The prompt without what the turn before read and wrote; the whole prompt where it does not begin with that."""
    seen = () if before is None else before.prompt_ids + before.response_ids
    return step.prompt_ids[len(seen) :] if step.prompt_ids[: len(seen)] == seen else step.prompt_ids


def _selectable(chosen: Chosen, runs: Sequence[str]) -> dict[str, Json]:
    return {
        "runs": list(runs),
        "iterations": list(chosen.iterations),
        "slots": list(chosen.slots),
        "rollouts": list(chosen.rollouts),
    }


def _task(chosen: Chosen) -> dict[str, Json]:
    """The task with its payload, from the buffer or the event that proposed it; its id alone if it is in neither."""
    task_id = chosen.record.episode.trajectory.task_id
    found = chosen.stored.tasks.get(task_id)
    return {"task_id": task_id, "instruction": ""} if found is None else found.to_json()


def _rewrite(chosen: Chosen) -> dict[str, Json] | None:
    """Of a rewrite that was tried: in which direction, and what was decided; None for another task."""
    if not chosen.tries.proposal:
        return None
    for event in chosen.stored.run.events(chosen.stored.iteration):
        if event.slot == chosen.tries.slot and event.kind in DECISIONS:
            return _decision(event)
    return {"direction": None, "decision": "unknown", "reason": ""}


def _decision(event: Event) -> dict[str, Json]:
    return {"direction": event.direction.value, "decision": event.kind.value, "reason": event.reason}


def _rollouts(tries: Tries, terms: Terms, kind: Mapping[str, Any]) -> list[dict[str, Json]]:
    """The rollouts of the task beside each other: reward (the mean of a rollout's steps) and advantages."""
    tests = kind.get("tests")
    paid = {row["rollout"]: row["reward"] for row in tests["programs"]} if tests else {}
    return [
        {
            "rollout": record.episode.trajectory.rollout,
            "outcome": record.episode.trajectory.outcome,
            "status": record.episode.trajectory.status.value,
            "steps": len(record.episode.trajectory.steps),
            "reward": paid.get(record.episode.trajectory.rollout)
            if tests
            else votes.reward_of(record, terms),
            "advantage": mean_or_none(record.episode.advantages or ()),
            "trains": record.episode.advantages is not None,
        }
        for record in tries.records
    ]

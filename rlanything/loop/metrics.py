"""Metrics of an iteration: episodes, training data, adaptation. Metrics of the reward model are in `rewards`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import nan

from rlanything.buffer import Event, TaskBuffer
from rlanything.config import Config
from rlanything.core.errors import MachineError
from rlanything.core.types import EventKind, ScoredReplies, Status, Trajectory
from rlanything.loop.group import CONTEXT_FULL, Group

PATIENCE = 3
"""A warning is given when a problem lasts this many iterations in a row."""
RAISED = "the environment raised"
"""How the reason of an invalid proposal begins at which a method of the environment raised an exception."""


def iteration_metrics(
    config: Config,
    groups: Sequence[Group],
    events: Sequence[Event],
    buffer: TaskBuffer,
    policy_lessons: int,
    reward_lessons: Sequence[ScoredReplies],
) -> dict[str, float]:
    """Metrics by name; nan where nothing was measured."""
    heads = [g for g in groups if g.proposal is None]
    measured = [g.accuracy for g in heads if g.accuracy is not None]
    low, high = config.adaptation.alpha_low, config.adaptation.alpha_high
    statuses = Counter(t.status for g in groups for t in g.trajectories)
    counted = [t for g in groups for t in g.trajectories if t.counts]
    steps = [s for t in counted for s in t.steps]
    return {
        "accuracy": mean(measured),
        "band_coverage": mean([float(low <= a <= high) for a in measured]),
        "episode_steps": mean([float(len(t.steps)) for t in counted]),
        "response_tokens": mean([float(len(s.response_ids)) for s in steps]),
        "invalid_actions": mean([float(not s.valid) for s in steps]),
        "context_full": mean([float(t.error == CONTEXT_FULL) for t in counted]),
        "policy_tokens": float(_sampled(groups)),
        "rolled_out_tasks": float(len(groups)),
        "tasks_with_spread": float(sum(g.has_spread for g in groups)),
        "policy_trajectories": float(policy_lessons),
        "reward_steps": float(sum(len(lesson.questions) for lesson in reward_lessons)),
        **{f"status/{status.value}": float(statuses[status]) for status in Status},
        **adaptation_metrics(events, buffer),
        **accepted_accuracy(groups, buffer),
    }


def _sampled(groups: Sequence[Group]) -> int:
    """The tokens of all steps, of episodes that crashed too. The reply at which an environment crashed is no step."""
    return sum(len(s.response_ids) for g in groups for t in g.trajectories for s in t.steps)


def staleness_metrics(trajectories: Sequence[Trajectory], iteration: int, bound: int) -> dict[str, float]:
    """How old the weights were that sampled the episodes of an iteration, in iterations; empty with `bound` 0.

    Raises `MachineError` for an episode that is older than `bound`, or younger than the iteration.
    """
    if not bound:
        return {}
    ages = [iteration - (iteration if t.version is None else t.version) for t in trajectories]
    for trajectory, age in zip(trajectories, ages, strict=True):
        if not 0 <= age <= bound:
            raise MachineError(
                f"iteration {iteration}, slot {trajectory.slot}, rollout {trajectory.rollout}: weights of version "
                f"{trajectory.version} sampled it, and train.staleness = {bound} allows {iteration - bound} to "
                f"{iteration}. Nothing is learned from it; what is published stays"
            )
    return {"staleness": mean([float(age) for age in ages])}


def accepted_accuracy(groups: Sequence[Group], buffer: TaskBuffer) -> dict[str, float]:
    """Mean accuracy on the accepted rewrites that were rolled out; empty without any.

    Rewrites that this iteration accepted are included.
    """
    found = [g.accuracy for g in groups if g.accuracy is not None and _accepted(g, buffer)]
    return {"accepted_accuracy": mean(found)} if found else {}


def _accepted(group: Group, buffer: TaskBuffer) -> bool:
    """Whether the group's task became a version of its slot."""
    return any(version.task.task_id == group.task.task_id for version in buffer.versions(group.slot)[1:])


def adaptation_metrics(events: Sequence[Event], buffer: TaskBuffer) -> dict[str, float]:
    """Counts and rates of this iteration's events, and the number of tasks accepted so far.

    `proposal_errors` is there only where the environment raised an exception.
    """
    kinds = Counter(e.kind for e in events)
    decided = kinds[EventKind.ACCEPTED] + kinds[EventKind.REJECTED]
    asked = kinds[EventKind.PROPOSED] + kinds[EventKind.INVALID]
    raised = sum(e.kind is EventKind.INVALID and e.reason.startswith(RAISED) for e in events)
    return {
        "accepted_total": float(buffer.accepted),
        "accepted": float(kinds[EventKind.ACCEPTED]),
        "accept_rate": kinds[EventKind.ACCEPTED] / decided if decided else nan,
        "proposals": float(asked),
        "invalid_proposals": kinds[EventKind.INVALID] / asked if asked else nan,
        **({"proposal_errors": float(raised)} if raised else {}),
    }


def last_values(history: Sequence[Mapping[str, float | None]], key: str, count: int) -> list[float]:
    """A metric in the last `count` iterations; empty unless it was measured in all of them."""
    values = [value for row in history[-count:] if (value := row.get(key)) is not None and value == value]
    return values if len(values) == count else []


def warnings(history: Sequence[Mapping[str, float | None]], patience: int = PATIENCE) -> list[str]:
    """Messages about problems of the policy's training and its tasks, from the metrics so far (None: not measured)."""
    return [*_learns_nothing(history, patience), *_raised(history)]


def _raised(history: Sequence[Mapping[str, float | None]]) -> list[str]:
    """In any iteration: such an exception is a defect of the environment, and does not end the run."""
    count = history[-1].get("proposal_errors") if history else None
    if not count:
        return []
    return [
        f"the environment raised an exception at {count:.0f} of the adapter's rewrites, in `describe`, `parse`, "
        "`validate` or `exercise`. They count as invalid proposals; `rlanything buffer log RUN` has the exceptions."
    ]


def _learns_nothing(history: Sequence[Mapping[str, float | None]], patience: int) -> list[str]:
    """Whether no trajectory has trained the policy."""
    trained = last_values(history, "policy_trajectories", patience)
    if not trained or max(trained) > 0.0:
        return []
    if not any(_counted(row) for row in history[-patience:]):
        return [
            f"the policy learns nothing: every episode of the last {patience} iterations crashed or timed out. The "
            "stored rollouts have each one's error (`rlanything rollouts show`)."
        ]
    return [
        f"the policy learns nothing: no trajectory trained it for {patience} iterations. The rewards of each task were "
        "all alike, or no task was inside signals.policy_min and policy_max. Check both and how hard the tasks are."
    ]


def _counted(row: Mapping[str, float | None]) -> bool:
    """Whether an episode of the iteration ended without a crash; also where the metrics do not say how any ended."""
    ended = [row.get(f"status/{status.value}") for status in (Status.OK, Status.TRUNCATED)]
    return any(count is None or count > 0.0 for count in ended)


def mean(values: Sequence[float]) -> float:
    """Mean; nan for no values."""
    return sum(values) / len(values) if values else nan


def mean_or_none(values: Iterable[float | None]) -> float | None:
    """Mean of those that are known; None without any."""
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None

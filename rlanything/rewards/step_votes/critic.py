"""The input of the critic where the reward model votes on steps: the steps that the votes call wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Literal

from rlanything.core.types import Episode, Judgement, Status, Trajectory
from rlanything.loop.group import CONTEXT_FULL, Group
from rlanything.loop.reward_model import CriticInput, FailedRollout, FailedStep

Marked = Literal["all", "any"]
"""Which steps are marked: those that all valid votes call wrong (text), or those that any vote calls wrong (GUI)."""
NAMED = 3
"""How many reasons a criticism names."""


def critic_input(group: Group, rule: Marked) -> CriticInput:
    """The most frequent reasons for the marked steps of all episodes, and the failed episodes with these marks."""
    marked = [step for episode in group.episodes for step in marked_steps(episode, rule)]
    failed = [e for e in group.episodes if e.trajectory.failed]
    return CriticInput(summarise(marked), tuple(failed_rollout(episode, rule) for episode in failed))


def marked_steps(episode: Episode, rule: Marked) -> list[tuple[str, str]]:
    """(action, first reason) of the marked steps."""
    pairs = zip(episode.trajectory.steps, episode.judgements, strict=False)
    return [(step.action, reasons[0]) for step, judged in pairs if (reasons := objections(judged, rule))]


def objections(judgement: Judgement, rule: Marked) -> list[str]:
    """The reasons of the votes against a step that the rule marks; empty where it does not mark the step."""
    valid = [vote for vote in judgement.votes if vote.verdict is not None]
    against = [vote.reasoning for vote in valid if vote.verdict == -1]
    return [] if rule == "all" and len(against) < len(valid) else against


def failed_rollout(episode: Episode, rule: Marked) -> FailedRollout:
    """The episode as a critic reads it. Steps without votes (their question did not fit the context) have no mark."""
    trajectory = episode.trajectory
    unjudged = [Judgement((), ())] * (len(trajectory.steps) - len(episode.judgements))
    reasons = [objections(judged, rule) for judged in (*episode.judgements, *unjudged)]
    steps = [
        FailedStep(
            number,
            f"action: {step.action}\nobservation: {step.observation}",
            bool(against),
            "\n".join(f"- {reason or 'no reason'}" for reason in against),
        )
        for number, (step, against) in enumerate(zip(trajectory.steps, reasons, strict=True))
    ]
    return FailedRollout(trajectory.rollout, trajectory.first_observation, tuple(steps), _ending(trajectory))


def summarise(steps: Sequence[tuple[str, str]]) -> str:
    """The most frequent reasons for the marked steps, with counts. Equally frequent reasons are in alphabetical order.

    steps: (action, reason) of each marked step.
    """
    counts = Counter(reason or "no reason" for _, reason in steps)
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:NAMED]
    return "; ".join(f"{reason} x{count}" for reason, count in ranked) or "nothing was criticised"


def _ending(trajectory: Trajectory) -> str:
    if trajectory.status is not Status.TRUNCATED:
        end = "the environment ended the episode"
    elif trajectory.error == CONTEXT_FULL:
        end = CONTEXT_FULL
    else:  # another error is of closing the environment, after the end
        end = "the step limit is reached"
    return f"The task is not done after {len(trajectory.steps)} steps: {end}."

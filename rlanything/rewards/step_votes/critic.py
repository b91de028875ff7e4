"""The critic of a task: the reasons for the steps that the reward model called wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from rlanything.core.types import Episode
from rlanything.loop.reward_model import CriticInput


def critic_input(steps: Sequence[tuple[str, str]]) -> CriticInput:
    """From marked steps: (action, reasoning)."""
    return CriticInput(summarise(steps), listed(steps))


def marked_steps(episode: Episode) -> list[tuple[str, str]]:
    """(action, reasoning) of the steps that every valid vote calls wrong (the paper's rule for text environments)."""
    marked = []
    for step, judgement in zip(episode.trajectory.steps, episode.judgements, strict=False):
        valid = [v for v in judgement.votes if v.verdict is not None]
        if valid and all(v.verdict == -1 for v in valid):
            marked.append((step.action, valid[0].reasoning))
    return marked


def summarise(steps: Sequence[tuple[str, str]], most: int = 3) -> str:
    """The most frequent reasons of the marked steps, with counts; deterministic."""
    counts = Counter(reason or "no reason" for _, reason in steps)
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:most]
    return "; ".join(f"{reason} x{count}" for reason, count in ranked) or "nothing was criticised"


def listed(steps: Sequence[tuple[str, str]]) -> str:
    """The marked steps, one a line, for a model that summarises them."""
    return "\n".join(f"- {action}: {reason}" for action, reason in steps) or "- no step was criticised"

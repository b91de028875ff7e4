"""What is said about the rollouts of a task to who rewrites it: reasons of the steps that were called wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from rlanything.core.types import Judgement, Trajectory


@dataclass(frozen=True, slots=True)
class Remarks:
    """`extracted`: a finished text. `listed`: what a model can summarise instead of it."""

    extracted: str
    listed: str

    @classmethod
    def of(cls, steps: Sequence[tuple[str, str]]) -> Remarks:
        """About marked steps: (action, reasoning)."""
        return cls(summarise(steps), listed(steps))


def marked_steps(trajectory: Trajectory, judgements: Sequence[Judgement]) -> list[tuple[str, str]]:
    """(action, reasoning) of the steps that every valid vote calls wrong (the paper's rule for text environments)."""
    marked = []
    for step, judgement in zip(trajectory.steps, judgements, strict=False):
        valid = [v for v in judgement.votes if v.verdict is not None]
        if valid and all(v.verdict == -1 for v in valid):
            marked.append((step.action, valid[0].reasoning))
    return marked


def summarise(steps: Sequence[tuple[str, str]], most: int = 3) -> str:
    """An extractive critic: the most frequent reasons of the marked steps, with counts; deterministic."""
    counts = Counter(reason or "no reason" for _, reason in steps)
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:most]
    return "; ".join(f"{reason} x{count}" for reason, count in ranked) or "nothing was criticised"


def listed(steps: Sequence[tuple[str, str]]) -> str:
    """The marked steps, one a line, for a model that summarises them."""
    return "\n".join(f"- {action}: {reason}" for action, reason in steps) or "- no step was criticised"

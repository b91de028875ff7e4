"""What no sampling gives: an id that was not allowed, a log-prob above 0, another one of the only id that was allowed.

A replay takes tokens as they are stored. Whether a model would have sampled them, only the model can say. This is what
can be said without one.
"""

from __future__ import annotations

from collections.abc import Sequence

from rlanything.core.types import Episode

ROUNDING = 1e-3
"""The log-prob of a probability of 1 may be so far from 0: low precision rounds."""


def impossible(episode: Episode) -> str:
    """A message about the first token of an episode that cannot have been sampled; '' for none."""
    for number, step in enumerate(episode.trajectory.steps):
        for place, (token, allowed) in enumerate(zip(step.response_ids, step.allowed, strict=False)):
            if allowed and token not in allowed:
                return (
                    f"step {number}, token {place}: id {token} is not among the {len(allowed)} allowed ones"
                )
            if len(allowed) == 1 and (logprob := step.logprobs[place]) < -ROUNDING:
                return (
                    f"step {number}, token {place}: its log-prob is {logprob:g}, and no other id was allowed"
                )
        if wrong := _above_zero(step.logprobs):
            return f"step {number}, {wrong}"
    for number, judgement in enumerate(episode.judgements):
        for sample, vote in enumerate(judgement.votes):
            if wrong := _above_zero(vote.logprobs):
                return f"step {number}, vote {sample}, {wrong}"
    return ""


def _above_zero(logprobs: Sequence[float]) -> str:
    for place, value in enumerate(logprobs):
        if value > ROUNDING:
            return f"token {place}: its log-prob is {value:g}, and no probability is above 1"
    return ""

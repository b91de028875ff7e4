"""The rewrites that a finished run rolled out, and the acceptance rules that could have decided on them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Literal, get_args

from pydantic import BaseModel, ConfigDict

from rlanything.buffer import Event
from rlanything.checks.shares import Share
from rlanything.core.adaptation import AcceptanceRule, accepts
from rlanything.core.types import DECISIONS, Direction, EventKind

Rule = Literal["none", "inclusive", "strict", "paired", "refused"]
"""none: every rewrite. refused: what `strict` refuses. The others are those of `adaptation.acceptance`."""
RULES: tuple[Rule, ...] = get_args(Rule)


class Rewrite(BaseModel):
    """A rewrite q' of a task q that was rolled out, with what the run measured.

    old, new: ids of q and q'. before: acc(q) in the iteration in which the rewrite was asked for. after: acc(q') in the
    next one.
    """

    model_config = ConfigDict(frozen=True)

    old: str
    new: str
    direction: Direction
    before: float
    after: float

    @property
    def sign(self) -> int:
        """1 where the accuracy should rise, -1 where it should fall."""
        return 1 if self.direction is Direction.EASIER else -1


def rewrites(events: Iterable[Event]) -> list[Rewrite]:
    """The rewrites of a run, in the order in which they were decided. Those whose rollouts all crashed are left out."""
    asked: dict[int, float] = {}
    found = []
    for event in events:
        if event.kind is EventKind.PROPOSED:
            asked[event.slot] = event.parent_accuracy
        elif event.kind in DECISIONS:
            before = asked.pop(event.slot, event.parent_accuracy)
            if event.task is not None and event.accuracy is not None:
                found.append(
                    Rewrite(
                        old=event.parent_id,
                        new=event.task.task_id,
                        direction=event.direction,
                        before=before,
                        after=event.accuracy,
                    )
                )
    return found


def decides(rule: str, rewrite: Rewrite, band: AcceptanceRule, again: Mapping[str, Share]) -> bool:
    """Whether a rule accepts a rewrite. again: task id -> the further rollouts on which `paired` decides."""
    band = replace(band, acceptance="inclusive" if rule == "inclusive" else "strict")
    before, after = rewrite.before, rewrite.after
    if rule == "none":
        return True
    if rule == "paired":
        old, new = again[rewrite.old], again[rewrite.new]
        if not old[1] or not new[1]:
            return False
        before, after = old[0] / old[1], new[0] / new[1]
    return accepts(rewrite.direction, before, after, band) is not (rule == "refused")


def inside(accuracy: float, band: AcceptanceRule) -> bool:
    """Whether a task of this accuracy is neither too hard nor too easy."""
    return band.alpha_low <= accuracy <= band.alpha_high

"""Configurations of rehearsals, as small as they go."""

from __future__ import annotations

from stage_cases import ROOT

from rlanything.config import parse
from rlanything.planning import compose

SMALL = (
    "tasks.train=4",
    "tasks.panels.in_domain.tasks=1",
    "tasks.panels.out_of_domain.tasks=1",
    "tasks.panels.reward_panel.tasks=1",
    "rollout.max_steps=2",
)
GUI = ("env=desktop", "tasks.train=2", *(f"tasks.panels.{p}.tasks=1" for p in ("in_domain", "reward_panel")))


def rehearsal(*overrides: str):
    return parse(compose.compose(["scale=rehearsal", *SMALL, *overrides], ROOT))

"""The splits of the generated worlds: the distributions that their tasks are drawn from."""

from __future__ import annotations

from rlanything.core.splits import PRACTICE, TRAIN

IN_DOMAIN = "in_domain"
OUT_OF_DOMAIN = "out_of_domain"
REWARD_PANEL = "reward_panel"
"""Out of domain as well, and apart from those tasks: for the reward model."""
SPLITS = (TRAIN, IN_DOMAIN, OUT_OF_DOMAIN, REWARD_PANEL)
FAMILIAR = (TRAIN, IN_DOMAIN)
"""Splits whose tasks come from the training distribution; those of the others do not."""
HELD_OUT = "held_out"
"""Tasks of the kinds that are held out of training, otherwise as in domain."""
DRAWN_AS = {PRACTICE: TRAIN, HELD_OUT: IN_DOMAIN}
"""A split that exists where kinds are held out -> the one whose tasks its own are like, but for their kind."""

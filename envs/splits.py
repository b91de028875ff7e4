"""The splits of the generated worlds: the distributions that their tasks are drawn from."""

from __future__ import annotations

from rlanything.core.splits import TRAIN

IN_DOMAIN = "in_domain"
OUT_OF_DOMAIN = "out_of_domain"
REWARD_PANEL = "reward_panel"
"""Out of domain as well, and apart from those tasks: for the reward model."""
SPLITS = (TRAIN, IN_DOMAIN, OUT_OF_DOMAIN, REWARD_PANEL)
FAMILIAR = (TRAIN, IN_DOMAIN)
"""Splits whose tasks come from the training distribution; those of the others do not."""

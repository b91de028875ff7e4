"""The task splits: one to train on, and three frozen panels to measure on."""

from __future__ import annotations

TRAIN = "train"
IN_DOMAIN = "in_domain"
OUT_OF_DOMAIN = "out_of_domain"
REWARD_PANEL = "reward_panel"
"""The reward model is measured on what the base policy did in these tasks."""
POLICY_PANELS = (IN_DOMAIN, OUT_OF_DOMAIN)
"""The policy is measured on these tasks."""
PANELS = (*POLICY_PANELS, REWARD_PANEL)
"""Frozen: their tasks are made once and never adapted."""
SPLITS = (TRAIN, *PANELS)
"""Every split, in the order in which its tasks are made."""
FAMILIAR = (TRAIN, IN_DOMAIN)
"""Splits whose tasks come from the training distribution; those of the others do not."""

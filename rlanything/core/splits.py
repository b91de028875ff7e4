"""The names of task sets: the split that is trained on, and the frozen panels that the configuration declares.

A split is a distribution that the environment makes tasks of. A panel is a number of tasks of one split, made once and
never adapted, on which the policy, the reward model or both are measured.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import TypeVar

Value = TypeVar("Value")

TRAIN = "train"
"""The split that is trained on."""
POLICY = "policy"
"""`measures`: the policy plays these tasks."""
REWARD = "reward"
"""`measures`: the reward model is measured on what the base policy did in these tasks."""
PANEL_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,49}")
"""A panel names files, metrics and keys of the configuration."""
RESERVED = frozenset(
    {
        *(TRAIN, "cost"),
        *("rm_process", "rm_process_plain", "rm_outcome", "ut", "detect", "accepted_tasks"),
        *("episode_steps", "success_within", "solvable", "labels"),
        *("panel_success", "p_plus", "p_minus", "mu", "good_steps"),
        *("tokens", "train_accuracy", "band_coverage", "accepted_accuracy", "response_tokens", "mean_vote"),
        *("train_ut", "train_detect", "invalid_tests"),
    }
)
"""No panel has one of these names: a file, a metric or a key of the results has it."""


def on_panel(name: str, panel: str, panels: Collection[str]) -> str:
    """The name of a metric of the reward model on one of `panels`: `ut`, and with several `ut/<panel>`."""
    return name if len(panels) == 1 else f"{name}/{panel}"


def keyed(found: Mapping[str, Value], panel: str, panels: Collection[str]) -> dict[str, Value]:
    """The results on one panel, each by its name among those of all `panels`."""
    return {on_panel(name, panel, panels): value for name, value in found.items()}

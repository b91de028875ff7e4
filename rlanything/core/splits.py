"""The names of task sets: the split that is trained on, and the frozen panels that the configuration declares.

A split is a distribution that the environment draws tasks from. A panel is a fixed set of tasks of one split. It is
made once and never adapted. The policy, the reward model or both are measured on it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import TypeVar

Value = TypeVar("Value")

TRAIN = "train"
"""The split that is trained on."""
PRACTICE = "practice"
"""The split that embedded base models learn from, where an environment has one; otherwise they learn from `train`."""
POLICY = "policy"
"""`measures`: the policy plays these tasks."""
REWARD = "reward"
"""`measures`: the reward model is measured on the base policy's trajectories of these tasks."""
PANEL_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,49}")
"""The form of a panel's name, which is part of file names, metrics and configuration keys."""
RESERVED = frozenset(
    {
        *(TRAIN, "cost"),
        *("rm_process", "rm_process_plain", "rm_pairwise", "rm_outcome", "ut", "detect", "accepted_tasks"),
        *("episode_steps", "success_within", "solvable", "labels", "crashed"),
        *("panel_success", "p_plus", "p_minus", "mu", "good_steps"),
        *("tokens", "train_accuracy", "band_coverage", "accepted_accuracy", "response_tokens", "mean_vote"),
        *("train_ut", "train_detect", "invalid_tests"),
    }
)
"""Names that a panel must not have: they are taken by files, metrics or keys of the results."""


def on_panel(name: str, panel: str, panels: Collection[str]) -> str:
    """The name of a reward model's metric on one of `panels`: `ut` if there is one panel, otherwise `ut/<panel>`."""
    return name if len(panels) == 1 else f"{name}/{panel}"


def keyed(found: Mapping[str, Value], panel: str, panels: Collection[str]) -> dict[str, Value]:
    """The results on one panel, with their names changed by `on_panel`."""
    return {on_panel(name, panel, panels): value for name, value in found.items()}

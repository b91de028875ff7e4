"""The smallest experiment, and its commands."""

from __future__ import annotations

from pathlib import Path

from rlanything.cli import main

TINY = [
    *("scale=smoke", "tasks.train=3", "rollout.tasks=1", "rollout.rollouts=2", "rollout.max_steps=2"),
    *(f"tasks.panels.{panel}.tasks=1" for panel in ("in_domain", "out_of_domain", "reward_panel")),
    *(
        f"bootstrap.{role}.{key}"
        for role in ("policy", "reward", "adapter")
        for key in ("episodes=4", "steps=2")
    ),
    *("train.iterations=1", "evaluate.curve_tasks=1", "evaluate.cooling=null", "judge.max_invalid=1"),
    *("evaluate.max_steps=2", "evaluate.reward_rollouts=1", "evaluate.curve_rollouts=1"),
]


def run(project: Path, *words: str) -> int:
    return main(["--root", str(project), *words])

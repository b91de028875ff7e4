"""A made-up coding project in which every hit is known: what its report must say can be worked out by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from report_cases import config, write_evaluation, write_metrics

from rlanything.config import Config

SOLVED = {"base": 1, "outcome": 1, "policy": 2, "policy_reward": 2, "full": 3}
"""Programs of four that solve each problem of the panel in-domain; one less out-of-domain."""
RIGHT = {"base": 4, "outcome": 4, "policy": 4, "policy_reward": 10, "full": 12}
"""Tests of sixteen that every right program passes; half of them reject every wrong one."""
ACCEPTED = {"full": (30, 40, 50)}
TASKS, PROGRAMS, TESTS, SEEDS, ITERATIONS = 10, 4, 16, 3, 12


def coding_config(**changes: Any) -> Config:
    """The small valid configuration, with a reward model that writes tests."""
    env = {"_target_": "envs.coding.family.CodingFamily", "_code_": "envs/coding"}
    return config(env=env, judge={"writes": "tests", "m": 8}, **changes)


def coding_evaluation(arm: str, seeds: int = SEEDS) -> dict[str, Any]:
    """The evaluation file of an arm: every seed and task has the arm's number of hits."""
    return {"arm": arm, "seeds": {str(seed): _seed(arm, seed) for seed in range(seeds)}}


def _seed(arm: str, seed: int) -> dict[str, Any]:
    solved, right = SOLVED[arm], RIGHT[arm]
    return {
        "in_domain": {f"in-{t}": _outcomes(solved) for t in range(TASKS)},
        "out_of_domain": {f"out-{t}": _outcomes(solved - 1) for t in range(TASKS)},
        "ut": {f"rm-{t}": [right, TESTS] for t in range(TASKS)},
        # No program of the last problem is wrong, so nothing of it could have been detected.
        "detect": {f"rm-{t}": [right // 2, TESTS] if t < TASKS - 1 else [0, 0] for t in range(TASKS)},
        "accepted_tasks": ACCEPTED[arm][seed] if arm in ACCEPTED else 0,
    }


def _outcomes(solved: int) -> list[int]:
    return [int(i < solved) for i in range(PROGRAMS)]


def coding_metrics(arm: str) -> list[dict[str, Any]]:
    """The lines of metrics.jsonl: the reward models that train go from the base's UT to their own."""
    return [_line(arm, i) for i in range(ITERATIONS + 1)]


def _line(arm: str, i: int) -> dict[str, Any]:
    right = (RIGHT["base"] + (RIGHT[arm] - RIGHT["base"]) * i / ITERATIONS) / TESTS
    line: dict[str, Any] = {"iteration": i, "accepted_total": 4.0 * i if arm == "full" else 0.0}
    if i < ITERATIONS:
        line |= {"accuracy": 0.4, "band_coverage": 0.5, "proposals": 3.0, "invalid_proposals": 0.0}
    if i < ITERATIONS and arm != "outcome":
        line |= {"tests": 64.0, "invalid_tests": 0.05, "ut": right - 0.02, "detect": right / 2 - 0.02}
    if i % 4 == 0:
        line |= {"panel/in_domain": 0.25 + 0.03 * i, "panel/out_of_domain": 0.05 + 0.02 * i}
    if i % 4 == 0 and (i == 0 or RIGHT[arm] > RIGHT["base"]):
        line |= {"panel/ut": right, "panel/detect": right / 2}
    return line


def coding_project(root: Path, arms: tuple[str, ...] = tuple(SOLVED), seeds: int = SEEDS) -> Path:
    """A whole project with the inputs of the report."""
    for arm in arms:
        write_evaluation(root, coding_evaluation(arm, seeds))
        for seed in range(seeds if arm != "base" else 0):
            write_metrics(root, arm, seed, coding_metrics(arm))
    return root

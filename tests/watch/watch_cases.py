"""Folders as trainings leave them, made in milliseconds: in training, stopped, finished, damaged, hostile."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

EVIL = "\x1b]0;owned\x07\x1b[2J\u202e\r\n[bold]x[/bold]"


def row(iteration: int, /, **values: Any) -> dict[str, Any]:
    """The metrics of an iteration in which nothing is wrong."""
    return {
        "iteration": iteration, "accuracy": 0.5, "band_coverage": 0.6, "mu": 1.3, "votes": 60.0, "invalid_votes": 0.0,
        "status/ok": 20.0, "status/truncated": 4.0, "status/env_error": 0.0, "status/timeout": 0.0,
        "policy_trajectories": 12.0, "tasks_with_spread": 3.0, "rolled_out_tasks": 4.0, "policy_tokens": 500.0,
        "reward_tokens": 300.0, "accepted_total": float(iteration), "accepted": 1.0, "accept_rate": 0.5,
        "proposals": 2.0, "invalid_proposals": 0.0, "panel/in_domain": 0.4, "policy/loss": 0.1, "policy/rows": 8.0,
        **values,
    }  # fmt: skip


def lap(iteration: int) -> dict[str, Any]:
    phases = {
        name: {"seconds": 0.5, "cpu_seconds": 0.4}
        for name in ("rollout", "rollout/generate", "judge", "judge/generate")
    }
    return {"iteration": iteration, "seconds": 2.0, "cpu_seconds": 1.0, "phases": phases, "tokens": 900}


def arm(
    root: Path, name: str = "full", iterations: int = 10, seeds: int = 1, key: str = "0123456789abcdef"
) -> Path:
    """An arm's live folder, without a seed."""
    place = root / ".rla" / "live" / key / name
    place.mkdir(parents=True)
    config = {"train": {"iterations": iterations, "seeds": seeds}, "evaluate": {"curve_tasks": 50}}
    (place / "origin.json").write_text(json.dumps({"config": config}))
    return place


def seed(place: Path, number: int = 0, published: int = 4, **values: Any) -> Path:
    """A seed in training, with so many iterations; values: of all of them."""
    folder = place / f"seed-{number}"
    (folder / "iterations").mkdir(parents=True)
    for k in range(published):
        (folder / "iterations" / f"{k:04d}").mkdir()
        text = json.dumps(row(k, **values))
        (folder / "iterations" / f"{k:04d}" / "metrics.json").write_text(text)
    (folder / "timing.jsonl").write_text("".join(json.dumps(lap(k)) + "\n" for k in range(published)))
    now = {"iteration": published, "phase": "rollout", "calls": 3, "since": 0.0, "at": 0.0}
    (folder / "now.json").write_text(json.dumps(now))
    (folder / "lock").write_text("")
    return folder


def finished(root: Path, name: str = "outcome", iterations: int = 5, number: int = 0) -> Path:
    """A finished run with its times."""
    folder = root / "runs" / name / f"seed-{number}"
    folder.mkdir(parents=True)
    (folder / "metrics.jsonl").write_text("".join(json.dumps(row(k)) + "\n" for k in range(iterations + 1)))
    times = root / ".rla" / "timings" / name
    times.mkdir(parents=True, exist_ok=True)
    (times / f"seed-{number}.jsonl").write_text(
        "".join(json.dumps(lap(k)) + "\n" for k in range(iterations + 1))
    )
    return folder

"""A small run folder's worth of material, and processes that hold or kill it."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

from rlanything.buffer import TaskBuffer, append_events, write_snapshot
from rlanything.config import Config, parse
from rlanything.core.types import Task
from rlanything.files.records import write_json
from rlanything.planning import compose
from rlanything.runs.folder import STATE

ROOT = Path(__file__).parents[2]


def buffer(count: int = 3) -> TaskBuffer:
    return TaskBuffer.start([Task("game", f"do thing {k}", {"k": k}) for k in range(count)])


def write_iteration(folder: Path, iteration: int) -> None:
    """What a run writes for one iteration."""
    write_json(folder / "metrics.json", {"iteration": iteration, "accuracy": iteration / 10})
    append_events(folder / "events.jsonl", ())
    write_snapshot(buffer(), folder / "buffer.jsonl")
    (folder / "rollouts.jsonl.gz").write_bytes(b"rollouts %d" % iteration)
    (folder / STATE).write_bytes(b"state %d" % iteration)


def contents(folder: Path) -> dict[str, bytes]:
    """Every file below a folder."""
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def lines(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


SMALL = (
    "scale=smoke",
    "bootstrap.min_mu=0",
    "bootstrap.policy.episodes=160",
    "bootstrap.policy.steps=60",
    "tasks.panels.in_domain.tasks=2",
    "tasks.panels.out_of_domain.tasks=2",
    "evaluate.curve_tasks=2",
    "rollout.tasks=3",
    "rollout.max_steps=6",
    "evaluate.max_steps=6",
    "signals.reward_min=0",
    "signals.reward_max=1",
    "signals.policy_min=0",
    "signals.policy_max=1",
)


@cache
def small(*overrides: str) -> Config:
    """The smallest configuration that trains everything. It is frozen, and composing it takes a quarter of a second."""
    return parse(compose.compose([*SMALL, *overrides], ROOT))


SMALL_CODING = (
    "env=coding",
    "seed=5",  # with most seeds the small writer writes no right test for the panel
    "scale=smoke",
    "tasks.train=6",
    "tasks.panels.in_domain.tasks=2",
    "tasks.panels.out_of_domain.tasks=2",
    "evaluate.curve_tasks=2",
    "rollout.tasks=3",
    "signals.policy_min=0",
    "signals.policy_max=1",
)


@cache
def small_coding(*overrides: str) -> Config:
    """The same for programs and written tests."""
    return parse(compose.compose([*SMALL_CODING, *overrides], ROOT))

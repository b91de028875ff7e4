"""A project in which checks run: the tiny project's tasks and models, and a declaration."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml
from stage_cases import SMALL

from envs.alfworld.family import AlfworldFamily
from rlanything.buffer import Event, append_events, write_snapshot
from rlanything.buffer.views.find.runs import open_run
from rlanything.core.types import Direction, EventKind
from rlanything.planning import compose

ROOT = Path(__file__).parents[2]
QUICK = [
    *SMALL,
    "train.iterations=1",
    "evaluate.cooling.temperatures=[1.0,0.5]",
    "evaluate.cooling.tasks=2",
]
"""Overrides of a check that takes seconds."""


def project(tiny_project: Path, root: Path, declared: Mapping[str, object]) -> Path:
    """The project at `root`, with the declaration in tiny.yaml."""
    root.mkdir()
    for name in ("data", "models"):
        (root / name).symlink_to(tiny_project / name)
    for name in ("experiments", "envs", "rlanything", "dvc.yaml"):
        (root / name).symlink_to(ROOT / name)
    compose.write(root / "params.yaml", SMALL, root)
    (root / "tiny.yaml").write_text(yaml.safe_dump(dict(declared)))
    return root


def rewrite_tasks(folder: Path) -> None:
    """Let the run in `folder` have rewritten three of its first tasks: it accepted one, and refused two."""
    stored = open_run(folder)
    family, before = AlfworldFamily(), stored.at(0)
    shutil.rmtree(folder / "buffer")
    (folder / "buffer").mkdir()
    events = []
    for slot, kind in enumerate((EventKind.ACCEPTED, EventKind.REJECTED, EventKind.REJECTED)):
        old = before.head(slot)
        new = family.parse(old, family.rewrite(old, Direction.HARDER, 0))
        common = (slot, 0, Direction.HARDER, old.task_id, 1.0, new)
        events += [Event(EventKind.PROPOSED, *common), replace(Event(kind, *common, 0.5), iteration=1)]
    write_snapshot(before, folder / "buffer" / "iter_0000.jsonl")
    append_events(folder / "buffer" / "events.jsonl", events, before.digest)
    for iteration in stored.iterations[1:]:
        write_snapshot(before.apply(events), folder / "buffer" / f"iter_{iteration:04}.jsonl")


def here(function: Callable[..., Any], calls: Sequence[Sequence[Any]], _workers: int) -> list[Any]:
    """In the place of `run_all`: one call after the other, in this process, where a test can patch what they use."""
    return [function(*call) for call in calls]

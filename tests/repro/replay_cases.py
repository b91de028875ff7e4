"""What tests of replays share: a copy of a finished run, and how its episodes are changed."""

from __future__ import annotations

import gzip
import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml
from stage_cases import small

from rlanything.repro import replay_report

RUN = Path("runs/full/seed-0")


def copied(run: Path, root: Path) -> Path:
    """A copy of the finished run and its record in `root`, without models and tasks: a replay needs neither."""
    for name in ("runs", "provenance"):
        shutil.copytree(run.parents[2] / name, root / name)
    return root


def edit(root: Path, iteration: int, change: Callable[[dict[str, Any]], bool | None]) -> None:
    """Rewrite the stored episodes of an iteration; `change` returns True when it changed one, and is asked no more."""
    path = root / RUN / "rollouts" / f"iter_{iteration + 1:04d}.jsonl.gz"
    records = [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]
    assert any(change(record) for record in records), "nothing to change"
    path.write_bytes(gzip.compress("".join(json.dumps(r) + "\n" for r in records).encode()))


def problem(root: Path, *overrides: str) -> str:
    return replay_report.replay_run(root / RUN, overrides).problem


def playable(run: Path, to: Path) -> Path:
    """A copy of a finished run, beside the models and prompts of its project."""
    for name in ("experiments", "models"):
        (to / name).symlink_to((run.parents[2] / name).resolve())
    (to / "params.yaml").write_text(yaml.safe_dump(small().model_dump(mode="json", by_alias=True)))
    return copied(run, to)


def git(root: Path, *words: str) -> None:
    """A git command in `root`, by somebody with a name."""
    identity = ("-c", "user.name=a", "-c", "user.email=a@b")
    subprocess.run(["git", *identity, "-C", str(root), *words], check=True, capture_output=True)

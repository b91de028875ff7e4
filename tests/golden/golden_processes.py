"""A golden run in processes of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import golden_cases as golden
import yaml

from rlanything.runs.layout import Layout

TRAIN = ["-m", "rlanything", "train", "--arm", "full"]


def several(count: int) -> list[str]:
    return ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(count), *TRAIN]


def in_child(root: Path, command: list[str], **environment: str) -> list[golden.Line]:
    """What a run in a process of its own leaves."""
    settings = {**os.environ, "PYTHONPATH": str(golden.ROOT), **environment}
    done = subprocess.run(
        [sys.executable, *command],
        cwd=root,
        env=settings,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return golden.kept(Layout(root).run("full", 0))


def with_params(root: Path, **changes: object) -> Path:
    """The project with the golden configuration as its own."""
    data = golden.configuration(**changes).model_dump(mode="json", by_alias=True)
    (root / "params.yaml").write_text(yaml.safe_dump(data))
    return root

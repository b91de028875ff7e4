"""Configurations: params.yaml, overrides on the command line, sweep files."""

from __future__ import annotations

import shutil
from functools import cache
from pathlib import Path

from fuzz_target import HERE, Target, file_of, text_of

from rlanything.buffer.views.find.names import find
from rlanything.buffer.views.transfer import game_files
from rlanything.planning import check, compose
from rlanything.sweep.declare.file import load_sweep

ROOT = HERE.parents[1]
FILE = "params.yaml"


@cache
def _params() -> list[bytes]:
    """The two environments, small and as they are."""
    return [
        compose.text(compose.compose(["scale=smoke", *more], ROOT)).encode() for more in ([], ["env=coding"])
    ]


def _check(path: Path) -> None:
    (path.parent / "experiments").symlink_to(ROOT / "experiments")
    check.read(path, path.parent)


def _ask(path: Path) -> None:
    """What the buffer's views read of it: a rule of acceptance, and a family that writes games."""
    shutil.copytree(HERE / "seeds" / "alfworld" / "runs" / "full" / "seed-0", path.parent / "run")
    assert find("run", path.parent).rule
    game_files(path.parent)


def _override(text: str) -> None:
    compose.compose([text], ROOT)


def _sweeps() -> list[bytes]:
    return [path.read_bytes() for path in sorted((ROOT / "experiments" / "sweep").glob("*.yaml"))]


OVERRIDES = [b"signals.lambda=0.5", b"env=coding", b"+arm@arms.mine=full", b"~logger"]
WORDS = (
    b"=",
    b"+",
    b"~",
    b"@",
    b"${seed}",
    b"${oc.env:HOME}",
    b"${",
    b"[1,2]",
    b"{a: 1}",
    b"choice(1,2)",
    b"range(1,10**9)",
    b"glob(*)",
    b"env",
    b"'",
    b"null",
    b"???",
    b"_target_",
)
TARGETS = [
    Target("params", file_of(FILE, _check), _params, "yaml", file=FILE, examples=12),
    Target("params-asked", file_of(FILE, _ask), lambda: _params()[:1], "yaml", file=FILE, examples=12),
    Target("overrides", text_of(_override), lambda: OVERRIDES, words=WORDS, examples=2),
    Target(
        "sweep", file_of("thresholds.yaml", load_sweep), _sweeps, "yaml", file="thresholds.yaml", examples=12
    ),
]

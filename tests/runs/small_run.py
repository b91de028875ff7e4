"""A whole training of one seed without models, in milliseconds: every iteration depends on the state it goes on from.

It takes the road of the stage `train` (lock, recover, publish, export, place, remove) and leaves a trace of each
model's history in its "weights", so that a policy and a reward model of different iterations, or a lost step, show.
"""

from __future__ import annotations

import hashlib
import json
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from stage_cases import contents

from rlanything.buffer import TaskBuffer, append_events, read_events, read_snapshot, write_snapshot
from rlanything.core.types import Task
from rlanything.files import atomic
from rlanything.files.records import write_json, write_lines
from rlanything.runs.folder import STATE, RunFolder, place
from rlanything.runs.layout import Layout

ITERATIONS = 2
KEY, ARM = "0123456789abcdef", "full"
OLD = {"seed-0/metrics.jsonl": b"an older run\n", "seed-1/metrics.jsonl": b"with more seeds\n"}
FILES = {"metrics.json", "events.jsonl", "buffer.jsonl", "rollouts.jsonl.gz", "manifest.json"}


def prepare(root: Path) -> Path:
    """An older run in the place that the new one will take."""
    for name, data in OLD.items():
        path = target(root) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return root


def run(root: Path) -> None:
    """Train, or go on where a killed one stopped."""
    folder = live(root)
    with folder.lock():
        for k in range(folder.recover(print), ITERATIONS):
            folder.publish(k, partial(write, k, state(folder, k)))
        folder.export(buffer(-1), lambda path: finish(path, state(folder, ITERATIONS)))
    place([folder], target(root))
    atomic.remove(folder.path.parents[1])


def live(root: Path) -> RunFolder:
    return RunFolder(Layout(root).live(KEY, ARM, 0))


def target(root: Path) -> Path:
    return Layout(root).run(ARM, 0).parent


def buffer(k: int) -> TaskBuffer:
    """The buffer after iteration `k`."""
    return TaskBuffer.start([Task("game", f"do thing {n}", {"n": n}) for n in range(k + 3)])


def state(folder: RunFolder, done: int) -> dict[str, Any]:
    """What the run goes on from after `done` iterations."""
    return json.loads(folder.state_file(done - 1).read_text()) if done else {"policy": "", "reward": ""}


def write(k: int, before: dict[str, Any], folder: Path) -> None:
    """The files of iteration `k`, which follows `before`."""
    write_json(folder / "metrics.json", {"iteration": k})
    append_events(folder / "events.jsonl", [])
    write_snapshot(buffer(k), folder / "buffer.jsonl")
    write_lines(folder / "rollouts.jsonl.gz", [{"iteration": k}] * 20)
    (folder / STATE).write_text(json.dumps(follow(k, before)))


def follow(k: int, before: dict[str, Any]) -> dict[str, Any]:
    models = {
        name: hashlib.sha256(f"{before[name]}{name}{k}".encode()).hexdigest() for name in ("policy", "reward")
    }
    return {"iteration": k, "buffer": buffer(k).digest, **models}


def finish(folder: Path, last: dict[str, Any]) -> None:
    for name in ("policy", "reward"):
        (folder / "checkpoints" / name).mkdir(parents=True)
        (folder / "checkpoints" / name / "weights").write_text(last[name])


def check(root: Path) -> None:
    """What must hold on disk after every crash, before anything is repaired."""
    found = live(root)
    for folder in found.published():
        check_iteration(folder, newest=folder == found.published()[-1])
    if found.finished.exists():
        assert under(contents(found.finished), "seed-0") == expected()
    placed = contents(target(root)) if target(root).exists() else None
    assert placed in (None, OLD, expected())
    if placed is None:  # between two renames: both runs stand beside the place, whole
        beside = target(root).parent
        assert contents(beside / ".old-full") in (OLD, expected())
        assert contents(beside / ".tmp-full") == expected()


def check_iteration(folder: Path, *, newest: bool) -> None:
    k = int(folder.name)
    assert {p.name for p in folder.iterdir()} >= (FILES | {STATE} if newest else FILES)
    assert json.loads((folder / "metrics.json").read_text()) == {"iteration": k}
    assert read_events(folder / "events.jsonl").torn == 0
    assert read_snapshot(folder / "buffer.jsonl").digest == buffer(k).digest
    if newest:
        models: dict[str, Any] = {"policy": "", "reward": ""}
        for n in range(k + 1):
            models = follow(n, models)
        assert json.loads((folder / STATE).read_text()) == models


def tree(root: Path) -> frozenset[tuple[str, bytes | None]]:
    """Every name below a folder, files with what they hold."""
    return frozenset(
        (p.relative_to(root).as_posix(), p.read_bytes() if p.is_file() else None) for p in root.rglob("*")
    )


def under(files: dict[str, bytes], name: str) -> dict[str, bytes]:
    return {f"{name}/{path}": data for path, data in files.items()}


@cache
def expected() -> dict[str, bytes]:
    """What a training that nothing disturbed leaves in runs/<arm>/."""
    with TemporaryDirectory() as folder:
        run(prepare(Path(folder)))
        return contents(target(Path(folder)))


def finished(root: Path) -> None:
    """What must hold after the last start: the same bytes, and nothing else left."""
    assert contents(target(root)) == expected()
    names = {p.relative_to(root).as_posix() for p in root.rglob("*")}
    assert {n for n in names if not n.startswith("runs/full/")} == {
        ".rla", ".rla/live", "runs", "runs/full"
    }  # fmt: skip

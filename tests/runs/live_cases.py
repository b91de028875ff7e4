"""A run as it was while it trained, made from a finished one."""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict
from pathlib import Path

from rlanything.buffer import append_events
from rlanything.buffer.views.find.runs import open_run
from rlanything.files.records import write_json
from rlanything.repro import run_rules
from rlanything.runs.fingerprint import Origin, run_config
from rlanything.runs.resuming import origins


def in_training(project: Path, root: Path, published: int) -> Path:
    """The finished run of `project` as it was while it trained, with so many iterations, in a live folder of `root`."""
    run = project / "runs" / "full" / "seed-0"
    live = root / ".rla/live/0123456789abcdef" / "full" / "seed-0"
    done = open_run(run)
    (live / "iterations").mkdir(parents=True)
    shutil.copyfile(run / "buffer/iter_0000.jsonl", live / "iter_0000.jsonl")
    head, rows = done.at(0).digest, (run / "metrics.jsonl").read_text().splitlines()
    for k in range(published):
        folder = live / "iterations" / f"{k:04d}"
        folder.mkdir()
        (folder / "metrics.json").write_text(rows[k])
        append_events(folder / "events.jsonl", [e for e in done.events if e.iteration == k], head)
        shutil.copyfile(run / f"buffer/iter_{k + 1:04d}.jsonl", folder / "buffer.jsonl")
        for kind in ("rollouts", "tests"):
            if (run / kind).is_dir():
                shutil.copyfile(run / kind / f"iter_{k + 1:04d}.jsonl.gz", folder / f"{kind}.jsonl.gz")
    record = json.loads((project / "provenance" / "full.json").read_text())
    config = run_config(run_rules.own(run).config, "full")
    origin = Origin(config, record["code"], record["inputs"], {})
    write_json(live.parent / origins.FILE, asdict(origin))
    (root / "models").symlink_to(project / "models")
    return live

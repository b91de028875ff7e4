"""Trains one arm of the tiny project again and again, in children that are killed at random moments.

    python train_here.py PROJECT ARM REFERENCE KILLS

After every kill the newest iteration must hold the weights of both models, and the buffer, that an undisturbed
training had then (REFERENCE holds its states and its run); every finished training must have left the same bytes.
Prints how many children were killed, and how many of them while they wrote. They are forked: importing takes seconds.
"""

from __future__ import annotations

import hashlib
import os
import random
import shutil
import signal
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import torch
from stage_cases import contents, small

from rlanything.buffer import read_snapshot
from rlanything.runs import build, seedrun
from rlanything.runs.folder import STATE, RunFolder
from rlanything.runs.layout import Layout
from rlanything.stages import train

assert seedrun  # imported before the children are made

# In turn: by chance alone, no start of a few may ever be killed where the next one has something to resume from.
# An iteration comes first and a write second: two kills are enough for a start that resumes, and for half a write.
AIMS = ("an iteration", "a write", "any moment", "a write", "any moment")


def reference(root: Path, arm: str, keep: Path) -> float:
    """Train undisturbed; leave the state of every iteration and the run in `keep`. Returns CPU seconds."""
    publish = RunFolder.publish

    def kept(self: RunFolder, iteration: int, write: Any) -> None:
        publish(self, iteration, write)
        shutil.copyfile(self.state_file(iteration), keep / f"{iteration}.ckpt")

    RunFolder.publish = kept  # type: ignore[method-assign]
    started = time.process_time()
    train.train_arm(small(), root, arm)
    RunFolder.publish = publish  # type: ignore[method-assign]
    shutil.move(Layout(root).run(arm, 0).parent, keep / "run")
    return time.process_time() - started


def models(state: Path) -> dict[str, str]:
    """A hash of each model's weights in a checkpoint, and the digest of the buffer that belongs to them."""
    data = torch.load(state, weights_only=True)
    found = {name: hashlib.sha256() for name in ("policy", "reward")}
    for key, tensor in data["state_dict"].items():
        found[key.partition(".")[0]].update(tensor.numpy().tobytes())
    return {**{k: v.hexdigest() for k, v in found.items()}, "buffer": data["ExperienceDataModule"]["buffer"]}


def check(root: Path, arm: str, keep: Path) -> None:
    """What must hold after a kill."""
    # A name that begins with a dot is on its way out: `atomic.remove` renames before it removes.
    for live in (root / ".rla" / "live").glob(f"[!.]*/{arm}/seed-0"):
        folder = RunFolder(live)
        for published in folder.published():
            kept = models(keep / f"{int(published.name)}.ckpt")
            assert read_snapshot(published / "buffer.jsonl").digest == kept["buffer"]
        if folder.published():
            assert models(folder.published()[-1] / STATE) == kept
        if folder.finished.exists():
            assert contents(folder.finished) == contents(keep / "run" / "seed-0")
    placed = Layout(root).run(arm, 0).parent
    assert not placed.exists() or contents(placed) == contents(keep / "run")


def killed(root: Path, arm: str, rng: random.Random, whole: float, aim: str) -> tuple[bool, bool]:
    """A start that is killed: at any moment, soon after it began to write, or soon after it published an iteration.

    `whole` is what an undisturbed training costs in CPU seconds: by the clock, it would depend on the load.
    Returns whether it was killed before it came to its end, and whether it was writing then.
    """
    left, before = writing(root), published(root)
    child = train_in_child(root, arm)
    limit, pause = rng.uniform(0.0, whole), rng.choice((0.0, 0.003, 0.03))
    reached = {
        "any moment": lambda: cpu(child) > limit,
        "a write": lambda: writing(root) - left,
        "an iteration": lambda: published(root) - before,
    }[aim]
    while not ended(child) and not reached():
        time.sleep(0.002)
    time.sleep(0.0 if aim == "any moment" else pause)
    os.kill(child, signal.SIGKILL)
    status = os.waitpid(child, 0)[1]
    assert os.WIFSIGNALED(status) or os.waitstatus_to_exitcode(status) == 0, "a start failed by itself"
    return os.WIFSIGNALED(status), bool(writing(root) - left)


def published(root: Path) -> set[Path]:
    """The iterations that a next start can resume from."""
    try:
        return {
            path
            for live in (root / ".rla" / "live").glob("[!.]*/*/seed-0")
            for path in RunFolder(live).published()
        }
    except FileNotFoundError:  # the child removed a folder while it was looked through
        return published(root)


def writing(root: Path) -> set[int]:
    """Folders that are on their way, by number: an iteration, the finished run, or its copy."""
    try:
        found = [
            path for place in (".rla/live/*/*/seed-0", "runs") for path in root.glob(f"{place}/**/.tmp-*")
        ]
        return {os.stat(path).st_ino for path in found}
    except FileNotFoundError:  # the child removed or renamed a folder while it was looked through
        return writing(root)


def ended(child: int) -> bool:
    return psutil.Process(child).status() == psutil.STATUS_ZOMBIE


def cpu(child: int) -> float:
    times = psutil.Process(child).cpu_times()
    return times.user + times.system


def train_in_child(root: Path, arm: str) -> int:
    child = os.fork()
    if child == 0:
        try:
            train.train_arm(small(), root, arm)
            os._exit(0)
        finally:
            os._exit(1)
    return child


def main(root: Path, arm: str, keep: Path, kills: int) -> None:
    build.one_thread()
    whole = reference(root, arm, keep)
    rng, count, hit = random.Random(28), 0, 0
    placed = Layout(root).run(arm, 0).parent
    while count < kills or not hit or not placed.exists():
        shutil.rmtree(placed, ignore_errors=True)  # a training came to its end: the next one begins
        while count < kills or not hit:  # a write may be over by the time of the kill
            aim = AIMS[count % len(AIMS)] if count < kills else "a write"
            died, wrote = killed(root, arm, rng, whole, aim)
            check(root, arm, keep)
            if not died:
                break
            count, hit = count + 1, hit + wrote
        else:
            assert os.waitstatus_to_exitcode(os.waitpid(train_in_child(root, arm), 0)[1]) == 0
        assert contents(placed) == contents(keep / "run")
    print(count, hit)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3]), int(sys.argv[4]))

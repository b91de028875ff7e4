"""Trains one arm of the tiny project in children that are killed at given moments, and in a last one that is not.

The children are forked, so that everything is imported once. Prints how many iterations each left published.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from pathlib import Path

from stage_cases import small

from rlanything.stages import build, seedrun, train

assert seedrun  # imported before the children are made


def published(root: Path) -> int:
    return len(list((root / ".rla").rglob("iterations/0*")))


def killed(root: Path, arm: str, after: int, delay: float) -> bool:
    """A child that is killed `delay` seconds after `after` iterations are published; whether it was, in time."""
    child = train_in_child(root, arm)
    while published(root) < after:
        time.sleep(0.005)
    time.sleep(delay)
    os.kill(child, signal.SIGKILL)
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])


def train_in_child(root: Path, arm: str) -> int:
    child = os.fork()
    if child == 0:
        try:
            train.run(small(), root, arm)
            os._exit(0)
        finally:
            os._exit(1)
    return child


def main(root: Path, arm: str) -> int:
    build.one_thread()
    rng = random.Random(0)
    for after in (0, 0, 1, 1, 2):
        if killed(root, arm, after, rng.uniform(0.0, 0.5)):
            print(published(root), flush=True)
    return os.waitstatus_to_exitcode(os.waitpid(train_in_child(root, arm), 0)[1])


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2]))

"""How long resets and steps of the small desktop take: `python -m benchmarks.pages.desktops`.

A reset ends the last application, empties the home and starts the next one. A step is one key, with the tree and the
picture after it. All times are on the clock; the load of the machine is printed before and after. With `--fonts` resets
are measured a second time, on a desktop that does not find the system's cache of its fonts.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Sequence
from statistics import median
from unittest.mock import patch

from envs.desktop.small import box
from envs.desktop.small.family import DesktopFamily
from envs.desktop.small.templates import Template, templates

NOWHERE = "/nonexistent"
"""In place of `box.FONTS`: bubblewrap leaves out a mount of what is not there."""


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print a table; returns the exit code. Raises `MachineError` where a package is missing."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.pages.desktops", description=__doc__.split("\n")[0]
    )
    parser.add_argument(
        "--repeats", type=int, default=5, metavar="N", help="resets of each application; default: 5"
    )
    parser.add_argument("--fonts", action="store_true", help="also without the system's cache of its fonts")
    given = parser.parse_args(argv)
    load = f"{os.cpu_count()} cores, load average {os.getloadavg()[0]:.1f}"
    print(f"{load}; medians of {given.repeats}, slowest in brackets")
    found = measure(given.repeats)
    for app, (resets, steps) in found.items():
        print(
            f"{app:11} reset {median(resets):.2f} s ({max(resets):.2f}), step {median(steps):.2f} s ({max(steps):.2f})"
        )
    if given.fonts:
        with patch.object(box, "FONTS", NOWHERE):
            slow = {app: median(resets) for app, (resets, _) in measure(given.repeats).items()}
        for app, reset in slow.items():
            print(
                f"{app:11} reset {reset:.2f} s without the cache, {reset / median(found[app][0]):.2f} times as long"
            )
    print(f"load average at the end {os.getloadavg()[0]:.1f}")
    return 0


def measure(repeats: int) -> dict[str, tuple[list[float], list[float]]]:
    """Application -> (seconds of resets, seconds of steps). The first reset of each, which reads files, is left out."""
    family = DesktopFamily(worlds=1, observe="both")
    family.environment()
    world = family._pool.take()
    try:
        found: dict[str, tuple[list[float], list[float]]] = {}
        for app, template in _one_each().items():
            task = template.task_file(0, next(iter(template.given["evaluators"])))
            world.reset(task, 0)
            found[app] = [], []
            for _ in range(repeats):
                started = time.monotonic()
                world.reset(task, 0)
                reset = time.monotonic()
                world.step([{"action_type": "PRESS", "key": "down"}])
                found[app][0].append(reset - started)
                found[app][1].append(time.monotonic() - reset)
        return found
    finally:
        family._pool.give_back(world)
        family._pool.close()


def _one_each() -> dict[str, Template]:
    """Application -> its first template."""
    first: dict[str, Template] = {}
    for template in templates().values():
        first.setdefault(template.app, template)
    return first


if __name__ == "__main__":
    raise SystemExit(main())

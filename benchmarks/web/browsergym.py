"""BrowserGym on the same pages. It pins a version of Playwright, so it runs in an environment of its own:

    python -m venv DIR && DIR/bin/pip install browsergym-miniwob
    python -m benchmarks.web --browsergym DIR/bin/python

This module is that program. It imports nothing that needs this project's packages. For each line with a number of
seconds it prints a line of JSON: steps per second of whole episodes, and of steps alone, without starts of episodes.

As it comes, BrowserGym waits 0.5 s before it looks at a page, and 0.1 s in every call of the browser, so that slow
sites are ready. It is measured without these waits too. Either way it takes a picture of each step, and starts two
browsers for each episode.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import tempfile
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

from benchmarks.web.pace import KINDS, MOST_STEPS, rate


def main() -> int:
    """Answer until the input ends; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.web.browsergym")
    parser.add_argument("--chromium", required=True, help="path of the browser")
    parser.add_argument("--pages", required=True, help="folder of MiniWoB++'s pages")
    parser.add_argument("--waits", action="store_true", help="with the waits that it comes with")
    args = parser.parse_args()
    taken: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        _offer(Path(folder), args.chromium)
        steps = _clicks(Path(args.pages).as_uri() + "/", args.waits, taken)
        for line in sys.stdin:
            taken.clear()
            whole = rate(steps, float(line))
            print(json.dumps({"whole": whole, "steps": len(taken) / sum(taken)}), flush=True)
        steps.close()
    return 0


def _offer(folder: Path, chromium: str) -> None:
    """Let its Playwright find the installed browser where it looks for one that it downloaded."""
    import playwright

    known = Path(playwright.__file__).parent / "driver" / "package" / "browsers.json"
    revision = next(
        b["revision"] for b in json.loads(known.read_text())["browsers"] if b["name"] == "chromium"
    )
    place = folder / f"chromium-{revision}" / "chrome-linux"
    place.mkdir(parents=True)
    (place / "chrome").symlink_to(chromium)
    os.environ["PLAYWRIGHT_BROWSERS_PATH"] = str(folder)


def _clicks(url: str, waits: bool, taken: list[float]) -> Generator[None]:
    """Steps of whole episodes, the kinds in turn, with random clicks on what can be clicked; never ends.

    taken: gets the seconds of each step."""
    rng, seed = random.Random(0), 0
    made = [_environment(kind, url, waits) for kind in KINDS]
    try:
        while True:
            environment, seed = made[seed % len(made)], seed + 1
            seen, _ = environment.reset(seed=seed)
            for _ in range(MOST_STEPS):
                found = seen["extra_element_properties"]
                names = [name for name, is_ in found.items() if is_["clickable"] and is_["visibility"] > 0]
                began = time.perf_counter()
                seen, _, ended, _, _ = environment.step(
                    f"click('{rng.choice(names)}')" if names else "noop(0)"
                )
                taken.append(time.perf_counter() - began)
                yield
                if ended:
                    break
            environment.close()
    finally:
        for environment in made:
            environment.close()


def _environment(kind: str, url: str, waits: bool) -> Any:
    from browsergym.core.env import BrowserEnv
    from browsergym.miniwob import ALL_MINIWOB_TASKS

    task = next(task for task in ALL_MINIWOB_TASKS if task.subdomain == kind)
    without = {} if waits else {"pre_observation_delay": 0.0, "slow_mo": 0}
    return BrowserEnv(task, task_kwargs={"base_url": url}, **without)


if __name__ == "__main__":
    sys.exit(main())

"""`python -m benchmarks.web`: steps per second on web pages, beside the selenium environment that comes with MiniWoB++.

Both play the same kinds with random clicks and start each episode on a seed of its own. Starts of episodes count,
starts of browsers do not. They take turns in one run, so that other work on the machine meets both. Ours plays several
episodes together, as the loop does: a page that serves several episodes plays each again. The other one needs the extra
`web` and Debian's package chromium-driver. It is measured without its screenshots.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from statistics import mean
from typing import Any

from envs.web.browser import launch
from envs.web.family import WebFamily
from rlanything.core.protocols import Environment
from rlanything.core.types import Task

KINDS = ("click-button", "click-checkboxes", "login-user", "email-inbox-delete", "click-tab-2", "choose-list")
REST = ("click-test",)
MOST_STEPS = 10
"""Steps of an episode."""
SPARE = 4000
"""Tasks that are drawn beforehand, and drawn from in turn."""


def main(argv: Sequence[str] | None = None) -> int:
    """Print both rates and their ratio; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.web", description=__doc__.split("\n")[0])
    parser.add_argument("--seconds", type=float, default=10.0, help="of each turn (default: 10)")
    parser.add_argument("--turns", type=int, default=3, help="of both (default: 3)")
    parser.add_argument("--together", type=int, default=8, help="episodes that advance together (default: 8)")
    args = parser.parse_args(argv)
    family = WebFamily(kinds=KINDS, ood_kinds=REST)
    ours = play_together(family, family.make("train", SPARE, 0), args.together)
    theirs = selenium_steps()
    rates: dict[str, list[float]] = {"ours": [], "selenium": []}
    for _ in range(args.turns):
        rates["ours"].append(rate(ours, args.seconds))
        if theirs is not None:
            rates["selenium"].append(rate(theirs, args.seconds))
    for name, found in rates.items():
        if found:
            print(f"{name}: {mean(found):.1f} steps/s (turns: {', '.join(f'{r:.1f}' for r in found)})")
    if rates["selenium"]:
        print(f"ratio: {mean(rates['ours']) / mean(rates['selenium']):.1f}")
    return 0


def rate(steps: Iterator[None], seconds: float) -> float:
    """Steps per second on the clock. The first step is not counted: it may start a browser."""
    next(steps)
    began, count = time.perf_counter(), 0
    while time.perf_counter() - began < seconds:
        next(steps)
        count += 1
    return count / (time.perf_counter() - began)


def play_together(family: WebFamily, tasks: Sequence[Task], together: int) -> Iterator[None]:
    """Steps of episodes that take turns, each with random clicks; never ends."""
    rng, waiting = random.Random(0), iter(list(tasks) * 1000)
    running: list[tuple[Environment, Task, tuple[str, ...], int]] = []
    while True:
        while len(running) < together:
            environment, task = family.environment(), next(waiting)
            running.append((environment, task, environment.reset(task, 0).actions, 0))
        chosen = [rng.choice([a for a in actions if a.startswith("click ")]) for _, _, actions, _ in running]
        family.prefetch([(task, action) for (_, task, _, _), action in zip(running, chosen, strict=True)])
        left = []
        for (environment, task, _, taken), action in zip(running, chosen, strict=True):
            answer = environment.step(action)
            if answer.done or taken + 1 == MOST_STEPS:
                environment.close()
            else:
                left.append((environment, task, answer.observation.actions, taken + 1))
            yield
        running = left


def selenium_steps() -> Iterator[None] | None:
    """Steps of MiniWoB++'s own environment; None, and a note, where it cannot run."""
    driver = shutil.which("chromedriver")
    if driver is None:
        print("The selenium environment is not measured: apt install chromium-driver", file=sys.stderr)
        return None
    os.environ |= {"MINIWOB_CHROMEDRIVER": driver, "MINIWOB_CHROME_BINARY": launch.chromium(None)}
    try:
        from miniwob.environment import MiniWoBEnvironment
    except ImportError as error:
        print(f"The selenium environment is not measured: {error}", file=sys.stderr)
        return None
    made = [MiniWoBEnvironment(subdomain=kind) for kind in KINDS]
    return _clicks(made)


def _clicks(environments: Sequence[Any]) -> Iterator[None]:
    """Steps of whole episodes, the kinds in turn, with random clicks on elements; never ends."""
    from miniwob.action import ActionTypes

    rng, seed = random.Random(0), 0
    for environment in environments:
        environment.reset(seed=0)
        environment.set_record_screenshots(False)
    while True:
        environment, seed = environments[seed % len(environments)], seed + 1
        seen, _ = environment.reset(seed=seed)
        for _ in range(MOST_STEPS):
            refs = [element["ref"] for element in seen["dom_elements"] if element["ref"] > 0]
            action = environment.unwrapped.create_action(ActionTypes.CLICK_ELEMENT, ref=rng.choice(refs))
            seen, _, done, _, _ = environment.step(action)
            yield
            if done:
                break


if __name__ == "__main__":
    sys.exit(main())

"""`python -m benchmarks.web`: steps per second on web pages, beside the selenium environment that comes with MiniWoB++.

Both play the same kinds with random clicks and start each episode on a seed of its own. Starts of episodes count,
starts of browsers do not. They take turns in one run, so that other work on the machine meets both. Ours plays several
episodes together, as the loop does, each in a page of its own. The other one needs the extra `web` and Debian's package
chromium-driver. It is measured without its screenshots, in a process of its own (`benchmarks/web/selenium.py`).

With `--browsergym PYTHON` BrowserGym takes turns with them (`benchmarks/web/browsergym.py`).
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from itertools import islice
from pathlib import Path
from statistics import mean

import psutil

from benchmarks.web.pace import KINDS, MOST_STEPS, rate
from envs.web.browser import launch
from envs.web.family import WebFamily
from rlanything.core.protocols import Environment
from rlanything.core.types import Task

ROOT = Path(__file__).parents[2]
REST = ("click-test",)
SPARE = 4000
"""Tasks that are drawn beforehand, and drawn from in turn."""
ENDS_S = 30.0
"""Seconds that another environment has to close its browsers."""
Measure = Callable[[float], Mapping[str, float]]
"""Seconds -> rates by what they are of."""


def main(argv: Sequence[str] | None = None) -> int:
    """Print both rates and their ratio; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.web", description=__doc__.split("\n")[0])
    parser.add_argument("--seconds", type=float, default=10.0, help="of each turn (default: 10)")
    parser.add_argument("--turns", type=int, default=3, help="of both (default: 3)")
    parser.add_argument("--together", type=int, default=8, help="episodes that advance together (default: 8)")
    parser.add_argument("--browsergym", metavar="PYTHON", help="a Python that has browsergym-miniwob")
    args = parser.parse_args(argv)
    family = WebFamily(kinds=KINDS, ood_kinds=REST)
    ours = play_together(family, family.make("train", SPARE, 0), args.together)
    measured: list[Measure] = [lambda seconds: {"ours": rate(ours, seconds)}]
    with ExitStack() as peers:
        if theirs := selenium():
            measured.append(peers.enter_context(theirs))
        for words in ((), ("--waits",)) if args.browsergym else ():
            measured.append(peers.enter_context(browsergym(args.browsergym, words)))
        rates: dict[str, list[float]] = {}
        for _ in range(args.turns):
            for measure in measured:
                for name, found in measure(args.seconds).items():
                    rates.setdefault(name, []).append(found)
    for name, several in rates.items():
        ratio = "" if name == "ours" else f"; ours is {mean(rates['ours']) / mean(several):.1f} times as fast"
        print(f"{name}: {mean(several):.2f} steps/s (turns: {', '.join(f'{r:.2f}' for r in several)}){ratio}")
    return 0


def browsergym(python: str, words: Sequence[str]) -> AbstractContextManager[Measure]:
    """BrowserGym in a process of `python`. words: its options."""
    command = [python, "-m", "benchmarks.web.browsergym", *words, "--chromium", launch.chromium(None)]
    command += ["--pages", str(launch.pages(None))]
    return peer(f"browsergym {'with' if words else 'without'} its waits", command)


def selenium(kinds: Sequence[str] = KINDS) -> AbstractContextManager[Measure] | None:
    """MiniWoB++'s own environment in a process of its own; None, and a note, where it cannot run."""
    driver = shutil.which("chromedriver")
    if driver is None:
        print("The selenium environment is not measured: apt install chromium-driver", file=sys.stderr)
        return None
    try:
        import miniwob.environment  # noqa: F401 - whether it can be imported
    except ImportError as error:
        print(f"The selenium environment is not measured: {error}", file=sys.stderr)
        return None
    programs = {"MINIWOB_CHROMEDRIVER": driver, "MINIWOB_CHROME_BINARY": launch.chromium(None)}
    return peer("selenium", [sys.executable, "-m", "benchmarks.web.selenium", *kinds], **programs)


@contextmanager
def peer(name: str, command: Sequence[str], **variables: str) -> Iterator[Measure]:
    """A function that measures another environment for some seconds, in a process that ends when its input does.

    One that goes on for more than `ENDS_S` seconds after that is killed, with the processes that it started. variables:
    of its environment, beside those of this process. The function raises `SystemExit` when the process has ended.
    """
    settings = {**os.environ, **variables, "PYTHONPATH": str(ROOT)}
    other = subprocess.Popen(command, env=settings, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert other.stdin is not None
    assert other.stdout is not None
    into, out = other.stdin, other.stdout

    def measure(seconds: float) -> dict[str, float]:
        with suppress(BrokenPipeError):  # it has ended, and there is no line to read
            print(seconds, file=into, flush=True)
        line = out.readline()
        if not line:
            raise SystemExit(f"{' '.join(command[:3])} ended without an answer; its output says why")
        names = {"whole": name, "steps": f"{name}, steps alone"}
        return {names[of]: found for of, found in json.loads(line).items()}

    try:
        yield measure
    finally:
        with suppress(BrokenPipeError):  # of a number that nobody read
            into.close()
        _end(other)
        out.close()


def _end(process: subprocess.Popen[str]) -> None:
    """Wait for the end of a process. After `ENDS_S` seconds kill it, its driver and its browsers."""
    try:
        process.wait(ENDS_S)
    except subprocess.TimeoutExpired:
        family = [*psutil.Process(process.pid).children(recursive=True), process]
        for one in family:
            with suppress(psutil.NoSuchProcess):
                one.kill()
        process.wait()


def play_together(family: WebFamily, tasks: Sequence[Task], together: int) -> Iterator[None]:
    """Steps of episodes that take turns, each with random clicks; never ends."""
    rng, waiting = random.Random(0), iter(list(tasks) * 1000)
    running: list[tuple[Environment, Task, tuple[str, ...], int]] = []
    while True:
        starting = list(islice(waiting, together - len(running)))
        family.prepare([(task, 0) for task in starting])
        for task in starting:
            environment = family.environment()
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


if __name__ == "__main__":
    sys.exit(main())

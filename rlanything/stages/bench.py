"""`rlanything bench`: how fast every part is on this machine, beside what one would use without it; writes bench.json.

One process and one thread. Rates are counted in CPU seconds (of this process and its children), so that another
process on the same core does not change them; `iteration.*` is time on the clock, because that is what one waits for.
"""

from __future__ import annotations

import os
import platform
import random
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rlanything.config import Config, ConfigError
from rlanything.core.types import Environment, Task
from rlanything.stages import build
from rlanything.stages.layout import Layout, write_json
from rlanything.stages.machine import cpu_model

Measured = dict[str, Any]

FILE = "bench.json"
ARM = "full"
PLAIN = {
    "_target_": "envs.alfworld.textworld_engine.TextworldEnvironment",
    "command": [sys.executable, "-m", "envs.alfworld.textworld_worker", "--plain"],
}
"""The real engine as its authors publish it, without this project's caches."""
REAL = ("textworld_cached", "textworld")
GAMES = {"ours": 200, "textworld_cached": 15, "textworld": 3}


def run(config: Config, root: Path) -> None:
    """Measure, print a table and write bench.json under `root`. Raises `ConfigError`."""
    from rlanything.stages import benchtable

    build.one_thread()
    notes: list[str] = []
    result: Measured = {"machine": machine(), "notes": notes}
    say("environment steps")
    result["env"] = environments(config, notes)
    say("sampling and votes, about half a minute")
    result |= generation()
    result["training"], result["iteration"] = learning(config, root, notes)
    write_json(root / FILE, result)
    benchtable.show(result)


def machine() -> Measured:
    """What the numbers were measured on."""
    import torch

    return {
        "cpu": cpu_model(),
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 2),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "threads": torch.get_num_threads(),
    }


def environments(config: Config, notes: list[str]) -> Measured:
    """Steps per second of whole episodes of fresh games, starts included; the same random commands everywhere."""
    ours = {**config.env, "engine": "fast"} if "engine" in config.env else config.env
    family = build.instantiate(ours, "env")
    tasks = family.make("in_domain", GAMES["ours"], config.seed)
    limit = config.rollout.max_steps
    speed = steps_per_second(family.environment(), tasks, limit)
    found: Measured = {"ours_steps_per_s": speed}
    for name, real in real_engines(config, notes):
        say(f"environment steps of {name}")
        try:
            rate = steps_per_second(real, tasks[: GAMES[name]], limit)
        except (RuntimeError, TimeoutError) as error:  # what the real engine raises when it fails
            notes.append(f"{name} was not measured: {error}")
            continue
        found |= {f"{name}_steps_per_s": rate, f"times_{name}": speed / rate}
    keys = (f"{kind}{name}{unit}" for name in REAL for kind, unit in (("", "_steps_per_s"), ("times_", "")))
    return dict.fromkeys(keys) | found


def real_engines(config: Config, notes: list[str]) -> list[tuple[str, Environment]]:
    """The real engine with this project's caches and without; none, and a note, where it is not installed."""
    try:
        cached = build.instantiate({**config.env, "engine": "textworld"}, "env").environment()
        return list(zip(REAL, (cached, build.instantiate(PLAIN, "env", timeout=600.0)), strict=True))
    except ConfigError:
        notes.append(
            "The real engine was not measured: it is not installed. `make alfworld` installs it (about three "
            "minutes; needs g++, make and cmake)."
        )
        return []


def steps_per_second(environment: Environment, tasks: Sequence[Task], limit: int) -> float:
    """Random play of every task for at most `limit` steps. One reset beforehand starts child processes."""
    try:
        environment.reset(tasks[0], 0)
        start = cpu_seconds()
        steps = sum(play(environment, task, limit) for task in tasks)
        return steps / (cpu_seconds() - start)
    finally:
        environment.close()


def play(environment: Environment, task: Task, limit: int) -> int:
    """One episode of random commands, the same ones on every engine; returns how many there were."""
    rng = random.Random(task.task_id)
    observation = environment.reset(task, 0)
    for step in range(1, limit + 1):
        answer = environment.step(rng.choice(observation.actions))
        observation = answer.observation
        if answer.done:
            return step
    return limit


def generation() -> Measured:
    """Multi-turn episodes in free decoding, and the votes of a judge, of a random model of 0.7 million weights."""
    from rlanything.engines.bench import Workload, measure

    rates = measure(Workload(), repeats=1)
    ours, plain = rates["episodes_native"], rates["episodes_generate"]
    votes, single, written = (rates[f"votes_{name}"] for name in ("group", "separate", "generate"))
    return {
        "sampling": {
            "ours_tokens_per_s": ours,
            "generate_tokens_per_s": plain,
            "times_generate": ours / plain,
            "ours_actions_per_s": rates["actions_native"],
        },
        "votes": {
            "ours_per_s": votes,
            "separate_per_s": single,
            "generate_per_s": written,
            "times_separate": votes / single,
            "times_generate": votes / written,
        },
    }


def learning(config: Config, root: Path, notes: list[str]) -> tuple[Measured, Measured | None]:
    """Training speed and a whole iteration, on real models and tasks where they are, otherwise on random ones."""
    from rlanything.stages import benchlearn

    layout = Layout(root)
    if not (layout.manifest.is_file() and layout.bootstrap.is_file()):
        reason = "data/ or models/ are missing (make them with `dvc repro bootstrap`)"
    elif ARM not in config.arms:
        reason = f"the configuration has no arm {ARM!r}"
    else:
        say(f"two iterations of arm {ARM}")
        try:
            return benchlearn.iteration(config, root, ARM)
        except ConfigError as error:
            reason = str(error)
    notes.append(
        f"No iteration was measured: {reason}. Training was measured on random rows of a random model."
    )
    say("training on random rows")
    return benchlearn.random_training(config), None


def say(text: str) -> None:
    """A line of progress."""
    print(f"bench: {text}", file=sys.stderr, flush=True)


def cpu_seconds() -> float:
    """CPU time of this process and of the children that still run."""
    import psutil

    children = [child.cpu_times() for child in psutil.Process().children()]
    return time.process_time() + sum(times.user + times.system for times in children)

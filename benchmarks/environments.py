"""Environment steps per CPU second, beside the real TextWorld engine with this project's caches and without."""

from __future__ import annotations

import random
import sys
from collections.abc import Sequence

from benchmarks.machine import Measured, cpu_seconds, say
from envs.alfworld.engines.textworld_engine import TextworldEnvironment, require_textworld
from rlanything import targets
from rlanything.config import Config
from rlanything.core.protocols import Environment, TaskFamily
from rlanything.core.types import Task

PLAIN = (sys.executable, "-m", "envs.alfworld.engines.textworld_worker", "--plain")
"""The real engine as its authors publish it, without this project's caches."""
REAL = ("textworld_cached", "textworld")
KEYS = ("ours_steps_per_s", *(key for name in REAL for key in (f"{name}_steps_per_s", f"times_{name}")))
GAMES = {"ours": 200, "textworld_cached": 15, "textworld": 3}
TIMEOUT = 600.0
"""Seconds that the real engine may take for one answer."""


def measure_environments(config: Config, notes: list[str]) -> Measured:
    """Steps per second of whole episodes of fresh games, starts included; the same random commands everywhere."""
    if "engine" not in config.env:
        notes.append("Environment steps were not measured: random commands play ALFWorld's games only.")
        return dict.fromkeys(KEYS)
    family = targets.instantiate({**config.env, "engine": "fast"}, "env", TaskFamily)
    tasks = family.make("in_domain", GAMES["ours"], config.seed)
    limit = config.rollout.max_steps
    speed = steps_per_second(family.environment(), tasks, limit)
    real = real_engines(notes)
    found: Measured = {"ours_steps_per_s": speed}
    for name in REAL:
        rate = _rate(name, real[name], tasks[: GAMES[name]], limit, notes) if name in real else None
        found |= {f"{name}_steps_per_s": rate, f"times_{name}": speed / rate if rate else None}
    return found


def real_engines(notes: list[str]) -> dict[str, Environment]:
    """The real engine with this project's caches and without; none, and a note, where it is not installed."""
    try:
        require_textworld()
    except ValueError:
        notes.append(
            "The real engine was not measured: it is not installed. `make alfworld` installs it (about three "
            "minutes; needs g++, make and cmake)."
        )
        return {}
    return dict(zip(REAL, (TextworldEnvironment(TIMEOUT), TextworldEnvironment(TIMEOUT, PLAIN)), strict=True))


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


def _rate(
    name: str, engine: Environment, tasks: Sequence[Task], limit: int, notes: list[str]
) -> float | None:
    say(f"environment steps of {name}")
    try:
        return steps_per_second(engine, tasks, limit)
    except (RuntimeError, TimeoutError) as error:  # what the real engine raises when it fails
        notes.append(f"{name} was not measured: {error}")
        return None

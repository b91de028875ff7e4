"""Plays the tasks of one finished run again, and writes what came out."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from statistics import mean
from typing import Any

from rlanything.buffer.views.find.runs import open_run
from rlanything.checks.adaptation.course import Point, measured
from rlanything.checks.adaptation.declare import Adaptation
from rlanything.checks.adaptation.finished import CHECK, Answers, Moved, Run, find
from rlanything.checks.adaptation.fresh import Map, Progress, play
from rlanything.checks.adaptation.rewrites import rewrites
from rlanything.checks.running import say
from rlanything.checks.shares import Share
from rlanything.config import BASE, Config, parse
from rlanything.core.errors import ConfigError
from rlanything.core.seeds import derive_seed
from rlanything.core.types import Task
from rlanything.files.images import passing
from rlanything.files.records import write_json
from rlanything.loop.rollout import RolloutWorker, Sampling
from rlanything.report.results.curves import read_curves
from rlanything.runs import build
from rlanything.runs.layout import Layout


def measure(data: dict[str, Any], root: Path, declared: Mapping[str, Any], run: Run) -> None:
    """Play the tasks of one run, and write what came out.

    data, declared: the configuration and the declaration as plain values, because this is another process.
    Raises `ConfigError` when something changed meanwhile.
    """
    build.one_thread()
    config, adaptation, layout = parse(data), Adaptation.model_validate(declared), Layout(root)
    answers = _Measured(config, layout, adaptation, run).answers()
    if find(config, layout, adaptation, run.seed) != run:
        raise ConfigError(f"seed {run.seed}: policies, tasks or code changed while it was measured")
    say(CHECK, f"seed {run.seed}: measured")
    write_json(run.file, answers.model_dump(mode="json"))


class _Measured:
    """One run while it is measured."""

    def __init__(self, config: Config, layout: Layout, declared: Adaptation, run: Run) -> None:
        self.config, self.root, self.declared, self.run = config, layout.root, declared, run
        self.family, self.prompts = build.family(config), build.prompts(config, layout.root)
        self.run_seed = derive_seed(config.seed, CHECK, run.seed)
        self.stored = open_run(layout.run(declared.arm, run.seed))
        self.lineages = self.stored.latest.lineages
        self.first = [lineage.versions[0].task for lineage in self.lineages]
        self.rewrites = rewrites(self.stored.events)
        known = {v.task.task_id: v.task for lineage in self.lineages for v in lineage.versions}
        known |= {event.task.task_id: event.task for event in self.stored.events if event.task is not None}
        ids = dict.fromkeys(name for rewrite in self.rewrites for name in (rewrite.old, rewrite.new))
        self.tasks: list[Task] = [known[name] for name in ids]
        self.progress = Progress(self._episodes(), lambda text: say(CHECK, f"seed {run.seed}: {text}"))

    def _episodes(self) -> int:
        each = self.declared.rollouts + self.config.rollout.rollouts
        of_first = len(self._players) * len(self.first) * self.declared.first_rollouts
        return len(self.declared.probes) * len(self.tasks) * each + of_first

    @property
    def _players(self) -> tuple[str, ...]:
        """The arms whose final policies play the first tasks."""
        return self.declared.arms if self.declared.against else ()

    def answers(self) -> Answers:
        """Everything that is measured."""
        probes: dict[str, dict[str, Share]] = {}
        again: dict[str, dict[str, Share]] = {}
        for probe in self.declared.probes:
            with self._player(BASE if probe == BASE else self.declared.arm) as (_, worker):
                probes[probe] = self._play(worker, self.tasks, self.declared.rollouts, "truth")
                again[probe] = self._play(worker, self.tasks, self.config.rollout.rollouts, "again")
        first: dict[str, dict[str, Share]] = {}
        for arm in self._players:
            with self._player(arm) as (_, worker):
                first[arm] = self._play(worker, self.first, self.declared.first_rollouts, "first")
        with self._player(BASE) as (model, worker):
            where = Map(worker, model)
            moved, course = self._moved(where), self._course(where)
        return Answers(
            rewrites=self.rewrites, probes=probes, again=again, first=first, moved=moved, course=course
        )

    @contextmanager
    def _player(self, arm: str) -> Iterator[tuple[Any, RolloutWorker]]:
        """The final policy of an arm, or the base's: the model, and what plays with it."""
        config = self.config
        with passing() as store:
            network, chat = build.measured(config, "policy", self.run.policies[arm], self.root, store)
            kept = store if config.model.images.any else None
            with chat as policy:
                yield network, RolloutWorker(self.family, policy, self.prompts, config.rollout, kept)

    def _play(
        self, worker: RolloutWorker, tasks: Sequence[Task], rollouts: int, phase: str
    ) -> dict[str, Share]:
        rollout = self.config.rollout
        sampling = Sampling(self.run_seed, f"{CHECK}-{phase}", 0, rollout.temperature, rollout.max_steps)
        return play(worker, tasks, rollouts, sampling, self.progress)

    def _moved(self, where: Map) -> Moved:
        """How far the slots moved, beside first tasks in a random order, each with its neighbour."""
        shuffled = random.Random(self.run_seed).sample(self.first, len(self.first))
        slots = {
            lineage.versions[0].task.task_id: where.distance(lineage.versions[0].task, lineage.head.task)
            for lineage in self.lineages
            if len(lineage.versions) > 1
        }
        pairs = [where.distance(one, other) for one, other in pairwise(shuffled)]
        apart = (mean(words for words, _ in pairs), mean(angle for _, angle in pairs)) if pairs else None
        return Moved(slots=slots, apart=apart)

    def _course(self, where: Map) -> list[Point]:
        read, panels = read_curves(self.root, self.declared.arms), self.config.tasks.policy_panels
        runs = {arm: read.get(arm, {}).get(self.run.seed, {}) for arm in self.declared.arms}
        curves = {arm: {name: run.get(f"panel/{name}", {}) for name in panels} for arm, run in runs.items()}
        return [self._point(iteration, success, where) for iteration, success in measured(curves).items()]

    def _point(self, iteration: int, success: dict[str, dict[str, float]], where: Map) -> Point:
        slots = [
            (lineage.versions[0].task, lineage.head.task) for lineage in self.stored.at(iteration).lineages
        ]
        moved = [where.distance(first, now) for first, now in slots if first.task_id != now.task_id]
        return Point(
            iteration=iteration,
            slots=len(slots),
            replaced=len(moved),
            words=sum(words for words, _ in moved) / len(slots),
            embedding=sum(angle for _, angle in moved) / len(slots),
            success=success,
        )

"""What is watched: one place with its runs, or many places; found by name, and looked at again and again."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from rlanything.core.errors import ConfigError, unknown
from rlanything.files.project import PARAMS, PRIVATE
from rlanything.watch import left, machine, places, seeds
from rlanything.watch.advice.checks import warnings
from rlanything.watch.advice.warned import Warned
from rlanything.watch.left import Left
from rlanything.watch.machine import Use
from rlanything.watch.places import Place
from rlanything.watch.seeds import Seed

SILENT = 5.0
"""A run that says nothing for this many of its iterations, and `SILENT_S`, may hang."""
SILENT_S = 600.0


@dataclass(frozen=True)
class View:
    """One look. places: at least one; detail is shown of a single one. whole: time left there, of each place.

    warnings: by the name of the run that they are about; '' for the machine.
    """

    places: tuple[Place, ...]
    whole: tuple[Left, ...]
    warnings: tuple[tuple[str, Warned], ...]
    use: Use
    at: float = field(default_factory=time.time)

    @property
    def single(self) -> Place | None:
        """The place of which detail is shown; None for an overview of several."""
        return self.places[0] if len(self.places) == 1 else None


class Watched:
    """What a name means in a project, looked at as often as wanted."""

    def __init__(self, project: Path, root: Path, name: str = "") -> None:
        """root: the project, or the workspace that was chosen. name: '' for what runs now.

        Raises `ConfigError` for a name that means nothing."""
        self._project, self._root, self._name = project, root, name
        self._before: Use | None = None
        self._when = 0.0
        if name:
            self._places()

    def look(self) -> View:
        """What is to be seen now."""
        found = tuple(self._places())
        shown = [seed for place in found for seed in place.seeds]
        use = self._use(shown, found)
        told = [(seed.name, one) for seed in shown if seed.state != seeds.FINISHED for one in _warned(seed)]
        return View(found, tuple(left.of_all(p.stages) for p in found), (*told, *_machine(use)), use)

    def _places(self) -> list[Place]:
        if not self._name:
            return self._busy() or self._idle()
        here = self._here()
        named = [
            seed for seed in here.seeds if self._name.strip("/") in (seed.name, seed.arm, f"runs/{seed.name}")
        ]
        if named:
            return [replace(here, seeds=tuple(named))]
        return _at_path(self._name, self._project) or self._below(here)

    def _here(self) -> Place:
        return places.read(_place_name(self._root, self._project), self._root)

    def _busy(self) -> list[Place]:
        """The places where something runs; the chosen workspace only, if one was chosen."""
        if self._root != self._project:
            return []
        return [places.read(*at) for at in places.roots(self._project) if places.is_busy(at[1])]

    def _idle(self) -> list[Place]:
        """Where nothing runs: the chosen place, and the project's workspaces with a training that did not end."""
        here = self._here()
        if self._root != self._project:
            return [here]
        beside = [
            places.read(*at) for at in places.roots(self._project) if "/" not in at[0] and at[1] != self._root
        ]
        stopped = [place for place in beside if any(seed.state == seeds.STOPPED for seed in place.seeds)]
        return [here, *stopped] if here.seeds or not stopped else stopped

    def _below(self, here: Place) -> list[Place]:
        """The place of this name, or those below it: a sweep's trials by the name of the sweep."""
        known = dict(places.roots(self._project))
        name = self._name.strip("/")
        chosen = [n for n in known if n == name] or [n for n in known if _belongs(n, name)]
        if not chosen:
            tops = {n.split("/")[0] if "/" not in n else n.rpartition("/trials/")[0] or n for n in known}
            names = {seed.name for seed in here.seeds} | {seed.arm for seed in here.seeds} | tops
            raise ConfigError(
                f"no run, workspace, sweep or check {self._name!r}: {unknown(self._name, names)}"
            )
        return [places.read(n, known[n]) for n in chosen]

    def _use(self, shown: Sequence[Seed], found: Sequence[Place]) -> Use:
        holders = [seed.holder for seed in shown] + [one.holder for place in found for one in place.stages]
        held = [one for one in holders if one is not None]
        pids = {one.pid for one in held if one.here}
        now = machine.use(pids, self._root, {one.host for one in held if not one.here and one.host})
        before, spent = self._before, time.monotonic() - self._when
        if before is not None and spent > 0:
            now = replace(now, busy=max(0.0, now.cpu - before.cpu) / spent)
        self._before, self._when = now, time.monotonic()
        return now


def _belongs(place: str, name: str) -> bool:
    """Whether a place is a part of what the name means: `thresholds` means `sweeps/thresholds-1a2b3c4d/trials/0003`."""
    if place.startswith((f"{name}/", f"sweeps/{name}/", f"checks/{name}/")):
        return True
    return place.startswith((f"sweeps/{name}-", f"checks/{name}-"))


def _at_path(name: str, project: Path) -> list[Place]:
    """The run, arm or project in a folder, which may be anybody's; none where the name is no such folder."""
    for path in (project / name, Path(name)):
        if not path.is_dir():
            continue
        path = path.resolve()
        if _is_run(path):
            return [_alone([path])]
        runs = [folder for folder in sorted(path.glob("seed-*")) if _is_run(folder)]
        if runs:
            return [_alone(runs)]
        if (path / PARAMS).is_file() or (path / "runs").is_dir() or (path / PRIVATE).is_dir():
            return [places.read(_place_name(path, project), path)]
    return []


def _is_run(path: Path) -> bool:
    return (path / "metrics.jsonl").is_file() or (path / "iterations").is_dir()


def _alone(runs: Sequence[Path]) -> Place:
    """Runs of one arm as a place. Of what is around their folders, only times and the arm's `origin.json` are read."""
    root = runs[0].parent.parent
    read = [
        seeds.finished(root, run) if (run / "metrics.jsonl").is_file() else seeds.live(root, run, False)
        for run in runs
    ]
    busy = any(seed.state == seeds.RUNNING for seed in read)
    return Place(str(runs[0].parent), root, tuple(read), (), busy, False)


def _place_name(root: Path, project: Path) -> str:
    root, project = root.resolve(), project.resolve()
    if root == project:
        return places.PROJECT
    inside = project / PRIVATE
    return root.relative_to(inside).as_posix() if root.is_relative_to(inside) else str(root)


def _warned(seed: Seed) -> list[Warned]:
    """What a seed's metrics warn of, and a silence that is too long."""
    found = warnings(seed.rows, seed.panel_tasks)
    now = seed.now
    if seed.state == seeds.RUNNING and now is not None:
        silent = time.time() - max(now.at, seed.changed)
        if silent > max(SILENT_S, SILENT * (seed.pace or 0.0)):
            text = f"it has said nothing for {silent / 60:.0f} minutes, in phase {now.phase}"
            todo = "see whether its process still works (CPU and GPU below); killed, the same command goes on"
            found.insert(0, Warned("silent", text, todo))
    return found


def _machine(use: Use) -> list[tuple[str, Warned]]:
    found = []
    if 0 < use.disk_free < machine.LITTLE_DISK:
        text = f"the disk has {use.disk_free / 2**20:,.0f} MiB left"
        found.append(
            Warned("disk", text, "free some space; a run that finds the disk full ends, and goes on later")
        )
    if use.processes and use.memory_free < machine.LITTLE_MEMORY * use.memory_total:
        text = f"the machine has {use.memory_free / 2**20:,.0f} MiB of memory left"
        found.append(Warned("memory", text, "lower train.workers, or the system ends one of the processes"))
    return [("", one) for one in found]

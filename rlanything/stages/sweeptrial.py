"""A trial on disk: a small project of its own, in which the pipeline's own commands run.

<sweep>/trials/0003/params.yaml      the whole configuration; `rlanything --root <here> train --arm full` runs it again
                    log.txt          what the commands said
                    data, models     links to those of the project, or of `inputs/<key>/` where the trial changes a
                                     parameter on which they depend; all trials with the same parameters share them
                    runs, evaluation what train and evaluate write
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rlanything.config import Config, load
from rlanything.core.ids import content_id
from rlanything.stages import compose
from rlanything.stages.inputs import made_from
from rlanything.stages.layout import Layout
from rlanything.stages.pipeline import Pipeline
from rlanything.stages.runfolder import RunFolder
from rlanything.sweep.declare import Sweep, Value

BEFORE = ("tasks", "bootstrap")
"""The stages before training."""
Command = tuple[str, ...]


def stages(arms: Sequence[str]) -> list[str]:
    """The stages of dvc.yaml on which a trial of these arms depends."""
    return [*BEFORE, *(f"{stage}@{arm}" for arm in arms for stage in ("train", "evaluate"))]


def overrides(sweep: Sweep, sets: Mapping[str, Value], seeds: int) -> list[str]:
    """What a trial changes in experiments/, in Hydra's words."""
    own = [f"train.seeds={seeds}", "train.workers=1"]
    return [*sweep.overrides, *own, *(f"{key}={_quoted(value)}" for key, value in sets.items())]


def _quoted(value: Value) -> str:
    return (
        "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'" if isinstance(value, str) else str(value)
    )


@dataclass(frozen=True)
class Inputs:
    """Where the tasks and base models of trials come from."""

    root: Path
    folder: Path
    pipeline: Pipeline
    project: Config | None
    """What the project's own data/ and models/ were made from; None where they are not there."""

    @classmethod
    def of(cls, root: Path, params: Path, folder: Path) -> Inputs:
        """`params`: the project's configuration."""
        layout = Layout(root)
        made = params.is_file() and layout.manifest.is_file() and layout.bootstrap.is_file()
        return cls(root, folder, Pipeline(root), load(params) if made else None)

    def key(self, config: Config) -> str:
        """Names what the stages before training depend on."""
        data = config.model_dump(mode="json", by_alias=True)
        wanted = [self.pipeline.params(stage, data) for stage in BEFORE]
        return content_id({"params": wanted, "files": self.pipeline.digest(list(BEFORE), data)})[:16]

    def place(self, config: Config) -> Path:
        """The folder with data/ and models/ for this configuration, made already or not."""
        if self.project is not None and self.key(config) == self.key(self.project):
            return self.root
        return self.folder / self.key(config)

    def missing(self, place: Path) -> list[Command]:
        """The commands that are still to be run at `place`."""
        layout = Layout(place)
        done = {"tasks": layout.manifest.is_file(), "bootstrap": layout.bootstrap.is_file()}
        return [(stage,) for stage in BEFORE if not done[stage]]

    def prepare(self, place: Path, words: Sequence[str]) -> None:
        """Make the folder in which the commands of `missing` can run."""
        place.mkdir(parents=True, exist_ok=True)
        link(place, self.root, ("experiments", "envs"))
        compose.write(place / "params.yaml", words, self.root)


@dataclass(frozen=True)
class TrialFolder:
    """One trial's folder."""

    path: Path
    sweep: Sweep
    seeds: int

    def prepare(self, root: Path, inputs: Inputs, sets: Mapping[str, Value]) -> Path:
        """Write params.yaml and the links; returns where the inputs are. Raises `ConfigError` for a bad point."""
        self.path.mkdir(parents=True, exist_ok=True)
        config = compose.write(self.path / "params.yaml", overrides(self.sweep, sets, self.seeds), root)
        for arm in self.sweep.arms:
            config.arm(arm)
        place = inputs.place(config)
        link(self.path, root, ("experiments", "envs"))
        link(self.path, place, ("data", "models"))
        return place

    def commands(self) -> list[Command]:
        """What is still to be run, in order."""
        layout = Layout(self.path)
        found: list[Command] = []
        for arm in self.sweep.arms:
            if not all(layout.run(arm, seed).is_dir() for seed in range(self.seeds)):
                found.append(("train", "--arm", arm))
            if not layout.evaluation(arm).is_file():
                found.append(("evaluate", "--arm", arm))
        return found

    def clear(self) -> None:
        """Remove what its commands made; the log stays."""
        for name in ("runs", "evaluation", "provenance", ".rla"):
            shutil.rmtree(self.path / name, ignore_errors=True)

    def live(self, arm: str) -> list[Path]:
        """The live folders of the arm's seeds; there are some only while it trains."""
        return [self._live(arm, seed) for seed in range(self.seeds)]

    def _live(self, arm: str, seed: int) -> Path:
        runs = sorted((self.path / ".rla" / "live").glob(f"*/{arm}/seed-{seed}"))
        return runs[-1] if runs else self.path / ".rla" / "live" / "none"

    def done(self) -> float:
        """Share of the trial's iterations that are published."""
        config = load(self.path / "params.yaml")
        each = config.train.iterations + 1
        total = each * self.seeds * len(self.sweep.arms)
        placed = sum(
            Layout(self.path).run(arm, seed).is_dir() for arm in self.sweep.arms for seed in range(self.seeds)
        )
        live = sum(len(RunFolder(p).published()) for arm in self.sweep.arms for p in self.live(arm))
        return min(1.0, (placed * each + live) / total)

    def adopt(self, earlier: Path, seeds: int) -> None:
        """Take over the finished seeds of the same trial with fewer seeds: a seed does not depend on how many."""
        config = load(self.path / "params.yaml")
        for arm in self.sweep.arms:
            key = made_from(config, self.path, arm)["fingerprint"]
            for seed in range(seeds):
                finished = RunFolder(Layout(self.path).live(key, arm, seed)).finished
                if not finished.is_dir() and not Layout(self.path).run(arm, seed).is_dir():
                    _copy(Layout(earlier).run(arm, seed), finished)


def link(folder: Path, target: Path, names: Sequence[str]) -> None:
    """Relative links, so that they hold on another machine too."""
    for name in names:
        place = folder / name
        wanted = os.path.relpath(target / name, folder)
        if place.is_symlink() and os.readlink(place) == wanted:
            continue
        temporary = folder / f".{name}.{os.getpid()}"
        temporary.unlink(missing_ok=True)
        temporary.symlink_to(wanted)
        temporary.replace(place)


def _copy(source: Path, target: Path) -> None:
    temporary = target.with_name(f".tmp-{target.name}")
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.parent.mkdir(parents=True, exist_ok=True)
    shutil.copytree(source, temporary)
    temporary.rename(target)

"""A trial on disk: a small project in which the commands of the pipeline run.

<sweep>/trials/0003/params.yaml      the whole configuration
                    log.txt          output of the commands
                    data, models     links to the project's, or to those that the sweep made for its parameters
                    runs, evaluation results of train and evaluate
"""

from __future__ import annotations

import glob
import itertools
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlanything.config import load
from rlanything.core.errors import ConfigError
from rlanything.files import atomic
from rlanything.files.hashes import file_hashes
from rlanything.files.project import PARAMS, PRIVATE
from rlanything.files.reader import read_object
from rlanything.files.yaml_file import read_mapping
from rlanything.planning import compose
from rlanything.planning.pipeline import look_up
from rlanything.runs.fingerprint import made_from
from rlanything.runs.folder import RunFolder
from rlanything.runs.layout import Layout
from rlanything.stages.missing import Command, missing_runs
from rlanything.sweep.declare.parameters import Value
from rlanything.sweep.declare.sweep import Sweep, hydra_overrides
from rlanything.sweep.trials.inputs import MADE, Inputs, link, sources


@dataclass(frozen=True)
class TrialFolder:
    """One trial's folder."""

    path: Path
    sweep: Sweep
    seeds: int

    @property
    def log(self) -> Path:
        """Output of the commands."""
        return self.path / "log.txt"

    def prepare(self, inputs: Inputs, sets: Mapping[str, Value]) -> Path:
        """Write params.yaml and the links; returns where the inputs are.

        Raises `ConfigError` for a bad point, and for a folder that has the trial of another one.
        """
        self.path.mkdir(parents=True, exist_ok=True)
        overrides = hydra_overrides(self.sweep, sets, self.seeds)
        data = compose.compose(overrides, inputs.root)
        config = compose.checked(data, inputs.root)
        self._check_values(data, sets)
        atomic.write_text(self.path / PARAMS, compose.text(data, overrides))
        for arm in self.sweep.arms:
            config.arm(arm)
        place = inputs.place(config)
        link(self.path, inputs.root, sources(config, inputs.root))
        link(self.path, place, MADE)
        return place

    def _check_values(self, data: Mapping[str, Any], keys: Iterable[str]) -> None:
        """Raise `ConfigError` where params.yaml has other values: its results would be taken for this trial's."""
        params = self.path / PARAMS
        if not params.is_file():
            return
        there = read_mapping(params)
        for key in keys:
            found, value = look_up(there, key), look_up(data, key)
            if found != value:
                raise ConfigError(
                    f"{params}: {key} = {found}, and this trial has {value}; remove {self.path}"
                )

    def commands(self) -> list[Command]:
        """What still has to run, in order."""
        return missing_runs(load(self.path / PARAMS), self.path, self.sweep.arms)

    def clear(self) -> None:
        """Remove what its commands made; the log stays."""
        for name in ("runs", "labels", "evaluation", "provenance", PRIVATE):
            shutil.rmtree(self.path / name, ignore_errors=True)

    def live(self, arm: str) -> list[Path]:
        """The live folders of the arm's seeds; they exist only during training."""
        return [self._live(arm, seed) for seed in range(self.seeds)]

    def finished(self, arm: str) -> list[Path]:
        """The folders of the arm's seeds after training."""
        return [Layout(self.path).run(arm, seed) for seed in range(self.seeds)]

    def _live(self, arm: str, seed: int) -> Path:
        runs = sorted((self.path / PRIVATE / "live").glob(f"[!.]*/{glob.escape(arm)}/seed-{seed}"))
        return runs[-1] if runs else self.path / PRIVATE / "live" / "none"

    def progress(self) -> float:
        """Share of the trial's iterations that are published."""
        each = load(self.path / PARAMS).train.iterations + 1
        layout, arms = Layout(self.path), self.sweep.arms
        placed = sum(layout.run(arm, seed).is_dir() for arm in arms for seed in range(self.seeds))
        runs = [RunFolder(place) for arm in arms for place in self.live(arm)]
        live = sum(each if run.finished.is_dir() else len(run.published()) for run in runs)
        return min(1.0, (placed * each + live) / (each * self.seeds * len(arms)))

    def is_made_like(self, earlier: Path, arm: str) -> bool:
        """Whether the arm's runs in `earlier`, of this point, were made from the code and inputs that are here now.

        Weights of the arm in `reward_from` are left out: `adopt` compares those of every seed.
        """
        file, config = Layout(earlier).provenance(arm), load(self.path / PARAMS)
        if not file.is_file():
            return False
        record, now = read_object(file), made_from(config, self.path, arm)
        own = _without_runs(record.get("inputs") or {}) == _without_runs(now.inputs)
        return own and record.get("code") == now.code

    def adopt(self, earlier: Path, arm: str, seeds: int | None = None) -> None:
        """Take over finished seeds of an arm of the same trial: a seed's run does not depend on how many there are.

        The run of an arm with `reward_from` also depends on the reward model of its seed. So call this when that arm is
        trained here. A seed that another reward model judged is left out.

        Args:
            earlier: a folder with runs of the trial.
            arm: which arm.
            seeds: how many seeds to take from it; None: all that every arm has, from 0 on.
        """
        config, there, here = load(self.path / PARAMS), Layout(earlier), Layout(self.path)
        if seeds is None:
            arms = self.sweep.arms
            seeds = next(n for n in itertools.count() if not all(there.run(one, n).is_dir() for one in arms))
            seeds = min(seeds, self.seeds)
        key, source = made_from(config, self.path, arm).key, config.arm(arm).reward_from
        for seed in range(seeds):
            finished = RunFolder(here.live(key, arm, seed)).finished
            if finished.is_dir() or here.run(arm, seed).is_dir():
                continue
            if source is None or _weights(there.run(source, seed)) == _weights(here.run(source, seed)):
                with atomic.whole(finished) as copy:
                    atomic.copy_tree(there.run(arm, seed), copy)


def _without_runs(inputs: Mapping[str, str]) -> dict[str, str]:
    """The inputs of a run without the weights of the arm in `reward_from`."""
    return {name: digest for name, digest in inputs.items() if not name.startswith("runs/")}


def _weights(run: Path) -> dict[str, str]:
    """The hashes of the weights of a seed's run."""
    return file_hashes(run, run.rglob("*.safetensors"))

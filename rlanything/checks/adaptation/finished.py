"""The finished runs that are measured, and what was measured for each.

    .rla/checks/adaptation/<key>.json    as `Answers`

`key` is a hash of everything that the file depends on, policies, buffer and learning curves included: what is there is
never made again.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, model_validator

from rlanything.checks.adaptation.course import Point
from rlanything.checks.adaptation.declare import Adaptation
from rlanything.checks.adaptation.rewrites import Rewrite
from rlanything.checks.identity import identity, placed
from rlanything.checks.shares import Share
from rlanything.config import BASE, Checkpoint, Config
from rlanything.core.errors import ConfigError
from rlanything.core.ids import content_id
from rlanything.core.records.provenance import problem
from rlanything.files.hashes import file_hashes, tree_hash
from rlanything.files.project import PRIVATE
from rlanything.files.reader import read_object
from rlanything.runs.imports import code_hashes, packages, targets
from rlanything.runs.layout import Layout
from rlanything.runs.machine import versions
from rlanything.stages.evaluate import policy_of

CHECK = "adaptation"
FOLDER = Path(PRIVATE, "checks", CHECK)
CONFIGURED = ("seed", "env", "engine", "model", "rollout")
COMMAND = f"rlanything check {CHECK}"
MEASURED = "rlanything.checks.adaptation.measure"
"""The module that decides what the files hold."""
Distance = tuple[float, float]
"""By words, and by embedding."""


class Moved(BaseModel):
    """How far rewriting moved the slots.

    slots: id of a first task -> distance of its slot's last task. apart: mean distance of two first tasks; None where
    there is one alone.
    """

    slots: dict[str, Distance]
    apart: Distance | None


class Answers(BaseModel):
    """What was measured for one seed.

    probes: probe -> task id -> rollouts of the tasks of the rewrites. again: the same on further rollouts, as many as
    an iteration has. first: arm -> id of a first task -> rollouts by its final policy. course: the points of the
    learning curves, in their order.
    """

    rewrites: list[Rewrite]
    probes: dict[str, dict[str, Share]]
    again: dict[str, dict[str, Share]]
    first: dict[str, dict[str, Share]]
    moved: Moved
    course: list[Point]

    @model_validator(mode="after")
    def _complete(self) -> Answers:
        for name, played in [*self.probes.items(), *self.again.items()]:
            missing = {task for r in self.rewrites for task in (r.old, r.new)} - played.keys()
            if missing:
                raise ValueError(f"{name}: no rollouts of task {min(missing)[:12]}")
        return self


@dataclass(frozen=True)
class Run:
    """A finished run, the policies that play its tasks (by arm; `base` too), and where its answers are."""

    seed: int
    policies: Mapping[str, Checkpoint]
    key: str
    file: Path

    @property
    def done(self) -> bool:
        """Whether it was measured."""
        return self.file.is_file()

    def answers(self, probes: Collection[str]) -> Answers:
        """What was measured. Raises `ConfigError`, also where one of `probes` is not there."""
        advice = f"remove it and start `{COMMAND}` again"
        found = read_object(self.file, advice)
        if wrong := problem(found, Answers):
            raise ConfigError(f"{self.file}: {wrong}; {advice}")
        answers = Answers.model_validate(found)
        for name in probes:
            if name not in answers.probes or name not in answers.again:
                raise ConfigError(f"{self.file}: no rollouts of the policy {name!r}; {advice}")
        return answers


def runs(config: Config, root: Path, declared: Adaptation) -> list[Run]:
    """Every run that is measured. Raises `ConfigError` where one is missing."""
    layout = Layout(root)
    layout.check_bootstrap()
    return [find(config, layout, declared, seed) for seed in declared.used(config)]


def find(config: Config, layout: Layout, declared: Adaptation, seed: int) -> Run:
    """The run of a seed. Raises `ConfigError` where it is missing."""
    policies = {arm: policy_of(config, layout, arm, seed) for arm in (BASE, *declared.arms)}
    curves = [layout.run(arm, seed) / "metrics.jsonl" for arm in declared.arms]
    key = content_id(
        {
            **_common(config, layout, declared),
            "seed": seed,
            "models": {arm: identity(policy, layout.root) for arm, policy in policies.items()},
            "buffer": tree_hash(layout.run(declared.arm, seed) / "buffer"),
            "curves": file_hashes(layout.root, [file for file in curves if file.is_file()]),
        }
    )
    return Run(seed, policies, key, layout.root / FOLDER / f"{key[:16]}.json")


def _common(config: Config, layout: Layout, declared: Adaptation) -> dict[str, Any]:
    """What all runs depend on."""
    data = config.model_dump(mode="json", by_alias=True)
    code = [MEASURED, *targets({k: data[k] for k in ("env", "engine")})]
    return {
        "declared": declared.model_dump(mode="json", exclude={"seeds", "compare"}),
        "config": {name: data[name] for name in CONFIGURED},
        "panels": list(config.tasks.policy_panels),
        "place": placed(config),
        "prompts": tree_hash(layout.root / config.model.prompts),
        "code": code_hashes(code),
        "packages": versions(packages(code)),
    }

"""What a run is made from: configuration, hashes of code and input files, and versions of packages.

Code and packages are found from the imports of the stage (`runs/imports.py`), so no list has to be maintained.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlanything.config import Checkpoint, Config
from rlanything.config.endpoints import RESULTS
from rlanything.core.ids import content_id
from rlanything.core.types import Json
from rlanything.engines import sources
from rlanything.files.hashes import file_hashes, files_in
from rlanything.runs.imports import code_hashes, packages, targets
from rlanything.runs.machine import versions
from rlanything.targets import TARGET

FOLDERS = ("data", "models")
FINAL = (
    *("labels", "judges", "reward_policy", "solver", "solver_tries", "cooling"),
    *("repeats", "votes", "reward_rollouts"),
)
"""Keys of `evaluate` that only matter before or after the training. No run depends on them."""
SERVERS = "VllmServers"
SERVED = ("addresses", "folder", "start_s", "request_s", "restarts")
"""A class of engine, and those of its arguments that say where and how long its servers run. They change no result."""
ENDING = {"VllmEngine": ("tolerance",), SERVERS: ("tolerance",)}
"""Classes of engine, and those of their arguments that can only end a run. Classes of others may use them otherwise."""
TRAIN = "rlanything.stages.train"
"""The module of the stage that makes a run."""


@dataclass(frozen=True)
class Origin:
    """Everything that a run depends on. `code` and `inputs`: path from the project's root -> sha256.

    packages: name -> version."""

    config: Mapping[str, Json]
    """The part of the configuration that decides the results of the run."""
    code: Mapping[str, str]
    inputs: Mapping[str, str]
    packages: Mapping[str, str]

    @property
    def fingerprint(self) -> str:
        """A hash of configuration, code and inputs (64 hex digits). It is the same on every machine."""
        return content_id({"config": self.config, "code": self.code, "inputs": self.inputs})

    @property
    def key(self) -> str:
        """A hash of fingerprint and packages, which names the live folder.

        A run is resumed only with the same packages.
        """
        return content_id({"fingerprint": self.fingerprint, "packages": self.packages})


def made_from(config: Config, root: Path, arm: str) -> Origin:
    """What a run of the arm would be made from now."""
    relevant = run_config(config, arm)
    code = [TRAIN, *targets(relevant)]
    return Origin(relevant, code_hashes(code), inputs(config, root, arm), versions(packages(code)))


def run_config(config: Config, arm: str) -> dict[str, Any]:
    """The part of the configuration that decides the results of the arm's run.

    Left out: other arms, workers, how long processes wait, the executor, loggers, sections that only other stages read,
    how an endpoint is asked, where the servers of an engine are, and thresholds that can only end the run: one that
    they ended goes on with others."""
    relevant = config.model_dump(
        mode="json", by_alias=True, exclude={"arms", "scale", "bootstrap", "tasks", "endpoints", "executor"}
    )
    relevant |= _endpoints(config, arm)
    for name in ("workers", "timeout_s", "loggers"):
        relevant["train"].pop(name)
    relevant["judge"].pop("max_invalid")
    left_out = _left_out(relevant["engine"][TARGET].rpartition(".")[2])
    relevant["engine"] = {key: x for key, x in relevant["engine"].items() if key not in left_out}
    for name in FINAL:
        relevant["evaluate"].pop(name)
    return {**relevant, "panels": config.tasks.measures, "arms": {arm: config.arm(arm).model_dump()}}


def _left_out(engine: str) -> tuple[str, ...]:
    """The arguments of a class of engine that change no result."""
    return (*ENDING.get(engine, ()), *(SERVED if engine == SERVERS else ()))


def _endpoints(config: Config, arm: str) -> dict[str, Any]:
    """What decides the replies of the endpoints that the arm asks; {} where it asks none.

    Prices, time-outs and rate limits are left out: they change no reply.
    """
    asked = {"reward": not config.judge_for(config.arm(arm)).is_oracle, "adapter": config.arm(arm).adapt}
    found = {
        role: endpoint.model_dump(mode="json", include=set(RESULTS))
        for role, endpoint in config.endpoints.served.items()
        if asked.get(role, False)
    }
    return {"endpoints": found} if found else {}


def inputs(config: Config, root: Path, arm: str) -> dict[str, str]:
    """What the arm's run may read besides code, by its path from the root: sha256 of files, and commits.

    The files of a checkpoint outside of the project have their path as the configuration has it. A checkpoint on the
    hub has its name and its commit in the cache; it is left out while it is not there.
    """
    found = file_hashes(root, input_files(config, root, arm))
    for checkpoint in checkpoints(config, arm):
        found |= sources.named(checkpoint, root)
    return dict(sorted(found.items()))


def checkpoints(config: Config, arm: str) -> list[Checkpoint]:
    """The configured checkpoints that a run of the arm loads."""
    own, model = config.arm(arm), config.model
    reads = (
        own.reward_from is None or "reward" in config.learn.lora
    )  # LoRA's weights lie beside the frozen ones
    judges = reads and not config.judge_for(own).is_oracle and not config.endpoints.reward
    adapts = own.adapt and not config.endpoints.adapter
    return [model.policy, *([model.reward] if judges else ()), *([model.adapter] if adapts else ())]


def input_files(config: Config, root: Path, arm: str) -> list[Path]:
    """The project's files that the arm's run may read: data/, models/, prompts, and the weights of `reward_from`'s arm.

    `inputs` adds those of the configured checkpoints, which may lie anywhere.
    """
    found = [path for name in FOLDERS for path in files_in(root / name)]
    source = config.arm(arm).reward_from
    if source is not None:
        found += (root / "runs" / source).rglob("*.safetensors")
    return found + list(files_in(root / config.model.prompts))

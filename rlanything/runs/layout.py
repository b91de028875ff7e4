"""The paths that stages read and write, from the project's root."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path, PurePath

from rlanything.config import Checkpoint, Config
from rlanything.core.errors import ConfigError
from rlanything.core.types import Task
from rlanything.files.project import PRIVATE
from rlanything.files.records import read_lines

LORA = "lora"
"""The folder of a finished run with LoRA's weights alone, in peft's format."""


class LoraCheckpoint(Checkpoint):
    """A checkpoint that LoRA trained. `path` has the merged weights, in float32.

    In bfloat16 these would lose the products that are small beside their weights, so a model is made of the other two:

    base: what its frozen weights are read from.
    lora: the folder of LoRA's weights alone, from the project's root.
    role: `policy` or `reward`.
    """

    base: Checkpoint
    lora: str
    role: str


@dataclass(frozen=True)
class Layout:
    """Paths of one project root."""

    root: Path

    def tasks(self, name: str) -> Path:
        """The training tasks (`train`) or the tasks of a panel, one JSON line each."""
        return self.root / "data" / "tasks" / f"{name}.jsonl"

    @property
    def manifest(self) -> Path:
        """Counts and content hashes of the training tasks and of every panel."""
        return self.root / "data" / "tasks" / "manifest.json"

    def reward_panel(self, panel: str) -> Path:
        """The base policy's trajectories on a panel, with the oracle's labels where the environment has one."""
        return self.root / "models" / f"{panel}.jsonl.gz"

    @property
    def panel_images(self) -> Path:
        """The pictures that the trajectories of the reward panels name."""
        return self.root / "models" / "images"

    @property
    def labels(self) -> Path:
        """The reward panels of the final measurement, where they are not those of the bootstrap."""
        return self.root / "labels"

    def labelled(self, panel: str, labeller: str) -> Path:
        """The trajectories of one such panel, with the labels of one labeller."""
        return self.labels / panel / f"{labeller}.jsonl.gz"

    @property
    def label_images(self) -> Path:
        """The pictures that trajectories of `evaluate.reward_policy` name."""
        return self.labels / "images"

    @property
    def bootstrap(self) -> Path:
        """What the bootstrap stage recorded about the base models.

        It is written last, so models/ is complete if it exists.
        """
        return self.root / "models" / "bootstrap.json"

    def check_bootstrap(self) -> None:
        """Raise `ConfigError` unless bootstrap.json exists: models/ is then complete."""
        if not self.bootstrap.is_file():
            raise ConfigError(
                f"{self.bootstrap}: no such file, so models/ is not whole; `rlanything bootstrap` makes it"
            )

    def run(self, arm: str, seed: int) -> Path:
        """A finished run."""
        return self.root / "runs" / arm / f"seed-{seed}"

    def live(self, key: str, arm: str, seed: int) -> Path:
        """The live folder of an unfinished run. DVC does not track it, so a killed run can be resumed from it."""
        return self.root / PRIVATE / "live" / key[:16] / arm / f"seed-{seed}"

    def timings(self, arm: str, seed: int) -> Path:
        """Seconds per phase of the newest finished run, one line an iteration. Not a result."""
        return self.root / PRIVATE / "timings" / arm / f"seed-{seed}.jsonl"

    def provenance(self, arm: str) -> Path:
        """What an arm's run was made from, and the hashes of its results. It is kept in git."""
        return self.root / "provenance" / f"{arm}.json"

    def starts(self, arm: str) -> Path:
        """When, where and with which command the run was started. Git ignores this file."""
        return self.root / "provenance" / "starts" / f"{arm}.json"

    def measured(self, arm: str) -> Path:
        """When, where and with which command an arm was measured. Git ignores this file."""
        return self.root / "provenance" / "starts" / "evaluation" / f"{arm}.json"

    def evaluation(self, arm: str) -> Path:
        """The raw results of one arm on the panels."""
        return self.root / "evaluation" / f"{arm}.json"


def read_tasks(path: Path) -> list[Task]:
    """The tasks in a file, with verified ids. Raises `ConfigError` naming the line that cannot be read."""
    tasks = []
    for number, record in enumerate(read_lines(path, "rlanything tasks"), 1):
        try:
            tasks.append(Task.from_json(record))
        except (KeyError, TypeError, ValueError) as error:
            raise ConfigError(
                f"{path}:{number}: not a task ({error}); make it again with `rlanything tasks`"
            ) from None
    return tasks


def trained(config: Config, root: Path, arm: str, seed: int, role: str) -> Checkpoint:
    """The model that a seed of an arm has trained as `role`, `policy` or `reward`.

    Raises `ConfigError` when there is none.
    """
    run = Layout(root).run(arm, seed)
    folder = run / "checkpoints" / role
    if not folder.is_dir():
        raise ConfigError(f"{folder}: no such folder; train first with `rlanything train --arm {arm}`")
    path = str(folder.relative_to(root))
    if role not in config.learn.lora:
        return Checkpoint(path=path)
    return LoraCheckpoint(
        path=path, base=config.lora_bases[role], lora=str((run / LORA / role).relative_to(root)), role=role
    )


def as_trained(config: Config, root: Path, checkpoint: Checkpoint) -> Checkpoint:
    """What a configured path to the final model of one of this project's runs stands for, if LoRA trained it.

    Other checkpoints are returned as they are: LoRA's weights lie beside no other.
    """
    match PurePath(checkpoint.path).parts:
        case ("runs", arm, seed, "checkpoints", role) if (root / "runs" / arm / seed / LORA / role).is_dir():
            if role in config.learn.lora and not isinstance(checkpoint, LoraCheckpoint):
                lora = str(PurePath("runs", arm, seed, LORA, role))
                return LoraCheckpoint(
                    path=checkpoint.path, base=config.lora_bases[role], lora=lora, role=role
                )
    return checkpoint

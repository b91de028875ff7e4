"""A training of two models that read pictures, in one process or in one of several."""

from __future__ import annotations

import copy
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from learn_cases import SLOW, lesson, verdicts
from sight_cases import NAMES, PICTURES, prompt
from trainer_cases import OFFLOAD, low_rank, quiet

from rlanything.config import LearnConfig, OptimizerConfig
from rlanything.core.types import Judgement, Step, Vote
from rlanything.engines import checkpoint
from rlanything.engines.lora.injection import inject
from rlanything.engines.sight import eyes as sight
from rlanything.learn.batches import own_part
from rlanything.learn.callbacks import PublishIteration
from rlanything.learn.datamodule import ExperienceDataModule
from rlanything.learn.losses import pack, target_logprobs
from rlanything.learn.module import JointModule, Minibatch
from rlanything.learn.packing import Row, policy_rows, reward_rows
from rlanything.learn.sharding import whole
from rlanything.learn.trainer import StateFile, make_strategy

KINDS = {"policy": "qwen2_5_vl", "reward": "qwen3_vl"}
CONFIG = SLOW.model_copy(
    update={"updates": 2, "micro_batch_tokens": 1, "importance": "recomputed", "kl_reference": "base"}
)
"""Every row is a micro-batch, so that text and pictures are read at the same time."""
RATE = OptimizerConfig(lr=1e-3)
LORA = low_rank(CONFIG.model_copy(update={"policy": RATE, "reward": RATE, "gradient_checkpointing": True}))
"""The same with LoRA, at a rate that moves its weights."""
LONG, LONGEST = 80, 120
"""Tokens of text."""
SHOWN = (
    [
        *((0, ()) for _ in range(3)),
        *((0, names) for names in (NAMES[:1], NAMES[:2], NAMES[1:3], NAMES[:1])),
        *((LONG, ()) for _ in range(3)),
        (LONGEST, NAMES[:1]),
    ],
    [(0, ())] * 3,
)
"""How much text is added to each row of the two updates, and the row's pictures. Sorted by length: text beside text,
text beside a picture, two rows with pictures, a picture beside text, text beside text again, and a last picture that
the second process has nothing beside. The second update shows none."""


def rows_of(name: str, kind: str) -> list[list[Row]]:
    """The rows of each update of a model, with log-probs that are a little off its own."""
    return [
        [_row(name, kind, tuple(names), more, k) for k, (more, names) in enumerate(update)]
        for update in SHOWN
    ]


def _row(name: str, kind: str, names: tuple[str, ...], more: int, number: int) -> Row:
    ids, said = prompt(kind, *names, text="what next?" + "?" * (more + number)), (7 + number, 8, 9)
    if name == "policy":
        step = Step(ids, said, (-5.0,) * 3, (), "", True, "", prompt_images=names)
        (row,) = policy_rows(lesson([step], [1.0 - number]), "trajectory")
        return row
    votes = tuple(Vote(1, "", (*said, k), (-5.0,) * 4) for k in (5, 6))
    (row,) = reward_rows(verdicts([Judgement(ids, votes, names)], [[1.0, -0.5]]), "step")
    return row


@dataclass
class Sighted:
    """Two models with eyes, and what was seen while they learned. folders: `policy`, `reward` -> its checkpoint."""

    folders: dict[str, Path]
    config: LearnConfig = CONFIG
    iteration: int = 0
    totals: list[dict[str, list[float]]] = field(default_factory=list)
    weights: list[dict[str, torch.Tensor]] = field(default_factory=list)
    """After each iteration."""

    def __post_init__(self) -> None:
        models = {name: checkpoint.load(folder)[0] for name, folder in self.folders.items()}
        self.eyes = {
            name: sight.load(str(folder), None, models[name], PICTURES.__getitem__)
            for name, folder in self.folders.items()
        }
        self.rows = {name: rows_of(name, kind) for name, kind in KINDS.items()}
        for name, updates in self.rows.items():
            for row in (row for update in updates for row in update):
                with torch.no_grad():
                    own = target_logprobs(models[name], pack([row], eyes=self.eyes[name]))
                row.old = [x + 0.1 for x in own.tolist()]
                row.weight = [w / 7 for w in row.weight]
        first = [copy.deepcopy(model) for model in models.values()]
        for name, settings in self.config.lora.items():
            inject(models[name], settings, len(name), f"learn.{name}.lora")
        self.module = JointModule(self.config, *models.values(), *first, self.eyes)

    def collect(self) -> list[Minibatch]:
        rows = copy.deepcopy(self.rows)
        for name, updates in rows.items():
            self.module.prepare(name, [row for update in updates for row in update])
        return [
            Minibatch(self.iteration, *(own_part(self.module, name, rows[name], k) for name in KINDS))
            for k in range(self.config.updates)
        ]

    def fit(self, iterations: int, folder: Path | None = None, resume: Path | None = None, **more: Any):
        """Train up to `iterations`. folder: where each of them leaves a checkpoint."""

        def write(save: Any) -> dict[str, float]:
            self.iteration += 1
            self.totals.append({name: list(of) for name, of in self.module.totals.items()})
            state = self.module.state_dict()
            self.weights.append({name: whole(value).clone() for name, value in state.items()})
            if folder is not None:
                save(folder / f"{self.iteration}.ckpt")
            return {"iteration": self.iteration - 1.0}

        def restore(state: dict[str, Any]) -> None:
            self.iteration = state["iteration"]

        data = ExperienceDataModule(
            self.collect, self.config.updates, lambda: {"iteration": self.iteration}, restore
        )
        trainer = quiet(max_epochs=iterations, callbacks=[PublishIteration(write)], **more)
        trainer.fit(self.module, data, ckpt_path=str(resume) if resume else None)
        return self


def main(out: Path, strategy: str, folders: Sequence[Path], *, lora: bool = False) -> None:
    """One of two processes: train one iteration, then leave statistics, weights and a checkpoint.

    strategy: that of a configuration, or `OFFLOAD`.
    """
    torch.set_num_threads(1)
    made = Sighted(dict(zip(KINDS, folders, strict=True)), LORA if lora else CONFIG)
    offload = strategy == OFFLOAD
    placed = make_strategy("fsdp" if offload else strategy, 2, offload=offload)
    made.fit(1, out, strategy=placed, devices=2, plugins=[StateFile()])
    rank = made.module.trainer.global_rank
    (out / f"totals-{rank}.json").write_text(json.dumps(made.totals))
    torch.save(made.weights[0], out / f"weights-{rank}.pt")

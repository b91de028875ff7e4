"""Our side: an engine samples, and `JointModule` learns in Lightning's trainer, as in a training of one policy."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch
from lightning.pytorch import Callback, LightningModule, Trainer
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedModel, PreTrainedTokenizerBase

from benchmarks.trainers.turns import Clock
from benchmarks.trainers.work import CLIP_NORM, EPSILON, LR, Work, outcome
from rlanything.config import LearnConfig, OptimizerConfig, TrainConfig
from rlanything.core.protocols import Engine
from rlanything.core.seeds import derive_seed
from rlanything.core.signals import trajectory_advantages
from rlanything.core.types import Completion, Request, ScoredTrajectory, Status, Step, Trajectory
from rlanything.engines.native import NativeEngine
from rlanything.engines.transformers import TransformersEngine
from rlanything.learn.batches import make_batches
from rlanything.learn.datamodule import ExperienceDataModule
from rlanything.learn.module import JointModule, Minibatch
from rlanything.learn.trainer import make_trainer

ENGINES = {"native": NativeEngine, "transformers": TransformersEngine}


def train(work: Work, folder: Path, engine: str, clock: Clock) -> None:
    """Train the model of a folder. engine: of `ENGINES`."""
    learner = _Learner(work, folder, engine, clock)
    data = ExperienceDataModule(learner.collect, work.updates, dict, lambda _: None)
    settings = TrainConfig(iterations=work.iterations, precision="32-true")
    try:
        make_trainer(settings, work.iterations, [_Iterations(clock)]).fit(learner.module, data)
    finally:
        learner.engine.close()


class _Iterations(Callback):
    """An epoch is an iteration."""

    def __init__(self, clock: Clock) -> None:
        self._clock, self._steps = clock, 0

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self._clock.start()

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self._clock.count(steps=trainer.global_step - self._steps)
        self._steps = trainer.global_step
        self._clock.done()


class _Learner:
    """The module, its engine, and what collects the experience of an iteration."""

    def __init__(self, work: Work, folder: Path, engine: str, clock: Clock) -> None:
        self._work, self._clock = work, clock
        self._iteration = 0
        self._tokenizer: PreTrainedTokenizerBase = AutoTokenizer.from_pretrained(folder)
        policy = _model(folder)
        reference = _model(folder).requires_grad_(False) if work.beta else None
        for model in (policy, reference):
            if model is not None:
                clock.watch(model)
        self.module = JointModule(learning(work), policy, None, reference)
        # one call for all replies, as TRL makes
        self.engine: Engine = ENGINES[engine](policy, self._tokenizer, max_batch=work.replies)

    def collect(self) -> list[Minibatch]:
        """The minibatches of the next iteration."""
        texts = self._work.texts(self._iteration)
        prompts = [tuple(ids) for ids in self._tokenizer(text=texts)["input_ids"]]
        requests = [
            Request(
                prompt,
                derive_seed(0, "bench", self._iteration, k, reply),
                self._work.reply,
                1.0,
                (),
                "",
                f"{k}",
            )
            for k, prompt in enumerate(prompts)
            for reply in range(self._work.group)
        ]
        with self._clock.sampling():
            self.engine.sync(self._iteration)
            completions = self.engine.generate(requests)
        self._clock.count(sampled=sum(len(completion.ids) for completion in completions))
        self._tokenizer.batch_decode([list(completion.ids) for completion in completions])
        lessons = _lessons(requests, completions, self._work.group)
        batches, _ = make_batches(self.module, lessons, (), 0, self._iteration)
        rows = [row for batch in batches for group in batch.policy for row in group]
        self._clock.count(rows=len(rows), trained=sum(len(row.target) for row in rows))
        self._iteration += 1
        return batches


def learning(work: Work) -> LearnConfig:
    """The settings of the update. No forward pass has more tokens than `work.rows` rows of the greatest length."""
    return LearnConfig(
        policy=OptimizerConfig(lr=LR, clip_norm=CLIP_NORM),
        updates=work.updates,
        epsilon=EPSILON,
        beta=work.beta,
        kl_reference="base" if work.beta else "start_of_step",
        loss_weight="trajectory",
        importance="recomputed" if work.recompute else "recorded",
        micro_batch_tokens=work.rows * work.longest,
    )


def _model(folder: Path) -> PreTrainedModel:
    model: PreTrainedModel = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    return model.eval()


def _lessons(
    requests: Sequence[Request], completions: Sequence[Completion], group: int
) -> list[ScoredTrajectory]:
    """Episodes of one turn, with the advantages of GRPO. Each `group` replies in a row answer one prompt."""
    outcomes = [outcome(completion.ids) for completion in completions]
    starts = range(0, len(outcomes), group)
    advantages = [a for start in starts for a in trajectory_advantages(outcomes[start : start + group])]
    found = []
    for request, completion, reward, advantage in zip(
        requests, completions, outcomes, advantages, strict=True
    ):
        step = Step(request.prompt_ids, completion.ids, completion.logprobs, completion.allowed, "", True, "")
        episode = Trajectory("", 0, 0, request.seed, "", (step,), reward, Status.OK)
        found.append(ScoredTrajectory(episode, (advantage,)))
    return found

"""One seed of one arm: the loop and the module under one trainer, resumable after every iteration."""

from __future__ import annotations

import copy
import logging
import warnings as python_warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from lightning.pytorch import Trainer
from lightning.pytorch.callbacks import Callback

from rlanything.buffer import TaskBuffer, snapshot_path, write_snapshot
from rlanything.config import Config, ConfigError
from rlanything.core.seeds import derive_seed
from rlanything.engines import checkpoint
from rlanything.learn.callbacks import IterationProgress, PublishIteration, write_dvclive
from rlanything.learn.datamodule import ExperienceDataModule
from rlanything.learn.module import JointModule, Minibatch
from rlanything.learn.packing import Row, micro_batches, minibatches, policy_rows, reward_rows
from rlanything.loop.adapt import Adapter
from rlanything.loop.iteration import Harvest, Loop, LoopState
from rlanything.loop.metrics import warnings
from rlanything.loop.panel import measure_policy, success_rate
from rlanything.loop.rollout import Roller
from rlanything.loop.speaker import Speaker
from rlanything.stages import build
from rlanything.stages.layout import Layout, read_lines, read_tasks
from rlanything.stages.records import proposal_from_json, proposal_to_json
from rlanything.stages.rewardkind import reward_kind
from rlanything.stages.runfolder import STATE, RunFolder, write_harvest
from rlanything.stages.statefile import StateFile


@dataclass(frozen=True)
class Where:
    """Which run this is, and where it lives while it is on its way."""

    root: Path
    arm: str
    seed: int
    live: Path


class SeedRun:
    """Builds the parts once and lets the trainer pull iterations through them."""

    def __init__(self, config: Config, where: Where, say: Callable[[str], None]) -> None:
        build.one_thread()
        self.config = config
        self.where = where
        self.say = say
        self.layout = Layout(where.root)
        self.folder = RunFolder(where.live)
        self.arm = config.arm(where.arm)
        self.run_seed = derive_seed(config.seed, "run", where.seed)
        self.family = build.family(config)
        self.prompts = build.prompts(config, where.root)
        self._load_models()
        self.start = TaskBuffer.start(read_tasks(self.layout.tasks("train")))
        self.state = LoopState(0, self.start)
        self.harvest: Harvest | None = None
        self.metrics: dict[str, float] = {}

    def run(self) -> None:
        """Train to the end, resuming where the folder says, then write <live>/finished. Raises `ConfigError`.

        Under torchrun every process collects the same experience and learns from its share; the first one writes.
        """
        if not build.first_process():
            self._fit(len(self.folder.published()))
            return
        with self.folder.lock():
            done = self.folder.recover()
            write_snapshot(self.start, snapshot_path(self.folder.path, 0))  # the later ones build on it
            if done < self.config.train.iterations + 1:
                self._fit(done)
            self.folder.export(self.start, self._finish)

    def _load_models(self) -> None:
        config, root = self.config, self.where.root
        self.policy, self.policy_tokenizer = build.load(config.model.policy, root)
        source = config.model.reward
        if self.arm.reward_from is not None:
            trained = self.layout.run(self.arm.reward_from, self.where.seed) / "checkpoints" / "reward"
            source = source.model_copy(update={"path": str(trained.relative_to(root)), "revision": None})
        self.reward, self.reward_tokenizer = build.load(source, root)
        adapter, adapter_tokenizer = build.load(config.model.adapter, root)
        self.policy_speaker = build.speaker(config, self.policy, self.policy_tokenizer)
        self.reward_speaker = build.speaker(config, self.reward, self.reward_tokenizer)
        self.roller = Roller(self.family, self.policy_speaker, self.prompts, config.rollout)
        self.kind = reward_kind(config, self.family, self.reward_speaker, self.prompts)
        speaker: Speaker = build.speaker(config, adapter, adapter_tokenizer)
        self.loop = Loop(
            config,
            self.arm,
            self.run_seed,
            self.roller,
            self.kind.feedback(self.arm, self.run_seed),
            Adapter(self.family, speaker, self.prompts, config.adaptation),
            config.model.adapter.path,
        )
        anchored = config.learn.kl_reference == "base"
        self.module = JointModule(
            config.learn,
            self.policy,
            self.reward if self.arm.train_reward else None,
            copy.deepcopy(self.policy) if anchored else None,
            copy.deepcopy(self.reward) if anchored and self.arm.train_reward else None,
        )

    def _fit(self, done: int) -> None:
        train = self.config.train
        data = ExperienceDataModule(
            self._collect, self.config.learn.updates, self._save_state, self._restore_state
        )
        callbacks: list[Callback] = [PublishIteration(self._publish), IterationProgress(self._progress)]
        trainer = quiet_trainer(
            max_epochs=train.iterations + 1,
            accelerator=train.accelerator,
            callbacks=callbacks,
            precision=train.precision,
            strategy=_strategy(train.strategy, train.devices),
            devices=train.devices,
        )
        checkpoint_file = self.folder.state_file()
        if checkpoint_file is not None:
            self.say(f"resuming after iteration {done - 1}")
        try:
            trainer.fit(self.module, data, ckpt_path=str(checkpoint_file) if checkpoint_file else None)
        except SystemExit:  # what Lightning makes of Ctrl-C
            raise KeyboardInterrupt from None

    def _collect(self) -> list[Minibatch]:
        """One iteration's experience. The last one only measures: nothing is learned after it."""
        self.policy_speaker.engine.sync()
        self.reward_speaker.engine.sync()
        updates = self.config.learn.updates
        panels = self._panels()
        if self.state.iteration == self.config.train.iterations:
            self.harvest = Harvest((), (), (), (), replace(self.state, iteration=self.state.iteration + 1))
            self.metrics = {
                "iteration": self.state.iteration,
                "accepted_total": self.state.buffer.accepted,
                **panels,
            }
            return [Minibatch(self.state.iteration, (), ()) for _ in range(updates)]
        self.harvest = self.loop.collect(self.state)
        self.metrics = {"iteration": self.state.iteration, **self.harvest.metrics, **panels}
        self._check_replies()
        return self._minibatches(self.harvest)

    def _panels(self) -> dict[str, float]:
        """The curve: small panels at every `evaluate.every`-th iteration and at the end."""
        evaluate, iteration = self.config.evaluate, self.state.iteration
        if iteration % evaluate.every and iteration != self.config.train.iterations:
            return {}
        values = {}
        for split in ("in_domain", "out_of_domain"):
            tasks = read_tasks(self.layout.tasks(split))[: evaluate.curve_tasks]
            settings = (self.run_seed, 1, evaluate.temperature, evaluate.max_steps)
            values[f"panel/{split}"] = success_rate(measure_policy(self.roller, tasks, *settings))
        if self.arm.train_reward or iteration == 0:
            panel = list(read_lines(self.layout.reward_panel, "rlanything bootstrap"))
            values |= self.kind.curve(panel, evaluate.curve_tasks, self.run_seed)
        return values

    def _check_replies(self) -> None:
        """Stop a run whose reward model says nothing that can be read. Raises `ConfigError`."""
        judge, votes = self.config.judge, self.config.judge.writes == "votes"
        share = self.metrics.get("invalid_votes" if votes else "invalid_tests", 0.0)
        if share <= judge.max_invalid:
            return
        what = "verdict" if votes else "test"
        hint = f"model.verdict_format ({self.config.model.verdict_format}), " if votes else ""
        raise ConfigError(
            f"iteration {self.state.iteration}: {share:.0%} of the reward model's replies hold no {what} (more than "
            f"judge.max_invalid = {judge.max_invalid:.0%}). What is published stays. Check {hint}the judge "
            "template and judge.max_tokens."
        )

    def _minibatches(self, harvest: Harvest) -> list[Minibatch]:
        learn, iteration = self.config.learn, self.state.iteration
        units = {
            "policy": [policy_rows(lesson, learn.loss_weight) for lesson in harvest.policy],
            "reward": [reward_rows(lesson, learn.loss_weight) for lesson in harvest.reward],
        }
        parts: dict[str, list[list[Row]]] = {}
        for name, rows in units.items():
            kept = [r for r in rows if r]
            parts[name] = minibatches(kept, learn.updates, self.run_seed, iteration, name)
            self.metrics.update(self.module.prepare(name, [r for batch in parts[name] for r in batch]))
            self.metrics[f"{name}/rows"] = float(sum(map(len, parts[name])))
        return [
            Minibatch(iteration, *(self._micro(parts[name], u) for name in ("policy", "reward")))
            for u in range(learn.updates)
        ]

    def _micro(self, batches: list[list[Row]], update: int) -> tuple[tuple[Row, ...], ...]:
        """This process's micro-batches of an update; padded with empty ones so that every process has as many."""
        if update >= len(batches):
            return ()
        groups = micro_batches(batches[update], self.config.learn.micro_batch_tokens)
        world, rank = self.module.trainer.world_size, self.module.trainer.global_rank
        groups += [[] for _ in range(-len(groups) % world)]
        return tuple(tuple(group) for group in groups[rank::world])

    def _publish(self, save_checkpoint: Callable[[Path], None]) -> None:
        harvest = self.harvest
        if harvest is None:
            raise ValueError("an iteration ended that never collected anything")
        metrics = {**self.metrics, **{k: sum(v) / len(v) for k, v in self.module.totals.items()}}
        finished, self.state = self.state.iteration, harvest.state

        def write(folder: Path) -> None:
            write_harvest(folder, harvest, metrics, self.start, rollouts=self.config.train.save_rollouts)
            save_checkpoint(folder / STATE)

        trainer = self.module.trainer
        if trainer.is_global_zero:
            self.folder.publish(finished, write)
        else:
            save_checkpoint(self.where.live / STATE)  # takes part in it; only the first process writes a file
        trainer.strategy.barrier()
        for warning in warnings(self.folder.metrics()):
            self.say(f"warning: {warning}")

    def _progress(self, iteration: int, seconds: float) -> None:
        parts = [f"iteration {iteration}/{self.config.train.iterations}", f"{seconds:.1f} s"]
        parts += [
            f"{k} {self.metrics[k]:.3f}" for k in ("accuracy", "mu", "panel/in_domain") if k in self.metrics
        ]
        parts.append(f"accepted {self.metrics['accepted_total']:.0f}")
        self.say(", ".join(parts))

    def _save_state(self) -> dict[str, Any]:
        return {
            "iteration": self.state.iteration,
            "cursor": self.state.cursor,
            "buffer": self.state.buffer.digest,
            "pending": [proposal_to_json(p) for p in self.state.pending],
        }

    def _restore_state(self, state: dict[str, Any]) -> None:
        buffer = self.folder.buffer(state["iteration"] - 1)
        if buffer.digest != state["buffer"]:
            raise ConfigError(
                f"{self.where.live}: the buffer does not belong to its checkpoint; delete the folder"
            )
        pending = tuple(proposal_from_json(p) for p in state["pending"])
        self.state = LoopState(state["iteration"], buffer, state["cursor"], pending)

    def _finish(self, folder: Path) -> None:
        """What a finished run holds besides its iterations: the final models, and the metrics as DVCLive files."""
        write_dvclive(folder / "dvclive", self.folder.metrics())
        self._save_models(folder / "checkpoints")

    def _save_models(self, folder: Path) -> None:
        checkpoint_file = self.folder.state_file()
        if checkpoint_file is None:
            raise ValueError("nothing was published")
        import torch

        weights = torch.load(checkpoint_file, weights_only=True, map_location="cpu")["state_dict"]
        self.module.load_state_dict(weights)
        checkpoint.save(self.policy, self.policy_tokenizer, folder / "policy")
        if self.arm.train_reward:
            checkpoint.save(self.reward, self.reward_tokenizer, folder / "reward")


def _strategy(name: str, devices: int) -> str:
    """Policy and reward model have a backward pass each, so plain DDP would wait for the other one's gradients."""
    return "ddp_find_unused_parameters_true" if devices > 1 and name in ("auto", "ddp") else name


def quiet_trainer(**settings: Any) -> Trainer:
    """A trainer that says nothing of its own: this project reports progress itself."""
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    python_warnings.filterwarnings("ignore", module="lightning")
    return Trainer(
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        num_sanity_val_steps=0,
        plugins=StateFile(),
        **settings,
    )

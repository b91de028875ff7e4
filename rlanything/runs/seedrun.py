"""Training of one seed of one arm. It can be resumed after every iteration."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from lightning.pytorch.utilities.exceptions import SIGTERMException

from rlanything.buffer import TaskBuffer, snapshot_path, write_snapshot
from rlanything.config import Config
from rlanything.core.errors import ConfigError, MachineError
from rlanything.core.printable import percents
from rlanything.core.records.rollouts import proposal_from_json, proposal_to_json
from rlanything.core.splits import TRAIN
from rlanything.core.timing import phase
from rlanything.core.types import Json, Trajectory
from rlanything.files.images import FOLDER as IMAGES
from rlanything.files.records import write_lines
from rlanything.learn.batches import empty_batches, make_batches
from rlanything.learn.callbacks import EndTogether, PublishIteration, write_dvclive
from rlanything.learn.datamodule import ExperienceDataModule
from rlanything.learn.module import Minibatch
from rlanything.learn.trainer import StateFile, make_trainer
from rlanything.loop.batch import LoopState
from rlanything.loop.critic import CRITICS
from rlanything.loop.iteration import IterationResult
from rlanything.loop.metrics import warnings
from rlanything.loop.record import episode_records
from rlanything.loop.share import SAME_FOLDER, agree, announced, together
from rlanything.runs import build, timings, trackers
from rlanything.runs.executors.ahead import PHASE as AHEAD
from rlanything.runs.executors.ahead import Ahead
from rlanything.runs.executors.opened import opened
from rlanything.runs.folder import IMAGES_AHEAD, STATE, RunFolder, write_iteration_files
from rlanything.runs.launch import first_process
from rlanything.runs.layout import Layout, read_tasks
from rlanything.runs.parts import RunId, make_parts
from rlanything.runs.progress.heartbeat import Heartbeat
from rlanything.runs.progress.seed import SeedProgress


class SeedRun:
    """Runs the iterations of one seed in a Lightning trainer, and publishes each of them."""

    def __init__(
        self, config: Config, run_id: RunId, say: Callable[[str], None], check: Callable[[], None]
    ) -> None:
        """`say` prints a line. `check` raises when a file that the run depends on has changed."""
        build.one_thread()
        self.config = config
        self.run_id = run_id
        self.say = say
        self.check = check
        self.folder = RunFolder(run_id.live)
        self.timer = Heartbeat(run_id.live if first_process() else None)
        self.loggers = trackers.make_loggers(config, run_id.root, run_id.arm, run_id.seed)
        self.callbacks = trackers.make_callbacks(config)
        self.engines = ExitStack()
        self.ahead = Ahead()
        self.parts = make_parts(config, run_id, self.engines)
        self.start = TaskBuffer.start(read_tasks(Layout(run_id.root).tasks(TRAIN)))
        self.state = LoopState(0, self.start)
        self.head = self.start.digest
        """The last hash in the chain of events that `state` follows from."""
        check()  # every file that was read so far has the hash in the run's fingerprint
        self.result: IterationResult | None = None
        self.metrics: dict[str, float] = {}
        shown = f"{run_id.arm} seed {run_id.seed}", config.train.iterations, config.tasks.policy_panels[0]
        self.progress = SeedProgress(*shown, self._warnings, say)

    def run(self) -> None:
        """Train to the end, from the last published iteration on, then write <live>/finished.

        Raises `ConfigError`, and `MachineError` when published iterations are damaged.

        Under torchrun every process collects the same experience and learns from its share of it. Only the first
        process writes files. The engines and the executor are closed at the end, also after an error.
        """
        # Engines end before the executor's Ray, which may have placed their servers, and also where it never begins.
        with self.engines, opened(self.config), closing(self.engines), self.ahead:
            if first_process():
                self._train()
            else:
                self._fit(self._found())

    def _train(self) -> None:
        """Train, and write all files of the run."""
        with self.folder.lock():
            done = self.folder.recover(self.say)
            if self.config.train.processes > 1:
                announced(self._name, done, self.config.train.timeout_s)
            write_snapshot(self.start, snapshot_path(self.folder.path, 0))  # later ones are differences to it
            self._fit(done)
            self.folder.export(self.start, self._finish)

    def _found(self) -> int:
        """How many intact iterations the first process has found, which alone reads the last checkpoint to check it.

        Raises `MachineError` when this process does not see that checkpoint."""
        done = announced(self._name, None, self.config.train.timeout_s)
        if done and not (checkpoint := self.folder.state_file(done - 1)).is_file():
            raise MachineError(
                f"{checkpoint}: the processes of this run are not at the same place: rank 0 goes on from it, and here "
                f"it is not. {SAME_FOLDER}"
            )
        return done

    @property
    def _name(self) -> str:
        """The run's key, arm and seed."""
        return "/".join(self.run_id.live.parts[-3:])

    def _fit(self, done: int) -> None:
        """Train the iterations after the first `done`."""
        epochs = self.config.train.iterations + 1
        if done == epochs:
            return
        data = ExperienceDataModule(
            self._collect, self.config.learn.updates, self._save_state, self._restore_state
        )
        # The configured callbacks run first, so that their changes are part of the published iteration.
        callbacks = [*self.callbacks, PublishIteration(self._publish), EndTogether()]
        trainer = make_trainer(self.config.train, epochs, callbacks, self.loggers)
        for logger in self.loggers:
            logger.log_hyperparams(trackers.hyperparameters(self.config, self.run_id.arm, self.run_id.seed))
        checkpoint_file = self.folder.state_file(done - 1) if done else None
        if done:
            self.say(f"resuming after iteration {done - 1}")
        self.progress.begin(done)
        try:
            with self.timer.running(), together():
                trainer.fit(self.parts.module, data, ckpt_path=checkpoint_file)
        except SystemExit as end:
            if is_interruption(end):
                raise KeyboardInterrupt from None
            raise
        if trainer.current_epoch < epochs:
            raise ConfigError(
                f"training was stopped after iteration {trainer.current_epoch - 1}, before train.iterations = "
                f"{epochs - 1}. A callback of train.callbacks did it; a run has the iterations that are declared"
            )

    def _collect(self) -> list[Minibatch]:
        """Collect the minibatches of one iteration. The last iteration only measures; its minibatches are empty."""
        self.timer.lap()
        self.timer.begin(self.state.iteration)
        agree(self._place())
        for model, trained in ((self.parts.policy, True), (self.parts.reward, self.parts.arm.train_reward)):
            with phase("weights"):
                if model is not None:
                    model.chat.sync(self.state.iteration, trained=trained)
        iteration, updates = self.state.iteration, self.config.learn.updates
        panels = self.parts.curve.measure(iteration)
        place = {"iteration": iteration, "tokens_before": self.state.tokens}
        if iteration == self.config.train.iterations:
            self.result = IterationResult((), (), (), (), replace(self.state, iteration=iteration + 1))
            self.metrics = {"accepted_total": self.state.buffer.accepted, **place, **panels}
            return empty_batches(updates, iteration)
        result = self._judged()
        spent = self.parts.spent(self.config.train.processes)
        self.result, self.metrics = result, {**result.metrics, **place, **panels, **spent}
        self._check_replies()
        batches, prepared = make_batches(
            self.parts.module, result.policy, result.reward, self.parts.run_seed, iteration
        )
        self.metrics |= prepared
        return batches

    def _place(self) -> dict[str, object]:
        """Which run this is and where it stands, which all processes must agree on."""
        return {"run": self._name, "iteration": self.state.iteration, "buffer": self.state.buffer.digest[:16]}

    def _judged(self) -> IterationResult:
        """What the iteration collected. With `train.staleness` 1 the batch of the next one is begun meanwhile."""
        loop, state = self.parts.loop, self.state
        if not self.config.train.staleness:
            return loop.collect(state)
        batch = self.ahead.take() or loop.roll_out(state)
        following = loop.begun(state, batch)
        if following.iteration < self.config.train.iterations:
            with phase("weights"):  # in this thread: while another one samples, the model is trained
                self.parts.policy.chat.ensure_started()
            self.ahead.begin(partial(loop.roll_out, following))
        return loop.collect(state, batch)

    def _check_replies(self) -> None:
        """Raise `ConfigError` when too many replies of the reward model cannot be parsed."""
        replies, most = self.parts.kind.replies, self.config.judge.max_invalid
        share = self.metrics.get(replies.invalid, 0.0)
        if share > most:
            found, allowed = percents(share, most)
            raise ConfigError(
                f"iteration {self.state.iteration}: {found} of the reward model's replies hold no "
                f"{replies.content} (more than judge.max_invalid = {allowed}). What is published stays. "
                f"Check {replies.settings}; with a higher judge.max_invalid the same command goes on from there."
            )

    def _publish(self, save_checkpoint: Callable[[Path], None]) -> Mapping[str, float]:
        """Write the iteration, in the first process only. Returns its metrics."""
        result, trainer = self.result, self.parts.module.trainer
        if result is None:
            raise ValueError("an iteration ended without having collected anything")
        beside = self.ahead.wait()
        if beside is not None:
            self.timer.add(AHEAD, beside)
        finished, self.state = self.state.iteration, result.state
        self.metrics |= {name: sum(x) / len(x) for name, x in self.parts.module.totals.items()}

        def write(folder: Path) -> None:
            before = self.folder.head(self.start, finished)
            self.head = write_iteration_files(
                folder, result, self.metrics, self.start, before, self._records(result)
            )
            if ahead := _pictures(self.ahead.trajectories):
                write_lines(folder / IMAGES_AHEAD, self.parts.images.listed(ahead))
            save_checkpoint(folder / STATE)

        with phase("publish"):
            if trainer.is_global_zero:
                self.check()
                self.folder.publish(finished, write)
            else:
                # Every process must take part in saving a checkpoint; only the first one writes a file.
                save_checkpoint(self.run_id.live / STATE)
            self.parts.images.discard_added(self._saved(result), trainer.strategy.barrier, self._held(result))
        self._report(finished, first=trainer.is_global_zero)
        return self.metrics

    def _records(self, result: IterationResult) -> dict[str, Iterable[Json]]:
        """The records of the rollouts, by the name of their file."""
        if not self.config.train.save_rollouts:
            return {}
        saved = self._saved(result)
        pictures: dict[str, Iterable[Json]] = {IMAGES: self.parts.images.listed(saved)} if saved else {}
        found: dict[str, Iterable[Json]] = {
            "rollouts": episode_records(result.groups),
            **self.parts.kind.records(result.groups),
            **pictures,
        }
        if self.parts.arm.adapt and self.config.adaptation.critic == "model":
            found[CRITICS] = [record.to_json() for record in result.critics]
        return found

    def _saved(self, result: IterationResult) -> set[str]:
        """The names of the pictures that stay with an iteration: those of its rollouts, where they are saved."""
        return _pictures(_collected(result)) if self.config.train.save_rollouts else set()

    def _held(self, result: IterationResult) -> set[str]:
        """The names of the pictures of the batches that the last two checkpoints hold, because of `train.staleness`.

        The iteration's own batch is in the one before: it is needed if the iteration's folder is damaged.
        """
        if not self.config.train.staleness:
            return set()
        return _pictures([*_collected(result), *self.ahead.trajectories])

    def _report(self, iteration: int, *, first: bool) -> None:
        """Store the iteration's times. Print progress and warnings."""
        lap = self.timer.lap()
        if first:
            timings.record(self.run_id.live, iteration, lap)
        self.progress.published(iteration, lap, self.folder.metrics())

    def _warnings(self, history: Sequence[Mapping[str, float | None]]) -> list[str]:
        """What the metrics so far warn of."""
        return [*self.parts.kind.warnings(history), *warnings(history)]

    def _save_state(self) -> dict[str, Any]:
        """The loop's state as plain values.

        The buffer's digest does not cover its events: an invalid proposal changes no slot. So the head of their chain
        is saved as well.
        """
        found = {
            "iteration": self.state.iteration,
            "cursor": self.state.cursor,
            "tokens": self.state.tokens,
            "buffer": self.state.buffer.digest,
            "events": self.head,
            "pending": [proposal_to_json(p) for p in self.state.pending],
        }
        return {**found, "ahead": self.ahead.saved(self.state)} if self.config.train.staleness else found

    def _restore_state(self, state: dict[str, Any]) -> None:
        """Take over a saved state. Raises `ConfigError` when buffer or events are not those that it was saved with."""
        buffer = self.folder.buffer(state["iteration"] - 1)
        if buffer.digest != state["buffer"]:
            raise ConfigError(
                f"{self.run_id.live}: the buffer does not belong to its checkpoint; delete the folder"
            )
        self.head = self.folder.head(self.start, state["iteration"])
        if self.head != state.get("events"):
            raise ConfigError(
                f"{self.run_id.live}: the events do not belong to its checkpoint; delete the folder"
            )
        pending = tuple(proposal_from_json(p) for p in state["pending"])
        self.state = LoopState(state["iteration"], buffer, state["cursor"], pending, state["tokens"])
        if self.config.train.staleness:
            self.state = self.ahead.restore(state["ahead"], self.state, self.parts.loop.batches)

    def _finish(self, folder: Path) -> None:
        """Write what `finished` holds besides the iterations: the metrics as DVCLive files, and the final models."""
        checkpoint_file = self.folder.state_file(self.config.train.iterations)
        write_dvclive(folder / "dvclive", self.folder.metrics())
        weights = StateFile().load_checkpoint(checkpoint_file, weights_only=True)["state_dict"]
        learned = {"policy": self.parts.policy}
        if self.parts.arm.train_reward and self.parts.reward is not None:
            learned["reward"] = self.parts.reward
        for name, model in learned.items():
            own = {
                key.removeprefix(f"{name}."): x for key, x in weights.items() if key.startswith(f"{name}.")
            }
            model.save(own, folder, name)


def is_interruption(end: SystemExit) -> bool:
    """Whether Lightning ended the training because of Ctrl-C or SIGTERM. Code of an environment can call `sys.exit`."""
    return isinstance(end, SIGTERMException) or isinstance(end.__context__, KeyboardInterrupt)


def _collected(result: IterationResult) -> list[Trajectory]:
    """What an iteration learned from."""
    return [trajectory for group in result.groups for trajectory in group.trajectories]


def _pictures(trajectories: Iterable[Trajectory]) -> set[str]:
    """The names of what the episodes have seen."""
    return {name for trajectory in trajectories for name in trajectory.images}

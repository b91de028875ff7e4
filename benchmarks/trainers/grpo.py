"""The other side: TRL's GRPOTrainer, with the settings that give it the same work. It needs `trl` and `datasets`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from datasets import Dataset
from transformers import PrinterCallback, TrainerCallback
from trl import GRPOConfig, GRPOTrainer

from benchmarks.trainers.turns import Clock
from benchmarks.trainers.work import CLIP_NORM, EPSILON, LR, Work, outcome


def train(work: Work, folder: Path, clock: Clock) -> None:
    """Train the model of a folder."""
    texts = [text for iteration in range(work.iterations) for text in work.texts(iteration)]
    trainer = _Counting(
        str(folder),
        _reward,
        settings(work, folder),
        Dataset.from_dict({"prompt": texts}),
        callbacks=[_Iterations(clock, work.updates)],
    )
    trainer.clock = clock
    trainer.remove_callback(PrinterCallback)
    clock.watch(trainer.model)
    if trainer.ref_model is not None:
        clock.watch(trainer.ref_model)
    _time_sampling(trainer.model, clock)
    trainer.train()


def settings(work: Work, folder: Path) -> GRPOConfig:
    """The settings. One batch of replies is sampled for `work.updates` optimizer steps, and every row trains once."""
    return GRPOConfig(
        output_dir=str(folder / "out"),
        model_init_kwargs={"dtype": "float32"},
        num_generations=work.group,
        max_completion_length=work.reply,
        per_device_train_batch_size=work.rows,
        gradient_accumulation_steps=work.replies // (work.updates * work.rows),
        steps_per_generation=work.replies // work.rows,
        num_iterations=1,
        max_steps=work.updates * work.iterations,
        shuffle_dataset=False,
        beta=work.beta,
        epsilon=EPSILON,
        learning_rate=LR,
        lr_scheduler_type="constant",
        max_grad_norm=CLIP_NORM,
        use_cpu=True,
        bf16=False,
        gradient_checkpointing=False,
        save_strategy="no",
        logging_strategy="no",
        report_to="none",
        disable_tqdm=True,
    )


class _Counting(GRPOTrainer):
    """Counts the rows and the tokens that the loss is of."""

    clock: Clock

    def compute_loss(self, model: Any, inputs: Any, *args: Any, **named: Any) -> Any:
        """The loss of TRL."""
        mask = inputs["completion_mask"]
        self.clock.count(rows=len(mask), trained=int(mask.sum()))
        return super().compute_loss(model, inputs, *args, **named)


class _Iterations(TrainerCallback):
    """An iteration ends with the last of its optimizer steps."""

    def __init__(self, clock: Clock, updates: int) -> None:
        self._clock, self._updates = clock, updates

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Start the clock."""
        self._clock.start()

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Count the step; let the other sides have their turns after the last one."""
        self._clock.count(steps=1)
        if state.global_step % self._updates == 0:
            self._clock.done()


def _time_sampling(model: Any, clock: Clock) -> None:
    """The time of `model.generate` is that of sampling."""
    generate = model.generate

    def timed(input_ids: Any, **named: Any) -> Any:
        with clock.sampling():
            found = generate(input_ids=input_ids, **named)
        clock.count(sampled=len(found) * (found.shape[1] - input_ids.shape[1]))
        return found

    model.generate = timed


def _reward(completion_ids: Sequence[Sequence[int]], **_: Any) -> list[float]:
    return [float(outcome(ids)) for ids in completion_ids]

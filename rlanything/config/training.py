"""How an arm is trained: how long, where, and how far sampling may run ahead of learning."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from rlanything.config.executor import Seconds
from rlanything.config.section import Named, Positive, Precision, Section

MOST_STALE = 1
TIMEOUT_S = 3600.0
"""Twice what a worker that hangs may take by default, so that the other processes of its run wait for it."""


class TrainConfig(Section):
    """How long, and how many seeds of each arm run side by side."""

    iterations: Positive
    seeds: Annotated[int, Field(gt=0, le=1000)] = 1
    workers: Positive = 1
    """Processes at once inside a stage; does not change any result."""
    precision: Precision = "bf16-mixed"
    """Of the models that have none of their own in `learn`."""
    strategy: Literal["auto", "ddp", "fsdp"] = "auto"
    offload: bool = False
    """Whether the parts of divided models, their gradients and moments lie in the host's memory (`fsdp`)."""
    exchange: Literal["each", "last"] = "each"
    """After which micro-batches of a step `fsdp` exchanges gradients. The other strategies do it after the last one."""
    accelerator: Literal["cpu", "auto", "cuda", "mps"] = "cpu"
    """Where all models lie, in every stage. `native` samples on the CPU and needs `cpu`."""
    devices: Positive = 1
    """Processes of one node, each with an accelerator of its own."""
    nodes: Positive = 1
    """Machines that share a run. They all need the project's folder."""
    timeout_s: Seconds = TIMEOUT_S
    """How long a process of a run waits for the others of it, wherever they exchange something."""
    staleness: Annotated[int, Field(ge=0)] = 0
    """How many iterations older the weights are that sample a batch than those that learn from it."""
    save_rollouts: bool = True
    loggers: dict[str, Named] = Field(default_factory=dict)
    """Lightning loggers by a name of one's own; they change no result."""
    callbacks: dict[str, Named] = Field(default_factory=dict)
    """Lightning callbacks; they may change results."""

    @model_validator(mode="after")
    def _one_step_off(self) -> TrainConfig:
        if self.staleness > MOST_STALE:
            raise ValueError(
                f"staleness = {self.staleness}: must be 0 (each batch is sampled by the weights that learn from it) or "
                f"{MOST_STALE} (the batch of the next iteration is sampled while this one is judged and learned from)"
            )
        if self.staleness and self.processes > 1:
            raise ValueError(
                f"staleness = {self.staleness}: needs devices = 1 and nodes = 1, not {self.devices} and {self.nodes}: "
                "the processes of a run exchange rollouts and gradients in one order, which sampling beside learning "
                "would break"
            )
        return self

    @model_validator(mode="after")
    def _exchanges_parts(self) -> TrainConfig:
        if self.exchange == "last" and self.strategy != "fsdp":
            raise ValueError(
                f"exchange = last: needs strategy = fsdp, not {self.strategy}, which exchanges gradients after the "
                "last micro-batch of a step in any case; leave it at each"
            )
        return self

    @model_validator(mode="after")
    def _offloads_parts(self) -> TrainConfig:
        if self.offload and self.strategy != "fsdp":
            raise ValueError(
                f"offload = True: needs strategy = fsdp, not {self.strategy}: only the parts of divided models are "
                "kept in the host's memory"
            )
        return self

    @property
    def processes(self) -> int:
        """How many processes share a run, on all nodes together."""
        return self.devices * self.nodes

    @property
    def seeds_at_once(self) -> int:
        """How many seeds train side by side, all on the first device. Processes that share runs train one at a time."""
        return 1 if self.processes > 1 else min(self.workers, self.seeds)

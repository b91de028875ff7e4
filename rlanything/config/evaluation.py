"""How the models are measured: the policy, the reward model, and the controls beside the arms."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from rlanything.config.models import Checkpoint
from rlanything.config.section import LISTED, Positive, Section, Temperature
from rlanything.core.printable import safe

BASE = "base"
"""Stands for an arm where results are named: the first policy and reward model, which never trained."""
BASE_COOLED = "base_cooled"
"""The same policy at the temperature that it is best at: what training gains beyond being less random."""
CONTROLS = (BASE, BASE_COOLED)
"""What is measured beside the arms: nothing of it is trained."""
ORACLE = "oracle"
"""Stands for a judge where labels are named: the environment knows which steps are good."""
FOLDER_NAME = "60 characters at most, each can be printed, no /, no . at the start"
"""What `names_folder` asks, for messages."""


def names_folder(name: str) -> bool:
    """Whether an arm or judge may have this name, which names a folder or file: at most 240 bytes, of 255 allowed."""
    return 0 < len(name) <= 60 and name.isprintable() and "/" not in name and not name.startswith(".")


class Sampler(Checkpoint):
    """A model that only measures, with sampling of its own where that is set.

    None: that of the models that train, `judge` for who votes and `rollout` for who acts.
    """

    temperature: Temperature | None = None
    max_tokens: Positive | None = None
    """The longest reply."""
    prompts: str | None = None
    """A folder of prompt templates; None: `model.prompts`."""

    @property
    def sampling(self) -> dict[str, float]:
        """`temperature` and `max_tokens` where they are set."""
        given = {"temperature": self.temperature, "max_tokens": self.max_tokens}
        return {key: value for key, value in given.items() if value is not None}


class LabelJudge(Sampler):
    """A model whose votes label the steps that the reward model is measured on: the majority of `votes`."""

    votes: Positive = 8


class CoolingConfig(Section):
    """How the best temperature of the untrained policy is found."""

    temperatures: Annotated[tuple[Temperature, ...], LISTED, Field(min_length=1)]
    tasks: Positive
    """Tasks of the training split that nothing else uses: no training, no panel, no demonstration."""
    repeats: Positive = 1


class EvaluateConfig(Section):
    """How the panels are measured."""

    temperature: Temperature = 0.8
    max_steps: Positive = 60
    repeats: Positive = 3
    votes: Positive = 3
    reward_rollouts: Positive = 16
    reward_policy: Sampler | None = None
    """Whose trajectories the reward model is measured on; None: the untrained policy's."""
    labels: Literal["oracle", "judge"] = "oracle"
    judges: dict[str, LabelJudge] = Field(default_factory=dict)
    every: Positive = 5
    curve_tasks: Positive = 140
    curve_rollouts: Positive = 2
    solver: Sampler | None = None
    """Who shows that accepted tasks can be solved; None: the environment's own expert, where it has one."""
    solver_tries: Positive = 16
    cooling: CoolingConfig | None = None
    """The control `base_cooled`; None: it is not measured."""

    @model_validator(mode="after")
    def _named(self) -> EvaluateConfig:
        for name in self.judges:
            if not names_folder(name) or name == ORACLE:
                raise ValueError(
                    f"judges.{safe(name)}: a judge names a file: {FOLDER_NAME}, and not {ORACLE!r}"
                )
        if self.labels == "judge" and not self.judges:
            raise ValueError(
                "labels = 'judge': judges is empty; declare one, e.g. judges.strong.path = Qwen/Qwen3-32B"
            )
        return self

    @property
    def samplers(self) -> tuple[Sampler, ...]:
        """Every model that only measures."""
        found = (self.reward_policy, self.solver, *self.judges.values())
        return tuple(sampler for sampler in found if sampler is not None)

    @property
    def labellers(self) -> tuple[str, ...]:
        """Who labels the steps that the reward model is measured on; the tables of the report show the first one."""
        return tuple(self.judges) if self.labels == "judge" else (ORACLE,)

    @property
    def own_panel(self) -> bool:
        """Whether the final measurement has a reward panel of its own; if not, it is the bootstrap's."""
        return self.labels == "judge" or self.reward_policy is not None

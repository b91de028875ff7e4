"""Which tasks there are: those to train on, and the frozen panels to measure on, as many as are declared."""

from __future__ import annotations

from collections import Counter
from typing import Annotated, Any, Literal, get_args

from pydantic import model_validator

from rlanything.config.section import LISTED, Positive, Section
from rlanything.core.splits import PANEL_NAME, POLICY, RESERVED, REWARD, TRAIN

FORMER = ("in_domain", "out_of_domain", "reward_panel")
"""Keys of `tasks` that held the size of a panel before panels were a mapping; files of that time get a message."""
Measure = Literal["policy", "reward"]
"""What is measured on a panel: the policy, the reward model."""


class PanelConfig(Section):
    """Frozen tasks of one split."""

    split: str | None = None
    """Which of the environment's splits they are of; None: the one that is named like the panel."""
    tasks: Positive
    measures: Annotated[tuple[Measure, ...], LISTED]

    @model_validator(mode="after")
    def _something_once(self) -> PanelConfig:
        if not self.measures or len(set(self.measures)) < len(self.measures):
            raise ValueError(
                f"measures = {list(self.measures)}: name what is measured, once: {' or '.join(get_args(Measure))}"
            )
        return self


class TasksConfig(Section):
    """How many tasks are trained on, where they come from, and the panels."""

    train: Positive
    panels: dict[str, PanelConfig]
    """By name, in the order of the tables."""
    start: str | None = None
    """A task buffer (.jsonl) whose current tasks are trained on; None: the environment makes them."""
    start_digest: str | None = None
    """The digest of that buffer."""

    @model_validator(mode="before")
    @classmethod
    def _refuse_counts(cls, data: Any) -> Any:
        """Say the form of a panel where a number stands in its place."""
        if not isinstance(data, dict):
            return data
        panels = data.get("panels")
        inside = panels if isinstance(panels, dict) else {}
        for key, value in [*((key, data[key]) for key in FORMER if key in data), *inside.items()]:
            if type(value) is int:
                raise ValueError(f"{key} = {value}: {size_key(key, value)}")
        return data

    @model_validator(mode="after")
    def _check_panels(self) -> TasksConfig:
        seen: dict[str, str] = {}
        for name in self.panels:
            if not PANEL_NAME.fullmatch(name) or name.casefold() in RESERVED:
                raise ValueError(
                    f"panels.{name}: a panel names files and metrics: a letter, then at most 49 letters, digits, _ "
                    f"and -, and none of {', '.join(sorted(RESERVED))}"
                )
            if (other := seen.setdefault(name.casefold(), name)) != name:
                raise ValueError(
                    f"panels.{name}: differs from panels.{other} in capitals alone; files would not"
                )
        for what in (POLICY, REWARD):
            if not self.measuring(what):
                raise ValueError(
                    f"panels: {', '.join(self.panels)}: none of them has {what!r} in its measures"
                )
        return self

    @model_validator(mode="after")
    def _named(self) -> TasksConfig:
        if (self.start is None) != (self.start_digest is None):
            raise ValueError(
                f"start = {self.start!r} and start_digest = {self.start_digest!r} belong together; "
                "`rlanything buffer import` prints both"
            )
        return self

    def measuring(self, what: str) -> tuple[str, ...]:
        """The panels on which `what` is measured, in the order of the configuration."""
        return tuple(name for name, panel in self.panels.items() if what in panel.measures)

    @property
    def policy_panels(self) -> tuple[str, ...]:
        """The panels that the policy plays."""
        return self.measuring(POLICY)

    @property
    def reward_panels(self) -> tuple[str, ...]:
        """The panels that the reward model is measured on."""
        return self.measuring(REWARD)

    @property
    def measures(self) -> dict[str, list[str]]:
        """Panel -> what is measured there."""
        return {name: sorted(panel.measures) for name, panel in self.panels.items()}

    def split(self, panel: str) -> str:
        """The split that the tasks of a panel are of."""
        return self.panels[panel].split or panel

    @property
    def drawn(self) -> dict[str, int]:
        """Split -> how many tasks training and all its panels take from it, in the order in which they are made."""
        counts = Counter({TRAIN: self.train})
        for name, panel in self.panels.items():
            counts[self.split(name)] += panel.tasks
        return dict(counts)


def size_key(panel: str, count: object = "N") -> str:
    """Where the size of a panel is set, for an error message."""
    return (
        f"a panel is declared below tasks.panels; its size is tasks.panels.{panel}.tasks = {count}, beside measures "
        "(a list of policy, reward) and split"
    )

"""What every kind of reward model offers, besides its part in the loop (`loop.reward_model`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from rlanything.core.types import Json, Observation, Task, Trajectory

if TYPE_CHECKING:
    from rlanything.learn.packing import Row
    from rlanything.loop.chat_model import ChatModel
    from rlanything.loop.record import EpisodeRecord

Record = TypeVar("Record")
PanelLines = Sequence[Mapping[str, Json]]
"""Lines of the reward panel, as `bootstrap` wrote them."""
Demonstration = list[tuple[Observation, str]]
"""(observation, action) pairs of a teacher."""


@dataclass(frozen=True, slots=True)
class Replies:
    """How the replies of a kind of reward model are counted and named in messages and in the dry run."""

    unit: str
    """What is asked for: "votes a step"."""
    panel: str
    """What an evaluation asks about: "judged trajectories"."""
    content: str
    """What a readable reply holds: "verdict"."""
    invalid: str
    """The metric with the share of replies that are not readable."""
    settings: str
    """What to check when too few are readable."""
    per_task: bool = False
    """Whether a question is about a task, whose episodes share the replies, and not about a step."""


@dataclass(frozen=True, slots=True)
class FirstModel:
    """What the first reward model does on the reward panel.

    metrics: for bootstrap.json. objection: why this reward model must not be trained with, or ''.
    """

    metrics: dict[str, float]
    objection: str


class PanelEvaluation(Protocol):
    """Measures a reward model on the reward panel, which is made once and is the same for every arm."""

    def panel(self, tasks: Sequence[Task], trajectories: Sequence[Trajectory]) -> list[dict[str, Json]]:
        """The panel's lines, from a policy's trajectories on `tasks` (a trajectory's slot is the task's index).

        An environment that can labels them; without an oracle there are no labels. Raises `ConfigError` for a task
        that cannot be on it.
        """
        ...

    def relabel(self, panel: PanelLines, run_seed: int) -> list[dict[str, Json]]:
        """The panel with labels of this model instead. Raises `ConfigError` where labels are no opinion."""
        ...

    def assess(self, panel: PanelLines) -> FirstModel:
        """Whether this reward model is fit to begin with."""
        ...

    def part(self, panel: PanelLines, tasks: int, rollouts: int) -> PanelLines:
        """The lines of the first `tasks` tasks, with at most `rollouts` trajectories of each."""
        ...

    def curve(self, panel: PanelLines, run_seed: int) -> dict[str, float]:
        """Points of the learning curve."""
        ...

    def results(self, panels: Mapping[str, PanelLines], run_seed: int) -> dict[str, Any]:
        """Raw results by task, as evaluation/<arm>.json holds them.

        panels: who labelled it -> the panel; the first one is what the report's tables show.
        """
        ...


class WarmStart(Protocol):
    """What an embedded reward model is first taught, and how its texts look."""

    def critic(self, task: Task, seed: int) -> str:
        """A made-up critic of the task, as an adapter would read it."""
        ...

    def corpus(self, tasks: Sequence[Task], demos: Sequence[Demonstration]) -> list[str]:
        """Texts for the tokenizer: what the reward model reads and writes. `demos` are of the first tasks."""
        ...

    def rows(self, policy: ChatModel, tasks: Sequence[Task]) -> list[Row]:
        """What the reward model learns from. `policy`: the base policy; all models share its tokenizer."""
        ...


class StoredIteration(Protocol):
    """What a run stored of one iteration."""

    @property
    def episodes(self) -> Sequence[EpisodeRecord]:
        """Its episodes. Raises `ConfigError`."""
        ...

    def read(self, name: str, from_json: Callable[[Mapping[str, Json]], Record]) -> list[Record]:
        """The other records called `name`, read. Raises `ConfigError` naming the line that cannot be read."""
        ...

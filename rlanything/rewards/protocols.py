"""What every kind of reward model offers in addition to its part in the loop (`loop.reward_model`)."""

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
    """How messages and the dry run name and count the replies of a kind of reward model."""

    unit: str
    """What is asked for: "votes a step"."""
    panel: str
    """What an evaluation asks about: "judged trajectories"."""
    content: str
    """What a readable reply holds: "verdict"."""
    invalid: str
    """The metric with the share of replies that are not readable."""
    settings: str
    """The settings to check when too few replies are readable."""
    per_task: bool = False
    """True: a question is about a task, and its episodes share the replies. False: it is about a step."""


@dataclass(frozen=True, slots=True)
class FirstModel:
    """How good the first reward model is on the reward panel.

    metrics: for bootstrap.json. objection: why training must not start with this reward model, or ''.
    """

    metrics: dict[str, float]
    objection: str


class PanelEvaluation(Protocol):
    """Measures a reward model on the reward panel, which is made once and is the same for every arm."""

    def panel(self, tasks: Sequence[Task], trajectories: Sequence[Trajectory]) -> list[dict[str, Json]]:
        """The panel's lines, from a policy's trajectories on `tasks` (a trajectory's slot is the task's index).

        An environment with an oracle labels them; without one there are no labels. Raises `ConfigError` for a task
        that cannot be on it.
        """
        ...

    def relabel(self, panel: PanelLines, run_seed: int) -> list[dict[str, Json]]:
        """The panel with labels of this model instead. Raises `ConfigError` where no model can label."""
        ...

    def assess(self, panel: PanelLines) -> FirstModel:
        """Whether this reward model is good enough to start training with."""
        ...

    def part(self, panel: PanelLines, tasks: int, rollouts: int) -> PanelLines:
        """The lines of the first `tasks` tasks, with at most `rollouts` trajectories of each."""
        ...

    def curve(self, panel: PanelLines, run_seed: int) -> dict[str, float]:
        """Metrics for one point of the learning curve."""
        ...

    def results(self, panels: Mapping[str, PanelLines], run_seed: int) -> dict[str, Any]:
        """Raw results by task, as evaluation/<arm>.json holds them.

        panels: name of the labeller -> the panel that it labelled. The report's tables show the first one.
        """
        ...


class WarmStart(Protocol):
    """The warm start of an embedded reward model: its training rows and sample texts."""

    def critic(self, task: Task, seed: int) -> str:
        """An invented criticism of the task, in the form that an adapter reads."""
        ...

    def corpus(self, tasks: Sequence[Task], demos: Sequence[Demonstration]) -> list[str]:
        """Texts for the tokenizer: what the reward model reads and writes. `demos`: of the first tasks, in order."""
        ...

    def rows(self, policy: ChatModel, tasks: Sequence[Task]) -> list[Row]:
        """The rows that the reward model learns from. `policy`: the base policy; all models share its tokenizer."""
        ...


class StoredIteration(Protocol):
    """What a run stored of one iteration."""

    @property
    def episodes(self) -> Sequence[EpisodeRecord]:
        """Its episodes. Raises `ConfigError` when they cannot be read."""
        ...

    def read(self, name: str, from_json: Callable[[Mapping[str, Json]], Record]) -> list[Record]:
        """The stored records called `name`, parsed. Raises `ConfigError` naming the line that cannot be read."""
        ...

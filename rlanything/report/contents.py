"""What the report shows for each kind of reward model: its metrics, the paper's values, figures and a few sentences.

The paper's values stand beside results on its own kinds of tasks alone.

`judge.writes` says which kind an experiment has: `votes` on steps (text games) or unit `tests` (coding).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from rlanything.config import BASE, Config
from rlanything.report.declared_figures import (
    ACCEPTED,
    BAND,
    HEALTH,
    RESPONSES,
    SIGNALS,
    THEORY,
    WRITTEN,
    Drawing,
    Plot,
)
from rlanything.report.results.evaluations import EVALUATE, Panels, ReportError
from rlanything.report.results.metrics import Metric, kind_name, metrics_for, named
from rlanything.report.results.paper import BENCHMARKS, CODING, NO_RESULTS, Paper, on_other_steps, paper_on


@dataclass(frozen=True)
class Contents:
    """What the report shows for one kind of reward model."""

    writes: str
    """The value of `judge.writes`."""
    measured: str
    """How the reward model's metrics are measured, after the meaning of each."""
    acts: bool
    """Whether an episode has many steps, so that success can be drawn against their number."""
    training: tuple[Drawing, ...]
    """Figures of what is only measured while training."""
    signals: tuple[str, ...] = ()
    """Arms that differ in what rewards the policy alone: outcomes, outcomes and votes, votes (the paper's Fig. 6a)."""
    metrics: tuple[Metric, ...] = ()
    """In the order of the tables."""
    paper: Paper = NO_RESULTS
    """What stands beside ours."""

    @property
    def shares(self) -> tuple[Metric, ...]:
        """Those that are measured on small panels while training: all but the counts."""
        return tuple(metric for metric in self.metrics if metric.is_share)

    @property
    def compared(self) -> tuple[Metric, ...]:
        """Those that the paper has values of, to stand beside ours."""
        return tuple(metric for metric in self.metrics if self.paper.value(BASE, metric) is not None)

    def title(self, metric: Metric) -> str:
        """The metric's title in this report."""
        return metric.titles[self.writes]

    @property
    def reward(self) -> str:
        """What the metrics of the reward model are."""
        return " ".join(
            filter(None, [*dict.fromkeys(m.meaning for m in self.metrics), self.measured, POINT_AT_START])
        )

    @property
    def drawings(self) -> tuple[Drawing, ...]:
        """Every figure of curves."""
        success = tuple(self._curve(metric) for metric in self.shares if metric.is_success)
        return (
            Drawing("learning", "learning", "Learning curves (paper: Fig. 1.1 and 4)", success),
            *([replace(SIGNALS, plots=success, arms=self.signals)] if self.signals else []),
            *self._reward_models(),
            *(self._count(metric) for metric in self.metrics if not metric.is_share),
            *self.training,
        )

    def _reward_models(self) -> Iterator[Drawing]:
        """A figure for each panel of the reward model."""
        reward = [metric for metric in self.shares if not metric.is_success]
        for panel in dict.fromkeys(metric.panel for metric in reward):
            plots = tuple(self._curve(metric) for metric in reward if metric.panel == panel)
            where = (
                (f"reward_model_{panel}", f"Reward model on {panel} (paper: Fig. 1.4)")
                if panel
                else ("reward_model", "Reward model (paper: Fig. 1.4)")
            )
            yield Drawing(where[0], "reward", where[1], plots)

    def _curve(self, metric: Metric) -> Plot:
        mark_text = "" if metric.chance is None else "chance"
        return Plot(metric.curve, f"{self.title(metric)} (%)", True, metric, metric.chance, mark_text)

    def _count(self, metric: Metric) -> Drawing:
        title = self.title(metric)
        plot = Plot(metric.curve, f"{title}, in all", final=metric, only_changing=True)
        return Drawing(metric.short, "tasks", f"{title} (paper: Fig. 1.4 and 7a)", (plot,))


POINT_AT_START = "Arms that do not train their reward model have one point, at the start."
VOTES = Contents(
    writes="votes",
    measured="",
    acts=True,
    training=(RESPONSES, ACCEPTED, HEALTH, *THEORY),
    signals=("outcome", "policy", "step_only"),
)
TESTS = Contents(
    writes="tests",
    measured=(
        "A right program is one that passes all of its task's own tests. Both are measured on the same programs for "
        "every reward model, while training on the policy's own, which change with it."
    ),
    acts=False,
    training=(RESPONSES, ACCEPTED, WRITTEN, BAND),
)
CONTENTS: Mapping[str, Contents] = {contents.writes: contents for contents in (VOTES, TESTS)}


def contents_of(config: Config) -> Contents:
    """What the report of this configuration shows."""
    contents, metrics = CONTENTS[kind_name(config)], metrics_for(config)
    paper = paper_on(str(config.env["_target_"]))
    if paper is CODING and any(metric.benchmark for metric in metrics):
        paper = BENCHMARKS
    if config.evaluate.reward_policy is not None:
        paper, metrics = on_other_steps(paper, metrics)
    return replace(contents, metrics=metrics, paper=paper)


def contents_for(config: Config, measured: Panels) -> Contents:
    """The contents for `config`. Raises `ReportError` for an evaluation with metrics of another reward model."""
    contents, writes = contents_of(config), kind_name(config)
    for arm, row in measured.items():
        foreign = dict.fromkeys(metric.stored for metric in map(named, row) if writes not in metric.titles)
        if foreign:
            raise ReportError(
                f"evaluation/{arm}.json: holds {', '.join(foreign)}, which is not measured where judge.writes is "
                f"{writes}; make it again with `{EVALUATE}`"
            )
    return contents

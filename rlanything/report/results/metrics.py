"""The report's metrics, each declared once: tables, figures, sentences, exports and sweeps are made from them.

The policy has one for each panel that it plays, named like the panel. The reward model has those of `DECLARED`; with
several panels it has each of them for every panel: `ut/<panel>`. To add one of the reward model: write its results into
evaluation/<arm>.json under its name (and, for a curve, its points into metrics.jsonl under `panel/<name>`) where they
are measured, and declare it here. More is better in all of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from rlanything.config import Config
from rlanything.core.splits import POLICY, on_panel
from rlanything.report.results.evidence import BALANCED_HITS, COUNT, HITS, OUTCOMES, PLAIN_HITS, Evidence


@dataclass(frozen=True)
class Metric:
    """One number of the report."""

    name: str
    """Its key in summary.json, and in evaluation/<arm>.json unless `results` says another."""
    short: str
    """Its name where there is little room."""
    titles: Mapping[str, str]
    """`judge.writes` -> title in the report; it is measured for these kinds of reward model."""
    evidence: Evidence
    meaning: str = ""
    """A sentence that says what it is."""
    results: str = ""
    """The key of evaluation/<arm>.json with the hits that it is computed from, where another metric is named so."""
    headline: bool = False
    """Whether it stands in headline.json for the arms that change it; the policy's success does for every arm."""
    counter: str = ""
    """For a count: the key of metrics.jsonl that has it so far."""
    chance: float | None = None
    """Value of a guess, marked in the figure."""
    paper: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    """Benchmark of the paper's Table 1 -> its values for the arms of `paper.ORDER`."""
    benchmark: str = ""
    """Which of them it is measured on; '': none of them, and the setting's first one stands beside it."""
    panel: str = ""
    """The panel that it is measured on, where its name says so."""

    @property
    def kind(self) -> str:
        """What it measures, on whichever panel."""
        return POLICY if self.is_success else self.name.partition("/")[0]

    @property
    def general(self) -> Mapping[str, str]:
        """`judge.writes` -> its title without the panel."""
        return SUCCESS if self.is_success else DECLARED[self.kind].titles

    @property
    def stored(self) -> str:
        """The key of evaluation/<arm>.json that holds its results."""
        return self.results or self.name

    @property
    def is_success(self) -> bool:
        """Whether it says how often the policy succeeds; the other shares are the reward model's."""
        return self.evidence is OUTCOMES

    @property
    def is_share(self) -> bool:
        """Whether it is a fraction, shown in percent; otherwise a count."""
        return self.evidence.is_share

    @property
    def scale(self) -> float:
        """What a value is multiplied by to be shown."""
        return 100.0 if self.is_share else 1.0

    @property
    def curve(self) -> str:
        """Its key in metrics.jsonl: a share's on a small panel, a count's so far."""
        return self.counter or f"panel/{self.name}"


SUCCESS = {"votes": "Accuracy", "tests": "Code"}
"""`judge.writes` -> what the policy's success is called."""
CODE = {
    "LiveBench": (0.313, 0.388, 0.400, 0.432),
    "LiveCodeBench-V2": (0.269, 0.314, 0.317, 0.341),
    "CodeContests": (0.212, 0.258, 0.265, 0.273),
}
"""The paper's values of the policy on each of its coding benchmarks."""
AGENTS = {
    "in_domain": {"ALFWorld": (0.390, 0.511, 0.556, 0.602), "OSWorld": (0.404, 0.483, 0.496, 0.521)},
    "out_of_domain": {"ALFWorld": (0.449, 0.593, 0.618, 0.636), "OSWorld": (0.161, 0.198, 0.200, 0.213)},
}
"""Panel -> the paper's values of the policy on ALFWorld's games and OSWorld's tasks of that name."""
DECLARED: Mapping[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric(
            "rm_process_plain",
            "RM process",
            {"votes": "RM process accuracy"},
            PLAIN_HITS,
            "Process accuracy: share of the steps whose verdict is their label (plain agreement, as in the paper).",
            results="rm_process",
            paper={"ALFWorld": (0.470, 0.470, 0.524, 0.564), "OSWorld": (0.860, 0.860, 0.887, 0.913)},
        ),
        Metric(
            "rm_process",
            "RM bal.",
            {"votes": "RM process accuracy, balanced"},
            BALANCED_HITS,
            "Balanced: mean of the accuracy on good and on bad steps (a constant answer scores 50 %).",
            headline=True,
            chance=0.5,
        ),
        Metric(
            "rm_pairwise",
            "RM pairs",
            {"votes": "RM pairwise accuracy"},
            HITS,
            "Pairwise accuracy: how often a good step has a higher mean vote than a bad one at the same index of the "
            "same task; a tie counts half. The policy's advantages compare the same steps, so they do not change when "
            "the reward model calls all steps better or worse; accuracy does.",
            headline=True,
            chance=0.5,
        ),
        Metric(
            "rm_outcome",
            "RM outcome",
            {"votes": "RM outcome accuracy"},
            HITS,
            "Outcome accuracy: share of the steps whose verdict is the outcome of their episode (plain, as in the "
            "paper).",
            paper={"ALFWorld": (0.596, 0.596, 0.611, 0.625), "OSWorld": (0.552, 0.552, 0.576, 0.604)},
        ),
        Metric(
            "ut",
            "UT",
            {"tests": "UT"},
            HITS,
            "UT: share of the written tests that every right program passes; a reply without a test counts as a wrong "
            "one.",
            headline=True,
            paper={
                "LiveBench": (0.278, 0.278, 0.733, 0.789),
                "LiveCodeBench-V2": (0.357, 0.357, 0.814, 0.816),
                "CodeContests": (0.438, 0.438, 0.860, 0.871),
            },
        ),
        Metric(
            "detect",
            "Detect",
            {"tests": "Detect"},
            HITS,
            "Detect: share that, besides, reject every wrong program.",
            paper={
                "LiveBench": (0.196, 0.196, 0.379, 0.485),
                "LiveCodeBench-V2": (0.281, 0.281, 0.490, 0.552),
                "CodeContests": (0.357, 0.357, 0.472, 0.555),
            },
        ),
        Metric(
            "accepted_tasks",
            "accepted",
            {"votes": "Accepted tasks", "tests": "Accepted tasks"},
            COUNT,
            headline=True,
            counter="accepted_total",
        ),
    )
}
"""Name -> metric of the reward model or of the whole run, in the order of the tables."""


def policy_metric(panel: str) -> Metric:
    """How often the policy succeeds on a panel."""
    label = _label(panel)
    titles = {writes: f"{title} {label}" for writes, title in SUCCESS.items()}
    if panel in CODE:
        return Metric(panel, label, titles, OUTCOMES, paper=CODE, benchmark=panel, panel=panel)
    paper = AGENTS.get(panel, {}) | (CODE if panel == "in_domain" else {})
    return Metric(panel, label, titles, OUTCOMES, paper=paper, panel=panel)


def named(name: str) -> Metric:
    """The metric of a name. One that is not the reward model's or the run's is the policy's on a panel of that name."""
    base, _, panel = name.partition("/")
    found = DECLARED.get(base)
    if found is None:
        return policy_metric(name)
    return found if not panel else _on(found, panel)


def kind_name(config: Config) -> str:
    """`judge.writes`, by which this room declares titles. `rewards.kind` is above this room, so it cannot be asked."""
    return config.judge.writes


def metrics_for(config: Config) -> tuple[Metric, ...]:
    """What experiments of this configuration measure, in the order of the tables: policy, reward model, counts."""
    writes, panels = kind_name(config), config.tasks.reward_panels
    mine = [metric for metric in DECLARED.values() if writes in metric.titles]
    reward = [metric for metric in mine if metric.is_share]
    return (
        *(policy_metric(panel) for panel in config.tasks.policy_panels),
        *(_among(metric, panel, panels) for panel in panels for metric in reward),
        *(metric for metric in mine if not metric.is_share),
    )


def _among(metric: Metric, panel: str, panels: tuple[str, ...]) -> Metric:
    """A metric of the reward model on one of its panels. The only one has no name of its own in it."""
    if len(panels) > 1:
        return named(on_panel(metric.name, panel, panels))
    return replace(metric, benchmark=panel if panel in metric.paper else "")


def _on(metric: Metric, panel: str) -> Metric:
    """A metric of the reward model on one of several panels. The paper has nothing beside those with other names."""
    label = _label(panel)
    return replace(
        metric,
        name=f"{metric.name}/{panel}",
        short=f"{metric.short} {label}",
        titles={writes: f"{title} on {label}" for writes, title in metric.titles.items()},
        results=f"{metric.stored}/{panel}",
        paper=metric.paper if panel in (*metric.paper, "reward_panel") else {},
        benchmark=panel if panel in metric.paper else "",
        panel=panel,
    )


def _label(panel: str) -> str:
    """A panel's name in a text."""
    return panel.replace("_", "-")

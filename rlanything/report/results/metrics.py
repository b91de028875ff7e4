"""The report's metrics, each declared once: tables, figures, sentences, exports and sweeps iterate over `METRICS`.

To add one: write its results into evaluation/<arm>.json under its name (and, for a curve, its points into metrics.jsonl
under `panel/<name>`) where they are measured, and declare it here. More is better in all of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from rlanything.core.splits import IN_DOMAIN, OUT_OF_DOMAIN
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
    counter: str = ""
    """For a count: the key of metrics.jsonl that has it so far."""
    chance: float | None = None
    """Value of a guess, marked in the figure."""
    paper: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    """Benchmark of the paper's Table 1 -> its values for the arms of `paper.ORDER`."""

    @property
    def stored(self) -> str:
        """The key of evaluation/<arm>.json that holds its results."""
        return self.results or self.name

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


METRICS: Mapping[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric(
            IN_DOMAIN,
            "in-domain",
            {"votes": "Accuracy in-domain", "tests": "Code in-domain"},
            OUTCOMES,
            paper={
                "ALFWorld": (0.390, 0.511, 0.556, 0.602),
                "LiveBench": (0.313, 0.388, 0.400, 0.432),
                "LiveCodeBench-V2": (0.269, 0.314, 0.317, 0.341),
                "CodeContests": (0.212, 0.258, 0.265, 0.273),
            },
        ),
        Metric(
            OUT_OF_DOMAIN,
            "out-of-domain",
            {"votes": "Accuracy out-of-domain", "tests": "Code out-of-domain"},
            OUTCOMES,
            paper={"ALFWorld": (0.449, 0.593, 0.618, 0.636)},
        ),
        Metric(
            "rm_process_plain",
            "RM process",
            {"votes": "RM process accuracy"},
            PLAIN_HITS,
            "Process accuracy: share of the steps whose verdict is their label (plain agreement, as in the paper).",
            results="rm_process",
            paper={"ALFWorld": (0.470, 0.470, 0.524, 0.564)},
        ),
        Metric(
            "rm_process",
            "RM bal.",
            {"votes": "RM process accuracy, balanced"},
            BALANCED_HITS,
            "Balanced: mean of the accuracy on good and on bad steps (a constant answer scores 50 %).",
            chance=0.5,
        ),
        Metric(
            "rm_outcome",
            "RM outcome",
            {"votes": "RM outcome accuracy"},
            HITS,
            "Outcome accuracy: share of the steps whose verdict is the outcome of their episode (plain, as in the "
            "paper).",
            paper={"ALFWorld": (0.596, 0.596, 0.611, 0.625)},
        ),
        Metric(
            "ut",
            "UT",
            {"tests": "UT"},
            HITS,
            "UT: share of the written tests that every right program passes; a reply without a test counts as a wrong "
            "one.",
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
            counter="accepted_total",
        ),
    )
}
"""Name -> metric, in the order of the tables."""
SUCCESS = tuple(metric for metric in METRICS.values() if metric.evidence is OUTCOMES)
"""How often the policy succeeds; the other shares are the reward model's."""


def metrics_for(writes: str) -> tuple[Metric, ...]:
    """The metrics of experiments whose `judge.writes` is `writes`, in the order of the tables."""
    return tuple(metric for metric in METRICS.values() if writes in metric.titles)
